"""Attention maps of the best configs."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nasbo.gp.encoder import EncoderShape, make_encoder
from nasbo.gp.tokens import Tokenizer
from nasbo.history.data import Data
from nasbo.methods import make_method
from nasbo.methods.attnbo import AttnBO
from nasbo.methods.base import Task
from nasbo.methods.explanation import MAX_MAPS, thin
from nasbo.report.attention import (
    NoAttentionError,
    attention_maps,
)
from nasbo.search import Search
from nasbo.space import Subspace
from nasbo.surrogates.attention import AttentionGP
from tests.report.sample import history_of, make_folder


def test_blocks_attend_to_each_other(folder: Path) -> None:
    (one,) = attention_maps(history_of(folder), "attnbo")
    assert one.kind == "units"
    assert one.title.startswith("7 units: conv_op, expand_ratio")
    assert one.labels == tuple(f"nums_block[{index}]" for index in range(1, 8))
    for index, row in enumerate(one.weights):
        assert sum(row) == pytest.approx(1.0)
        assert max(row) == row[index]


def test_what_is_shared_was_learned(tmp_path: Path) -> None:
    """Two functions of the branches of one type: the same one, and an unrelated one."""
    space = {
        "kind": {
            "type": "choice",
            "range": ["a", "b"],
            "submodule": {value: {"x": {"type": "float", "range": [0, 1]}} for value in ("a", "b")},
        }
    }
    shares = []
    for turn in (0.0, 2.0):
        search = Search(space, method="random", mode="min", seed=1)
        for trial in search.ask(40):
            phase = turn * (trial.config["kind"] == "b")
            search.tell(trial, math.sin(6.0 * trial.config["x"] + phase))
        (one,) = attention_maps(search.history, "attnbo")
        assert one.labels == ("kind=a", "kind=b")
        shares.append(one.weights[0][1])
    assert shares[0] > shares[1]


def test_maps_of_the_best_subspaces(folder: Path) -> None:
    history = history_of(folder)
    maps = attention_maps(history, "attnbo", {"preset": "paper"}, n_maps=2)
    assert [one.trial and one.trial.id for one in maps] == [
        t.id for t in history.best_per_subspace()[:2]
    ]
    for one in maps:
        assert one.trial is not None
        n = history.subspace(one.trial).n_parameters
        assert len(one.labels) == len(one.weights) == n
        assert all(sum(row) == pytest.approx(1.0, abs=1e-4) for row in one.weights)
        assert one.kind == "trained encoder"
    assert "kernel_size[2]" in maps[0].labels


def test_maps_are_made_for_no_more_subspaces_than_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = [f"k{number}" for number in range(7)]
    kind = {"type": "choice", "range": kinds, "submodule": dict.fromkeys(kinds)}
    search = Search({"kind": kind}, method="random", mode="min")
    for trial in search.ask(7):
        search.tell(trial, float(trial.id))
    assert len(search.history.best_per_subspace()) == 7
    asked: list[int] = []
    whole = AttentionGP.attention_map

    def count(self: AttentionGP, subspace: Subspace, x: torch.Tensor) -> torch.Tensor:
        asked.append(subspace.index)
        return whole(self, subspace, x)

    monkeypatch.setattr(AttentionGP, "attention_map", count)
    told = make_method("attnbo", search.space, preset="paper").explain(search.history)
    best = [trial.subspace for trial in search.history.best_per_subspace()]
    assert asked == best[:MAX_MAPS]
    assert len(told.maps) == MAX_MAPS


def test_best_per_subspace_by_mode(tmp_path: Path) -> None:
    history = history_of(make_folder(tmp_path / "min", 20, "svm", mode="min"))
    best = history.best_per_subspace()
    assert len(best) == len({trial.subspace for trial in best}) > 1
    for trial in best:
        values = [t.value for t in history.trials if t.subspace == trial.subspace and t.value]
        assert trial.value == min(values)
    assert [t.value for t in best] == sorted(t.value or 0.0 for t in best)


def test_the_papers_encoder_is_trained_on_the_history(tmp_path: Path) -> None:
    history = history_of(make_folder(tmp_path / "paper", 4, "svm"))
    trained = attention_maps(history, "attnbo", {"preset": "paper"}, n_maps=1)[0]
    assert trained.kind == "trained encoder"
    assert all(sum(row) == pytest.approx(1.0, abs=1e-4) for row in trained.weights)
    assert trained.trial is not None
    subspace = history.subspace(trained.trial)
    x = torch.from_numpy(subspace.encode(trained.trial.config)[None])
    fresh = make_encoder(history.space, EncoderShape(), 0, torch.float32)
    (before,) = fresh.attention_map(Tokenizer(history.space).batch([(subspace, x)]))
    assert not torch.allclose(torch.tensor(trained.weights), before, atol=1e-5)


def test_reasons_to_have_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "smac", None)  # as if it were not installed
    history = history_of(folder)
    with pytest.raises(NoAttentionError, match="random has no attention"):
        attention_maps(history, "random")
    with pytest.raises(NoAttentionError, match="attnbo has no attention"):
        attention_maps(history, "attnbo", {"attention": "off"})
    with pytest.raises(NoAttentionError, match="fewer than two results"):
        attention_maps(Search("svm", method="random").history, "attnbo")
    with pytest.raises(NoAttentionError, match=r"attnbo cannot be had here.*structured"):
        attention_maps(history, "attnbo", {"structured": "off"})
    with pytest.raises(NoAttentionError, match=r"smac cannot be had here: .* pip install"):
        attention_maps(history, "smac")
    flat = Search({"x": {"type": "float", "range": [0, 1]}}, method="random", mode="min")
    for trial in flat.ask(3):
        flat.tell(trial, trial.config["x"])
    with pytest.raises(NoAttentionError, match="no two units of one type"):
        attention_maps(flat.history, "attnbo")


def test_thinning_keeps_the_best_and_the_order(tmp_path: Path) -> None:
    rows = history_of(make_folder(tmp_path / "many", 120, "svm")).rows()
    thinned = thin(rows, 48)
    numbers = [trial.id for trial, _ in thinned]
    assert len(set(numbers)) == 48
    assert numbers == sorted(numbers)
    best = sorted(rows, key=lambda row: -row[1])[: 48 // 2]
    assert {trial.id for trial, _ in best} <= set(numbers)
    assert thin(rows[:5], 48) == rows[:5]


def test_the_surrogate_has_the_output_scale_of_the_sweep() -> None:
    unit = {"type": "float", "range": [0, 1]}
    kinds = ["a", "b", "c", "d", "e", "f", "g", "h"]
    branches = {name: {"x": unit, "y": unit} for name in kinds}
    kind = {"type": "choice", "range": kinds, "submodule": branches}
    search = Search({"kind": kind}, mode="max")
    for _ in range(3):
        for trial in search.ask(16):
            search.tell(trial, float(trial.config["x"]) ** 3 - 80.0 * (8 <= trial.id < 16))
    history = search.history
    drawn = AttnBO(search.space, 0).fit_to_explain(history.rows())
    own = AttnBO(search.space, 0).make_surrogate(Task.empty(search.space, 0))
    own.fit(Data.of_trials(search.space, history.rows()))
    scores = [drawn.scale.to_score(z) for z in (-2.0, 0.0, 1.5)]
    assert scores == [own.scale.to_score(z) for z in (-2.0, 0.0, 1.5)]
    assert own.scale.to_score(0.0) != pytest.approx(_without_design(search).scale.to_score(0.0)), (
        "the design decides the scale"
    )


def _without_design(search: Search) -> Any:
    data = replace(Data.of_trials(search.space, search.history.rows()), n_design=0)
    model = AttnBO(search.space, 0).make_surrogate(Task.empty(search.space, 0))
    model.fit(data)
    return model


def test_a_surrogate_tells_its_noise_and_what_matters() -> None:
    unit = {"type": "float", "range": [0, 1]}
    search = Search({"x": unit, "idle": unit}, method="random", mode="min", seed=1)
    for trial in search.ask(30):
        search.tell(trial, 100.0 * math.sin(6.0 * trial.config["x"]))
    told = make_method("gp", search.space).explain(search.history)
    assert told.lengthscales["x"] < told.lengthscales["idle"]
    assert told.noise_sd is not None
    assert 0.0 < told.noise_sd < 30.0
    assert (told.maps, told.reason) == ([], "the surrogate has no attention")
    off = make_method("attnbo", search.space, attention="off").explain(search.history)
    assert (off.maps, off.reason) == ([], "the surrogate has no attention")
    assert make_method("random", search.space).explain(search.history).reason
