"""A sum of structured kernels over all subspaces.

The kernel is S + U. S compares whole configs, where parameters of one name share a column whatever
their parent. U is attention between units: it compares all units of one type with each other
(branches with the same names or ranges, blocks of a network), weighted by place and by what is in
them, with two learned numbers per type; a unit that has no other of its type is compared with
itself (as all are in Add-Tree, Ma and Blaschko 2020). U also holds one term per structural
decision. Features of a frozen encoder of the tokens can join the sum. All hyperparameters have
Gaussian priors and are found by MAP.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.history.data import Data
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Batches, FitError, Surrogate, as_batches, batches_of
from nasbo.surrogates.covariance import Kernel, Table
from nasbo.surrogates.encoder import FrozenEncoder
from nasbo.surrogates.evidence import JITTER, Evidence
from nasbo.surrogates.kernel_posterior import Covariances, KernelPosterior
from nasbo.surrogates.kernels import LENGTHSCALE_SD, Priors, lengthscale_mean
from nasbo.surrogates.layout import Layout, Rows
from nasbo.surrogates.marginal import NOISE
from nasbo.surrogates.maximum import maximise_density
from nasbo.surrogates.shared import SharedUnits, per_feature, unit_columns
from nasbo.surrogates.single import SingleUnit, SingleUnits
from nasbo.surrogates.transform import model_scale

Array = NDArray[np.float64]

MAX_FIT_ROWS = 300
"""Beyond this many rows the hyperparameters come from a part of them."""
MAX_ROWS = 1000
"""Beyond this many rows the posterior, too, is conditioned on a part of them, if not told
otherwise."""
WHOLE_WEIGHT, UNITS_WEIGHT = math.log(1 / 3), math.log(2 / 3)
"""Log weights of S and U, a priori: together they explain the unit variance of y."""
ATTENTION_WEIGHT = -4.0


class StructuredGP(Surrogate):
    """A GP with the S + U kernel.

    Args:
        space: the space of all observations.
        encode: optional frozen encoder, whose features become one more Matérn component, with a
            small weight.
        is_structured: whether there is S + U; without it the encoder's component is all.
        is_shared: whether U compares units with others of their type; without it only with
            themselves.
        max_rows: on how many observations the posterior is conditioned at most.
    """

    def __init__(
        self,
        space: Space,
        encode: FrozenEncoder | None = None,
        is_structured: bool = True,
        is_shared: bool = True,
        max_rows: int = MAX_ROWS,
    ) -> None:
        self.layout = Layout(space)
        self.priors = Priors()
        self.encode = encode
        self._is_shared, self._max_rows = is_shared, max_rows
        self.kernels: list[Kernel] = []
        if is_structured:
            self.kernels += [SingleUnits([self._whole()]), *self._unit_kernels()]
        if encode is not None:
            log_weight = ATTENTION_WEIGHT if is_structured else 0.0
            self.kernels.append(SingleUnits([self._attention(encode.n_features, log_weight)]))
        (self._noise,) = self.priors.add(1, *NOISE)
        self.theta: Array = np.array(self.priors.means)

    def fit(self, observations: Data) -> None:
        """Find the hyperparameters by MAP and condition on the observations."""
        y = np.asarray(observations.scores, dtype=np.float64)
        if len(y) < 2 or not np.isfinite(y).all():
            raise FitError(f"at least two finite scores must be given, got {y!r}")
        z, self.scale = model_scale(y, observations.n_design)
        observed = Table.of(self._rows(batches_of(observations)))
        few, many = _subset(z, MAX_FIT_ROWS), _subset(z, self._max_rows)
        self.theta = maximise_density(self.evidence(observed.take(few), z[few]), self.priors)
        covariances = Covariances(self.kernels, self.theta, observed.take(many))
        noise = math.exp(self.theta[self._noise]) + JITTER
        self._posterior = KernelPosterior.on(covariances, noise, z[many])
        self._incumbent = self._posterior.best_mean()

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        rows = self._rows(batches)
        return self._posterior.marginals(rows.features, rows.active)

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        return self._posterior.joint(Table.of(self._rows(batches)))

    def incumbent(self) -> float:
        return self._incumbent

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> StructuredGP:
        if not subspaces:
            return self
        extended = copy.copy(self)
        pending = Table.of(self._rows(as_batches(subspaces, x)))
        extended._posterior = self._posterior.extended(pending)
        return extended

    def evidence(self, rows: Table, z: Array) -> Evidence:
        """The density of the hyperparameters given rows and their standardised scores, (n,)."""
        terms = [term for kernel in self.kernels for term in kernel.pair_terms(rows)]
        return Evidence(terms, z, self.priors, self._noise)

    def _whole(self) -> SingleUnit:
        """S: one always active unit of all columns."""
        columns = self.layout.columns
        scales = self.priors.add(len(columns), lengthscale_mean(len(columns)), LENGTHSCALE_SD)
        spread = [s for s, column in zip(scales, columns, strict=True) for _ in range(column.width)]
        (weight,) = self.priors.add(1, WHOLE_WEIGHT, 1.0)
        return SingleUnit(list(range(self.layout.n_features)), spread, weight, 0)

    def _unit_kernels(self) -> list[Kernel]:
        """U: the types with many units, then the units and decisions that stand alone."""
        log_weight = UNITS_WEIGHT - math.log(self.layout.mean_active_units() + 0.5)
        many = [units for units in self.layout.types if len(units) > 1 and self._is_shared]
        shared = [SharedUnits(self.layout, units, self.priors, log_weight) for units in many]
        alone = [unit for units in self.layout.types if units not in many for unit in units]
        single = [self._single(unit, log_weight) for unit in alone]
        single += [self._decision(at, log_weight) for at in range(len(self.layout.decisions))]
        return [*shared, SingleUnits(single)] if single else list(shared)

    def _single(self, unit: int, log_weight: float) -> SingleUnit:
        n = len(self.layout.units[unit].columns)
        scales = self.priors.add(n, lengthscale_mean(n), LENGTHSCALE_SD)
        (weight,) = self.priors.add(1, log_weight, 1.0)
        spread = per_feature(self.layout, unit, scales)
        return SingleUnit(
            unit_columns(self.layout, unit), spread, weight, self.layout.unit_gate(unit)
        )

    def _decision(self, at: int, log_weight: float) -> SingleUnit:
        column = self.layout.columns[self.layout.decisions[at]]
        (scale,) = self.priors.add(1, -0.5, 1.0)
        (weight,) = self.priors.add(1, log_weight, 1.0)
        features = list(range(column.start, column.start + column.width))
        gate = self.layout.decision_gate(at)
        return SingleUnit(features, [scale] * column.width, weight, gate, is_smooth=False)

    def _attention(self, n_encoded: int, log_weight: float) -> SingleUnit:
        """The frozen attention features, behind all columns: one lengthscale."""
        (scale,) = self.priors.add(1, lengthscale_mean(n_encoded) + math.log(12) / 2, 1.0)
        (weight,) = self.priors.add(1, log_weight, 1.0)
        start = self.layout.n_features
        features = list(range(start, start + n_encoded))
        return SingleUnit(features, [scale] * n_encoded, weight, 0)

    def _rows(self, batches: Batches) -> Rows:
        rows = self.layout.rows(batches)
        if self.encode is None:
            return rows
        return Rows(torch.cat([rows.features, self.encode(batches)], 1), rows.active)


def _subset(z: Array, n: int) -> NDArray[np.intp]:
    """Places of at most ``n`` rows: the best third of them and the rest evenly thinned."""
    if len(z) <= n:
        return np.arange(len(z))
    order = np.argsort(-z, kind="stable")
    best, rest = order[: n // 3], np.sort(order[n // 3 :])
    thinned = rest[np.linspace(0, len(rest) - 1, n - len(best)).astype(np.intp)]
    return np.sort(np.concatenate([best, thinned]))
