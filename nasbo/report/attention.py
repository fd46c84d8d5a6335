"""A history comes in; who attends to whom in the sweep's surrogate goes out.

The preset ``default`` has attention between units (branches, blocks of a network): one map per type
of unit, with what the surrogate learned from the history. The preset ``paper`` has an encoder of
tokens, which is trained on the history first: one map per subspace, of the first block, mean of its
heads, for the subspace's best config (AttnBO paper, appendix D).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nasbo.errors import NasboError
from nasbo.history import Trial, View
from nasbo.history.data import Data

if TYPE_CHECKING:
    from nasbo.gp.layout import Unit  # imports torch

MAX_ROWS = 48
"""The paper's deep kernel is trained on so many rows at most: a picture should not take minutes."""
MAX_UNIT_ROWS = 150
"""Enough to find how units share, and a second instead of four at a thousand rows."""
MAX_MAPS = 4


class NoAttentionError(NasboError):
    """A search whose surrogate has no attention map, or no result to draw it for."""


@dataclass(frozen=True)
class AttentionMap:
    """Attention among some tokens or units.

    Attributes:
        title: what they belong to.
        labels: their names, ``kernel_size[2]``.
        weights: row i is what i attends to, (n, n); rows add up to 1.
        kind: what attends.
        trial: whose config it is; a map of units is about all configs.
    """

    title: str
    labels: tuple[str, ...]
    weights: list[list[float]]
    kind: Literal["units", "trained encoder"]
    trial: Trial | None = None


def attention_maps(
    history: View,
    method: str,
    options: dict[str, Any] | None = None,
    seed: int = 0,
    n_maps: int = MAX_MAPS,
) -> list[AttentionMap]:
    """The maps of the largest types of units, or of the best configs of the best subspaces.

    Args:
        history: with at least two results.
        method: the sweep's method and
        options: its options, which decide what attends;
        seed: its seed.
        n_maps: how many at most.

    Raises:
        NoAttentionError: there is nothing to draw; the message says why.
    """
    if method != "attnbo":
        raise NoAttentionError(f"the method {method} has no attention")
    best = best_per_subspace(history)[:n_maps]
    if len(history.rows()) < 2 or not best:
        raise NoAttentionError("fewer than two results so far")
    options = options or {}
    if options.get("attention", "on") in ("off", False):
        raise NoAttentionError("the sweep was run with attention=off")
    if options.get("preset", "default") == "paper":
        trained = _fitted(history, options, seed, MAX_ROWS)
        return [_map_of_tokens(history, trial, trained) for trial in best]
    surrogate = _fitted(history, options, seed, MAX_UNIT_ROWS)
    maps = _unit_maps(surrogate)
    if not maps:
        raise NoAttentionError("the space has no two units of one type, which could attend")
    return maps[:n_maps]


def best_per_subspace(history: View) -> list[Trial]:
    """The best trial of each subspace that has results, the best first."""
    found: dict[int, Trial] = {}
    for trial in history.ranked():
        found.setdefault(trial.subspace, trial)
    return list(found.values())


def _fitted(history: View, options: dict[str, Any], seed: int, n_rows: int) -> Any:
    """The sweep's surrogate, which has seen so many rows at most."""
    with warnings.catch_warnings():  # of torch, about what gpytorch does
        warnings.simplefilter("ignore", FutureWarning)
        from nasbo.methods.attnbo import AttnBO  # takes seconds to import
        from nasbo.methods.base import Task

    try:
        method = AttnBO(history.space, seed, **options)
    except (NasboError, TypeError) as error:
        raise NoAttentionError(f"the sweep's options are no longer known: {error}") from error
    surrogate: Any = method.make_surrogate(Task.empty(history.space, seed))
    try:
        surrogate.fit(Data.of_trials(history.space, _thin(history.rows(), n_rows)))
    except ArithmeticError as error:
        raise NoAttentionError(f"the surrogate could not be trained: {error}") from error
    return surrogate


def _thin(rows: Sequence[tuple[Trial, float]], n: int = MAX_ROWS) -> list[tuple[Trial, float]]:
    """The best half of what may stay and the others evenly, in the order of the trial numbers."""
    if len(rows) <= n:
        return list(rows)
    ordered = sorted(rows, key=lambda row: (-row[1], row[0].id))
    best, rest = ordered[: n // 2], ordered[n // 2 :]
    n_rest = n - len(best)
    chosen = [rest[index * len(rest) // n_rest] for index in range(n_rest)]
    return sorted(best + chosen, key=lambda row: row[0].id)


def _unit_maps(surrogate: Any) -> list[AttentionMap]:
    """A map per type of units, that with most of them first."""
    from nasbo.gp.shared import SharedUnits

    kernels = [kernel for kernel in surrogate.kernels if isinstance(kernel, SharedUnits)]
    kernels.sort(key=lambda kernel: -len(kernel.members))
    layout = surrogate.layout
    maps = []
    for kernel in kernels:
        relation = kernel.relation(surrogate.theta)
        names = [layout.columns[number].name for number in layout.units[kernel.members[0]].columns]
        title = f"{len(kernel.members)} units: {', '.join(names)}"
        labels = tuple(_unit_label(layout.units[unit]) for unit in kernel.members)
        weights = (relation / relation.sum(1, keepdims=True)).tolist()
        maps.append(AttentionMap(title, labels, weights, "units"))
    return maps


def _unit_label(unit: Unit) -> str:
    """``nums_block[2]``, or the branch ``kernel=rbf``; parameters under nothing are at the top."""
    position = f"[{unit.index}]" if unit.index else ""
    return unit.branch.replace("[]", position, 1) or "top"


def _map_of_tokens(history: View, trial: Trial, surrogate: Any) -> AttentionMap:
    from nasbo.gp.rows import as_batches

    subspace = history.subspace(trial)
    ((_, x),) = as_batches([subspace], [subspace.encode(trial.config)])
    weights = surrogate.attention_map(subspace, x[0]).tolist()
    labels = tuple(slot.label for slot in subspace.slots)
    return AttentionMap(subspace.id, labels, weights, "trained encoder", trial)
