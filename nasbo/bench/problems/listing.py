"""Table of facts about the registered problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nasbo.bench.problems import PROBLEMS
from nasbo.space import Parameter


def problem_rows() -> list[dict[str, Any]]:
    """One row per problem; data sets are neither read nor fetched."""
    return [_row(name) for name in sorted(PROBLEMS, key=lambda n: (PROBLEMS[n].group, n))]


def _row(name: str) -> dict[str, Any]:
    entry = PROBLEMS[name]
    problem = entry.make()
    return {
        "problem": name,
        "group": entry.group,
        "half": entry.half,
        "subspaces": problem.space.n_subspaces,
        "parameters": max_active(problem.space.parameters),
        "optimum": problem.optimum,
        "noise": problem.truth is not None or entry.is_slow,
        "cost": entry.cost,
        "slow": entry.is_slow,
        "needs": entry.needs,
        "summary": entry.summary,
    }


def max_active(parameters: Sequence[Parameter]) -> int:
    """Number of values of the largest config."""
    return sum(1 + _below(parameter) for parameter in parameters)


def _below(parameter: Parameter) -> int:
    if parameter.repeated:
        return parameter.n_repeats(parameter.n_levels - 1) * max_active(parameter.repeated)
    return max((max_active(branch.parameters) for branch in parameter.branches), default=0)
