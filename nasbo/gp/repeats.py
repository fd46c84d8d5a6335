"""Repeats: scores that are means of several values, and the noise that their deviations show."""

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
    """Number of values behind each score of a model, and their spread.

    Attributes:
        n_values: number of values that each score is the mean of, shape (n,).
        degrees: degrees of freedom of the deviations of these values from their mean: one less than
            their number, or 0 if the deviations do not count; shape (n,).
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

        On a logarithmic scale deviations are multiplied by the derivative at the row's score, which
        is accurate if they are small compared with the distance to the shift. Deviations of rows
        whose score was clipped (``cut_depths``) do not count: the scale is flat there.

        Args:
            data: n rows.
            z: their scores on the model's scale, shape (n,).
            scale: maps that scale back to scores.
        """
        is_true = z <= scale.from_score(data.scores) + 1e-9
        degrees = np.where(is_true, data.n_values - 1.0, 0.0)
        spread = np.where(is_true, data.spread * scale.slope(data.scores) ** 2, 0.0)
        return Repeats(np.asarray(data.n_values, dtype=np.float64), degrees, spread)

    def __len__(self) -> int:
        return len(self.n_values)

    @property
    def variance(self) -> float | None:
        """Noise variance from the deviations alone; ``None`` if there are none."""
        n = float(self.degrees.sum())
        return float(self.spread.sum()) / n if n else None

    def take(self, rows: Indices) -> Repeats:
        """The repeats of some of the rows."""
        at = np.asarray(rows, dtype=np.intp)
        return Repeats(self.n_values[at], self.degrees[at], self.spread[at])

    def extended(self, n: int) -> Repeats:
        """The repeats with ``n`` further scores of one value each."""
        more = Repeats.none(n)
        return Repeats(
            np.concatenate([self.n_values, more.n_values]),
            np.concatenate([self.degrees, more.degrees]),
            np.concatenate([self.spread, more.spread]),
        )

    def likelihood(self, noise: float) -> tuple[float, float]:
        """Negative log likelihood of the deviations within rows, and its derivative by ``noise``.

        Given the mean of m values, their deviations from it are normal with m - 1 degrees of
        freedom, whatever the function is. Constants are left out.

        Args:
            noise: variance of one value.
        """
        n, spread = float(self.degrees.sum()), float(self.spread.sum())
        if not n:
            return 0.0, 0.0
        value = 0.5 * (n * math.log(noise) + spread / noise)
        return value, 0.5 * (n - spread / noise) / noise
