"""First difference between two spaces, as text."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from nasbo.errors import JournalError
from nasbo.search import Search
from nasbo.space.difference import first_difference
from nasbo.testing import SPACES

NESTED = SPACES["nested"]


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    tree = copy.deepcopy(NESTED)
    inner = tree
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return tree


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (changed(["flag"], None), "flag is gone"),
        (changed(["more"], {"type": "int", "range": [0, 2]}), "more is new"),
        (
            changed(["top", "range"], ["left", "right"]),
            "top.range was ['left', 'right', 'none'], now it is ['left', 'right']",
        ),
        (
            changed(["top", "submodule", "left", "turn", "submodule", 0, "gamma", "range"], [0, 2]),
            "top.submodule.left.turn.submodule.0.gamma.range was [0, 1], now it is [0, 2]",
        ),
        (dict(reversed(NESTED.items())), "the order of top, flag was another: now flag, top"),
    ],
)
def test_the_first_difference_is_named(now: dict[str, Any], says: str) -> None:
    assert first_difference(NESTED, now) == says
    assert first_difference(json.loads(json.dumps(NESTED)), now) == says
    assert first_difference(NESTED, copy.deepcopy(NESTED)) is None


def test_a_journal_of_another_space_says_what_differs(tmp_path: Any) -> None:
    journal = tmp_path / "journal.jsonl"
    Search(NESTED, "random", journal=journal).close()
    Search(NESTED, "random", journal=journal).close()
    other = changed(["flag", "range"], [True])
    with pytest.raises(JournalError, match=r"another search space: flag.range was \[True, False\]"):
        Search(other, "random", journal=journal)
