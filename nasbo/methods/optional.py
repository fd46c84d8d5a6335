"""Import of optional packages."""

from __future__ import annotations

import importlib
from types import ModuleType

from nasbo.errors import NasboError


def import_optional(module: str, method: str, extra: str) -> ModuleType:
    """A module of an optional package.

    Raises:
        NasboError: it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        hint = f"pip install 'nasbo[{extra}]'"
        raise NasboError(f"method {method!r} needs the package {package!r}: {hint}") from error
