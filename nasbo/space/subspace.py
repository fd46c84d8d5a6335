"""One set of structural choices: a flat box of slots; configs go to the unit cube and back."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.space.parameter import Config, Parameter, Value

Array = NDArray[np.float64]
_WORD = re.compile(r"[^\W\d][\w-]*")


@dataclass(frozen=True)
class Slot:
    """One active scalar of a subspace.

    Attributes:
        parameter: its node of the tree.
        index: 0 for a scalar, 1, 2, ... for the entries of a repeated parameter.
        parent: name of the parent parameter, "" for a root.
        branch: path of the branch that holds the parameter, e.g. ``kernel=poly``; the slots of one
            subspace with equal (branch, index) belong together, as one block of a network.
        is_fixed: whether the subspace fixes the value (a structural parameter).
        value: the fixed value.
    """

    parameter: Parameter
    index: int = 0
    parent: str = ""
    branch: str = ""
    is_fixed: bool = False
    value: Value = None

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def label(self) -> str:
        """Name with its place in the list, e.g. ``kernel_size[2]``."""
        return f"{self.name}[{self.index}]" if self.index else self.name


@dataclass(frozen=True)
class Subspace:
    """A flat box: all structural parameters have their values, the others are free.

    Attributes:
        index: its number in the space, 0 to ``n_subspaces - 1``.
        slots: all active scalars, structural ones included, in the order of the document.
        lengths: length of each list in a config, by parameter name.
    """

    index: int
    slots: tuple[Slot, ...]
    lengths: Mapping[str, int]

    @cached_property
    def free(self) -> tuple[Slot, ...]:
        """The slots whose values are searched, in the order of the columns of ``x``."""
        return tuple(slot for slot in self.slots if not slot.is_fixed)

    @property
    def n_parameters(self) -> int:
        return len(self.slots)

    @property
    def n_free(self) -> int:
        return len(self.free)

    @cached_property
    def n_configs(self) -> int | None:
        """How many configs there are; ``None`` if a float makes them endless."""
        levels = [slot.parameter.n_levels for slot in self.free]
        return math.prod(levels) if all(levels) else None

    def all_configs(self) -> Iterator[Config]:
        """Every config of a subspace without floats."""
        levels = [range(slot.parameter.n_levels) for slot in self.free]
        for choice in itertools.product(*levels):
            picked = iter(choice)
            values = [
                slot.value if slot.is_fixed else slot.parameter.value_at(next(picked))
                for slot in self.slots
            ]
            yield _assemble(self.slots, values, self.lengths)

    @cached_property
    def choices(self) -> Config:
        """The structural values, as a config holds them."""
        fixed = [slot for slot in self.slots if slot.is_fixed]
        names = {slot.name for slot in fixed}
        lengths = {name: size for name, size in self.lengths.items() if name in names}
        return _assemble(fixed, [slot.value for slot in fixed], lengths)

    @cached_property
    def id(self) -> str:
        """A readable name that is unique in the space, e.g. ``algorithm=svm,kernel=rbf``."""
        parts = (f"{plain_text(n)}={plain_text(value)}" for n, value in self.choices.items())
        return ",".join(parts) or "all"

    @property
    def first_choice(self) -> str:
        """The first structural value, e.g. ``algorithm=svm``: many subspaces share it."""
        return self.id if not self.choices else _first_choice(self.choices)

    def decode(self, x: Sequence[float] | Array) -> Config:
        """The config at a place in the unit cube.

        Args:
            x: shape (n_free,); discrete values snap to the nearest level.
        """
        units = iter(x)
        values = [
            slot.value if slot.is_fixed else slot.parameter.from_unit(next(units))
            for slot in self.slots
        ]
        return _assemble(self.slots, values, self.lengths)

    def encode(self, config: Config) -> Array:
        """The place of a config in the unit cube, shape (n_free,)."""
        units = [
            slot.parameter.to_unit(
                config[slot.name][slot.index - 1] if slot.index else config[slot.name]
            )
            for slot in self.free
        ]
        return np.array(units, dtype=np.float64)

    def snap(self, x: Array) -> Array:
        """Rows of ``x``, shape (n, n_free), moved to the nearest places that configs can have."""
        snapped = np.array(x, dtype=np.float64)
        for column, slot in enumerate(self.free):
            parameter = slot.parameter
            if parameter.kind == "float":
                snapped[:, column] = np.clip(snapped[:, column], 0.0, 1.0)
                continue
            for row in range(len(snapped)):
                snapped[row, column] = parameter.to_unit(parameter.from_unit(snapped[row, column]))
        return snapped

    def sample(self, n: int, rng: Generator) -> Array:
        """``n`` uniform rows of the unit cube, discrete ones on their levels: (n, n_free)."""
        rows = [[s.parameter.to_unit(s.parameter.sample(rng)) for s in self.free] for _ in range(n)]
        return np.array(rows, dtype=np.float64).reshape(n, self.n_free)

    def sample_config(self, rng: Generator) -> Config:
        """One uniform config of this subspace."""
        values = [
            slot.value if slot.is_fixed else slot.parameter.sample(rng) for slot in self.slots
        ]
        return _assemble(self.slots, values, self.lengths)


def _assemble(slots: Sequence[Slot], values: Sequence[Value], lengths: Mapping[str, int]) -> Config:
    """Slots and their values as a config: lists hold ``None`` where an entry is absent."""
    lists: dict[str, list[Value]] = {name: [None] * size for name, size in lengths.items()}
    config: Config = {}
    for slot, value in zip(slots, values, strict=True):
        if not slot.index:
            config[slot.name] = value
            continue
        lists[slot.name][slot.index - 1] = value
        config[slot.name] = lists[slot.name]
    for name, entries in lists.items():
        config.setdefault(name, entries)
    return config


def branch_below(branch: str, parameter: Parameter, value: Value) -> str:
    """Path of the branch that a structural parameter opens, as ``Slot.branch`` has it."""
    own = f"{parameter.name}[]" if parameter.repeated else f"{parameter.name}={plain_text(value)}"
    return f"{branch}.{own}" if branch else own


def _first_choice(choices: Config) -> str:
    name, value = next(iter(choices.items()))
    return f"{plain_text(name)}={plain_text(value)}"


def plain_text(value: Any) -> str:
    """A value in words; text that could be mistaken for something else stands in quotes."""
    if isinstance(value, list):
        return "[" + " ".join(map(plain_text, value)) + "]"
    if not isinstance(value, str):
        return str(value)
    is_word = _WORD.fullmatch(value) and value not in ("None", "True", "False")
    return value if is_word else json.dumps(value, ensure_ascii=False)
