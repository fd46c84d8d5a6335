"""Small search spaces of every shape, and functions to minimise or maximise on them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from nasbo.space import Config, Space

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
"""Numbers of subspaces: nested 2 + 1 + 1, repeated 3, thousands 4 + ... + 4^6, ordered 3, finite 3
(with 5 configs), discrete 1 (with 216 configs)."""


class OnSpaces:
    """Tests with an argument that is the name of a space.

    ``shape`` is any of them, ``large`` any but ``finite``, ``home`` is ``nested`` or one
    that is not in ``SPACES``.

    Attributes:
        spaces: by name, as for ``load_space``, with a hundred configs or more. To keep the shipped
            ones, include them: ``SPACES | {"own": ...}``.
    """

    spaces: ClassVar[Mapping[str, Any]] = SPACES

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize with the ``spaces`` of the subclass."""
        every = sorted(self.spaces)
        homes = [name for name in every if name == "nested" or name not in SPACES]
        large = [name for name in every if name != "finite"]
        names = {"shape": every, "large": large, "home": homes or every}
        for argument in names.keys() & metafunc.fixturenames:
            metafunc.parametrize(argument, names[argument])


BRANCHES: dict[str, Any] = {
    "kind": {
        "type": "choice",
        "range": ["a", "b", "c"],
        "submodule": {
            "a": {"x": UNIT},
            "b": {"y": UNIT, "z": {"type": "int", "range": [0, 5]}},
            "c": {"w": {"type": "float", "range": [0.001, 1], "log": True}},
        },
    },
    "rate": {"type": "float", "range": [0.001, 1], "log": True},
}
"""A space for searches in which all trials of one branch fail."""

MIXED: dict[str, Any] = {
    "kind": {
        "type": "choice",
        "range": ["a", "b"],
        "submodule": {
            "a": {"rate": UNIT, "size": {"type": "int", "range": [1, 101]}},
            "b": {"rate": UNIT, "steps": {"type": "int", "range": [1, 1000], "log": True}},
        },
    },
    "width": {"type": "powerint2", "range": [4, 8]},
    "mode": {"type": "choice", "range": ["x", "y", "z"]},
}
"""Two branches with parameters of all types, for acquisitions."""


def objective(space: Space, config: Config) -> float:
    """A smooth function of the numbers, with an offset for each subspace."""
    subspace = space.subspace_of(config)
    x = subspace.encode(config)
    wanted = 0.3 + 0.1 * (subspace.index % 4)
    return float(((x - wanted) ** 2).sum()) + math.sin(subspace.index)


def branch_value(config: Config) -> float:
    """A loss on ``BRANCHES`` with its minimum in branch ``b``."""
    offset = {"a": 1.0, "b": 0.0, "c": 1.5}[config["kind"]]
    return float(offset + (math.log10(config["rate"]) + 2) ** 2 + (config.get("x", 0) - 0.3) ** 2)


def mixed_score(config: Config) -> float:
    """A score on ``MIXED``, and on spaces with some of its parameters."""
    wide = math.log2(config.get("width", 32)) - 5
    slow = (config.get("rate", 0.5) - 0.7) ** 2 * 4
    return float(-slow - wide**2 - (config.get("mode") == "x"))


def jenatton(config: Config) -> float:
    """Score on the shipped space ``simulation`` (Jenatton et al., ICML 2017)."""
    inner = {"x4": 0.1, "x5": 0.2, "x6": 0.3, "x7": 0.4}
    (name,) = inner.keys() & config.keys()
    return -float(config[name] ** 2 + inner[name] + config.get("r8", config.get("r9")))
