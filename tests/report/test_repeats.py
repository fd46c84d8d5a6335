"""Repeats in reports: they use slots, but a config counts once, with its mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.report.study import open_study
from nasbo.report.watch import tallies
from nasbo.report.write import FIGURES, write_report
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from tests.report.sample import make_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sweep over ``svm`` whose best trial was repeated with a far better value."""
    made = make_folder(tmp_path / "s", 10, "svm")
    with Search("svm", mode="max", journal=made / JOURNAL_FILE) as search:
        best = search.history.best
        assert best is not None
        for trial in search.repeat(best, best):
            search.start(trial)
            search.tell(trial, 1e9)
    return made


def test_a_config_counts_once(folder: Path) -> None:
    study = open_study(folder)
    assert len(study.history.repeats) == 2
    assert len(study.ended) == 10
    best = study.ranked[0]
    assert best.value == pytest.approx((best.values[0] + 2e9) / 3)
    assert max(study.values) < 1e9
    assert sum(tally.n_trials for tally in tallies(study.history)) == 10
    assert study.history.best_per_subspace()[0].id == best.id


def test_every_figure_is_drawn(folder: Path) -> None:
    text = write_report(folder, None).read_text()
    assert "Best so far" in text
    assert FIGURES["timeline"](open_study(folder)).caption
