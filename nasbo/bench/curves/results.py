"""Results of a benchmark by cost: cells as curves over a grid of costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nasbo.bench.cell import Record
from nasbo.bench.curves.cell import CurveProtocol
from nasbo.bench.curves.ledger import PER_TRAINING
from nasbo.bench.regret import Yardstick
from nasbo.bench.results import ProblemInfo, Results, Run, as_array, one_version_each
from nasbo.bench.run import PLAN, read_cells, read_record
from nasbo.errors import NasboError


@dataclass(frozen=True)
class CurveResults:
    """Runs of one protocol; ``best`` is by grid point of cost.

    Attributes:
        results: in the form of results over trials, with grid points in place of trials.
        sticks: scale of regrets of each problem.
    """

    protocol: CurveProtocol
    results: Results
    sticks: dict[str, Yardstick]


def load_curve_results(
    out: Path, methods: Sequence[str] = (), problems: Sequence[str] = ()
) -> list[CurveResults]:
    """The results of a folder, one for each protocol of its plan.

    Args:
        methods: labels to keep, in this order; default: those of the plan.
        problems: names to keep; default: those of the plan.
        problems: to keep; default the plan's.

    Raises:
        NasboError: none of the wanted cells is finished.
    """
    plan = read_record(out / PLAN)
    records, others = one_version_each(read_cells(out))
    protocols = dict.fromkeys(CurveProtocol(**part["protocol"]) for part in plan["parts"])
    wanted = [_Wanted(plan, protocol, methods, problems) for protocol in protocols]
    notes = (f"{len(others)} cells of other versions of their methods are left out",)
    found = [one.results(records, notes if others else ()) for one in wanted]
    kept = [one for one in found if one.results.runs]
    if not kept:
        raise NasboError(f"{out}: no finished cell of what is wanted")
    return kept


class _Wanted:
    """The cells of a plan under one protocol."""

    def __init__(
        self,
        plan: Record,
        protocol: CurveProtocol,
        methods: Sequence[str],
        problems: Sequence[str],
    ) -> None:
        self._plan, self._protocol = plan, protocol
        parts = [p for p in plan["parts"] if CurveProtocol(**p["protocol"]) == protocol]
        self._cells = {
            (problem, method, seed): None
            for part in parts
            for problem in part["problems"]
            for method in part["methods"]
            for seed in range(part["seeds"])
            if (not problems or problem in problems) and (not methods or method in methods)
        }
        self._methods = tuple(methods or dict.fromkeys(m for p in parts for m in p["methods"]))

    def results(self, records: Sequence[Record], notes: tuple[str, ...]) -> CurveResults:
        """The finished ones as results."""
        known = {_identity(r): r for r in records if _protocol(r) == self._protocol}
        kept = {one: known[one] for one in self._cells if one in known}
        runs = {one: make_curve_run(record) for one, record in kept.items()}
        infos = {name: _info(record) for (name, _, _), record in kept.items()}
        results = Results(
            methods=tuple(m for m in self._methods if any(m == label for _, label, _ in runs)),
            problems=infos,
            runs=runs,
            missing=tuple(f"{p} {m} seed {s}" for p, m, s in self._cells if (p, m, s) not in known),
            left_out=dict(self._plan["left_out"]),
            notes=notes,
            command=str(self._plan.get("command", "")),
        )
        return CurveResults(self._protocol, results, {n: _stick(results, n) for n in infos})


def make_curve_run(record: Record) -> Run:
    """A cell's record as arrays over the grid of costs; nothing is known at cost 0."""
    returned, seen = ([None, *record[name]] for name in ("returned", "seen"))
    return Run(
        problem=record["key"]["problem"],
        method=record["label"],
        seed=record["key"]["seed"],
        best=as_array(returned),
        chosen=as_array(seen),
        tried=None,
        best_subspace=np.zeros(len(returned), dtype=np.int64),
        costs=tuple((n, cpu / size) for n, size, cpu in record["rounds"]),
        round_ends=(),
        record=record,
    )


def _identity(record: Record) -> tuple[Any, ...]:
    return record["key"]["problem"], record["label"], record["key"]["seed"]


def _protocol(record: Record) -> CurveProtocol:
    return CurveProtocol(record["key"]["budget"], record["key"]["workers"])


def _info(record: Record) -> ProblemInfo:
    return ProblemInfo(
        name=record["key"]["problem"],
        group=record["group"],
        half=record["half"],
        optimum=None,
        is_noisy=record["is_noisy"],
        is_returned=True,
        n_subspaces=record["n_subspaces"],
        trials=record["key"]["budget"] * PER_TRAINING,
    )


def _stick(results: Results, problem: str) -> Yardstick:
    """Regret 0 is the best of the random configs (or pool) and all runs, 1 the
    median of random configs.
    """
    runs = results.on(problem)
    least, median = runs[0].record["finals"]
    best = min(least, *(float(run.best.min()) for run in runs))
    return Yardstick(best, max(median - best, 1e-12), False, "the median of random configs")
