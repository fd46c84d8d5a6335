"""A space comes in; its drawing as a terminal tree, and its table as plain values, go out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.tree import Tree

from nasbo.space import Parameter, Space


def draw_space(space: Space) -> Tree:
    """The tree with ranges and counts."""
    one = "subspace" if space.n_subspaces == 1 else "subspaces"
    root = Tree(f"[bold]{space.source}[/]  [dim]{space.n_subspaces:,} {one}[/]")
    _draw(root, space.parameters, "")
    return root


def _draw(node: Tree, group: Sequence[Parameter], suffix: str) -> None:
    for parameter in group:
        branch = node.add(f"[cyan]{parameter.name}{suffix}[/]  {_range(parameter)}")
        for below in parameter.branches:
            text = f"[yellow]= {below.value}[/]"
            _draw(
                branch.add(text if below.parameters else f"{text}  [dim]nothing[/]"),
                below.parameters,
                suffix,
            )
        if parameter.branches:
            _draw_bare(branch, parameter)
        if parameter.repeated:
            times = f"{int(parameter.low)} to {int(parameter.high)}"
            _draw(branch.add(f"[yellow]each of {times}[/]"), parameter.repeated, "[i]")


def _draw_bare(branch: Tree, parameter: Parameter) -> None:
    n_bare = parameter.n_levels - len(parameter.branches)
    if not n_bare:
        return
    keyed = {parameter.level_of(below.value) for below in parameter.branches}
    bare = [
        str(parameter.value_at(i)) for i in range(min(parameter.n_levels, 50)) if i not in keyed
    ]
    more = ", ..." if n_bare > len(bare) else ""
    branch.add(f"[yellow]= {', '.join(bare)}{more}[/]  [dim]no further parameters[/]")


def _range(parameter: Parameter) -> str:
    text = parameter.range_text()
    default = f"  [dim]default {parameter.default}[/]" if parameter.has_default else ""
    return text + default


def space_table(space: Space) -> dict[str, Any]:
    """Counts, and the subspaces one by one where there are not too many."""
    listed = [
        {"id": sub.id, "choices": sub.choices, "n_parameters": sub.n_parameters}
        for sub in (space.subspaces() if space.is_listable else ())
    ]
    return {"n_subspaces": space.n_subspaces, "names": list(space.names), "subspaces": listed}
