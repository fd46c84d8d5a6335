"""Registry of benchmark problems by name."""

from __future__ import annotations

from nasbo.bench.problem import Problem
from nasbo.bench.problems import (
    accel_nasbench,
    blocks,
    branches,
    cifar10_epochs,
    epochs,
    hardware,
    jenatton,
    learners,
    mixed,
    nas_proxy,
    nas_tables,
    noisy,
    pest,
    pipelines,
    proxy,
    taskset,
    tree_many,
)
from nasbo.bench.problems.entry import Entry
from nasbo.errors import NasboError

__all__ = ["PROBLEMS", "Entry", "find_entry", "make_problem"]

PROBLEMS: dict[str, Entry] = {
    **jenatton.ENTRIES,
    **branches.ENTRIES,
    **blocks.ENTRIES,
    **tree_many.ENTRIES,
    **learners.ENTRIES,
    **pipelines.ENTRIES,
    **mixed.ENTRIES,
    **pest.ENTRIES,
    **nas_tables.ENTRIES,
    **accel_nasbench.ENTRIES,
    **proxy.ENTRIES,
    **nas_proxy.ENTRIES,
    **noisy.ENTRIES,
    **taskset.ENTRIES,
    **epochs.ENTRIES,
    **cifar10_epochs.ENTRIES,
    **hardware.ENTRIES,
}


def find_entry(name: str) -> Entry:
    """The entry of a problem; the error for an unknown name lists the known ones."""
    if name not in PROBLEMS:
        raise NasboError(f"problem must be one of {', '.join(sorted(PROBLEMS))}, got {name!r}")
    return PROBLEMS[name]


def make_problem(name: str) -> Problem:
    """The problem of that name, after a check that its requirements are met."""
    entry = find_entry(name)
    entry.check()
    return entry.make()
