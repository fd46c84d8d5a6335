"""Contract tests of all methods of the registry, on small spaces of every shape."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import pytest

from nasbo.errors import NasboError
from nasbo.methods import METHODS, make_method
from nasbo.space import load_space
from nasbo.testing import SPACES, LongMethodContract, MethodCase, MethodContract

PACKAGES = {"smac": "smac", "tpe": "optuna"}
SLOW = ("smac",)
"""Its forests take a second per suggestion: in full only in ``make test-all``."""
NAMES = [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in sorted(METHODS)]


class TestMethods(MethodContract):
    @pytest.fixture(params=NAMES)
    def case(self, request: pytest.FixtureRequest) -> MethodCase:
        return MethodCase(request.param, is_blind=request.param == "random")


@pytest.mark.slow
class TestLongSearches(LongMethodContract):
    @pytest.fixture(params=sorted(METHODS))
    def case(self, request: pytest.FixtureRequest) -> MethodCase:
        return MethodCase(request.param)


@pytest.mark.parametrize(("name", "package"), sorted(PACKAGES.items()))
def test_a_missing_package_is_named_with_the_way_to_get_it(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NasboError, match=f"method '{name}' needs the package .*pip install"):
        make_method(name, load_space(SPACES["flat"]))


class TestOwnSpace(MethodContract):
    """The space of an author, alone."""

    method = "evolution"
    spaces: ClassVar[dict[str, Any]] = {
        "own": {
            "size": {"type": "int", "range": [0, 90]},
            "kind": {"type": "choice", "range": ["a", "b"]},
        }
    }
