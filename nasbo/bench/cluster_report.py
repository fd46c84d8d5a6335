"""Summary and plot of simulated clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nasbo.bench.cluster import Course
from nasbo.bench.figures import COLORS, new_figure, save

MARKS = (0.25, 0.5, 0.75, 1.0)
"""Fractions of the mean duration of the faster schedule at which best values are compared."""
N_COMPARED = 40
NEAR = 1e-4
"""Tolerance for equal best values, as a fraction of the whole improvement."""


def summarise(courses: Sequence[Course]) -> dict[str, Any]:
    """Numbers by schedule, averaged over seeds, and a comparison of both
    schedules at equal times.
    """
    schedules = list(dict.fromkeys(course.cluster.schedule for course in courses))
    horizon = min(_mean_end(courses, schedule) for schedule in schedules)
    found: dict[str, Any] = {
        "schedules": {name: _one(_of(courses, name), horizon) for name in schedules},
        "horizon_s": horizon,
    }
    if set(schedules) == {"round", "async"}:
        found["async_against_round"] = _versus(_of(courses, "async"), _of(courses, "round"))
    return found


def _of(courses: Sequence[Course], schedule: str) -> list[Course]:
    return [course for course in courses if course.cluster.schedule == schedule]


def _mean_end(courses: Sequence[Course], schedule: str) -> float:
    return float(np.mean([course.end_s for course in _of(courses, schedule)]))


def _one(courses: Sequence[Course], horizon: float) -> dict[str, Any]:
    decisions = [decision for course in courses for decision in course.decisions]
    seconds = [cost for _, _, cost in decisions]
    first = courses[0].cluster
    total = [course.busy_s + course.thinking_s + course.waiting_s for course in courses]
    return {
        "busy_share": float(np.mean([course.busy_share for course in courses])),
        "busy_share_to_the_end": float(np.mean([course.all_busy_share for course in courses])),
        "thinking_share": float(
            np.mean([c.thinking_s / max(t, 1e-12) for c, t in zip(courses, total, strict=True)])
        ),
        "waiting_share": float(
            np.mean([c.waiting_s / max(t, 1e-12) for c, t in zip(courses, total, strict=True)])
        ),
        "end_s": float(np.mean([course.end_s for course in courses])),
        "n_decisions": len(decisions) / len(courses),
        "configs_per_decision": float(np.mean([n for _, n, _ in decisions])),
        "decision_s_median": float(np.median(seconds)),
        "decision_s_p95": float(np.quantile(seconds, 0.95)),
        "fallback_share": sum(c.n_fallbacks for c in courses) / sum(c.n_trials for c in courses),
        "best": {
            f"{mark:.0%}": _finite(np.median([c.best_at(mark * horizon) for c in courses]))
            for mark in MARKS
        },
        "workers": first.workers,
        "n_seeds": len(courses),
    }


def _versus(fast: Sequence[Course], slow: Sequence[Course]) -> dict[str, Any]:
    """Share of common times at which one schedule is better, equal or worse, paired by seed."""
    better = equal = times = 0
    for one, other in zip(fast, slow, strict=True):
        values = [value for course in (one, other) for _, value in course.improvements]
        near = NEAR * (max(values) - min(values)) if values else 0.0
        for at in np.linspace(0.0, min(one.end_s, other.end_s), N_COMPARED + 1)[1:]:
            mine, theirs = one.best_at(float(at)), other.best_at(float(at))
            times += 1
            is_equal = mine == theirs or abs(mine - theirs) <= near
            equal += is_equal
            better += mine < theirs and not is_equal
    return {
        "better": better / times,
        "equal": equal / times,
        "worse": 1.0 - (better + equal) / times,
        "n_times": times,
    }


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def verdicts(summary: dict[str, Any], bar: float = 0.97) -> list[str]:
    """The summary as text; below ``bar`` it names what the workers wait for."""
    lines = []
    for name, one in summary["schedules"].items():
        share = one["busy_share"]
        words = f"{name}: workers are {share:.1%} busy while there is work"
        if share < bar:
            lost, waited = one["thinking_share"], one["waiting_share"]
            words += (
                f"; {lost:.1%} of their time goes to waiting for a decision "
                f"({one['decision_s_median']:.2f} s in the median, one at a time), "
                f"{waited:.1%} to waiting for the other trials of a round"
            )
        lines.append(words)
    if versus := summary.get("async_against_round"):
        lines.append(
            f"async against round at the same times: best value better at {versus['better']:.0%}, "
            f"equal at {versus['equal']:.0%}, worse at {versus['worse']:.0%} of them"
        )
    return lines


def plot_courses(courses: Sequence[Course], title: str, path: Path) -> Path:
    """Plot the best value over simulated time, one line per seed."""
    figure, axes = new_figure(title, "simulated hours", "best value so far")
    schedules = list(dict.fromkeys(course.cluster.schedule for course in courses))
    for index, schedule in enumerate(schedules):
        for number, course in enumerate(_of(courses, schedule)):
            times = [at / 3600 for at, _ in course.improvements] + [course.end_s / 3600]
            best = [value for _, value in course.improvements]
            label = schedule if number == 0 else None
            color = COLORS[index]
            axes.step(times, [*best, best[-1]], where="post", color=color, alpha=0.7, label=label)
    axes.legend(frameon=False)
    return save(figure, path)
