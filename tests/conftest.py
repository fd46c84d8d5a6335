"""Small spaces of every shape, and how many documents the property tests throw at the loader."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from nasbo.space import Space, load_space

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "quick", max_examples=300, deadline=None, derandomize=True, suppress_health_check=_QUIET
)
settings.register_profile(
    "thorough", max_examples=2_000, deadline=None, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

UNIT: dict[str, Any] = {"type": "float", "range": [0, 1]}
LEAF_TYPES: dict[str, Any] = {
    "rate": {"type": "float", "range": [0.001, 0.1], "log": True},
    "width": {"type": "int", "range": [1, 100], "log": True},
    "depth": {"type": "int", "range": [2, 9]},
    "size": {"type": "powerint2", "range": [5, 8]},
    "kind": {"type": "choice", "range": ["a", 3, 2.5, True, None]},
    "dose": {"type": "ordinal", "range": ["none", "little", "much", "very much"]},
}

SPACES: dict[str, dict[str, Any]] = {
    "one_leaf": {"x": UNIT},
    "flat": {"x": UNIT, "n": {"type": "int", "range": [0, 4]}, "c": LEAF_TYPES["kind"]},
    "many_leaves": LEAF_TYPES | {f"x{i}": UNIT for i in range(40)},
    "nested": {
        "top": {
            "type": "choice",
            "range": ["left", "right", "none"],
            "submodule": {
                "left": {
                    "turn": {
                        "type": "int",
                        "range": [0, 2],
                        "submodule": {0: {"gamma": UNIT}, 1: {"delta": UNIT}},
                    }
                },
                "right": {"gamma": UNIT},
            },
        },
        "flag": {"type": "choice", "range": [True, False]},
    },
    "repeated": {
        "n": {
            "type": "int",
            "range": [1, 4],
            "submodule": {"x": UNIT, "op": {"type": "choice", "range": ["a", "b"]}},
        }
    },
    "thousands": {
        "n": {
            "type": "int",
            "range": [1, 7],
            "submodule": {
                "op": {
                    "type": "choice",
                    "range": [0, 1, 2, 3],
                    "submodule": {2: {"ratio": {"type": "int", "range": [5, 7]}}},
                }
            },
        },
        "x": UNIT,
    },
    "ordered": {
        "effort": {
            "type": "ordinal",
            "range": ["low", "medium", "high"],
            "submodule": {"high": {"x": UNIT, "speed": LEAF_TYPES["dose"]}},
        },
        "dose": LEAF_TYPES["dose"],
    },
    "discrete": {name: {"type": "choice", "range": list(range(6))} for name in "abc"},
    "finite": {
        "a": {
            "type": "choice",
            "range": ["p", "q", "r"],
            "submodule": {"p": {"b": {"type": "int", "range": [0, 3]}}},
        }
    },
}
"""Subspaces: nested 2 + 1 + 1, repeated 3, thousands 4 + ... + 4^6, ordered 3.

Finite has 3 (with 5 configs), discrete has one subspace of 216 configs."""


@pytest.fixture(params=sorted(SPACES))
def any_space(request: pytest.FixtureRequest) -> Space:
    """Each of the small spaces in turn."""
    return load_space(SPACES[request.param])


@pytest.fixture
def flat_space() -> Space:
    return load_space(SPACES["flat"])


@pytest.fixture
def nested_space() -> Space:
    return load_space(SPACES["nested"])


@pytest.fixture
def repeated_space() -> Space:
    return load_space(SPACES["repeated"])


@pytest.fixture
def thousands_space() -> Space:
    return load_space(SPACES["thousands"])


@pytest.fixture
def finite_space() -> Space:
    return load_space(SPACES["finite"])
