"""Hypothesis strategies for space documents: valid ones, nearly valid ones, and noise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from nasbo.space.load import SHIPPED

Document = dict[str, Any]
TEXTS = [file.read_text(encoding="utf-8") for file in sorted(SHIPPED.glob("*.yaml"))]
KINDS = ["choice", "int", "float", "powerint2", "ordinal"]
WORDS = ["type", "range", "submodule", "log", "default", *KINDS]
FRAGMENTS = [
    *WORDS,
    *(": ", ":\n  ", "\n", "\n  ", "\n    ", "- ", "{", "}", "[", "]", ", ", "? ", "#", "|", ">"),
    *("&a ", "*a", "<<: ", "!!int ", "!!float ", "!!bool ", "!!set ", "!!python/name:os.system "),
    *(
        "!!binary ",
        "!!timestamp ",
        "!x ",
        "---",
        "...",
        "%YAML 1.1",
        '"',
        "'",
        '"\\x',
        '"\\U',
        "\t",
    ),
    *("1", "0", "-1", "4...8", "1e400", ".inf", ".nan", "0x", "0b_", "1:30", "1e-3", "~", "yes"),
    *("9007199254740993", "2001-12-14", "a", "a/b", "a.b", "é", "\x00", "\u2028", "\ufeff", "="),
]

small = st.integers(-5, 5)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.one_of(
    small,
    st.floats(),
    st.integers(),
    st.sampled_from([2**53, -(2**53), 2**53 + 1, 10**400, True, 0.1, 1e-320]),
)
scalars = st.one_of(numbers, texts, st.none(), st.booleans(), st.sampled_from(WORDS + FRAGMENTS))
noise = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(WORDS), scalars), inner, max_size=4),
        st.tuples(inner),
    ),
    max_leaves=12,
)
odd_things = st.one_of(
    noise, st.binary(max_size=4), st.complex_numbers(), st.sets(small), st.dates()
)


@st.composite
def leaves(draw: st.DrawFn) -> Document:
    """A parameter without children."""
    kind = draw(st.sampled_from(KINDS))
    entry: Document = {"type": kind}
    if kind in ("choice", "ordinal"):
        unique: Any = st.one_of(small, texts.filter(lambda t: "..." not in t), st.none())
        values = draw(st.lists(unique, min_size=1, max_size=4, unique=True))
        entry["range"] = draw(st.sampled_from([values, dict.fromkeys(values)]))
    elif kind == "powerint2":
        low = draw(st.integers(0, 53))
        entry["range"] = [low, draw(st.integers(low + 1, 54))]
    else:
        entry |= draw(_number_ranges(kind))
    return entry


@st.composite
def _number_ranges(draw: st.DrawFn, kind: str) -> Document:
    is_log = draw(st.booleans())
    least = (1 if kind == "int" else 1e-9) if is_log else -(2**53)
    ends: Any = st.integers(int(least), 2**53)
    if kind == "float":
        ends = st.floats(least, 2**53, allow_nan=False)
    low, high = sorted(draw(st.lists(ends, min_size=2, max_size=2, unique=True)))
    written = draw(st.sampled_from([[low, high], f"{low!r}...{high!r}", [f"{low!r} ... {high!r}"]]))
    return {"range": written, "log": is_log}


@st.composite
def _parameters(draw: st.DrawFn, names: Iterator[str], depth: int, repeats: bool) -> Document:
    return {
        next(names): draw(_entries(names, depth, repeats)) for _ in range(draw(st.integers(1, 3)))
    }


@st.composite
def _entries(draw: st.DrawFn, names: Iterator[str], depth: int, repeats: bool) -> Document:
    shape = draw(st.sampled_from(["leaf", "branches", "repeated"] if depth else ["leaf"]))
    if shape == "repeated" and repeats:
        low = draw(st.integers(0, 2))
        children = {next(names): draw(_entries(names, depth - 1, False)) for _ in range(2)}
        return {"type": "int", "range": [low, low + draw(small.filter(bool).map(abs))]} | {
            "submodule": children
        }
    if shape == "leaf":
        return draw(leaves())
    values = draw(st.lists(st.one_of(small, texts), min_size=1, max_size=3, unique=True))
    values = [value for value in values if "..." not in str(value)] or [0]
    keyed = draw(st.lists(st.sampled_from(values), min_size=1, unique=True))
    below = {value: draw(_parameters(names, depth - 1, repeats)) for value in keyed}
    return {"type": "choice", "range": values, "submodule": below}


@st.composite
def right_documents(draw: st.DrawFn) -> Document:
    """Documents that follow the grammar: the loader must accept every one of them."""
    names = (f"p{number}" for number in itertools.count())
    return draw(_parameters(names, 2, True))


@st.composite
def nearly_right_documents(draw: st.DrawFn) -> Document:
    """Valid documents with a few nodes overwritten by something else."""
    document = draw(right_documents())
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in _mappings(document) if place]
        if not places:
            break
        place = draw(st.sampled_from(places))
        key = draw(st.one_of(st.sampled_from(list(place)), st.sampled_from(WORDS), scalars))
        place[key] = draw(odd_things)
    return document


def _mappings(document: Any) -> Iterator[dict[Any, Any]]:
    if isinstance(document, dict):
        yield document
        for child in list(document.values()):
            yield from _mappings(child)


fragment_texts = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)


@st.composite
def mutated_texts(draw: st.DrawFn) -> str:
    """Shipped files with pieces removed, duplicated, moved or replaced."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, max(len(text) - 1, 0)))
        end = min(start + draw(st.integers(0, 30)), len(text))
        new = draw(st.one_of(st.sampled_from(["", text[start:end] * 2, *FRAGMENTS]), texts))
        text = text[:start] + new + text[end:]
    return text
