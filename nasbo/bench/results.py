"""Benchmark results: cells as arrays over trials, for tables and plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.cell import Protocol, Record
from nasbo.bench.plan import Part
from nasbo.bench.problems import PROBLEMS
from nasbo.bench.run import PLAN, read_cells, read_record, without_version
from nasbo.bench.spec import parse_method
from nasbo.bench.version import curve_version, method_version
from nasbo.errors import NasboError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One cell as arrays over trials.

    Attributes:
        best: score after 0, 1, ... trials after the design, (trials + 1,): the least true value so
            far, or the true value of the config that the method returns.
        chosen: true value of the config that was measured best so far, (trials + 1,).
        tried: least true value so far, (trials + 1,); ``None`` if unknown.
        best_subspace: subspace of the config that ``best`` is the value of, (trials + 1,).
        costs: (observations so far, CPU seconds per config) of each suggestion.
        round_ends: number of trials after the design that had ended after each suggestion.
    """

    problem: str
    method: str
    seed: int
    best: Array
    chosen: Array
    tried: Array | None
    best_subspace: NDArray[np.int64]
    costs: tuple[tuple[int, float], ...]
    round_ends: tuple[int, ...]
    record: Record


@dataclass(frozen=True)
class ProblemInfo:
    """Facts about a problem for the tables."""

    name: str
    group: str
    half: str
    optimum: float | None
    is_noisy: bool
    is_returned: bool
    n_subspaces: int
    trials: int


@dataclass(frozen=True)
class Results:
    """Runs that are compared with each other.

    Attributes:
        methods: labels; the first one is compared with the others.
        problems: in the order of the plan.
        runs: by (problem, method, seed).
        missing: cells of the plan that are not finished.
        left_out: methods that could not be run, with the reason.
        notes: notes for the reader of the tables.
        command: the command that ran the cells, if known.
        hidden: other runs, not shown; regret scales depend on them, too.
    """

    methods: tuple[str, ...]
    problems: dict[str, ProblemInfo]
    runs: dict[tuple[str, str, int], Run]
    missing: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    command: str = ""
    hidden: tuple[Run, ...] = ()

    def seeds(self, problem: str, methods: Sequence[str] | None = None) -> list[int]:
        """Seeds that all of the given methods (default: all that were run on
        the problem) have finished.
        """
        wanted = self.contestants(problem) if methods is None else methods
        sets = [set(self._by_seed.get((problem, method), {})) for method in wanted]
        return sorted(set.intersection(*sets)) if sets else []

    def contestants(self, problem: str) -> list[str]:
        """Methods with at least one run on a problem, in the order of ``methods``."""
        return [method for method in self.methods if (problem, method) in self._by_seed]

    def of(self, problem: str, method: str) -> list[Run]:
        """The runs of a method on a problem, by seed."""
        found = self._by_seed.get((problem, method), {})
        return [found[seed] for seed in sorted(found)]

    def on(self, problem: str) -> list[Run]:
        """All runs on a problem, including hidden ones."""
        return [run for run in (*self.runs.values(), *self.hidden) if run.problem == problem]

    @cached_property
    def _by_seed(self) -> dict[tuple[str, str], dict[int, Run]]:
        found: dict[tuple[str, str], dict[int, Run]] = {}
        for (problem, method, seed), run in self.runs.items():
            found.setdefault((problem, method), {})[seed] = run
        return found


def load_results(out: Path, methods: Sequence[str] = (), problems: Sequence[str] = ()) -> Results:
    """The results of a folder.

    The folder's plan determines which cells belong together; without a plan, all do. If several
    versions of a method ran a cell, the present version counts, or else the newest.

    Args:
        out: folder of a benchmark.
        methods: labels to keep, in this order; default: those of the plan.
        problems: names to keep; default: those of the plan.

    Raises:
        NasboError: a method or a problem is not in the folder, or nothing is finished.
    """
    plan = read_record(out / PLAN) if (out / PLAN).is_file() else None
    records, others = one_version_each(read_cells(out))
    missing: list[str] = []
    if plan is not None:
        parts = [_part(part) for part in plan["parts"]]
        records, missing = _planned(records, parts)
        known = tuple(dict.fromkeys(m for part in parts for m in part.methods))
        names = tuple(dict.fromkeys(p for part in parts for p in part.problems))
    else:
        known = _default_order(record["label"] for record in records)
        names = tuple(dict.fromkeys(record["key"]["problem"] for record in records))
    methods = _chosen("method", methods, known, out)
    names = _chosen("problem", problems, names, out)
    kept = [r for r in records if r["label"] in methods and r["key"]["problem"] in names]
    n_others = sum(r["label"] in methods and r["key"]["problem"] in names for r in others)
    notes = [f"{n_others} cells of other versions of their methods are left out"] * bool(n_others)
    if not kept:
        raise NasboError(f"{out}: no finished cell of {', '.join(methods)} on {', '.join(names)}")
    runs = {(r["key"]["problem"], r["label"], r["key"]["seed"]): make_run(r) for r in kept}
    return Results(
        methods=tuple(m for m in methods if any(m == label for _, label, _ in runs)),
        problems={n: _info(n, kept) for n in names if any(r["key"]["problem"] == n for r in kept)},
        runs=runs,
        missing=tuple(missing),
        left_out=dict(plan["left_out"]) if plan is not None else {},
        notes=tuple(notes + _mixtures(kept)),
        command=str(plan.get("command", "")) if plan is not None else "",
        hidden=tuple(make_run(r) for r in records if r["label"] not in methods),
    )


def _chosen(what: str, wanted: Sequence[str], known: Sequence[str], out: Path) -> tuple[str, ...]:
    """The wanted names, all known ones by default; raises if one is unknown."""
    for name in wanted:
        if name not in known:
            raise NasboError(f"{what} must be one of {', '.join(known)} in {out}, got {name!r}")
    return tuple(wanted or known)


@dataclass(frozen=True)
class _Curves:
    """Scores of a run and its diagnostics, as in ``Run``."""

    best: Array
    chosen: Array
    tried: Array | None
    best_subspace: NDArray[np.int64]


def make_run(record: Record) -> Run:
    """A cell's record as arrays; a search that ran out of configs keeps its last value."""
    curves = _curves(record) if record.get("returned") is None else _returned_curves(record)
    sizes = [size for _, size, _ in record["rounds"]]
    costs = tuple((n, cpu / size) for n, size, cpu in record["rounds"] if size)
    return Run(
        problem=record["key"]["problem"],
        method=record["label"],
        seed=record["key"]["seed"],
        best=curves.best,
        chosen=curves.chosen,
        tried=curves.tried,
        best_subspace=curves.best_subspace,
        costs=costs,
        round_ends=tuple(int(end) for end in np.cumsum(sizes)),
        record=record,
    )


def _curves(record: Record) -> _Curves:
    """Curves of a cell that is scored by the least true value."""
    n_design, trials = record["n_design"], record["key"]["trials"]
    scores, values = as_array(record["scores"]), as_array(record["values"])
    subspaces = np.array(record["subspaces"], dtype=np.int64)
    ends = np.minimum(np.arange(n_design, n_design + trials + 1), len(scores))
    leaders = np.array([int(np.argmin(scores[:end])) for end in ends])
    picks = np.array([int(np.argmin(values[:end])) for end in ends])
    best = scores[leaders]
    return _Curves(best, scores[picks], best, subspaces[leaders])


def _returned_curves(record: Record) -> _Curves:
    """Curves of a cell that is scored by the configs that its method returned."""
    returned, trials = record["returned"], record["key"]["trials"]
    at = np.minimum(np.arange(trials + 1), len(returned["trials"]) - 1)
    tried = returned["of_tried"]
    # A search without any finished trial has returned no config.
    subspaces = [-1 if t is None else record["subspaces"][t] for t in returned["trials"]]
    return _Curves(
        as_array(returned["of_returned"])[at],
        as_array(returned["of_observed"])[at],
        None if tried is None else as_array(tried)[at],
        np.array(subspaces, dtype=np.int64)[at],
    )


def as_array(values: Sequence[float | None]) -> Array:
    """Values as an array, with infinity for missing ones."""
    return np.array([np.inf if one is None else one for one in values], dtype=np.float64)


def _part(raw: dict[str, Any]) -> Part:
    protocol = Protocol(**raw["protocol"])
    return Part(tuple(raw["problems"]), tuple(raw["methods"]), raw["seeds"], protocol)


def one_version_each(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """One of the cells that differ only in their method's version, and the other ones.

    The present version (which may be a reverted one) is preferred, else the newest.
    """
    found: dict[str, Record] = {}
    others = []
    for record in sorted(records, key=lambda one: (_is_current(one), float(one["made"]))):
        name = repr((record["label"], sorted(without_version(record["key"]).items(), key=str)))
        if name in found:
            others.append(found[name])
        found[name] = record
    return list(found.values()), others


def _is_current(record: Record) -> bool:
    current = _current_version(record["label"], is_by_cost="budget" in record["key"])
    return bool(record["key"]["version"] == current)


@lru_cache(maxsize=256)
def _current_version(label: str, is_by_cost: bool) -> str | None:
    """The version of a method's present code; ``None`` if the method does not exist here."""
    try:
        spec = parse_method(label)
        return curve_version(spec) if is_by_cost else method_version(spec)
    except NasboError:
        return None


def _planned(records: Sequence[Record], parts: Sequence[Part]) -> tuple[list[Record], list[str]]:
    """The records of a plan, and descriptions of its missing cells."""

    def identity(record: Record) -> tuple[Any, ...]:
        key = record["key"]
        how = key["trials"], key["design"], _batch(record["label"], key["batch"])
        return key["problem"], record["label"], key["seed"], *how

    known = {identity(record): record for record in records}
    kept, missing = {}, []
    for part in parts:
        protocol = part.protocol
        assert isinstance(protocol, Protocol), "by cost, nasbo.bench.curves.results reads cells"
        for name in part.problems:
            for label in part.methods:
                how = protocol.trials, protocol.design, _batch(label, protocol.batch)
                for seed in range(part.seeds):
                    wanted = name, label, seed, *how
                    if wanted in known:
                        kept[wanted] = known[wanted]
                    else:
                        missing.append(f"{name} {label} seed {seed}")
    return list(kept.values()), missing


def _batch(label: str, batch: int) -> int | None:
    """Configs per suggestion; ``None`` if the method's label states them."""
    return None if parse_method(label).batch else batch


def _default_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels with ``attnbo`` and its variants first."""
    return tuple(sorted(set(labels), key=lambda one: (not one.startswith("attnbo"), len(one), one)))


def _info(name: str, records: Sequence[Record]) -> ProblemInfo:
    mine = [record for record in records if record["key"]["problem"] == name]
    last = max(mine, key=lambda record: float(record["made"]))
    entry = PROBLEMS.get(name)
    return ProblemInfo(
        name=name,
        group=entry.group if entry else last["group"],
        half=entry.half if entry else last["half"],
        optimum=last["optimum"],
        is_noisy=last["is_noisy"],
        is_returned=last.get("returned") is not None,
        n_subspaces=last["n_subspaces"],
        trials=min(record["key"]["trials"] for record in mine),
    )


def _mixtures(records: Sequence[Record]) -> list[str]:
    """Note about methods whose cells were made by more than one version."""
    versions: dict[str, set[str]] = {}
    for record in records:
        versions.setdefault(record["label"], set()).add(record["key"]["version"])
    mixed = [label for label, found in versions.items() if len(found) > 1]
    return [f"cells of several versions are mixed: {', '.join(sorted(mixed))}"] if mixed else []


def fallback_shares(results: Results) -> dict[str, float]:
    """Share of trials after the design that are fallbacks, by method."""
    shares = {}
    for method in results.methods:
        sources: Counter[str] = Counter()
        for run in results.runs.values():
            if run.method == method:
                sources.update(run.record["sources"][run.record["n_design"] :])
        shares[method] = sources["fallback"] / max(sources.total(), 1)
    return shares
