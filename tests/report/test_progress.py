"""Display of a running sweep, in a terminal and without one."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from nasbo.history import Attempt, History, Trial
from nasbo.methods import Suggestion
from nasbo.report.progress import (
    Progress,
    covered,
    duration,
    head_row,
    run_line,
    sparkline,
    time_left,
    value_text,
)
from nasbo.search import Search
from tests.events import finished
from tests.report.sample import history_of


def _search() -> Search:
    search = Search("svm", method="random", mode="max")
    first, second, third, fourth = search.ask(4)
    search.tell(first, 0.5)
    search.tell(second, error="crashed", message="ValueError: [/oops] [red]")
    search.report(third, 2, 0.25, {"epochs": 5})
    search.report(fourth, 1, None, {})
    return search


def _shown(search: Search, is_terminal: bool) -> str:
    text = io.StringIO()
    console = Console(file=text, width=160, force_terminal=is_terminal, color_system=None)
    with Progress(console, budget=10) as progress:
        progress(History(search.space, "max"))
        progress(search.history)
        progress(search.history)
    return text.getvalue()


def test_lines_without_a_terminal() -> None:
    lines = _shown(_search(), is_terminal=False).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(" 1 of 10  trial 0  round 0  kernel=linear  design  0.5000")
    assert "failed: crashed" in lines[1]
    assert "(ValueError: [/oops] [red])  best 0.5000" in lines[1]


def test_results_from_elsewhere_do_not_count_against_the_budget() -> None:
    search = Search("svm", method="random", mode="max")
    rng = np.random.default_rng(0)
    for _ in range(16):
        search.observe(search.space.sample(rng), 0.5)
    text = io.StringIO()
    progress = Progress(Console(file=text, width=160), budget=12)
    progress(search.history)
    for trial in search.ask(2):
        search.tell(trial, 0.25)
        progress(search.history)
    lines = text.getvalue().splitlines()
    assert [line[:19] for line in lines] == [" 1 of 12  trial 16 ", " 2 of 12  trial 17 "]


def test_lines_tell_what_was_known_when_a_trial_ended() -> None:
    search = Search("svm", method="random", mode="max", notes={"repeats": 1})
    first, second = search.ask(2)
    search.record(finished(first.id, 0.5, time=10.0), finished(second.id, 0.9, time=20.0))
    (again,) = search.repeat(search.history.trial(first.id))
    search.record(finished(again.number, 0.7, time=30.0))
    text = io.StringIO()
    progress = Progress(Console(file=text, width=160), budget=2)
    progress(Search("svm", method="random", mode="max").history)
    progress(search.history)
    ends = [line.split("  ") for line in text.getvalue().splitlines()]
    assert [end[-1] for end in ends] == ["best 0.5000", "best 0.9000", "best 0.9000"]
    assert [end[5] for end in ends] == ["0.5000", "0.9000", "0.7000"]


def test_a_line_of_a_finalist_names_its_rank_its_trial_and_its_seed() -> None:
    search = Search("svm", method="random", mode="max", notes={"repeats": 1})
    (trial,) = search.ask(1)
    info = {"search_trial": 25, "search_values": (0.5,)}
    search.add_round([Suggestion(trial.config, "design", info)], 0.0)
    (again,) = search.repeat(search.history.trial(1))
    lines = [run_line(search.history, run, 2, 2) for run in (search.history.run(1), again)]
    assert "  finalist 2 (trial 25)  seed 1 of 2  kernel=" in lines[0]
    assert "  finalist 2 (trial 25)  seed 2 of 2  kernel=" in lines[1]


def test_terminal_shows_rounds_trials_best_and_time_left() -> None:
    shown = _shown(_search(), is_terminal=True)
    for words in ("waiting for Ray", "2/10 trials", "round 0", "best 0.5000", "left",
                  "step 2/5  0.2500", "step 1"):  # fmt: skip
        assert words in shown


@pytest.mark.parametrize("width", [80, 100, 200])
def test_head_stays_on_one_line(width: int) -> None:
    text, search = io.StringIO(), _search()
    console = Console(file=text, width=width, color_system=None)
    words = ["busy 99%", "about 10 min left"]
    console.print(head_row(search.history, 10, ["running"], words))
    (line,) = text.getvalue().splitlines()
    for part in ("running", "━", "2/10 trials", "round 0", "best 0.5000", *words):
        assert part in line


def test_only_so_many_running_trials_are_listed() -> None:
    search = Search("svm", method="random", mode="max")
    search.ask(40)
    text = io.StringIO()
    console = Console(file=text, width=100, height=60, force_terminal=True, color_system=None)
    with Progress(console, budget=50) as progress:
        progress(search.history)
    assert "trial 15 " in text.getvalue()
    assert "trial 16 " not in text.getvalue()
    assert "and 24 more" in text.getvalue()


def test_results_from_before_are_not_printed_again() -> None:
    search = _search()
    text = io.StringIO()
    with Progress(Console(file=text, width=160), budget=10) as progress:
        progress(search.history)
        assert text.getvalue() == ""
        search.tell(2, 0.75)
        progress(search.history)
    assert text.getvalue().startswith(" 3 of 10  trial 2 ")


def test_line_of_a_trial_tells_how_long_it_took() -> None:
    search = _search()
    attempts = (Attempt(100.0, 110.0), Attempt(4000.0, 4032.0))
    run = replace(search.history.run(0), attempts=attempts)
    assert "0.5000  42 s" in run_line(search.history, run, 1, 10)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (7200, "2.0 h")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_sparkline() -> None:
    assert sparkline([]) == ""
    assert sparkline([1.0, 1.0]) == "██"
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert len(sparkline([float(n) for n in range(99)])) == 40


def test_time_left_goes_by_the_trials_that_ended_last(folder: Path) -> None:
    """Six rounds of four trials of 60 s each, with a night between two of them."""
    history = history_of(folder)
    decisions = sum(one.seconds for one in history.rounds)
    assert time_left(history, 48) == pytest.approx(24 * (6 * 60 + decisions) / 24)
    view = history.snapshot()
    later = [_moved(trial, 3e4) for trial in view.trials[12:]]
    view.trials = (*view.trials[:12], *later)
    assert time_left(view, 48) == pytest.approx(6 * 60 + decisions)
    again = view.trials[11]  # interrupted before the night, restarted after it
    run = replace(again.first, attempts=again.attempts + later[0].attempts, ended_at=3e9)
    view.trials = (*view.trials[:11], replace(again, runs=(run,)), *later)
    assert time_left(view, 48) == pytest.approx(6 * 60 + decisions)
    assert time_left(history, 24) is None
    assert time_left(Search("svm", method="random").history, 5) is None


def _moved(trial: Trial, seconds: float) -> Trial:
    """The same trial at a later time."""
    (only,) = trial.attempts
    attempts = (Attempt(only.start + seconds, (only.end or 0.0) + seconds),)
    ended_at = (trial.ended_at or 0.0) + seconds
    return replace(trial, runs=(replace(trial.first, attempts=attempts, ended_at=ended_at),))


def test_covered_time() -> None:
    assert covered([]) == 0
    assert covered([(5, 9), (0, 4), (1, 2), (3, 6), (20, 21)]) == 10


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0.0000"), (0.5, "0.5000"), (-12.34567, "-12.3457"), (1e-9, "1e-09"), (3e7, "3e+07")],
)
def test_values(value: float, words: str) -> None:
    assert value_text(value) == words
