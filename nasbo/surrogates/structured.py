"""GP with a sum of structured kernels over all subspaces.

The kernel is S + U, and F where numbers of a config are known before its training. S compares whole
configs, where parameters of one name share a column whatever their parent. U is attention between
units: it compares all units of one type with each other (branches with the same names or ranges,
blocks of a network), weighted by position and by what is in them, with two learned numbers per
type; a unit that has no other of its type is compared with itself (as all are in Add-Tree, Ma and
Blaschko 2020). Units are compared as a whole and, in terms of first order, by each of their
parameters alone: the effect of one value in all blocks is learned from few results. U also holds
one term per structural decision. F compares the known numbers, such as parameters. All
hyperparameters have Gaussian priors and are found by MAP.
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
"""Subspaces that are looked at for the number of free parameters."""
MAX_ROWS = 1000
"""Beyond this many rows the posterior, too, is conditioned on a part of them, if not told
otherwise."""
WHOLE_WEIGHT = 1 / 3
"""Weight of S, a priori, up to ``PLAIN_DIMENSIONS``; S and U together explain the unit variance."""
PLAIN_DIMENSIONS = 3.0
"""Up to so many free parameters priors are taken as they are. In d of them lengthscales are d / 3
times as long, a priori, and S has 3 / d of its weight: whole configs hardly ever meet in a large
space, and a short kernel on them takes the luck of every result for real. Chosen on `nas_proxy`, 8
seeds, among factors of 1, e, e^2 and e^3 and weights of 1/3, 1/10 and 1/30."""
FIRST_ORDER = 0.5
"""Weight of a unit's terms of first order together, a priori, in weights of the whole unit. Chosen
by predictions and searches on ``nas_proxy`` and ``blocks``."""


FREE_WEIGHT = 4.0
"""Weight of F, a priori."""
FREE_LENGTHSCALE = (0.5, 0.3)
"""Mean and standard deviation of the log lengthscales of F, a priori; random configs span about 1
in each number. F is smooth by this prior: with short lengthscales it takes luck for real. Chosen by
predictions behind 10 results on NAS-Bench-201 (CIFAR-10) and behind 24 and 48 on ``nas_proxy``."""


class LongerPriors(Priors):
    """Priors under which all lengthscales are longer by a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._log_factor = math.log(factor)

    def add_lengthscales(self, n: int, sd: float = LENGTHSCALE_SD) -> list[int]:
        return self.add(n, lengthscale_mean(n) + self._log_factor, sd)


def largeness(space: Space) -> float:
    """Mean number of free parameters of a config over ``PLAIN_DIMENSIONS``; at least 1."""
    n = space.n_subspaces
    sizes = [space.subspace(at).n_free for at in range(0, n, max(1, n // MAX_LISTED))]
    return max(1.0, sum(sizes) / len(sizes) / PLAIN_DIMENSIONS)


class StructuredGP(ExactGP):
    """A GP with the S + U kernel, whose gradients are written out in numpy for speed.

    Against the same kernel by autograd, the evidence with its gradient is 34 to 47 times as fast
    (``PairEvidence``), the posterior with its gradient 2 to 3 times (``KernelSum``).

    Args:
        space: the space of all data.
        is_shared: whether U compares units with others of their type; without it only with
            themselves.
        max_rows: on how many rows the posterior is conditioned at most.
        free: numbers that are known of configs before their training, if any.
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
        """Find the hyperparameters by MAP and condition on the rows, the best third included."""
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
        """The density of the hyperparameters given rows and their standardised scores, (n,)."""
        terms = [term for kernel in self.kernels for term in kernel.pair_terms(rows)]
        return PairEvidence(terms, z, self.priors, self._noise, repeats, curves)

    def means_of(self, observed: Batches) -> Tensor:
        """Means of the rows it is conditioned on: K alpha = z - noise alpha, noise by row."""
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
        """The kernel against some rows; what concerns the rows seen is worked out once."""
        if rows is not self._seen:
            return KernelSum(self.kernels, self.theta, rows)
        if self._against_seen is None or self._against_seen.seen is not rows:
            self._against_seen = KernelSum(self.kernels, self.theta, rows, self.ends())
        return self._against_seen

    def ends(self) -> Ends | None:
        """What rows from the midst of trainings have to do with full ones (``KernelSum``)."""
        return None

    def _whole(self) -> SingleUnit:
        """S: one always active unit of all columns."""
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
        """U: the types with many units, then the units and decisions that stand alone."""
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
        """The whole unit and, where it has several, each of its columns; with their log weights."""
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
