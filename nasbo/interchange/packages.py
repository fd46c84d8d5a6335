"""Import of the packages whose formats are read and written."""

from __future__ import annotations

import importlib
from types import ModuleType

from nasbo.errors import NasboError


def need(module: str, purpose: str, extra: str) -> ModuleType:
    """A module of a package that nasbo does not require.

    Args:
        module: to import.
        purpose: what needs it, for the message.
        extra: of nasbo that brings it.

    Raises:
        NasboError: it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        hint = f"pip install 'nasbo[{extra}]'"
        raise NasboError(f"{purpose} needs the package {package!r}: {hint}") from error
