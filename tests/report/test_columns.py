"""Columns as compact JSON: every form gives the same values back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from nasbo.report.columns import ALPHABET, Column, encode, plain, to_text
from tests.report.decoding import decode

MANY = [f"a rather long name of a subspace, number {at}" for at in range(100)]
CASES: dict[str, tuple[list[Any], str]] = {
    "few levels": ([1, None, True, "1", 1.5, [1, 2], 1], "codes"),
    "as many levels as signs": (list(range(len(ALPHABET))), "codes"),
    "repeated texts": (MANY * 3, "at"),
    "repeated lists": ([[at, at, at, at, at] for at in range(100)] * 5, "at"),
    "gaps": ([at * 1.25 if at % 3 else None for at in range(300)], "mask"),
    "all different": ([at * 1.25 for at in range(300)], "values"),
    "nothing": ([None] * 9, "codes"),
    "empty": ([], "codes"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_form_gives_the_values_back(name: str) -> None:
    values, form = CASES[name]
    told = json.loads(to_text(encode(values)))
    assert form in told
    found = decode(told)
    assert found == values
    assert [type(one) for one in found] == [type(one) for one in values]


def test_few_levels_take_a_character_per_row() -> None:
    column = Column("state", "state", ["finished", "failed"] * 5_000)
    assert len(to_text(column.to_json())) < 10_200


def test_numbers_are_rounded_and_never_unknown_to_json() -> None:
    assert plain(0.123456789) == 0.123457
    assert plain(1e-9 / 3) == 3.33333e-10
    assert plain(1234567.0) == 1234567
    assert plain([1.23456789, math.nan], 3) == [1.23, None]
    assert plain(math.inf) is None
    assert plain({"a": (1, True)}) == {"a": [1, True]}
    assert plain(object()).startswith("<object")


def test_text_cannot_end_the_element_that_holds_it() -> None:
    text = to_text(["</script><!--"])
    assert "<" not in text
    assert json.loads(text) == ["</script><!--"]


def test_a_column_without_values_is_empty() -> None:
    assert Column("a", "a", [None, None]).is_empty
    assert not Column("a", "a", [None, 0]).is_empty
