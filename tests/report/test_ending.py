"""How the end of a run is told."""

from __future__ import annotations

import pytest

from nasbo.report.ending import result_line, what_next
from nasbo.search import Search
from nasbo.sweeps.valueless import UNJUDGED
from nasbo.tune.run import Outcome

pytestmark = [pytest.mark.ray]


def ended(state: str, n_good: int, n_crashed: int, n_open: int = 0, reason: str = "") -> Outcome:
    search = Search("svm", method="random")
    trials = search.ask(n_good + n_crashed + n_open)
    for number, trial in enumerate(trials[: n_good + n_crashed]):
        is_good = number < n_good
        search.tell(trial, 1.0 if is_good else None, error=None if is_good else "crashed")
    return Outcome(state, search.history, reason)


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (ended("finished", 2, 1), "finished: 3 of 3 trials in 1 round, 1 failed, 16 s"),
        (ended("finished", 3, 0), "finished: 3 of 3 trials in 1 round, 0 failed, 16 s"),
        (ended("finished", 0, 3), "failed: 3 of 3 trials in 1 round, 3 failed, 16 s"),
        (ended("interrupted", 1, 0, 2), "interrupted: 1 of 3 trials in 1 round, 16 s"),
        (
            ended("failed", 0, 0, 3, f"{UNJUDGED}: no loss"),
            "failed: 0 of 3 trials in 1 round, 16 s; no trial can be judged: no loss",
        ),
    ],
)
def test_the_line_of_the_result(outcome: Outcome, line: str) -> None:
    assert result_line(outcome, 3, 16.0) == line


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ended("finished", 1, 2), ""),
        (ended("interrupted", 0, 1, 2), "continue with: nasbo resume s"),
        (ended("failed", 1, 1, 1), "continue with: nasbo resume s"),
        (ended("finished", 0, 3), "fix it, then nasbo resume s --trials N, or remove s"),
        (ended("failed", 0, 2, 1), "fix it and continue with nasbo resume s, or remove s"),
        (
            ended("failed", 0, 0, 3, f"{UNJUDGED}: no loss"),
            "for another metric remove s and run again with --metric NAME",
        ),
    ],
)
def test_what_is_to_be_done_next(outcome: Outcome, words: str) -> None:
    told = what_next("s", outcome, 3)
    assert words in told
    assert bool(words) == bool(told)
