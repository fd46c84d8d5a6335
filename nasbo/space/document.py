"""Located nodes of a YAML file or a dict, for errors with line numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nasbo.errors import SpaceError, shorten
from nasbo.space.plain_yaml import PlainLoader

MAX_NODES = 50_000
MAX_DEPTH = 60
MAX_NUMBER = 2**53
_CORE = "tag:yaml.org,2002:"
_SCALARS = {_CORE + name for name in ("str", "int", "float", "bool", "null")}


@dataclass(frozen=True)
class Node:
    """A value with its location: a scalar, a list of nodes, or a tuple of (key, node) pairs."""

    value: Any
    place: str

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.value, tuple)

    @property
    def is_list(self) -> bool:
        return isinstance(self.value, list)

    @property
    def is_scalar(self) -> bool:
        return not (self.is_mapping or self.is_list)

    def pairs(self) -> tuple[tuple[Node, Node], ...]:
        return self.value if self.is_mapping else ()

    def plain(self) -> Any:
        """The value without locations, for messages."""
        if self.is_mapping:
            return {key.value: node.plain() for key, node in self.pairs()}
        return [node.plain() for node in self.value] if self.is_list else self.value

    def error(self, message: str) -> SpaceError:
        return SpaceError(f"{self.place}: {message}")


class _Loader(PlainLoader):
    """YAML loader without merge keys."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _SCALARS]
    for first, resolvers in PlainLoader.yaml_implicit_resolvers.items()
}


def read_file(path: Path) -> Node:
    """Read a YAML file as nodes.

    Raises:
        SpaceError: the file is missing, empty, not YAML, or contains tags, cycles or too many
            nodes.
    """
    place = str(path)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise SpaceError(f"{place}: cannot be read: {error}") from error
    try:
        return read_text(data.decode("utf-8"), place)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        rule = f"must be UTF-8 text, but byte {error.start} is not"
        raise SpaceError(f"{place}:{line}: {rule}") from error


def read_text(text: str, place: str) -> Node:
    """Read YAML text as nodes; ``place`` replaces the file name in errors."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise SpaceError(f"{place}:{line}: is not YAML: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        code = f"the character #x{error.character:04x}"
        raise SpaceError(f"{place}:{line}: is not YAML: {code} is not allowed") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise SpaceError(f"{place}:1: is not YAML: {shorten(str(error), 200)}") from error
    except RecursionError as error:
        raise SpaceError(f"{place}:1: is nested too deeply") from error
    if root is None:
        raise SpaceError(f"{place}:1: is empty: a space needs at least one parameter")
    return _YamlReader(place).read(root)


class _Reader:
    """Limits the number of nodes and the depth, against aliases and nesting without bound."""

    def __init__(self) -> None:
        self.n_nodes = 0
        self.open: set[int] = set()

    @contextmanager
    def inside(self, item: object, place: str) -> Iterator[None]:
        """Enter a list, a mapping or a YAML node whose parts are read."""
        self.n_nodes += 1
        if self.n_nodes > MAX_NODES:
            raise SpaceError(f"{place}: expands to more than {MAX_NODES} values")
        if id(item) in self.open:
            raise SpaceError(f"{place}: contains itself")
        if len(self.open) >= MAX_DEPTH:
            raise SpaceError(f"{place}: is nested deeper than {MAX_DEPTH} levels")
        self.open.add(id(item))
        yield
        self.open.discard(id(item))


class _YamlReader(_Reader):
    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.constructor = yaml.constructor.SafeConstructor()

    def read(self, node: yaml.Node) -> Node:
        place = f"{self.file}:{node.start_mark.line + 1}"
        with self.inside(node, place):
            if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
                return Node(self._scalar(node, place), place)
            if isinstance(node, yaml.SequenceNode) and node.tag == _CORE + "seq":
                return Node([self.read(child) for child in node.value], place)
            if isinstance(node, yaml.MappingNode) and node.tag == _CORE + "map":
                pairs = tuple((self.read(key), self.read(child)) for key, child in node.value)
                return Node(_checked(pairs), place)
        raise SpaceError(f"{place}: tags are not allowed, got {shorten(node.tag)}")

    def _scalar(self, node: yaml.ScalarNode, place: str) -> Any:
        try:
            value = self.constructor.construct_object(node)
        except (ValueError, OverflowError, LookupError, yaml.YAMLError) as error:
            raise SpaceError(f"{place}: {shorten(node.value)} is not a value") from error
        return _plain(value, place)


class _DictReader(_Reader):
    def read(self, item: Any, place: str) -> Node:
        if item is None or isinstance(item, str | int | float | bool):
            self.n_nodes += 1
            return Node(_plain(item, place), place)
        with self.inside(item, place):
            if isinstance(item, Mapping):
                pairs = [
                    (self.read(key, place), self.read(child, f"{place}.{key}"))
                    for key, child in item.items()
                ]
                return Node(_checked(tuple(pairs)), place)
            if isinstance(item, list | tuple | set | frozenset):
                parts = sorted(item, key=repr) if isinstance(item, set | frozenset) else item
                return Node([self.read(child, place) for child in parts], place)
        raise SpaceError(f"{place}: must be plain values, got {type(item).__name__}")


def read_dict(document: Mapping[str, Any], place: str = "space") -> Node:
    """Read a Python dict with the structure of a file as nodes."""
    if not document:
        raise SpaceError(f"{place}: is empty: a space needs at least one parameter")
    return _DictReader().read(document, place)


def _plain(value: Any, place: str) -> Any:
    """The value if configs can hold it: a finite number of moderate size, or valid text."""
    if isinstance(value, float) and not math.isfinite(value):
        raise SpaceError(f"{place}: must be finite, got {value}")
    if isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:
        raise SpaceError(f"{place}: numbers must lie within ±2^53, got {shorten(value)}")
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise SpaceError(f"{place}: text must be valid Unicode, got {shorten(value)}")
    return value


def _checked(pairs: tuple[tuple[Node, Node], ...]) -> tuple[tuple[Node, Node], ...]:
    seen: set[tuple[type, Any]] = set()
    for key, _ in pairs:
        if not key.is_scalar:
            raise key.error(f"a key must be a single value, got {shorten(key.plain())}")
        if (type(key.value), key.value) in seen:
            raise key.error(f"{key.value!r} stands twice in one mapping")
        seen.add((type(key.value), key.value))
    return pairs
