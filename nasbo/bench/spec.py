"""Method specifications such as ``attnbo[attention=off]@4+rungs``, and their parser."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from nasbo.bench.peers import PEERS
from nasbo.errors import NasboError
from nasbo.methods import Method, make_method
from nasbo.space import Space
from nasbo.space.plain_yaml import read_yaml

_SPEC = re.compile(
    r"(?P<name>[^\[\]@+,\s]+)(\[(?P<options>[^\[\]]*)\])?(@(?P<batch>\w+))?(?P<rules>(\+\w+)*)"
)
PER_SUBSPACE = "subspaces"
"""Batch size of one config per subspace, as in the rounds of a sweep."""


@dataclass(frozen=True)
class MethodSpec:
    """A method as it takes part in a benchmark.

    Attributes:
        name: of ``nasbo.METHODS``, of ``PEERS``, or ``module:Class``.
        options: names and values as written.
        batch: configs per suggestion if different from the protocol's: a number or ``subspaces``.
        rules: how far trials are trained, if they can be trained in part, e.g. ``rungs``.
    """

    name: str
    options: tuple[tuple[str, str], ...] = ()
    batch: str = ""
    rules: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Notation for tables, which parses to an equal spec."""
        listed = ",".join(f"{key}={value}" for key, value in self.options)
        options = f"[{listed}]" if listed else ""
        batch = f"@{self.batch}" if self.batch else ""
        return self.name + options + batch + "".join(f"+{rule}" for rule in self.rules)

    @property
    def method(self) -> str:
        """The name for ``make_method``."""
        return PEERS[self.name].method if self.name in PEERS else self.name

    @property
    def values(self) -> dict[str, Any]:
        """The options for ``make_method``, including those of a peer's short name."""
        given = {key: read_yaml(value) for key, value in self.options}
        return (PEERS[self.name].options | given) if self.name in PEERS else given

    def make(self, space: Space, seed: int = 0) -> Method:
        """The method itself; raises ``NasboError`` if a name, an option or a package is missing."""
        return make_method(self.method, space, seed, **self.values)

    def batch_size(self, space: Space, default: int) -> int:
        """Configs per suggestion."""
        if self.batch == PER_SUBSPACE:
            return space.n_subspaces
        return int(self.batch) if self.batch else default


def parse_method(text: str) -> MethodSpec:
    """Parse one method; errors show the notation."""
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise NasboError(f"a method must read name[option=value,...]@batch+rule, got {text!r}")
    batch = match["batch"] or ""
    if batch and batch != PER_SUBSPACE and (not batch.isdigit() or int(batch) < 1):
        raise NasboError(f"the batch of {text!r} must be a number >= 1 or {PER_SUBSPACE!r}")
    rules = tuple(filter(None, match["rules"].split("+")))
    return MethodSpec(match["name"], _options(match["options"] or "", text), batch, rules)


def parse_methods(text: str) -> list[MethodSpec]:
    """Parse methods separated by commas; commas inside of brackets do not separate."""
    found = [parse_method(part) for part in split_outside_brackets(text)]
    labels = [spec.label for spec in found]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise NasboError(f"a method must be named once, got {min(twice)!r} twice")
    return found


def split_outside_brackets(text: str) -> list[str]:
    """Split at commas outside of brackets; empty parts are left out."""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text) if part.strip()]


def _options(text: str, whole: str) -> tuple[tuple[str, str], ...]:
    options = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise NasboError(f"an option of {whole!r} must read name=value, got {part!r}")
        options.append((key.strip(), value.strip()))
    return tuple(options)
