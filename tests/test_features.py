"""Numbers known of configs before a training: scales, caching, searches and sweeps with them."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from nasbo.errors import NasboError, SweepError
from nasbo.features import Features
from nasbo.gp.free_features import FreeFeatures
from nasbo.gp.rows import as_batches
from nasbo.history.data import Data
from nasbo.search import Search
from nasbo.space import Config, Space, load_space
from nasbo.surrogates.structured import StructuredGP
from nasbo.sweeps.settings import features_of, make_sweep
from nasbo.testing import SPACES
from tests.tune.sized import summary as sized_summary

SPACE: dict[str, Any] = {
    "kind": {
        "type": "choice",
        "range": ["a", "b"],
        "submodule": {
            "a": {"width": {"type": "powerint2", "range": [2, 9]}},
            "b": {"width": {"type": "powerint2", "range": [2, 9]}, "deep": {
                "type": "int", "range": [1, 5]}},
        },
    },
    "rate": {"type": "float", "range": [1e-4, 1], "log": True},
}  # fmt: skip


def sizes(config: Config) -> Mapping[str, float]:
    depth = config.get("deep") or 1
    return {"params": config["width"] ** 2 * depth, "layers": depth, "always": 3.0, "word": "x"}  # type: ignore[dict-item]


def loss(config: Config) -> float:
    return abs(np.log(sizes(config)["params"] / 3000)) + 0.1 * np.log10(config["rate"] / 0.01) ** 2


@pytest.fixture
def space() -> Space:
    return load_space(SPACE)


def test_numbers_are_scaled_and_constant_ones_left_out(space: Space) -> None:
    free = FreeFeatures(space, Features(sizes))
    assert free.names == ("params", "layers")
    rng = np.random.default_rng(1)
    found = [free.columns(s, s.sample(200, rng)) for s in space.subspaces()]
    both = np.concatenate(found)
    assert both.shape == (400, 2)
    assert (np.abs(both) <= 1.0).all()
    assert np.ptp(both, axis=0).min() > 0.9
    a, b = (space.subspace(at) for at in range(2))
    row = a.encode({"kind": "a", "width": 16, "rate": 0.1})[None]
    other = b.encode({"kind": "b", "width": 8, "deep": 4, "rate": 0.1})[None]
    assert free.columns(a, row)[0, 0] == pytest.approx(free.columns(b, other)[0, 0])  # 256 each
    steps = [a.encode({"kind": "a", "width": 2**k, "rate": 0.1})[None] for k in (3, 4, 5)]
    low, middle, high = (free.columns(a, one)[0, 0] for one in steps)
    assert high - middle == pytest.approx(middle - low)  # decades are taken as logarithms


def test_configs_that_differ_in_what_does_not_matter_are_described_once(space: Space) -> None:
    asked: list[Config] = []

    def counted(config: Config) -> Mapping[str, float]:
        asked.append(config)
        return sizes(config)

    free = FreeFeatures(space, Features(counted))
    subspace, rng = space.subspace(0), np.random.default_rng(0)
    rows = np.repeat(subspace.sample(1, rng), 50, 0)
    rate = [one.name for one in subspace.free].index("rate")
    rows[:, rate] = np.linspace(0, 1, 50)
    free.columns(subspace, rows)
    before = len(asked)
    again = free.columns(subspace, subspace.snap(rows + 0.0))
    assert len(asked) == before
    assert (again == again[0]).all()

    def by_rate(config: Config) -> Mapping[str, float]:
        return {"rate": config["rate"]}

    smooth = FreeFeatures(space, Features(by_rate)).columns(subspace, rows)
    assert (np.diff(smooth[:, 0]) > 0).all()


@pytest.mark.parametrize("name", sorted(SPACES))
def test_tables_have_the_values_of_the_rows(name: str) -> None:
    space, rng = load_space(SPACES[name]), np.random.default_rng(0)
    for index in rng.permutation(space.n_subspaces)[:10]:
        subspace = space.subspace(int(index))
        x = subspace.sample(7, rng)
        table = subspace.table(x)
        for at, row in enumerate(x):
            config = subspace.decode(row)
            assert table.keys() == config.keys()
            for key, value in config.items():
                got = table[key][at]
                if isinstance(value, list):
                    assert len(got) == len(value)
                    assert all(_is_same(*pair) for pair in zip(got, value, strict=True))
                else:
                    assert _is_same(got, value)


def _is_same(got: Any, value: Any) -> bool:
    if value is None:
        return got is None or bool(np.isnan(got))
    return bool(got == value)


def test_predictions_are_better_where_numbers_tell() -> None:
    widths = {f"w{at}": {"type": "choice", "range": [4, 8, 16, 32]} for at in range(6)}
    space = load_space(widths)

    def weights(config: Config) -> Mapping[str, float]:
        sizes = [config[name] for name in widths]
        return {"params": sum(a * b for a, b in itertools.pairwise(sizes))}

    def score(config: Config) -> float:
        return -float(abs(np.log(weights(config)["params"] / 1000)))

    plain, told = [], []
    free = FreeFeatures(space, Features(weights))
    for seed in range(6):
        rng = np.random.default_rng(seed)
        configs = [space.sample(rng) for _ in range(230)]
        y = np.array([score(config) for config in configs])
        subspaces, x = _rows(space, configs)
        data = Data(space, subspaces[:30], x[:30], y[:30], n_design=30)
        for model, found in ((StructuredGP(space), plain), (StructuredGP(space, free=free), told)):
            model.fit(data)
            with torch.no_grad():
                mean, _ = model.posteriors(as_batches(subspaces[30:], x[30:]))
            found.append(spearmanr(mean.numpy(), y[30:]).statistic)
    assert np.mean(told) > np.mean(plain) + 0.5


def _rows(space: Space, configs: list[Config]) -> Any:
    rows = [space.encode(config) for config in configs]
    return [subspace for subspace, _ in rows], [x for _, x in rows]


def run(search: Search, n: int) -> list[Config]:
    for _ in range(n):
        (trial,) = search.ask()
        search.tell(trial, loss(trial.config))
    return [trial.config for trial in search.history.trials]


def test_searches_with_numbers_differ_and_are_the_same_again(tmp_path: Path) -> None:
    plain = run(Search(SPACE, seed=3), 9)
    told = run(Search(SPACE, seed=3, features=sizes), 9)
    assert plain[:4] == told[:4]  # the design knows no numbers
    assert plain != told
    with Search(SPACE, seed=3, features=sizes, journal=tmp_path / "j.jsonl") as search:
        run(search, 6)
    with Search(SPACE, seed=3, features=sizes, journal=tmp_path / "j.jsonl") as search:
        assert run(search, 3) == told
    with pytest.raises(NasboError, match=r"begun with features=\['params', 'layers', 'always'\]"):
        Search(SPACE, seed=3, journal=tmp_path / "j.jsonl")


def test_what_cannot_be_used_is_said() -> None:
    with pytest.raises(NasboError, match=r"used by attnbo \(preset 'default'\) only, not by 'tpe'"):
        Search(SPACE, "tpe", features=sizes)
    with pytest.raises(NasboError, match="not by 'attnbo'"):
        Search(SPACE, preset="paper", features=sizes)
    with pytest.raises(NasboError, match="one of params, layers, always; got 'nope'"):
        Search(SPACE, features=Features(sizes, ("params", "nope")))
    with pytest.raises(NasboError, match="the summary, which has none"):
        Search(SPACE, features=lambda config: {})


def test_sweeps_take_the_marked_numbers_or_named_ones(space: Space) -> None:
    settings = {"space": "nas_cifar10", "trainer_options": {"recipe": "proxy"}}
    nas = load_space("nas_cifar10")
    assert features_of(make_sweep(settings), nas) is None
    marked = features_of(make_sweep(settings | {"features": "auto"}), nas)
    assert marked is not None
    assert marked.names == ("params", "flops", "layers", "receptive_field")
    sent = pickle.loads(pickle.dumps(marked))
    named = features_of(make_sweep(settings | {"features": ["memory_bytes", "flops"]}), nas)
    assert named is not None
    subspace = nas.subspace(1)
    x = subspace.sample(20, np.random.default_rng(0))
    quick = FreeFeatures(nas, sent)
    slow = FreeFeatures(nas, Features(marked.describe, marked.names))
    np.testing.assert_allclose(quick.columns(subspace, x), slow.columns(subspace, x), rtol=1e-12)
    assert FreeFeatures(nas, named).columns(subspace, x).shape == (20, 2)
    with pytest.raises(SweepError, match="features must be auto, none or names"):
        make_sweep(settings | {"features": []})
    with pytest.raises(NasboError, match=r"one of params, .*; got 'nope'"):
        features_of(make_sweep(settings | {"features": ["nope"]}), nas)


def test_a_summary_without_marks_offers_all_its_numbers() -> None:
    space = load_space({"n": {"type": "int", "range": [1, 65]}})
    features = Features(lambda config: sized_summary(config, {}))
    assert set(features.names_in(space)) == {"params", "flops", "seconds"}
