"""Repeats: scores that are means of several values, and what these say of the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbo.gp.transform import Scale
from nasbo.history.data import Data

Array = NDArray[np.float64]
Indices = NDArray[np.intp] | Sequence[int]


@dataclass(frozen=True)
class Repeats:
    """How many values stand behind each score of a model, and how far they lie apart.

    Attributes:
        n_values: each score is the mean of so many values, shape (n,).
        degrees: degrees of freedom of the deviations of these values from their mean: one less
            than there are, or 0 where the deviations are not counted; shape (n,).
        spread: sum of squared deviations on the model's scale, shape (n,).
    """

    n_values: Array
    degrees: Array
    spread: Array

    @staticmethod
    def none(n: int) -> Repeats:
        """One value for each of ``n`` scores."""
        return Repeats(np.ones(n), np.zeros(n), np.zeros(n))

    @staticmethod
    def of_data(data: Data, z: Array, scale: Scale) -> Repeats:
        """The repeats of data.

        On a logarithmic scale deviations are taken times the slope at the row's score, which is
        right where they are small against the way to the shift. Those of rows whose score was
        raised (``cut_depths``) are not counted: the scale is flat there.

        Args:
            data: n rows.
            z: their scores on the model's scale, shape (n,).
            scale: the way back from there.
        """
        is_true = z <= scale.from_score(data.scores) + 1e-9
        degrees = np.where(is_true, data.n_values - 1.0, 0.0)
        spread = np.where(is_true, data.spread * scale.slope(data.scores) ** 2, 0.0)
        return Repeats(np.asarray(data.n_values, dtype=np.float64), degrees, spread)

    def __len__(self) -> int:
        return len(self.n_values)

    @property
    def variance(self) -> float | None:
        """The noise variance that the deviations alone tell; ``None`` where there are none."""
        n = float(self.degrees.sum())
        return float(self.spread.sum()) / n if n else None

    def take(self, rows: Indices) -> Repeats:
        """Those of some of the rows."""
        at = np.asarray(rows, dtype=np.intp)
        return Repeats(self.n_values[at], self.degrees[at], self.spread[at])

    def extended(self, n: int) -> Repeats:
        """With ``n`` further scores of one value each."""
        more = Repeats.none(n)
        return Repeats(
            np.concatenate([self.n_values, more.n_values]),
            np.concatenate([self.degrees, more.degrees]),
            np.concatenate([self.spread, more.spread]),
        )

    def likelihood(self, noise: float) -> tuple[float, float]:
        """Negative log likelihood of the deviations within rows, and its derivative.

        Given the mean of m values, their deviations from it are normal, with m - 1 degrees of
        freedom, whatever the function is. Constants are left out.

        Args:
            noise: variance of one value; the derivative is by it.
        """
        n, spread = float(self.degrees.sum()), float(self.spread.sum())
        if not n:
            return 0.0, 0.0
        value = 0.5 * (n * math.log(noise) + spread / noise)
        return value, 0.5 * (n - spread / noise) / noise
