"""Public names of the packages: few, and each can be imported."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import nasbo

ROOMS = ["history", "search", "sweeps", "tune", "bench", "report", "storage", "launch", "finish"]
ROOMS += ["commands", "interchange", "testing"]
PACKAGES = ["nasbo", *(f"nasbo.{name}" for name in ROOMS), "trainers"]
MAX_NAMES = 150


def names(package: str) -> list[str]:
    """Names in the ``__all__`` of a package."""
    return list(getattr(importlib.import_module(package), "__all__", ()))


@pytest.mark.parametrize("package", PACKAGES)
def test_what_a_package_lists_can_be_imported(package: str) -> None:
    assert "ublic" in (importlib.import_module(package).__doc__ or "")
    assert names(package)
    for name in names(package):
        exec(f"from {package} import {name}", {})


def test_public_names_are_few() -> None:
    found = [one.name for one in pkgutil.walk_packages(nasbo.__path__, "nasbo.") if one.ispkg]
    assert set(PACKAGES) - {"nasbo", "trainers"} <= set(found)
    counts = {package: len(names(package)) for package in ["nasbo", *found]}
    assert sum(counts.values()) < MAX_NAMES, counts
