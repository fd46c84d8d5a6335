"""Columns of a table as compact JSON, for scripts inside a page."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["trial", "config", "metric", "detail"]
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
"""A level is one of these characters where there are few; scripts know the same order."""
DIGITS = 6
NUMBER = 4
"""About so many characters has the number of a level."""


@dataclass(frozen=True)
class Column:
    """What a table has under one name.

    Attributes:
        name: unique in the table.
        title: for readers.
        values: of all rows; ``None`` for none.
        kind: what it belongs to; a ``detail`` is not offered as a column.
        is_shown: whether it is to be seen without being asked for.
    """

    name: str
    title: str
    values: Sequence[Any]
    kind: Kind = "trial"
    is_shown: bool = False

    @property
    def is_empty(self) -> bool:
        return all(value is None for value in self.values)

    def to_json(self) -> dict[str, Any]:
        """The column as plain values, in the shortest of the forms of ``encode``."""
        told = {"name": self.name, "title": self.title, "kind": self.kind, "shown": self.is_shown}
        return told | encode([plain(value) for value in self.values])


def encode(values: Sequence[Any]) -> dict[str, Any]:
    """Values that are JSON already, in few characters.

    Few levels: ``levels``, and ``codes`` with a character of ``ALPHABET`` per row. More, but with
    repetitions: ``levels`` and their numbers, ``at``. Many of them ``None``: the others as
    ``values``, and a ``mask`` with 1 where a row has one. Else ``values`` of all rows.
    """
    keys = [_key(value) for value in values]
    counts = Counter(keys)
    levels = {key: at for at, key in enumerate(counts)}
    firsts = [json.loads(key) if kind is list else key for kind, key in levels]
    if len(levels) <= len(ALPHABET):
        return {"levels": firsts, "codes": "".join(ALPHABET[levels[key]] for key in keys)}
    sizes = [len(to_text(one)) for one in firsts]
    n_repeated = sum(size * (n - 1) for size, n in zip(sizes, counts.values(), strict=True))
    if n_repeated > NUMBER * len(keys):
        return {"levels": firsts, "at": [levels[key] for key in keys]}
    if None in values:
        mask = "".join("0" if value is None else "1" for value in values)
        return {"mask": mask, "values": [value for value in values if value is not None]}
    return {"values": list(values)}


def _key(value: Any) -> tuple[type, Any]:
    """What tells values apart; ``True`` is not 1."""
    if isinstance(value, list | dict):
        return list, json.dumps(value)
    return type(value), value


def plain(value: Any, digits: int = DIGITS) -> Any:
    """A value as JSON can hold it; floats are rounded to significant digits."""
    if isinstance(value, list | tuple):
        return [plain(item, digits) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item, digits) for key, item in value.items()}
    if not isinstance(value, float):
        return value if value is None or isinstance(value, bool | int | str) else str(value)
    if not math.isfinite(value):
        return None
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    return float(f"{value:.{digits}g}")


def to_text(value: Any) -> str:
    """JSON without blanks that may stand inside a ``script`` element of a page."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")
