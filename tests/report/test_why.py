"""Explanation of a trial as text."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from nasbo.errors import NasboError
from nasbo.history import Trial
from nasbo.report.why import _suggested, describe_why
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import make_sweep
from tests.report.sample import make_folder


def _text(what: RenderableType) -> str:
    text = io.StringIO()
    Console(file=text, width=200).print(what)
    return text.getvalue()


def test_a_finished_trial(folder: Path) -> None:
    sweep = SweepFolder(folder)
    trial = sweep.history.trial(20)
    shown = _text(describe_why(sweep, 20))
    assert f"trial 20 ({sweep.history.subspace(trial).id})" in shown
    assert "round 5, model, predicted 0.6 (0.5 to 0.7), log_ei -1" in shown
    assert re.search(r"prediction +val_accuracy \S+, from the 21 other results", shown)
    assert re.search(r"to \S+ within one standard deviation; noise of a result: \d", shown)
    assert f"{trial.value:.5g}, " in shown
    assert re.search(r"improvement +\S+ expected, beyond the best", shown)
    assert "nearest known configs" in shown
    assert "what speaks for it and against it" in shown
    assert re.search(r"\d (better|worse)", shown)
    assert "more parameters, none with more than" in shown


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"log_ei": -1.5}, "model, log_ei -1.5"),
        ({"log_ei": None}, "model"),
        ({"scored_by": "own", "own": 2.5, "reason": "why not"}, "model, own 2.5, why not"),
        ({"scored_by": "own", "own": None, "predicted": 1.0}, "model"),
    ],
)
def test_the_acquisition_is_named_and_older_journals_have_log_ei(
    info: dict[str, object], words: str
) -> None:
    assert _suggested(Trial(0, {}, 0, "model", -1, info)) == words


def test_a_failed_and_an_open_trial(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 12, "svm", mode="min")
    assert "none, crashed" in _text(describe_why(SweepFolder(folder), 8))
    with Search("svm", "attnbo", "min", journal=folder / JOURNAL_FILE) as search:
        (trial,) = search.ask(1)
    shown = _text(describe_why(SweepFolder(folder), trial.id))
    assert "none yet, running" in shown
    assert "from the 11 other results" in shown


def test_better_and_worse_follow_the_mode(tmp_path: Path) -> None:
    for mode, words in (("min", "worse than the interval"), ("max", "better than the interval")):
        create_folder(
            tmp_path / mode, make_sweep({"space": "svm", "trainer": "own:train", "mode": mode})
        )
        with Search("svm", "attnbo", mode, journal=tmp_path / mode / JOURNAL_FILE) as search:
            for trial in search.ask(8):
                search.tell(trial, 900.0 if trial.id == 5 else 0.01 * trial.id)
        assert words in _text(describe_why(SweepFolder(tmp_path / mode), 5))


def test_errors_say_what_is_missing(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NasboError, match="no trial 24: they go from 0 to 23"):
        describe_why(SweepFolder(folder), 24)
    create_folder(tmp_path / "new", make_sweep({"space": "svm", "trainer": "own:train"}))
    with pytest.raises(NasboError, match="no trial 0: there are none yet"):
        describe_why(SweepFolder(tmp_path / "new"), 0)
    few = make_folder(tmp_path / "few", 2, "svm")
    with pytest.raises(NasboError, match="attnbo cannot explain trial 0: fewer than two other"):
        describe_why(SweepFolder(few), 0)
    plain = make_folder(tmp_path / "plain", 4, "svm", method="random")
    with pytest.raises(NasboError, match="random cannot explain trial 1: the method has no surr"):
        describe_why(SweepFolder(plain), 1)
