"""Random documents against the loader: each gives a ``SpaceError`` or a valid ``Space``."""

from __future__ import annotations

import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nasbo.errors import ConfigError, SpaceError
from nasbo.report.tree import draw_space, space_table
from nasbo.space import Space, Subspace, load_space
from tests.space import strategies


class Dumper(yaml.SafeDumper):
    """Quotes text that the loader would read as a number (PyYAML leaves ``1E0`` bare)."""


Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+.0-9]+[eE][-+]?[0-9]+$"), list("-+.0123456789")
)
FILE = Path(tempfile.mkdtemp(prefix="nasbo-properties-")) / "space.yaml"


def _load_bytes(data: bytes) -> Space | None:
    FILE.write_bytes(data)
    try:
        return load_space(FILE)
    except SpaceError as error:
        message = str(error)
    assert re.fullmatch(rf"{re.escape(str(FILE))}:\d+: \S.*", message), message
    return None


def _count(document: dict[Any, Any]) -> int:
    """Number of subspaces by the definition, independent of the code."""
    total = 1
    for entry in document.values():
        below = entry.get("submodule")
        if below is None:
            continue
        if entry["type"] == "choice":
            total *= sum(_count(below.get(value, {})) for value in entry["range"])
        else:
            total *= sum(_count(below) ** times for times in range(*entry["range"]))
    return total


def _check_space(space: Space) -> None:
    rng = np.random.default_rng(0)
    assert space.canonical(space.default_config()) == space.default_config()
    for _ in range(3):
        index = min(int(rng.random() * space.n_subspaces), space.n_subspaces - 1)
        subspace = space.subspace(index if space.n_subspaces < 2**50 else 0)
        config = subspace.sample_config(rng)
        assert space.subspace_of(config).index == subspace.index
        _check_config(space, config)
        _check_config(space, space.sample(rng))
    again = load_space(space.to_dict())
    assert again.fingerprint() == space.fingerprint()
    assert again.n_subspaces == space.n_subspaces
    assert json.loads(json.dumps(space_table(space)))["n_subspaces"] == space.n_subspaces
    draw_space(space)


def _check_config(space: Space, config: dict[str, Any]) -> None:
    assert space.canonical(config) == config
    back = json.loads(json.dumps(config, allow_nan=False))
    assert repr(back) == repr(config)
    assert space.canonical(back) == config
    subspace = space.subspace_of(config)
    x = subspace.encode(config)
    assert x.shape == (subspace.n_free,)
    assert np.all((x >= 0) & (x <= 1))
    decoded = subspace.decode(x)
    assert space.subspace_of(decoded).index == subspace.index
    _check_close(subspace, config, decoded)


def _check_close(subspace: Subspace, config: dict[str, Any], decoded: dict[str, Any]) -> None:
    for coordinate in subspace.free:
        left, right = (
            c[coordinate.name][coordinate.index - 1] if coordinate.index else c[coordinate.name]
            for c in (config, decoded)
        )
        if coordinate.parameter.kind == "float" or coordinate.parameter.n_levels > 2**20:
            span = max(abs(coordinate.parameter.low), abs(coordinate.parameter.high))
            assert math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9 * span)
        else:
            assert left == right
            assert type(left) is type(right)


@given(strategies.right_documents())
def test_right_documents_are_taken_and_counted(document: dict[str, Any]) -> None:
    space = load_space(document)
    assert space.n_subspaces == _count(document)
    _check_space(space)
    _check_numbering(space)
    from_file = _load_bytes(yaml.dump(document, Dumper=Dumper, sort_keys=False).encode())
    assert from_file is not None
    assert from_file.fingerprint() == space.fingerprint()


def _check_numbering(space: Space) -> None:
    subspaces = list(space.subspaces()) if space.n_subspaces <= 100 else []
    assert [sub.index for sub in subspaces] == list(range(len(subspaces)))
    assert len({sub.id for sub in subspaces}) == len(subspaces)
    assert len({json.dumps(sub.choices) for sub in subspaces}) == len(subspaces)
    rng = np.random.default_rng(1)
    for sub in subspaces:
        assert space.subspace_of(sub.sample_config(rng)).index == sub.index


@given(strategies.nearly_right_documents())
def test_nearly_right_documents(document: dict[Any, Any]) -> None:
    if (space := _load_bytes(json.dumps(document, default=str).encode())) is not None:
        _check_space(space)
    try:
        space = load_space(document)
    except SpaceError as error:
        message = str(error)
    else:
        return _check_space(space)
    assert message.startswith("space"), message
    return None


@given(st.dictionaries(strategies.scalars, strategies.odd_things, max_size=4))
def test_noise_dicts(document: dict[Any, Any]) -> None:
    try:
        space = load_space(document)
    except SpaceError:
        return
    _check_space(space)


@given(st.one_of(strategies.fragment_texts, st.text(st.characters(codec="utf-8"))))
def test_noise_texts(text: str) -> None:
    if (space := _load_bytes(text.encode())) is not None:
        _check_space(space)


@given(st.binary(max_size=60))
def test_noise_bytes(data: bytes) -> None:
    if (space := _load_bytes(data)) is not None:
        _check_space(space)


@given(strategies.mutated_texts())
def test_mutated_files(text: str) -> None:
    if (space := _load_bytes(text.encode())) is not None:
        _check_space(space)


@given(strategies.right_documents(), strategies.noise, st.integers(0, 2**32))
def test_foreign_values_never_validate(document: dict[str, Any], value: Any, seed: int) -> None:
    space = load_space(document)
    config = space.sample(np.random.default_rng(seed))
    name = list(config)[seed % len(config)]
    config[name] = value
    try:
        config = space.canonical(config)
    except ConfigError:
        return
    _check_config(space, config)
