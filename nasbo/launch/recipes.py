"""Recipes of clusters: their templates and values, overridden by the user's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from nasbo.errors import SweepError
from nasbo.sweeps.parsing import split_pairs

RECIPES = Path(__file__).parents[2] / "cluster"
VALUES_FILE = "values.yaml"
_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


def read_values(recipe: str, file: Path | None, pairs: Sequence[str]) -> dict[str, str | None]:
    """Values of a recipe: its defaults, overridden by a file, then by ``key=value`` arguments.

    All values are text, as YAML would convert ``12:00:00`` and ``0123``; an empty one is ``None``.

    Raises:
        SweepError: a value is unknown to the recipe, or is not text.
    """
    values = _read(RECIPES / recipe / VALUES_FILE)
    for given in ((_read(file) if file else {}), split_pairs(pairs)):
        for name, value in given.items():
            if name not in values:
                known = ", ".join(values)
                raise SweepError(f"the recipe {recipe} has no value {name!r}; it has: {known}")
            values[name] = value or None
    return values


def _read(file: Path) -> dict[str, str | None]:
    try:
        found = yaml.load(file.read_text(encoding="utf-8"), yaml.BaseLoader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SweepError(f"{file}: cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise SweepError(f"{file}: must be a mapping of values")
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise SweepError(f"{file}: the value of {name!r} must be text, got {value!r}")
    return {name: value or None for name, value in found.items()}


def count(values: Mapping[str, str | None], name: str, least: int = 1) -> int:
    """A value as an integer; ``SweepError`` if it is not one, or is too small."""
    text = values.get(name) or ""
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise SweepError(f"-v {name}=N must be a whole number >= {least}, got {text!r}")
    return int(text)


def read_template(recipe: str, name: str) -> Any:
    """A YAML template of a recipe, with its ``${placeholders}``."""
    return yaml.safe_load((RECIPES / recipe / name).read_text(encoding="utf-8"))


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Replace placeholders anywhere in a document by values.

    A text that is a single placeholder becomes the value with its type. If the value is
    ``None``, its key or list entry is removed. The parsed document is filled, so that no value
    can change its structure.

    Raises:
        SweepError: a placeholder without a value.
    """
    if isinstance(template, Mapping):
        filled = {str(fill(key, values)): fill(item, values) for key, item in template.items()}
        return {key: item for key, item in filled.items() if item is not None}
    if isinstance(template, list):
        return [item for item in (fill(entry, values) for entry in template) if item is not None]
    if not isinstance(template, str):
        return template
    if match := _PLACEHOLDER.fullmatch(template):
        return _value(match[1], values)
    return _PLACEHOLDER.sub(lambda match: str(_value(match[1], values)), template)


def _value(name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise SweepError(f"the template needs {name!r}; values: {', '.join(values)}")
    return values[name]
