"""Errors of a sweep file with the line of the setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nasbo.errors import SpaceError, SweepError, nearest
from nasbo.space.document import read_file
from nasbo.sweeps.declaration import Setting


def check_file(
    file: Path,
    content: Mapping[Any, Any],
    known: Mapping[str, Setting],
    refused: Iterable[str] = (),
) -> None:
    """Raise for an unknown setting, or for a value that breaks a rule.

    Args:
        file: of the sweep.
        content: its settings.
        known: settings by name.
        refused: names of settings that no file has.
    """
    names = [name for name in known if name not in refused]
    for name, value in content.items():
        if name not in names:
            told = f"unknown setting {name!r}{nearest(name, names)}; known: {', '.join(names)}"
            raise SweepError(f"{_place(file, name)}: {told}")
        is_item = known[name].kind.joins == "items" and isinstance(value, str)
        try:
            if value is not None:
                known[name].check([value] if is_item else value)
        except (SweepError, TypeError) as error:
            raise SweepError(f"{_place(file, name)}: {error}") from error


def _place(file: Path, name: Any) -> str:
    """The file, and the line of the setting if the file has plain values only."""
    try:
        pairs = read_file(file).pairs()
    except SpaceError:
        return str(file)
    return next((key.place for key, _ in pairs if key.value == name), str(file))
