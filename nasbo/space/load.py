"""Loader of space files: a checked ``Space``, or an error with its line."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nasbo.errors import ConfigError, SpaceError, shorten
from nasbo.space.document import Node, read_dict, read_file
from nasbo.space.kinds import KINDS, Integer
from nasbo.space.parameter import Branch, Parameter, Value, value_key
from nasbo.space.tree import Space, find_clash

SHIPPED = Path(__file__).resolve().parents[2] / "search_spaces"
MAX_REPEATS = 256
MAX_SUBSPACE_BITS = 10_000
_OWN_KEYS = tuple(dict.fromkeys(key for kind in KINDS.values() for key in kind.keys))
_KEYS = ("type", "range", "submodule", *_OWN_KEYS, "default")


def load_space(source: Space | Mapping[str, Any] | str | os.PathLike[str]) -> Space:
    """Read a search space.

    Args:
        source: a ``Space`` (returned as it is), a dict of the structure of a file, the path of a
            YAML file, or the name of a shipped space (``"nas_cifar10"``).

    Raises:
        SpaceError: with location, rule and value.
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
    **dict.fromkeys(("categorical", "enum", "select", "str"), "type: choice"),
    **dict.fromkeys(("bool", "boolean"), "type: choice, range: {true, false}"),
}
"""Replacements for type names of other packages."""


def find_space_file(source: str | os.PathLike[str]) -> Path:
    """The file of a path or of a shipped space; ``SpaceError`` if there is none."""
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
    """The last key with a parameter's name: the second one of a clash."""
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
    """Raise if there are too many subspaces: their number must be printable.
    Checked before counting.
    """
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
    parameter = kind.read(name, entry["range"], _own_entries(name, kind, entry))
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


def _kind(name: str, node: Node, entry: dict[Any, Node]) -> type[Parameter]:
    if "type" not in entry:
        raise node.error(f"{name!r} needs a type: one of {', '.join(KINDS)}")
    kind = entry["type"]
    if kind.is_scalar and isinstance(kind.value, str) and kind.value in KINDS:
        return KINDS[kind.value]
    got = shorten(kind.plain())
    hint = _SYNONYMS.get(str(kind.value).lower().replace("_", "")) if kind.is_scalar else None
    advice = f"; write {hint}" if hint else ""
    rule = f"the type of {name!r} must be one of {', '.join(KINDS)}"
    raise kind.error(f"{rule}, got the unknown type {got}{advice}")


def _own_entries(name: str, kind: type[Parameter], entry: dict[Any, Node]) -> dict[str, Node]:
    """The entries for keys that only some kinds have."""
    for key in (key for key in _OWN_KEYS if key in entry and key not in kind.keys):
        if entry[key].value is not False:  # a switch that is off is accepted anywhere
            owners = " and ".join(one.kind for one in KINDS.values() if key in one.keys)
            raise entry[key].error(f"{key!r} is for {owners}, but {name!r} is a {kind.kind}")
    return {key: entry[key] for key in kind.keys if key in entry}


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
    if parameter.is_continuous:
        rule = "only discrete parameters can have a submodule"
        raise node.error(f"{name!r} is a {parameter.kind}: {rule}")
    if not node.is_mapping or not node.pairs():
        raise node.error(f"the submodule of {name!r} must be a mapping of parameters")
    definitions = [_is_definition(child) for _, child in node.pairs()]
    if not any(definitions):
        return replace(parameter, branches=_branches(parameter, node, is_repeated))
    if not all(definitions):
        raise node.error(f"the submodule of {name!r} mixes parameters and values")
    return replace(parameter, repeated=_repeated(parameter, node, is_repeated))


def _is_definition(node: Node) -> bool:
    """Whether a mapping defines a parameter (it has a scalar ``type``, say),
    not a branch of parameters.
    """
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
    if not isinstance(parameter, Integer):
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
