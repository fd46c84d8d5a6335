"""Numbers of the benchmark tables, as plain values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nasbo.bench.regret import Yardstick, regret_pairs, yardsticks
from nasbo.bench.results import Array, ProblemInfo, Results, Run, fallback_shares
from nasbo.bench.statistics import TIE_DIGITS, bootstrap, compare, first_below, ranks

Table = dict[str, Any]
CHECKPOINTS = (10, 20, 40, 80)
RANK_CHECKPOINTS = (20, 40, 80)
COST_MARKS = (10, 20, 50, 100, 200, 500, 1000, 2000)
COST_WINDOW = 0.1
NEAR = 0.01
"""Regret, in the problem's own unit, at which the optimum counts as found."""
REACHED = 1e-6
"""Regret, in the problem's own unit, at which the optimum itself counts as found: tables differ by
more, and known optima are rounded by less."""
LEAF_AT = 40


def make_table(results: Results) -> Table:
    """All tables of a benchmark; unavailable numbers are ``None``."""
    sticks = yardsticks(results)
    plain: Table = plain_table(
        {
            "methods": list(results.methods),
            "problems": {n: _problem(results, n, sticks[n]) for n in results.problems},
            "regret": {n: _regrets(results, n, sticks[n]) for n in results.problems},
            "ranks": {name: _ranks(results, sticks, some) for name, some in scopes(results)},
            "tests": {name: _tests(results, sticks, some) for name, some in scopes(results)},
            "reach": _reach(results, sticks),
            "optimum": {n: _found(results, i, sticks[n]) for n, i in _known(results)},
            "chosen": {n: _chosen(results, n, sticks[n]) for n in _noisy(results)},
            "returned": {n: _returned(results, n, sticks[n]) for n in _returning(results)},
            "cost": {name: _costs(results, some) for name, some in scopes(results)},
            "fallbacks": fallback_shares(results),
            "versions": versions(results),
            "missing": list(results.missing),
            "left_out": results.left_out,
            "notes": list(results.notes),
        }
    )
    return plain


def scopes(results: Results) -> Iterator[tuple[str, list[str]]]:
    """Sets of problems that are evaluated together: all, each half, each group."""
    problems = results.problems
    yield "overall", list(problems)
    for half in ("tuning", "held-out"):
        if some := [name for name, info in problems.items() if info.half == half]:
            yield f"half {half}", some
    for group in dict.fromkeys(info.group for info in problems.values()):
        yield f"group {group}", [name for name, info in problems.items() if info.group == group]


def checkpoints(trials: int, wanted: Sequence[int] = CHECKPOINTS) -> list[int]:
    """The usual numbers of trials up to ``trials``, and that one itself."""
    return sorted({at for at in wanted if at <= trials} | {trials})


def _problem(results: Results, name: str, stick: Yardstick) -> Table:
    seeds = {m: len(results.of(name, m)) for m in results.contestants(name)}
    return asdict(results.problems[name]) | asdict(stick) | {"seeds": seeds}


def _regrets(results: Results, name: str, stick: Yardstick) -> Table:
    found: Table = {}
    for method in results.contestants(name):
        best = np.stack([run.best for run in results.of(name, method)])
        found[method] = {
            at: {
                "regret": asdict(bootstrap(stick.regret(best[:, at]))),
                "log10": asdict(bootstrap(stick.log10(best[:, at]))) if stick.is_optimum else None,
                "median": float(np.median(best[:, at])),
            }
            for at in checkpoints(results.problems[name].trials)
        }
    return found


def _shared_checkpoints(results: Results, problems: Sequence[str]) -> list[int]:
    trials = max(results.problems[name].trials for name in problems)
    return checkpoints(trials, RANK_CHECKPOINTS)


def _ranks(results: Results, sticks: dict[str, Yardstick], problems: Sequence[str]) -> Table:
    """Mean ranks; each problem has the same weight, whatever its number of seeds."""
    found: Table = {}
    for at in _shared_checkpoints(results, problems):
        pairs = regret_pairs(results, sticks, problems, at)
        if not len(pairs.regrets):
            continue
        ranked = ranks(pairs.regrets[:, :, -1])
        each = pairs.by_problem(ranked)
        found[str(at)] = {
            "n_problems": len(each),
            "n_pairs": len(ranked),
            "mean": dict(zip(pairs.methods, np.mean(each, 0).tolist(), strict=True)),
            "unranked": list(pairs.unranked),
        }
    return found


def _tests(results: Results, sticks: dict[str, Yardstick], problems: Sequence[str]) -> Table:
    """Wilcoxon's signed-rank test of the first method against each other one."""
    found: Table = {}
    for at in _shared_checkpoints(results, problems):
        pairs = regret_pairs(results, sticks, problems, at)
        if not len(pairs.regrets) or pairs.methods[0] != results.methods[0]:
            continue
        tested: Table = {}
        found[str(at)] = tested
        for column, peer in enumerate(pairs.methods[1:], start=1):
            one = compare(pairs.regrets[:, 0, -1], pairs.regrets[:, column, -1])
            tested[peer] = asdict(one) | {"verdict": one.verdict}
    return found


def _reach(results: Results, sticks: dict[str, Yardstick]) -> Table:
    """Trials that the first method needs for the best peer's final median value.

    Values that tie in the ranks tie here; with ``exact``, only equal or better values count.
    """
    ours, *peers = results.methods
    each: Table = {}
    for name, info in results.problems.items():
        medians = {
            peer: float(np.median([run.best[info.trials] for run in results.of(name, peer)]))
            for peer in peers
            if results.of(name, peer)
        }
        if not medians or not results.of(name, ours):
            continue
        peer = min(medians, key=lambda one: medians[one])
        exact = [first_below(run.best, medians[peer]) for run in results.of(name, ours)]
        target = float(np.round(sticks[name].regret(np.array(medians[peer])), TIE_DIGITS))
        needed = [
            first_below(np.round(sticks[name].regret(run.best), TIE_DIGITS), target)
            for run in results.of(name, ours)
        ]
        each[name] = {
            "peer": peer,
            "target": medians[peer],
            "trials": float(np.median(needed)),
            "share": float(np.mean(np.isfinite(needed))),
            "exact": float(np.median(exact)),
        }

    def median(column: str) -> float:
        return float(np.median([one[column] for one in each.values()])) if each else math.nan

    return {"median": median("trials"), "median_exact": median("exact"), "problems": each}


def _known(results: Results) -> list[tuple[str, ProblemInfo]]:
    return [(n, info) for n, info in results.problems.items() if info.optimum is not None]


def _noisy(results: Results) -> list[str]:
    """Problems with noise that are scored by the best config tried."""
    infos = results.problems.items()
    return [name for name, info in infos if info.is_noisy and not info.is_returned]


def _returning(results: Results) -> list[str]:
    return [name for name, info in results.problems.items() if info.is_returned]


def _found(results: Results, info: ProblemInfo, stick: Yardstick) -> Table:
    """How fast and how often a known optimum was found, and its subspace.

    The right subspace is taken to be that of the best value over all runs.
    """
    champion = min(results.on(info.name), key=lambda run: float(run.best[-1]))
    right, at = int(champion.best_subspace[-1]), min(LEAF_AT, info.trials)
    found: Table = {"at": at}
    for method in results.contestants(info.name):
        mine = results.of(info.name, method)
        needed = [first_below(run.best - stick.best, NEAR) for run in mine]
        exact = np.array([first_below(run.best - stick.best, REACHED) for run in mine])
        # A run that never gets there counts as one trial more than it has.
        counted = np.minimum(exact, [len(run.best) for run in mine])
        found[method] = {
            "trials_to_near": float(np.median(needed)),
            "share_near": float(np.mean(np.isfinite(needed))),
            "trials_to_optimum": float(np.median(counted)),
            "mean_trials_to_optimum": float(np.mean(counted)),
            "share_optimum": float(np.mean(np.isfinite(exact))),
            "right_subspace": float(np.mean([run.best_subspace[at] == right for run in mine])),
            "median_log10": float(np.median([stick.log10(run.best[at]) for run in mine])),
        }
    return found


def _chosen(results: Results, name: str, stick: Yardstick) -> Table:
    """With noise: the true final regret of the config that was measured best."""
    return {
        method: asdict(
            bootstrap([float(stick.regret(run.chosen[-1])) for run in results.of(name, method)])
        )
        for method in results.contestants(name)
    }


def _returned(results: Results, name: str, stick: Yardstick) -> Table:
    """True final regrets of the returned config, of the one measured
    best, and of the best tried.
    """

    def interval(runs: Sequence[Run], curve: Callable[[Run], Array | None]) -> Table | None:
        ends = [found[-1] for run in runs if (found := curve(run)) is not None]
        return asdict(bootstrap(stick.regret(np.array(ends)))) if ends else None

    return {
        method: {
            "returned": interval(runs, lambda run: run.best),
            "observed": interval(runs, lambda run: run.chosen),
            "tried": interval(runs, lambda run: run.tried),
        }
        for method in results.contestants(name)
        if (runs := results.of(name, method))
    }


def _costs(results: Results, problems: Sequence[str]) -> Table:
    """CPU seconds per config around certain numbers of observations."""
    found: Table = {}
    for method in results.methods:
        costs = np.array(
            [c for run in results.runs.values() for c in run.costs
             if run.method == method and run.problem in problems]
        ).reshape(-1, 2)  # fmt: skip
        found[method] = {}
        for mark in COST_MARKS:
            near = costs[np.abs(costs[:, 0] - mark) <= COST_WINDOW * mark, 1]
            if len(near):
                median, high = np.quantile(near, [0.5, 0.95])
                found[method][mark] = {"median": float(median), "p95": float(high)}
    return found


def versions(results: Results) -> Table:
    """The versions of each method's code that made its cells."""
    found: dict[str, set[str]] = {}
    for run in results.runs.values():
        found.setdefault(run.method, set()).add(run.record["key"]["version"])
    return {method: sorted(some) for method, some in found.items()}


def plain_table(value: Any) -> Any:
    """Convert to values that JSON can hold: text keys, no infinity, no NaN."""
    if isinstance(value, dict):
        return {str(key): plain_table(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_table(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
