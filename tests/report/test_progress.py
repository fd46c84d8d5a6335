"""The display of a running sweep, in a terminal and without one."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nasbo.history import History
from nasbo.report.progress import Progress, duration, sparkline, trial_line
from nasbo.search import Search


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
    assert lines[0].startswith("trial   0 of 10  round 0  kernel=linear  design  0.5000")
    assert "failed: crashed" in lines[1]
    assert "(ValueError: [/oops] [red])  best 0.5000" in lines[1]


def test_terminal_shows_rounds_trials_best_and_time_left() -> None:
    shown = _shown(_search(), is_terminal=True)
    for words in ("2/10 trials", "round 0", "best 0.5000", "left", "step 2/5  0.2500", "step 1"):
        assert words in shown


def test_results_from_before_are_not_printed_again() -> None:
    search = _search()
    text = io.StringIO()
    with Progress(Console(file=text, width=160), budget=10) as progress:
        progress(search.history)
        assert text.getvalue() == ""
        search.tell(2, 0.75)
        progress(search.history)
    assert text.getvalue().startswith("trial   2 of 10")


def test_line_of_a_trial_tells_how_long_it_took() -> None:
    search = _search()
    trial = search.history.trials[0]
    trial.started_at, trial.ended_at = 100.0, 142.0
    assert "0.5000  42 s" in trial_line(search.history, trial, 10)


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
