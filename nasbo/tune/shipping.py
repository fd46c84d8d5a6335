"""Shipping of a working folder to all nodes, as a Ray runtime environment."""

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
"""Large and never needed by a trainer; .gitignore patterns, which Ray also reads."""


def runtime_env(folder: Path) -> dict[str, Any]:
    """Runtime environment that ships a folder and makes it each worker's working directory."""
    return {"working_dir": str(folder), "excludes": list(EXCLUDES)}


def is_local_code(trainer: str, folder: str | Path) -> bool:
    """Whether a trainer, ``module:function``, is code in the folder and
    not an installed package.
    """
    paths = _paths(trainer.partition(":")[0])
    if not paths:
        return True
    root = Path(folder).resolve()
    return any(p.is_relative_to(root) and "site-packages" not in p.parts for p in paths)


def _paths(module: str) -> list[Path]:
    """Locations of a module's package; empty if it cannot be found here."""
    if is_shipped_module(module):
        return [ROOT / module.partition(".")[0]]
    spec = importlib.util.find_spec(module.partition(".")[0])
    found = [spec.origin, *(spec.submodule_search_locations or [])] if spec else []
    return [Path(name).resolve() for name in found if name]
