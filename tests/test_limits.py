"""Constraints: parsing, messages, and searches that respect them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nasbo.errors import NasboError, SweepError
from nasbo.limits import MAX_DRAWS, Limits, numbers_of, parse_limits
from nasbo.search import Search
from nasbo.search.schedule import design_left
from nasbo.space import Config, load_space
from nasbo.testing import SPACES

SPACE = {"n": {"type": "int", "range": [1, 20]}, "x": {"type": "float", "range": [0, 1]}}


def sizes(config: Config) -> Mapping[str, Any]:
    return {"params": 1000 * config["n"], "FLOPs": 5.0, "is_small": True, "rows": []}


def limits(*texts: str) -> Limits:
    return Limits(parse_limits(texts), sizes)


@pytest.mark.parametrize(
    ("text", "n", "says"),
    [
        ("parameters<=2e3", 2, None),
        ("parameters <= 2e3", 3, "parameters <= 2000 must hold, but got 3000"),
        ("params < 2000", 2, "params < 2000 must hold, but got 2000"),
        ("Params>=5_000", 5, None),
        ("params > 5000", 5, "must hold, but got 5000"),
        ("flops <= 5", 1, None),
        ("memory <= 5", 1, "no number 'memory'; known: params, FLOPs"),
    ],
)
def test_a_limit_says_what_it_breaks_on(text: str, n: int, says: str | None) -> None:
    found = limits(text).violation({"n": n, "x": 0.5})
    assert found is None if says is None else says in str(found)
    assert limits(text)({"n": n, "x": 0.5}) == (says is None)


@pytest.mark.parametrize("text", ["params", "params = 3", "<= 3", "params <= many", "a<=nan", 3])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(SweepError, match="a constraint must be like 'parameters <= 2e6', got"):
        parse_limits([text])


def test_configs_that_cannot_be_described_are_outside() -> None:
    broken = Limits(parse_limits(["params<=1"]), lambda config: {"params": 1 / 0})
    assert broken.violation({"n": 1}) == "no summary: ZeroDivisionError: division by zero"
    assert broken.values({"n": 1}) == [None]
    assert numbers_of(sizes({"n": 2})) == {"params": 2000.0, "FLOPs": 5.0}


def test_limits_that_nothing_keeps_to_are_refused_at_the_door(tmp_path: Path) -> None:
    with pytest.raises(NasboError, match=f"none of {MAX_DRAWS:,} drawn ones did") as raised:
        Search(SPACE, "random", limits=limits("params<=10"), journal=tmp_path / "j")
    assert "params <= 10: values from 1000 to 19000" in str(raised.value)
    assert not (tmp_path / "j").exists()


def test_a_subspace_without_allowed_configs_leaves_its_places_to_others() -> None:
    space = load_space(SPACES["nested"])
    barren = space.subspace(0)
    search = Search(space, "random", limits=lambda c: space.subspace_of(c).index != barren.index)
    trials = search.ask(8)
    instead = [t.info["instead_of"] for t in trials if "instead_of" in t.info]
    assert instead[:2] == [0, 0]
    assert 0 not in {t.subspace for t in trials}
    assert design_left(search.history) == 0


def test_a_rare_corner_is_searched_by_the_model() -> None:
    """One config in forty is allowed, in ten parameters: the starts of the
    optimiser must be inside.
    """
    space = {f"k{i}": {"type": "choice", "range": [0, 1, 2, 3]} for i in range(10)}

    def allows(config: Config) -> bool:
        return sum(config.values()) <= 9

    search = Search(space, "attnbo", mode="max", limits=allows)
    for _ in range(6):
        for trial in search.ask(4):
            search.tell(trial, float(config_score(trial.config)))
    assert all(allows(trial.config) for trial in search.trials)
    assert [t.source for t in search.trials[2:]].count("fallback") <= 2
    assert search.best.value is not None
    assert search.best.value >= 13


def config_score(config: Config) -> int:
    return 3 * config["k0"] + 2 * config["k1"] - config["k2"]
