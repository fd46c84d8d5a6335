"""Numbers of a benchmark by cost: regrets, ranks and tests at marks of the budget."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nasbo.bench.curves.ledger import PER_TRAINING
from nasbo.bench.curves.results import CurveResults
from nasbo.bench.regret import regret_pairs
from nasbo.bench.results import Array, fallback_shares
from nasbo.bench.statistics import TIE_DIGITS, compare, first_below, ranks
from nasbo.bench.table import Table, plain_table, scopes, versions

MARKS = (4, 10, 20)
"""Costs at which methods are compared, in full trainings."""
FULL_LENGTH = "attnbo"
"""The method whose final value the others are to reach."""


def make_curve_table(found: CurveResults) -> Table:
    """All numbers of one protocol; unavailable ones are ``None``."""
    results = found.results
    chosen: dict[str, list[str]] = {}
    for name, some in scopes(results):
        if some not in chosen.values():
            chosen[name] = some
    budget = found.protocol.budget
    marks = sorted({mark for mark in MARKS if mark < budget} | {budget})
    table: Table = plain_table(
        {
            "protocol": str(found.protocol),
            "marks": marks,
            "methods": list(results.methods),
            "n_problems": len(results.problems),
            "scopes": {name: _scope(found, some, marks) for name, some in chosen.items()},
            "problems": {name: _scope(found, [name], marks) for name in results.problems},
            "cells": {method: _cells(found, method) for method in results.methods},
            "fallbacks": fallback_shares(results),
            "versions": versions(results),
            "missing": list(results.missing),
            "left_out": results.left_out,
            "notes": list(results.notes),
        }
    )
    return table


def _scope(found: CurveResults, problems: list[str], marks: list[int]) -> Table:
    """Numbers over a set of problems, on the seeds that all methods have finished."""
    pairs = regret_pairs(found.results, found.sticks, problems, _point(found.protocol.budget))
    if not len(pairs.regrets):
        return {}
    owners = np.array(pairs.problems)
    return {
        "n_pairs": len(owners),
        "n_problems": len(set(pairs.problems)),
        "methods": list(pairs.methods),
        "at": {mark: _at(pairs.regrets[:, :, _point(mark)], owners, pairs.methods)
               for mark in marks},
        "share": _shares(pairs.regrets, pairs.methods),
        "seen": {mark: _seen(found, problems, pairs.methods, _point(mark)) for mark in marks},
    }  # fmt: skip


def _point(cost: int) -> int:
    """The grid point at a cost in full trainings."""
    return cost * PER_TRAINING


def _at(regrets: Array, owners: Any, methods: tuple[str, ...]) -> Table:
    """Regrets, ranks and tests at one cost, regrets of shape (pairs, methods)."""
    ranked = ranks(regrets)
    each = np.array([ranked[owners == name].mean(0) for name in dict.fromkeys(owners)])
    tests = {
        method: _test(regrets[:, 0], regrets[:, column])
        for column, method in enumerate(methods[1:], start=1)
    }
    return {
        method: {
            "regret": _mean(regrets[:, column]),
            "median": float(np.median(regrets[:, column])),
            "rank": _mean(each[:, column]),
            "test": tests.get(method),
        }
        for column, method in enumerate(methods)
    }


def _mean(values: Array) -> dict[str, float]:
    """Mean and standard error, which is NaN for one value."""
    n = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return {"mean": float(values.mean()), "error": error}


def _test(first: Array, other: Array) -> Table:
    one = compare(first, other)
    return {"wins": one.wins, "losses": one.losses, "ties": one.ties, "p": one.p,
            "verdict": one.verdict}  # fmt: skip


def _shares(regrets: Array, methods: tuple[str, ...]) -> Table:
    """Share of the budget that reaches the final value of full-length
    attnbo, by problem and seed.
    """
    if FULL_LENGTH not in methods:
        return {}
    rounded = np.round(regrets, TIE_DIGITS)
    targets = rounded[:, methods.index(FULL_LENGTH), -1]
    n_points = regrets.shape[2] - 1
    needed = [
        [first_below(rounded[pair, column], target) / n_points
         for pair, target in enumerate(targets)]
        for column in range(len(methods))
    ]  # fmt: skip
    return {
        method: {"median": float(np.median(one)), "reached": float(np.mean(np.isfinite(one)))}
        for method, one in zip(methods, needed, strict=True)
    }


def _seen(
    found: CurveResults, problems: list[str], methods: tuple[str, ...], point: int
) -> dict[str, float]:
    """Mean regret of the config with the best value at any step so far."""
    results = found.results
    regrets: dict[str, list[float]] = {method: [] for method in methods}
    for problem in problems:
        for seed in results.seeds(problem, methods):
            for method in methods:
                value = results.runs[problem, method, seed].chosen[point]
                regrets[method].append(float(found.sticks[problem].regret(value)))
    return {method: float(np.mean(some)) for method, some in regrets.items()}


def _cells(found: CurveResults, method: str) -> Table:
    """Median numbers of configs, and mean cost and times, of a method's cells."""
    records = [run.record for run in found.results.runs.values() if run.method == method]
    n_full = [sum(step == one["n_steps"] for step in one["steps"]) for one in records]
    decisions = [sum(cpu for _, _, cpu in one["rounds"]) for one in records]
    return {
        "cells": len(records),
        "configs": float(np.median([len(one["steps"]) for one in records])),
        "full": float(np.median(n_full)),
        "spent": float(np.mean([one["spent"] for one in records])),
        "time": float(np.mean([one["clock"][-1] for one in records])),
        "seconds": float(np.mean([one["seconds"] for one in records])),
        "deciding": float(np.mean(decisions)),
        "dropped": float(np.mean([bool(one.get("dropped")) for one in records])),
    }
