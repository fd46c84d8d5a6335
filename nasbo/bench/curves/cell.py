"""One search of a benchmark by cost, on a problem with learning curves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from nasbo.bench.cell import Record
from nasbo.bench.curves.clock import ROUNDS, RULES, ClockedSearch
from nasbo.bench.curves.dehb_search import DehbSearch, import_dehb
from nasbo.bench.curves.ledger import Ledger, curve_of
from nasbo.bench.curves.optuna_halving import OptunaSearch
from nasbo.bench.curves.smac_fidelity import SmacSearch
from nasbo.bench.lookup import find_entry, find_problem
from nasbo.bench.problem import Problem
from nasbo.bench.spec import MethodSpec, parse_method
from nasbo.bench.version import curve_version
from nasbo.errors import NasboError
from nasbo.methods.base import design_size
from nasbo.space import Space


class CurveSearch(Protocol):
    """A search that records its training steps in a ledger."""

    ledger: Ledger

    def run(self) -> dict[str, Any]:
        """Search until the budget is spent; returns columns of a cell's record."""


PROTOCOL = 1
"""Version of the protocol, raised when the same cell would be run differently."""
PEERS: dict[str, Callable[[Problem, int, int], CurveSearch]] = {
    "optuna+sh": OptunaSearch,
    "smac+mf": SmacSearch,
    "dehb+hb": DehbSearch,
}
"""Searches that are run by their own packages, on one worker."""


@dataclass(frozen=True)
class CurveProtocol:
    """How a search by cost is run.

    Attributes:
        budget: number of training steps, in full trainings, including the initial design.
        workers: number of parallel trainings.
    """

    budget: int = 20
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("budget", "workers"):
            if getattr(self, name) < 1:
                raise NasboError(f"{name} >= 1 must hold, but got {getattr(self, name)}")

    def __str__(self) -> str:
        words = f"{self.workers} worker" + ("s" if self.workers > 1 else "")
        return f"{self.budget} trainings' worth on {words}"


@dataclass(frozen=True)
class CurveCell:
    """One search of a benchmark by cost, by plain values that can be sent to another process."""

    problem: str
    method: str
    seed: int
    protocol: CurveProtocol

    @property
    def spec(self) -> MethodSpec:
        return parse_method(self.method)


def check_curve_method(spec: MethodSpec, protocol: CurveProtocol) -> None:
    """Raise if a method cannot be run by cost."""
    if spec.label in PEERS:
        if protocol.workers > 1:
            raise NasboError(f"{spec.label} has one worker, got {protocol.workers}")
        return
    known, chosen = (*RULES, ROUNDS), [rule for rule in spec.rules if rule != ROUNDS]
    if strangers := set(spec.rules) - set(known):
        peers = ", ".join(PEERS)
        raise NasboError(
            f"a rule must be one of {', '.join(known)} (or the method {peers}), "
            f"got {min(strangers)!r} in {spec.label!r}"
        )
    if len(chosen) > 1 or len(set(spec.rules)) < len(spec.rules):
        raise NasboError(f"a method has one of {', '.join(RULES)} at most, got {spec.label!r}")
    if spec.batch:
        raise NasboError(f"by cost, free workers are the batch: {spec.label!r} must have no '@'")


def check_package(spec: MethodSpec, space: Space) -> None:
    """Raise if the package behind a method is missing, or the method cannot be made."""
    if PEERS.get(spec.label) is DehbSearch:
        import_dehb()
    spec.make(space)


def curve_cell_key(cell: CurveCell, problem: Problem) -> Record:
    """Everything that determines a cell's result."""
    spec = cell.spec
    return {
        "problem": cell.problem,
        "problem_version": problem.version,
        "space": problem.space.fingerprint(),
        "method": spec.method,
        "options": spec.values,
        "rules": list(spec.rules),
        "version": curve_version(spec),
        "seed": cell.seed,
        **asdict(cell.protocol),
        "protocol": PROTOCOL,
    }


def make_search(problem: Problem, cell: CurveCell) -> CurveSearch:
    """The search of a cell."""
    spec, protocol = cell.spec, cell.protocol
    check_curve_method(spec, protocol)
    if cell.method in PEERS:
        return PEERS[cell.method](problem, protocol.budget, cell.seed)
    return ClockedSearch(problem, spec, protocol.workers, protocol.budget, cell.seed)


def run_curve_cell(cell: CurveCell) -> Record:
    """Run one search. Exceptions are not caught."""
    begin = time.perf_counter()
    entry, problem = find_entry(cell.problem), find_problem(cell.problem)
    search = make_search(problem, cell)
    columns = search.run()
    finals = np.asarray(curve_of(problem).finals())
    return {
        "key": curve_cell_key(cell, problem),
        "label": cell.spec.label,
        "group": entry.group,
        "half": entry.half,
        "is_noisy": problem.truth is not None,
        "n_steps": search.ledger.n_steps,
        "n_subspaces": problem.space.n_subspaces,
        "n_design": design_size(problem.space),
        "finals": [float(finals.min()), float(np.median(finals))],
        **columns,
        **search.ledger.columns(cell.protocol.budget),
        "seconds": round(time.perf_counter() - begin, 3),
        "made": round(time.time(), 3),
    }
