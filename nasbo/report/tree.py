"""Tree of a search space for the terminal, and its counts as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from nasbo.space import Parameter, Space

_MAX_SHOWN = 50


def draw_space(space: Space) -> Tree:
    """The tree with ranges and counts."""
    one = "subspace" if space.n_subspaces == 1 else "subspaces"
    root = Tree(_line((space.source, "bold"), (f"{space.n_subspaces:,} {one}", "dim")))
    _draw(root, space.parameters, "")
    return root


def _line(*parts: tuple[str, str]) -> Text:
    """Text parts with their styles; names and values are never parsed as markup."""
    text = Text()
    for words, style in parts:
        text.append("  " if text else "").append(words, style)
    return text


def _draw(node: Tree, group: Sequence[Parameter], suffix: str) -> None:
    for parameter in group:
        branch = node.add(_head(parameter, suffix))
        for below in parameter.branches:
            value = (f"= {below.value}", "yellow")
            label = _line(value) if below.parameters else _line(value, ("nothing", "dim"))
            _draw(branch.add(label), below.parameters, suffix)
        if parameter.branches:
            _draw_bare(branch, parameter)
        if parameter.repeated:
            least, most = (parameter.n_repeats(at) for at in (0, parameter.n_levels - 1))
            times = f"each of {least}" if least == most else f"each of {least} to {most}"
            _draw(branch.add(_line((times, "yellow"))), parameter.repeated, "[i]")


def _draw_bare(branch: Tree, parameter: Parameter) -> None:
    n_bare = parameter.n_levels - len(parameter.branches)
    if not n_bare:
        return
    keyed = {parameter.level_of(below.value) for below in parameter.branches}
    levels = range(min(parameter.n_levels, _MAX_SHOWN))
    bare = [str(parameter.value_at(level)) for level in levels if level not in keyed]
    more = ["..."] if n_bare > len(bare) else []
    values = f"= {', '.join(bare + more)}"
    branch.add(_line((values, "yellow"), ("no further parameters", "dim")))


def _head(parameter: Parameter, suffix: str) -> Text:
    head = _line((parameter.name + suffix, "cyan"), (parameter.range_text(), ""))
    if parameter.has_default:
        head.append(f"  default {parameter.default}", "dim")
    return head


def space_table(space: Space) -> dict[str, Any]:
    """Counts, and all subspaces if there are not too many."""
    listed = [
        {"id": sub.id, "choices": sub.choices, "n_parameters": sub.n_parameters}
        for sub in (space.subspaces() if space.is_listable else ())
    ]
    return {"n_subspaces": space.n_subspaces, "subspaces": listed}
