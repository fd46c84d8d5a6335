"""GP of learning curves: the structured kernel over configs times a kernel over training steps.

Each value of a config at a rung is a row. Predictions are of full trainings: they follow from the
config's own values at any step and from the curves of other configs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.conditioning import Conditioned, FitError
from nasbo.gp.curves import CurveKernel, CurvePairs
from nasbo.gp.fit import MAX_FIT_ROWS, find_map, thinned
from nasbo.gp.free_features import FreeFeatures
from nasbo.gp.kernel_sum import Ends
from nasbo.gp.repeats import Repeats
from nasbo.gp.rows import Rows, as_batches, batches_of, joined
from nasbo.gp.transform import MAX_DEPTH, model_scale
from nasbo.history.data import Data
from nasbo.space import Space, Subspace
from nasbo.surrogates.structured import MAX_ROWS, StructuredGP

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class CurveGP(StructuredGP):
    """Structured GP that is fitted to the values of all rungs and predicts full trainings.

    All rungs share one noise variance: a rung is assumed to be scored as a full training is. If
        nothing was trained in part, the mean curve is a constant and the rest is the structured GP.

    Args:
        space, is_shared, max_rows, free: as in the base class.
    """

    def __init__(
        self,
        space: Space,
        is_shared: bool = True,
        max_rows: int = MAX_ROWS,
        free: FreeFeatures | None = None,
    ) -> None:
        super().__init__(space, is_shared, max_rows, free)
        self.curve = CurveKernel.add_to(self.priors)
        self.theta = np.array(self.priors.means)
        self._log_steps: Array = np.zeros(0)

    def fit(self, data: Data) -> None:
        if len(data) < 2 or not np.isfinite(data.scores).all():
            raise FitError(f"at least two finite scores must be given, got {data.scores!r}")
        z, self.scale = model_scale(data.scores, data.n_design, self.is_straightened)
        early = np.maximum(self.scale.from_score(data.earlier.y), z.min() - MAX_DEPTH)
        own = np.arange(len(data))
        steps = np.log(np.concatenate([data.step, data.earlier.step]))
        trial = np.concatenate([own, data.earlier.row])
        values = np.concatenate([z, early])
        self.repeats = Repeats.of_data(data, z, self.scale).extended(len(early))
        with torch.no_grad():
            rows = self.features(batches_of(data)).take(trial)
            few = _chosen(z, steps, MAX_FIT_ROWS)
            pairs = CurvePairs(self.curve, steps[few], trial[few])
            density = self.evidence(rows.take(few), values[few], self.repeats.take(few), pairs)
            self.theta = find_map(density, self.priors)
            many = _chosen(z, steps, self._max_rows)
            self._condition_on_curves(rows.take(many), values[many], steps[many], trial[many], many)
            self._means = self.posteriors(batches_of(data))[0]

    def covariance(self, left: Rows, right: Rows) -> Tensor:
        """Covariances of full trainings, with the training rows if ``right`` is
        those, else among each other.
        """
        K = super().covariance(left, right)
        if right is self._seen and len(self._log_steps):
            factors, summands, _ = self._ends_of(self._log_steps)
            return K * torch.from_numpy(factors) + torch.from_numpy(summands)
        return K + math.exp(self.theta[self.curve.mean])

    def ends(self) -> Ends | None:
        return self._ends_of(self._log_steps)

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> Self:
        if not subspaces:
            return self
        with torch.no_grad():
            rows = self.features(as_batches(subspaces, x))
            cross, once = self.covariance(rows, self._seen), self.n_values.new_ones(len(x))
            K = self.noisy(self.covariance(rows, rows), once)
            extended = copy.copy(self)
            extended._conditioned = self._conditioned.extended(cross, K)
        extended.n_values = torch.cat([self.n_values, once])
        extended._seen = joined(self._seen, rows)
        extended._log_steps = np.concatenate([self._log_steps, np.zeros(len(x))])
        return extended

    def _ends_of(self, log_steps: Array) -> Ends:
        factors, summands = self.curve.at_the_end(self.theta, log_steps)
        return factors, summands, math.exp(self.theta[self.curve.mean])

    def _condition_on_curves(
        self, rows: Rows, z: Array, log_steps: Array, trial: Indices, chosen: Indices
    ) -> None:
        """Condition on values, shape (n,), of trials at steps of training."""
        assert self.repeats is not None
        self.n_values = torch.from_numpy(self.repeats.take(chosen).n_values)
        self._seen, self._log_steps = rows, log_steps
        alike = StructuredGP.covariance(self, rows, rows).numpy()
        K, _ = CurvePairs(self.curve, log_steps, trial).apply(self.theta, alike)
        noisy = self.noisy(torch.from_numpy(K), self.n_values)
        self._conditioned = Conditioned.on(noisy, torch.from_numpy(z))


def _chosen(z: Array, log_steps: Array, n: int) -> Indices:
    """At most ``n`` rows: last values, the best third of them included, then
    the latest other values.

    Args:
        z: last values, which are the first rows.
        log_steps: of all rows, shape (n_rows,).
        n: maximum number of rows.
    """
    last = thinned(z, n, n // 3)
    others = np.arange(len(z), len(log_steps))
    latest = others[np.argsort(-log_steps[others], kind="stable")][: max(n - len(last), 0)]
    return np.sort(np.concatenate([last, latest]))
