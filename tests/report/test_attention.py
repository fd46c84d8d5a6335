"""Attention maps of the best configs."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.report.attention import (
    MAX_ROWS,
    NoAttentionError,
    _thin,
    attention_maps,
    best_per_subspace,
)
from nasbo.search import Search
from tests.report.sample import history_of, make_folder


def test_maps_of_the_best_subspaces(folder: Path) -> None:
    history = history_of(folder)
    maps = attention_maps(history, "attnbo", n_maps=2)
    assert [one.trial.id for one in maps] == [t.id for t in best_per_subspace(history)[:2]]
    for one in maps:
        n = history.subspace(one.trial).n_parameters
        assert len(one.labels) == len(one.weights) == n
        assert all(sum(row) == pytest.approx(1.0, abs=1e-4) for row in one.weights)
        assert not one.is_trained
    assert "kernel_size[2]" in maps[0].labels


def test_best_per_subspace_by_mode(tmp_path: Path) -> None:
    history = history_of(make_folder(tmp_path / "min", 20, "svm", mode="min"))
    best = best_per_subspace(history)
    assert len(best) == len({trial.subspace for trial in best}) > 1
    for trial in best:
        values = [t.value for t in history.trials if t.subspace == trial.subspace and t.value]
        assert trial.value == min(values)
    assert [t.value for t in best] == sorted(t.value or 0.0 for t in best)


def test_the_papers_encoder_is_trained_on_the_history(tmp_path: Path) -> None:
    history = history_of(make_folder(tmp_path / "paper", 4, "svm"))
    trained = attention_maps(history, "attnbo", {"preset": "paper"}, n_maps=1)[0]
    fixed = attention_maps(history, "attnbo", n_maps=1)[0]
    assert trained.is_trained
    assert all(sum(row) == pytest.approx(1.0, abs=1e-4) for row in trained.weights)
    assert trained.weights != fixed.weights


def test_reasons_to_have_none(folder: Path) -> None:
    history = history_of(folder)
    with pytest.raises(NoAttentionError, match="random has no attention"):
        attention_maps(history, "random")
    with pytest.raises(NoAttentionError, match="attention=off"):
        attention_maps(history, "attnbo", {"attention": "off"})
    with pytest.raises(NoAttentionError, match="fewer than two results"):
        attention_maps(Search("svm", method="random").history, "attnbo")


def test_thinning_keeps_the_best_and_the_order(tmp_path: Path) -> None:
    rows = history_of(make_folder(tmp_path / "many", 120, "svm")).rows()
    thinned = _thin(rows)
    numbers = [trial.id for trial, _ in thinned]
    assert len(set(numbers)) == MAX_ROWS
    assert numbers == sorted(numbers)
    best = sorted(rows, key=lambda row: -row[1])[: MAX_ROWS // 2]
    assert {trial.id for trial, _ in best} <= set(numbers)
    assert _thin(rows[:5]) == rows[:5]
