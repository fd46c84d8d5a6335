"""Status of a sweep as plain values: counts, failures and the best trial."""

from __future__ import annotations

from collections import Counter
from typing import Any

from nasbo.feasibility import failing_regions
from nasbo.history import History, Trial
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.pick import front_rows
from nasbo.sweeps.rungs import rung_rows
from nasbo.sweeps.spending import n_full, n_trained, n_whole


def status(sweep: SweepFolder) -> dict[str, Any]:
    """Status of a sweep as plain values."""
    history, state = sweep.history, sweep.state
    counts, best = history.state_counts(), history.best
    n_running = counts["running"] if state == "running" else 0
    return {
        "state": state,
        "n_trials": sweep.budget,
        "finished": counts["finished"],
        "running": n_running,
        "waiting": counts["waiting"] + counts["running"] - n_running,
        "failed": counts["failed"],
        **({"paused": counts["paused"]} if counts["paused"] else {}),
        "causes": dict(history.cause_counts()),
        "retries": dict(history.retry_counts()),
        "fallbacks": sum(trial.source == "fallback" for trial in history.trials),
        "repeats": dict(Counter(run.cause or run.state for run in history.repeats)),
        "rounds": len(history.rounds),
        "set_aside": [
            f"{region}; tried again in round {region.next_probe}"
            for region in failing_regions(history)
        ],
        "expects_nothing": expects_nothing(history),
        "best": _best(best, history) if best else None,
        **(_rungs(history) if history.rungs else {}),
        **(_front(history) if len(history.objectives) > 1 else {}),
        "method": sweep.settings.method,
        "folder": sweep.name,
    }


def _front(history: History) -> dict[str, Any]:
    """Objectives, size of their front, and its hypervolume once there is a reference point."""
    volume = history.hypervolume
    return {
        "objectives": str(history.objectives),
        "front": len(history.front),
        **({} if volume is None else {"hypervolume": float(f"{volume:.6g}")}),
    }


def _rungs(history: History) -> dict[str, Any]:
    """Used budget, and one row per rung."""
    return {
        "spent": round(history.spent, 4),
        "configs": history.n_suggested,
        "in_full": n_full(history),
        "steps": n_trained(trial.first for trial in history.suggested),
        "steps_in_full": n_whole(history),
        "rungs": [row.to_json() for row in rung_rows(history)],
    }


def partial_columns(trial: Trial, history: History) -> dict[str, Any]:
    """Last value and step of a trial that was trained in part; empty for others."""
    if trial.partial is None:
        return {}
    full = {} if history.rungs is None else {"full": history.rungs.full}
    return {"last_value": trial.partial.value, "step": trial.partial.step, **full}


def estimate_columns(trial: Trial) -> dict[str, float]:
    """Mean and standard deviation of a trial's estimate; empty without one."""
    if trial.estimate is None:
        return {}
    return {"estimate": trial.estimate.mean, "estimate_sd": trial.estimate.sd}


def front_columns(history: History) -> dict[str, Any]:
    """The trials of the front with their values by objective; empty with one objective."""
    if len(history.objectives) == 1:
        return {}
    names = [one.metric for one in history.objectives]
    rows = [
        {"trial": trial.id, **dict(zip(names, values, strict=True)), "config": trial.config}
        for trial, values in front_rows(history)
    ]
    return {"front": rows}


def expects_nothing(history: History) -> list[str]:
    """Subspaces in which the method expected no improvement at its last decision."""
    last = max((trial.round for trial in history.suggested), default=-1)
    trials = [trial for trial in history.suggested if trial.round == last]
    hopeless = [trial for trial in trials if trial.info.get("expects_nothing")]
    return [history.subspace(trial).id + _acquisition(trial) for trial in hopeless]


def _acquisition(trial: Trial) -> str:
    if trial.acquisition is None:
        return ""
    name, value = trial.acquisition
    words = f"log-{name[4:].upper()}" if name.startswith("log_") else name
    return f" ({words} {value:.4g})"


def _best(trial: Trial, history: History) -> dict[str, Any]:
    return {
        "trial": trial.id,
        "value": trial.value,
        "values": list(trial.values),
        **partial_columns(trial, history),
        **estimate_columns(trial),
        **({"certainty": history.certainty} if trial.estimate else {}),
        "config": trial.config,
        "metrics": dict(trial.metrics),
        **({"origin": trial.info["origin"]} if "origin" in trial.info else {}),
    }
