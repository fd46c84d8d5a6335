"""A working folder comes in; what Ray needs to bring its code to every node goes out."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from nasbo.shipped import ROOT, is_shipped_module

EXCLUDES = (
    ".git/",
    ".venv*/",
    "__pycache__/",
    "*.pyc",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    "/runs/",
)
"""Never needed by a trainer, and large: in the patterns of .gitignore, which Ray reads as well."""


def runtime_env(folder: Path) -> dict[str, Any]:
    """The runtime environment that ships a folder; it is the working directory of each worker."""
    return {"working_dir": str(folder), "excludes": list(EXCLUDES)}


def is_local_code(trainer: str, folder: str | Path) -> bool:
    """Whether a trainer, ``module:function``, lies in the folder and not among the packages."""
    paths = _paths(trainer.partition(":")[0])
    if not paths:
        return True
    root = Path(folder).resolve()
    return any(p.is_relative_to(root) and "site-packages" not in p.parts for p in paths)


def _paths(module: str) -> list[Path]:
    """Where the package of a module lies; nowhere if it cannot be found here."""
    if is_shipped_module(module):
        return [ROOT / module.partition(".")[0]]
    spec = importlib.util.find_spec(module.partition(".")[0])
    found = [spec.origin, *(spec.submodule_search_locations or [])] if spec else []
    return [Path(name).resolve() for name in found if name]
