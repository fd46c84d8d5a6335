"""Drawings and tables of spaces."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nasbo.report.tree import draw_space, space_table
from nasbo.space import Space, load_space


def _drawn(space: Space) -> str:
    text = io.StringIO()
    Console(file=text, width=400).print(draw_space(space))
    return text.getvalue()


def test_conditional_space_in_full() -> None:
    lines = [line.rstrip() for line in _drawn(load_space("nas_cifar10_conditional")).splitlines()]
    assert lines[0].endswith("nas_cifar10_conditional.yaml  21,760 subspaces")
    assert lines[1:8] == [
        "├── nums_block  an integer in [4, 7]",
        "│   └── each of 4 to 7",
        "│       ├── conv_op[i]  one of 0, 1, 2, 3",
        "│       │   ├── = 2",
        "│       │   │   └── expand_ratio[i]  an integer in [5, 6]",
        "│       │   └── = 0, 1, 3  no further parameters",
        "│       ├── seratio[i]  one of 0, 8, 16",
    ]


def test_every_name_range_and_default_is_drawn(any_space: Space) -> None:
    drawn = _drawn(any_space)
    assert all(name in drawn for name in any_space.names)
    assert f"{any_space.n_subspaces:,} subspace" in drawn


def test_names_and_values_are_not_markup() -> None:
    values = ["[/red]", "[bold]", ":smile:", "[link=x]"]
    space = load_space(
        {
            "[red]": {
                "type": "choice",
                "range": values,
                "default": "[bold]",
                "submodule": {"[bold]": None},
            }
        }
    )
    drawn = _drawn(space)
    assert "[red]  one of '[/red]', '[bold]', ':smile:', '[link=x]'  default [bold]" in drawn
    assert "= [bold]  nothing" in drawn
    assert "= [/red], :smile:, [link=x]  no further parameters" in drawn


def test_long_ranges_are_cut() -> None:
    child = {"x": {"type": "float", "range": [0, 1]}}
    space = load_space({"n": {"type": "int", "range": [0, 2**53], "submodule": {3: child}}})
    drawn = _drawn(space)
    assert "48, 49, ...  no further parameters" in drawn
    assert "9,007,199,254,740,992 subspaces" in drawn


@pytest.mark.parametrize(("limit", "listed"), [(1_000, 1_000), (1_001, 0)])
def test_table_lists_up_to_a_thousand(limit: int, listed: int) -> None:
    values = list(range(limit))
    space = load_space(
        {"a": {"type": "choice", "range": values, "submodule": dict.fromkeys(values)}}
    )
    table = space_table(space)
    assert table["n_subspaces"] == limit
    assert len(table["subspaces"]) == listed
