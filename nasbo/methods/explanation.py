"""Explanation of a method's model: what a report shows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from nasbo.history import Trial


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


@dataclass(frozen=True)
class Explanation:
    """What a method's model has learned from a history.

    Attributes:
        reason: why there is no attention map; empty where there is one.
        maps: those of the largest types of units, or of the best subspaces, first.
        noise_sd: standard deviation of the noise, in units of the metric; ``None`` where the model
            has no noise of its own.
        lengthscales: by parameter, in the unit cube: the score changes fast along short ones.
    """

    reason: str = ""
    maps: Sequence[AttentionMap] = ()
    noise_sd: float | None = None
    lengthscales: Mapping[str, float] = field(default_factory=dict)


def thin(rows: Sequence[tuple[Trial, float]], n: int) -> list[tuple[Trial, float]]:
    """The best half of what may stay and the others evenly, in the order of the trial numbers."""
    if len(rows) <= n:
        return list(rows)
    ordered = sorted(rows, key=lambda row: (-row[1], row[0].id))
    best, rest = ordered[: n // 2], ordered[n // 2 :]
    n_rest = n - len(best)
    chosen = [rest[place * len(rest) // n_rest] for place in range(n_rest)]
    return sorted(best + chosen, key=lambda row: row[0].id)
