"""Observations come in; the posterior of a sum of structured kernels over all subspaces goes out.

The kernel is S + U + T. S compares whole configs, where parameters of one name share a column
whatever their father. U compares all units of one type with each other (branches with the same
names, blocks of a network). T compares each unit with itself (Add-Tree, Ma and Blaschko 2020).
U and T also hold one term per structural decision. Attention features of the tokens can join the
sum. All hyperparameters have Gaussian priors and are found by MAP in float64.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Batches, FitError, Observations, Surrogate, as_batches
from nasbo.surrogates.encoder import FrozenEncoder
from nasbo.surrogates.evidence import JITTER, Evidence, maximise
from nasbo.surrogates.exact import Conditioned
from nasbo.surrogates.kernels import (
    LENGTHSCALE_SD,
    Kernel,
    Priors,
    SharedUnits,
    SingleUnit,
    SingleUnits,
    lengthscale_mean,
    per_feature,
    unit_columns,
)
from nasbo.surrogates.layout import Layout, Rows
from nasbo.surrogates.pairs import PairTerm
from nasbo.surrogates.transform import model_scale

Array = NDArray[np.float64]

ITERATIONS = 60
MAX_FIT_ROWS = 300
"""Beyond this many rows the hyperparameters come from a subset; the posterior sees all rows."""
PART_WEIGHT = -math.log(3.0)
"""Log weight of each of S, U and T, a priori: together they explain the unit variance of y."""
ATTENTION_WEIGHT = -4.0
NOISE = (-6.0, 1.5)


class StructuredGP(Surrogate):
    """A GP with the S + U + T kernel.

    Args:
        space: the space of all observations.
        encode: optional frozen encoder, whose features become one more Matérn component with a
            small weight.
    """

    def __init__(self, space: Space, encode: FrozenEncoder | None = None) -> None:
        self.layout = Layout(space)
        self.priors = Priors()
        self._encode = encode
        self._kernels: list[Kernel] = [
            SingleUnits([self._whole()]),
            *self._unit_kernels(),
        ]
        if encode is not None:
            self._kernels.append(SingleUnits([self._attention(encode.n_features)]))
        (self._noise,) = self.priors.add(1, *NOISE)
        self.theta = torch.tensor(self.priors.means, dtype=torch.float64)

    def fit(self, observations: Observations) -> None:
        """Find the hyperparameters by MAP and condition on all observations."""
        y = np.asarray(observations.y, dtype=np.float64)
        if len(y) < 2 or not np.isfinite(y).all():
            raise FitError(f"at least two finite scores must be given, got {y!r}")
        z, self.scale = model_scale(y, observations.n_design)
        with torch.no_grad():
            self._observed = self._rows(observations.batches)
            chosen = _subset(z)
            self.theta = self._maximise(_take(self._observed, chosen), z[chosen])
            self._features = self._featurise(self._observed)
            K = self._gram(self._features, self._features)
            self._conditioned = Conditioned.on(self._noisy(K), torch.from_numpy(z))
            self._incumbent = float((K @ self._conditioned.alpha).max())

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        rows = self._featurise(self._rows(batches))
        parts = zip(self._kernels, rows, strict=True)
        diagonal = torch.stack([kernel.diagonal(self.theta, part) for kernel, part in parts])
        return self._conditioned.marginals(self._gram(rows, self._features), diagonal.sum(0))

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        rows = self._featurise(self._rows(batches))
        return self._conditioned.joint(self._gram(rows, self._features), self._gram(rows, rows))

    def incumbent(self) -> float:
        return self._incumbent

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> StructuredGP:
        if not subspaces:
            return self
        extended = copy.copy(self)
        with torch.no_grad():
            pending = self._rows(as_batches(subspaces, x))
            rows = self._featurise(pending)
            cross = self._gram(rows, self._features)
            K = self._noisy(self._gram(rows, rows))
            extended._conditioned = self._conditioned.extended(cross, K)
            extended._observed = _join(self._observed, pending)
            extended._features = self._featurise(extended._observed)
        return extended

    def _whole(self) -> SingleUnit:
        """S: one always active unit of all columns."""
        columns = self.layout.columns
        scales = self.priors.add(len(columns), lengthscale_mean(len(columns)), LENGTHSCALE_SD)
        spread = [s for s, column in zip(scales, columns, strict=True) for _ in range(column.width)]
        (weight,) = self.priors.add(1, PART_WEIGHT, 1.0)
        return SingleUnit(list(range(self.layout.n_features)), spread, weight, 0)

    def _unit_kernels(self) -> list[Kernel]:
        """U and T: the types with many units, then all that compare a unit with itself."""
        log_weight = PART_WEIGHT - math.log(self.layout.mean_active_units() + 0.5)
        many = [units for units in self.layout.types if len(units) > 1]
        shared = [SharedUnits(self.layout, units, self.priors, log_weight) for units in many]
        alone = [units[0] for units in self.layout.types if len(units) == 1]
        single = [self._single(unit, log_weight) for unit in alone]
        single += [self._single(unit, log_weight) for unit in range(len(self.layout.units))]
        single += [
            self._decision(at, log_weight)
            for _ in ("U", "T")
            for at in range(len(self.layout.decisions))
        ]
        return [*shared, SingleUnits(single)]

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
        return SingleUnit(features, [scale] * column.width, weight, gate)

    def _attention(self, n_encoded: int) -> SingleUnit:
        """The frozen attention features, behind all columns: one lengthscale, a small weight."""
        (scale,) = self.priors.add(1, lengthscale_mean(n_encoded) + math.log(12) / 2, 1.0)
        (weight,) = self.priors.add(1, ATTENTION_WEIGHT, 1.0)
        start = self.layout.n_features
        features = list(range(start, start + n_encoded))
        return SingleUnit(features, [scale] * n_encoded, weight, 0)

    def _rows(self, batches: Batches) -> Rows:
        rows = self.layout.rows(batches)
        if self._encode is None:
            return rows
        return Rows(torch.cat([rows.features, self._encode(batches)], 1), rows.active)

    def _featurise(self, rows: Rows) -> list[Any]:
        return [kernel.features(rows) for kernel in self._kernels]

    def _gram(self, left: list[Any], right: list[Any]) -> Tensor:
        parts = zip(self._kernels, left, right, strict=True)
        return torch.stack([kernel.gram(self.theta, a, b) for kernel, a, b in parts]).sum(0)

    def _noisy(self, K: Tensor) -> Tensor:
        variance = self.theta[self._noise].exp() + JITTER
        return K + variance * torch.eye(len(K), dtype=K.dtype)

    def _maximise(self, rows: Rows, z: Array) -> Tensor:
        terms: list[PairTerm] = []
        for kernel in self._kernels:
            terms += kernel.pair_terms(kernel.features(rows))
        evidence = Evidence(terms, z, self.priors, self._noise)
        return torch.from_numpy(maximise(evidence, self.priors, ITERATIONS))


def _subset(z: Array) -> NDArray[np.intp]:
    """Rows that decide the hyperparameters: all, or the best third and the rest evenly thinned."""
    if len(z) <= MAX_FIT_ROWS:
        return np.arange(len(z))
    order = np.argsort(-z, kind="stable")
    best, rest = order[: MAX_FIT_ROWS // 3], np.sort(order[MAX_FIT_ROWS // 3 :])
    thinned = rest[np.linspace(0, len(rest) - 1, MAX_FIT_ROWS - len(best)).astype(np.intp)]
    return np.sort(np.concatenate([best, thinned]))


def _take(rows: Rows, chosen: NDArray[np.intp]) -> Rows:
    places = torch.from_numpy(chosen)
    return Rows(rows.features[places], rows.active[places])


def _join(left: Rows, right: Rows) -> Rows:
    return Rows(torch.cat([left.features, right.features]), torch.cat([left.active, right.active]))
