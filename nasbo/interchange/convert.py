"""Spaces from any of three formats to any other: nasbo, ConfigSpace and Optuna."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from nasbo.errors import NasboError, SpaceError
from nasbo.interchange.config_space import config_space_text
from nasbo.interchange.from_config_space import read_config_space
from nasbo.interchange.from_optuna import load_objective, trace
from nasbo.interchange.grow import Grown
from nasbo.interchange.listing import listing_of
from nasbo.interchange.to_optuna import suggest_code
from nasbo.space import Space, load_space
from nasbo.space.plain_yaml import read_yaml, write_yaml

Format = Literal["configspace", "optuna", "nasbo"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True)
class Converted:
    """A space in another format.

    Attributes:
        space: that was read.
        text: of the other format.
        losses: what the text does not say of the source, parameter by parameter.
        notes: what has another name or another form there.
    """

    space: Space
    text: str
    losses: tuple[str, ...]
    notes: tuple[str, ...]


def convert_space(source: str, to: Format) -> Converted:
    """Read a space and write it in another format.

    Args:
        source: a space file or the name of a shipped space; a ``.json`` file of ConfigSpace; or
            ``module:function``, an objective of Optuna, which is run many times.
        to: the other format.

    Raises:
        SpaceError: the source cannot be read, or what it says is no space.
    """
    if to not in FORMATS:
        raise NasboError(f"a format must be one of {', '.join(FORMATS)}, got {to!r}")
    found = read_any(source)
    text, losses = _write(found.space, to)
    return Converted(found.space, text, (*found.losses, *losses), found.notes)


def read_any(source: str) -> Grown:
    """The space of a file of any format, or of an objective."""
    path = Path(source)
    if path.suffix == ".json":
        try:
            return read_config_space(path.read_text(encoding="utf-8"), source)
        except (OSError, UnicodeDecodeError) as error:
            raise SpaceError(f"{source}: cannot be read: {error}") from error
    module, _, function = source.partition(":")
    if function.isidentifier() and all(part.isidentifier() for part in module.split(".")):
        return trace(load_objective(source), source)
    space = load_space(source)
    return Grown(listing_of(space)[1])


def _write(space: Space, to: Format) -> tuple[str, tuple[str, ...]]:
    if to == "configspace":
        return config_space_text(space), ()
    if to == "optuna":
        return suggest_code(space)
    return nasbo_text(space), ()


def nasbo_text(space: Space) -> str:
    """The YAML text of a space; what no file can say is an error.

    Raises:
        SpaceError: values that a space file cannot have, such as 1 beside true.
    """
    text = write_yaml(space.to_dict(), is_compact=True)
    again = load_space(read_yaml(text))
    if json.dumps(again.to_dict()) != json.dumps(space.to_dict()):
        raise SpaceError(f"{space.source}: a space file says other than this space")
    return text
