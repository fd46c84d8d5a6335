"""Lookup of problems by name, in the registry or in a user's module."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from nasbo.bench.problem import Problem
from nasbo.bench.problems import PROBLEMS, Entry, make_problem
from nasbo.errors import NasboError


def find_entry(name: str) -> Entry:
    """The entry of a problem.

    Args:
        name: a name of the registry, or ``module:attribute`` of an ``Entry`` or a function without
            arguments that returns a ``Problem``.

    Raises:
        NasboError: there is no such problem; the message lists the known ones.
    """
    if name in PROBLEMS:
        return PROBLEMS[name]
    if ":" not in name:
        listed = ", ".join(sorted(PROBLEMS)) or "none"
        raise NasboError(f"problem must be one of {listed}, or module:function, got {name!r}")
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise NasboError(f"no problem {name!r}: {error}") from error
    if isinstance(found, Entry):
        return found
    if not callable(found):
        raise NasboError(f"{name!r} must be an Entry or make a Problem, got {type(found).__name__}")
    make = cast(Callable[[], Problem], found)
    return Entry(make, group="own", half="held-out", summary=name)


def find_problem(name: str) -> Problem:
    """The problem itself, after a check that its requirements are met."""
    problem = make_problem(name) if name in PROBLEMS else find_entry(name).make()
    if not isinstance(problem, Problem):
        raise NasboError(f"{name!r} must make a Problem, got {type(problem).__name__}")
    return problem
