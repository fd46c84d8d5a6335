"""Structured GP: a sum of kernels on configs and on units, over all subspaces.

The kernel is S + U, plus F if numbers of configs are known before their training. S compares whole
configs; parameters of one name share a column whatever their parent. U is attention between units:
it compares all units of one type with each other (branches with the same names or ranges, blocks of
a network), weighted by their positions and features, with two learned numbers per type. A unit
without others of its type is compared with itself alone (as all are in Add-Tree, Ma and Blaschko
2020). Units are compared as a whole and, in first-order terms, by each single parameter, so that
the effect of one value in all blocks is learned from few results. U also has one term per
structural decision. F compares the known numbers, such as the number of parameters of a network.
All hyperparameters have Gaussian priors and are found by MAP.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.curves import CurvePairs
from nasbo.gp.fit import MAX_FIT_ROWS, find_map, thinned
from nasbo.gp.free_features import FreeFeatures
from nasbo.gp.kernel_sum import Ends, Kernel, KernelSum
from nasbo.gp.pairs import PairEvidence
from nasbo.gp.priors import LENGTHSCALE_SD, NOISE, Priors, lengthscale_mean
from nasbo.gp.repeats import Repeats
from nasbo.gp.rows import Batches, Rows, as_batches
from nasbo.gp.shared_units import SharedUnits
from nasbo.gp.single_units import SingleUnit, SingleUnits
from nasbo.gp.units import Layout
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import ExactGP
from nasbo.surrogates.lengthscales import summed_lengthscales

Array = NDArray[np.float64]

MAX_LISTED = 200
"""Maximum number of subspaces over which free parameters are averaged."""
MAX_ROWS = 1000
"""Default maximum number of rows that the posterior is conditioned on; more are thinned."""
WHOLE_WEIGHT = 1 / 3
"""Prior weight of S for up to ``PLAIN_DIMENSIONS`` free parameters; S and U
together have variance 1."""
PLAIN_DIMENSIONS = 3.0
"""Number of free parameters up to which priors are unscaled. For d parameters, prior lengthscales
are d / 3 times as long and S has 3 / d of its prior weight: in a large space configs are rarely
close, and a short lengthscale would fit the noise of each result. Chosen on `nas_proxy`, 8 seeds,
among factors of 1, e, e^2 and e^3 and weights of 1/3, 1/10 and 1/30."""
FIRST_ORDER = 0.5
"""Prior weight of a unit's first-order terms together, relative to that of the whole unit. Chosen
by predictions and searches on ``nas_proxy`` and ``blocks``."""


FREE_WEIGHT = 4.0
"""Weight of F, a priori."""
FREE_LENGTHSCALE = (0.5, 0.3)
"""Mean and standard deviation of the log lengthscales of F, a priori; random configs span about 1
in each number. F is smooth by this prior: with short lengthscales it takes luck for real. Chosen by
predictions behind 10 results on NAS-Bench-201 (CIFAR-10) and behind 24 and 48 on ``nas_proxy``."""


class LongerPriors(Priors):
    """Priors with all lengthscales longer by a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._log_factor = math.log(factor)

    def add_lengthscales(self, n: int, sd: float = LENGTHSCALE_SD) -> list[int]:
        return self.add(n, lengthscale_mean(n) + self._log_factor, sd)


def largeness(space: Space) -> float:
    """Mean number of free parameters of a config, divided by ``PLAIN_DIMENSIONS``; at least 1."""
    n = space.n_subspaces
    sizes = [space.subspace(at).n_free for at in range(0, n, max(1, n // MAX_LISTED))]
    return max(1.0, sum(sizes) / len(sizes) / PLAIN_DIMENSIONS)


class StructuredGP(ExactGP):
    """GP with the S + U kernel, with hand-written gradients in numpy for speed.

    Compared with autograd of the same kernel, the negative log posterior with its gradient is 34 to
    47 times as fast (``PairEvidence``), and the posterior with its gradient 2 to 3 times
    (``KernelSum``).

    Args:
        space: the space of all data.
        is_shared: whether U compares units with others of their type, or each only with itself.
        max_rows: maximum number of rows that the posterior is conditioned on.
        free: numbers of configs that are known before their training, if any.
    """

    is_straightened = True

    def __init__(
        self,
        space: Space,
        is_shared: bool = True,
        max_rows: int = MAX_ROWS,
        free: FreeFeatures | None = None,
    ) -> None:
        self.layout = Layout(space, free)
        large = largeness(space)
        self.priors: Priors = LongerPriors(large)
        self._whole_weight = WHOLE_WEIGHT / large
        self._is_shared, self._max_rows = is_shared, max_rows
        self.kernels: list[Kernel] = [SingleUnits([self._whole()]), *self._unit_kernels()]
        if free is not None and len(free):
            self.kernels.append(SingleUnits([self._free()]))
        (self._noise,) = self.priors.add(1, *NOISE)
        self.theta: Array = np.array(self.priors.means)
        self._against_seen: KernelSum | None = None

    def learn(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        """Fit the hyperparameters by MAP and condition on the rows;
        thinning keeps the best third.
        """
        rows, y = self.features(as_batches(subspaces, x)), z.numpy()
        few = thinned(y, MAX_FIT_ROWS, MAX_FIT_ROWS // 3)
        many = thinned(y, self._max_rows, self._max_rows // 3)
        repeats = self.repeats_of(len(y))
        density = self.evidence(rows.take(few), y[few], repeats.take(few))
        self.theta = find_map(density, self.priors)
        self.condition_on(rows.take(many), z[many], repeats.take(many))

    def evidence(
        self,
        rows: Rows,
        z: Array,
        repeats: Repeats | None = None,
        curves: CurvePairs | None = None,
    ) -> PairEvidence:
        """Negative log posterior of the hyperparameters given rows and
        standardised scores, (n,).
        """
        terms = [term for kernel in self.kernels for term in kernel.pair_terms(rows)]
        return PairEvidence(terms, z, self.priors, self._noise, repeats, curves)

    def means_of(self, observed: Batches) -> Tensor:
        """Means of the training rows from K alpha = z - noise alpha, with a noise per row."""
        noise = self.noise_variance() / self.n_values
        return self._conditioned.y - noise * self._conditioned.alpha

    def features(self, batches: Batches) -> Rows:
        return self.layout.rows(batches)

    def covariance(self, left: Rows, right: Rows) -> Tensor:
        return torch.from_numpy(self._against(right).cross(left))

    def noise_variance(self) -> Tensor:
        noise = math.exp(self.theta[self._noise]) + PairEvidence.jitter
        return torch.tensor(noise, dtype=torch.float64)

    def lengthscales(self) -> dict[str, float]:
        return summed_lengthscales(self.layout, self.covariance)

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        return self._against(self._seen).marginals(self.features(batches), self._conditioned)

    def _against(self, rows: Rows) -> KernelSum:
        """The kernel against some rows; for the training rows it is cached."""
        if rows is not self._seen:
            return KernelSum(self.kernels, self.theta, rows)
        if self._against_seen is None or self._against_seen.seen is not rows:
            self._against_seen = KernelSum(self.kernels, self.theta, rows, self.ends())
        return self._against_seen

    def ends(self) -> Ends | None:
        """Relation of partial trainings among the rows to full ones (see ``KernelSum``)."""
        return None

    def _whole(self) -> SingleUnit:
        """S: one unit of all columns that is always active."""
        scales = self.priors.add_lengthscales(len(self.layout.columns))
        spread = [scales[owner] for owner in self.layout.owners]
        (weight,) = self.priors.add(1, math.log(self._whole_weight), 1.0)
        return SingleUnit(list(range(self.layout.n_features)), spread, weight, 0)

    def _free(self) -> SingleUnit:
        """F: one always active unit of the numbers known beforehand, without gradients."""
        features = self.layout.free_features
        scales = self.priors.add(len(features), *FREE_LENGTHSCALE)
        (weight,) = self.priors.add(1, math.log(FREE_WEIGHT), 1.0)
        return SingleUnit(features, scales, weight, 0, is_smooth=False)

    def _unit_kernels(self) -> list[Kernel]:
        """U: the types with several units, then single units and decisions."""
        weight = (1 - self._whole_weight) / (self.layout.mean_active_units() + 0.5)
        log_weight = math.log(weight)
        many = [units for units in self.layout.types if len(units) > 1 and self._is_shared]
        shared = [
            SharedUnits(self.layout, units, self.priors, self._orders(units[0], log_weight))
            for units in many
        ]
        alone = [unit for units in self.layout.types if units not in many for unit in units]
        single = [
            self._single(unit, weight, only)
            for unit in alone
            for only, weight in self._orders(unit, log_weight)
        ]
        single += [self._decision(at, log_weight) for at in range(len(self.layout.decisions))]
        return [*shared, SingleUnits(single)] if single else list(shared)

    def _orders(self, unit: int, log_weight: float) -> list[tuple[int | None, float]]:
        """Terms of a unit with their log weights: the whole unit and, if it
        has several, each column.
        """
        n = len(self.layout.units[unit].columns)
        first = log_weight + math.log(FIRST_ORDER / n)
        return [(None, log_weight), *((at, first) for at in range(n) if n > 1)]

    def _single(self, unit: int, log_weight: float, only: int | None) -> SingleUnit:
        scales = self.priors.add_lengthscales(len(self.layout.unit_columns(unit, only)))
        (weight,) = self.priors.add(1, log_weight, 1.0)
        features, gate = self.layout.unit_features(unit, only), self.layout.unit_gate(unit)
        return SingleUnit(features, self.layout.unit_scales(unit, scales, only), weight, gate)

    def _decision(self, at: int, log_weight: float) -> SingleUnit:
        column = self.layout.columns[self.layout.decisions[at]]
        (scale,) = self.priors.add(1, -0.5, 1.0)
        (weight,) = self.priors.add(1, log_weight, 1.0)
        features = list(range(column.start, column.start + column.width))
        gate = self.layout.decision_gate(at)
        return SingleUnit(features, [scale] * column.width, weight, gate, is_smooth=False)
