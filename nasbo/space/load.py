"""A space file, a shipped name or a dict comes in; a checked ``Space`` or a SpaceError goes out."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nasbo.errors import ConfigError, SpaceError, shorten
from nasbo.space.document import MAX_NUMBER, Node, read_dict, read_file
from nasbo.space.parameter import KINDS, Branch, Kind, Parameter, Value, value_key
from nasbo.space.tree import Space, find_clash

SHIPPED = Path(__file__).resolve().parents[2] / "search_spaces"
MAX_REPEATS = 256
MAX_CHOICES = 10_000
MAX_SUBSPACE_BITS = 10_000
_KEYS = ("type", "range", "submodule", "log", "default")
_BOUNDS = re.compile(r"^\s*(.+?)\s*\.\.\.\s*(.+?)\s*$", re.DOTALL)


def load_space(source: Space | Mapping[str, Any] | str | os.PathLike[str]) -> Space:
    """Read a search space.

    Args:
        source: a ``Space`` (returned as it is), a dict of the structure of a file, the path of a
            YAML file, or the name of a shipped space (``"nas_cifar10"``).

    Raises:
        SpaceError: with the place, the rule and the value.
    """
    if isinstance(source, Space):
        return source
    if isinstance(source, Mapping):
        return _build(read_dict(source), "space")
    if not isinstance(source, str | os.PathLike):
        raise SpaceError(f"a space must be a path or a dict, got {type(source).__name__}")
    path = find_space_file(source)
    return _build(read_file(path), str(path))


_SYNONYMS = {
    **dict.fromkeys(("uniform", "real", "double", "number", "quniform"), "type: float"),
    **dict.fromkeys(("loguniform", "logfloat", "qloguniform"), "type: float, log: true"),
    **dict.fromkeys(("integer", "randint", "uniformint", "qrandint"), "type: int"),
    **dict.fromkeys(("lograndint", "logint", "loguniformint"), "type: int, log: true"),
    **dict.fromkeys(("categorical", "enum", "select", "ordinal", "str"), "type: choice"),
    **dict.fromkeys(("bool", "boolean"), "type: choice, range: {true, false}"),
}
"""What to write for the types of other packages."""


def find_space_file(source: str | os.PathLike[str]) -> Path:
    """The file of a path or of a shipped name; ``SpaceError`` if there is none."""
    path = Path(source)
    shipped = SHIPPED / f"{path.name.removesuffix('.yaml')}.yaml"
    try:
        is_shipped = path.parent == Path() and shipped.exists()
        if path.exists() and not (is_shipped and path.is_dir()):
            return path
        if is_shipped:
            return shipped
    except (OSError, ValueError) as error:
        raise SpaceError(f"{shorten(str(source))}: cannot be read: {error}") from error
    known = ", ".join(sorted(file.stem for file in SHIPPED.glob("*.yaml")))
    raise SpaceError(f"{path}: no such file, and no shipped space of that name (those: {known})")


def _build(root: Node, source: str) -> Space:
    if not root.is_mapping:
        raise root.error(f"must be a mapping of parameters, got {shorten(root.plain())}")
    parameters = _parameters(root, is_repeated=False)
    if not parameters:
        raise root.error("is empty: a space needs at least one parameter")
    if clash := find_clash(parameters):
        name, rule = clash
        raise _last_key(root, name).error(f"{name!r} {rule}")
    return Space(parameters, source)


def _last_key(root: Node, name: str) -> Node:
    """The last place where a parameter's name stands: the later one of a clash."""
    return [key for key, child in _keys(root) if key.value == name and child.is_mapping][-1]


def _keys(node: Node) -> Iterator[tuple[Node, Node]]:
    for key, child in node.pairs():
        yield key, child
        yield from _keys(child)


def _parameters(node: Node, is_repeated: bool) -> tuple[Parameter, ...]:
    parameters = tuple(_parameter(key, entry, is_repeated) for key, entry in node.pairs())
    _check_count(node, _n_bits(parameters))
    return parameters


def _n_bits(parameters: tuple[Parameter, ...]) -> float:
    return sum(math.log2(parameter.n_subspaces) for parameter in parameters)


def _check_count(node: Node, n_bits: float) -> None:
    """Numbers of subspaces stay printable, and are refused before they are computed."""
    if n_bits > MAX_SUBSPACE_BITS:
        raise node.error(f"a space may have 2^{MAX_SUBSPACE_BITS} subspaces, this has more")


def _parameter(key: Node, node: Node, is_repeated: bool) -> Parameter:
    name = _name(key)
    if not node.is_mapping:
        raise node.error(f"{name!r} must be a mapping with a type, got {shorten(node.plain())}")
    entry = {k.value: v for k, v in node.pairs()}
    if unknown := [k for k in entry if k not in _KEYS]:
        raise node.error(f"{name!r} has the unknown key {unknown[0]!r}; known: {', '.join(_KEYS)}")
    kind = _kind(name, node, entry)
    if "range" not in entry:
        raise node.error(f"{name!r} needs a range")
    parameter = _ranged(name, kind, entry["range"], _log(name, kind, entry.get("log")))
    if "default" in entry:
        parameter = _with_default(parameter, entry["default"])
    if "submodule" in entry:
        parameter = _with_children(parameter, entry["submodule"], is_repeated)
    return parameter


def _name(key: Node) -> str:
    name = key.value
    if not isinstance(name, str) or not name.strip() or "/" in name or "." in name:
        rule = 'a name must be text without "/" and "."'
        raise key.error(f"{rule}, got {shorten(name)}")
    return name


def _kind(name: str, node: Node, entry: dict[Any, Node]) -> Kind:
    if "type" not in entry:
        raise node.error(f"{name!r} needs a type: one of {', '.join(KINDS)}")
    kind = entry["type"]
    for known in KINDS:
        if kind.is_scalar and kind.value == known:
            return known
    got = shorten(kind.plain())
    hint = _SYNONYMS.get(str(kind.value).lower().replace("_", "")) if kind.is_scalar else None
    advice = f"; write {hint}" if hint else ""
    rule = f"the type of {name!r} must be one of {', '.join(KINDS)}"
    raise kind.error(f"{rule}, got the unknown type {got}{advice}")


def _log(name: str, kind: Kind, node: Node | None) -> bool:
    if node is None:
        return False
    if not isinstance(node.value, bool):
        raise node.error(f"'log' of {name!r} must be true or false, got {shorten(node.plain())}")
    if node.value and kind not in ("int", "float"):
        raise node.error(f"'log' is for int and float, but {name!r} is a {kind}")
    return node.value


def _ranged(name: str, kind: Kind, node: Node, log: bool) -> Parameter:
    if kind == "choice":
        return Parameter(name, kind, values=_values(name, node))
    low, high = _bounds(name, kind, node)
    if log and low <= 0:
        raise node.error(f"0 < low must hold for the log range of {name!r}, but got {low:g}")
    return Parameter(name, kind, low=low, high=high, log=log)


def _values(name: str, node: Node) -> tuple[Value, ...]:
    """The values of a choice: ``{a, b}`` (a mapping without values), or a list."""
    if node.is_mapping:
        if filled := [child for _, child in node.pairs() if child.value is not None]:
            raise filled[0].error(f"the range of {name!r} must be {{a, b}} or [a, b], not a: b")
        items = [key for key, _ in node.pairs()]
    elif node.is_list:
        items = node.value
    else:
        raise node.error(f"the range of {name!r} must be {{a, b}}, got {shorten(node.plain())}")
    if not items:
        raise node.error(f"the range of {name!r} is empty")
    if len(items) > MAX_CHOICES:
        raise node.error(f"a choice may have {MAX_CHOICES} values, {name!r} has {len(items)}")
    return _distinct(name, items)


def _distinct(name: str, items: list[Node]) -> tuple[Value, ...]:
    values: dict[Value, Value] = {}  # also refuses 1 beside True: no dict could hold both as keys
    for item in items:
        if not item.is_scalar:
            raise item.error(f"a value of {name!r} must be single, got {shorten(item.plain())}")
        if isinstance(item.value, str) and _BOUNDS.match(item.value):
            raise item.error(f"{name!r} is a choice: list its values, got {shorten(item.value)}")
        if item.value in values:
            raise item.error(f"{item.value!r} stands twice in the range of {name!r}")
        values[item.value] = item.value
    return tuple(values.values())


def _bounds(name: str, kind: Kind, node: Node) -> tuple[float, float]:
    """The ends of a number's range, both inside it."""
    low, high = (_number(name, kind, end, node) for end in _ends(name, node))
    if kind == "float":
        if not low < high:
            raise node.error(f"low < high must hold for {name!r}, but got {low:g}...{high:g}")
        return low, high
    if not low < high:
        rule = "low < high must hold (the right end is outside)"
        raise node.error(f"{rule} for {name!r}, but got {low}...{high}")
    if kind == "powerint2" and not (low >= 0 and high <= 54):
        raise node.error(f"exponents of {name!r} must be in 0...54, but got {low}...{high}")
    return low, high - 1


def _ends(name: str, node: Node) -> list[Any]:
    if node.is_list and all(item.is_scalar for item in node.value):
        ends = [item.value for item in node.value]
        if len(ends) == 2:
            return ends
        if len(ends) == 1 and isinstance(ends[0], str) and (match := _BOUNDS.match(ends[0])):
            return list(match.groups())
    elif node.is_scalar and isinstance(node.value, str) and (match := _BOUNDS.match(node.value)):
        return list(match.groups())
    raise node.error(f"the range of {name!r} must be [low...high], got {shorten(node.plain())}")


def _number(name: str, kind: Kind, end: Any, node: Node) -> float:
    try:
        if isinstance(end, bool) or end is None:
            raise ValueError
        number = float(end) if kind == "float" else _integer(end)
    except (ValueError, OverflowError) as error:
        what = "a number" if kind == "float" else "an integer"
        raise node.error(f"{what} is needed for {name!r}, got {shorten(end)}") from error
    if not abs(number) <= MAX_NUMBER:
        raise node.error(f"numbers must lie within ±2^53, got {shorten(end)} for {name!r}")
    return number


def _integer(end: Any) -> int:
    if isinstance(end, float) and end.is_integer():
        return int(end)
    if isinstance(end, float):
        raise ValueError(end)
    return int(end)


def _with_default(parameter: Parameter, node: Node) -> Parameter:
    if not node.is_scalar:
        raise node.error(f"the default of {parameter.name!r} must be a single value")
    try:
        default = parameter.canonical(node.value)
    except ConfigError as error:
        raise node.error(f"the default is outside: {error}") from error
    return replace(parameter, default=default, has_default=True)


def _with_children(parameter: Parameter, node: Node, is_repeated: bool) -> Parameter:
    name = parameter.name
    if parameter.kind == "float":
        raise node.error(f"{name!r} is a float: only discrete parameters can have a submodule")
    if not node.is_mapping or not node.pairs():
        raise node.error(f"the submodule of {name!r} must be a mapping of parameters")
    definitions = [_is_definition(child) for _, child in node.pairs()]
    if not any(definitions):
        return replace(parameter, branches=_branches(parameter, node, is_repeated))
    if not all(definitions):
        raise node.error(f"the submodule of {name!r} mixes parameters and values")
    return replace(parameter, repeated=_repeated(parameter, node, is_repeated))


def _is_definition(node: Node) -> bool:
    """A parameter's own mapping has a type in one word; a branch maps names to parameters."""
    return any(key.value in _KEYS and not child.is_mapping for key, child in node.pairs())


def _branches(parameter: Parameter, node: Node, is_repeated: bool) -> tuple[Branch, ...]:
    branches: dict[tuple[str, Value] | None, Branch] = {}
    for key, child in node.pairs():
        try:
            value = parameter.canonical(key.value)
        except ConfigError as error:
            raise key.error(f"a submodule key is outside the range: {error}") from error
        if not child.is_mapping and child.value is not None:
            raise child.error(f"the submodule under {key.value!r} must be a mapping of parameters")
        if value_key(value) in branches:
            raise key.error(f"{value!r} stands twice in the submodule of {parameter.name!r}")
        branches[value_key(value)] = Branch(value, _parameters(child, is_repeated))
    return tuple(branches.values())


def _repeated(parameter: Parameter, node: Node, is_repeated: bool) -> tuple[Parameter, ...]:
    name = parameter.name
    if parameter.kind != "int":
        known = shorten(parameter.value_at(0))
        rule = f"the submodule of the {parameter.kind} {name!r} needs a key per value"
        raise node.error(f"{rule} (such as {known}), with the parameters under it")
    if is_repeated:
        raise node.error(f"{name!r} is repeated already: repeats cannot be nested")
    if parameter.low < 0 or parameter.high > MAX_REPEATS:
        span = f"{int(parameter.low)}...{int(parameter.high) + 1}"
        raise node.error(f"0 <= count <= {MAX_REPEATS} must hold for {name!r}, but got {span}")
    children = _parameters(node, is_repeated=True)
    _check_count(node, _n_bits(children) * parameter.high)
    return children
