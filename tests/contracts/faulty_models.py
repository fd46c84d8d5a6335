"""Surrogates and acquisitions with one fault each."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.acquisition import UCB, LogEI
from nasbo.history.data import Data
from nasbo.space import Subspace
from nasbo.surrogates.base import Batches, FitError
from nasbo.surrogates.one_hot import OneHotGP

Rows = Sequence[NDArray[np.float64]]


class HalvesTheMean(OneHotGP):
    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = super().posteriors(batches)
        return 0.5 * mean, variance


class IsSureEverywhere(OneHotGP):
    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = super().posteriors(batches)
        return mean, 0.05 + 0.0 * variance


class HasNoGradient(OneHotGP):
    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = super().posteriors(batches)
        return mean.detach() + 0.0 * mean, variance.detach() + 0.0 * variance


class HasAnotherJoint(OneHotGP):
    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, covariance = super().joint_posterior(batches)
        return mean, 1.1 * covariance


class CentresTheBatch(OneHotGP):
    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = super().posteriors(batches)
        return mean - mean.mean(), variance


class DependsOnTheOrder(OneHotGP):
    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = super().posteriors(batches)
        return mean + 1e-3 * torch.arange(len(mean)), variance


class ForgetsToNormalise(OneHotGP):
    def correlations(self, subspace: Subspace, x: Tensor, others: Batches) -> Tensor:
        return self.covariance(self.features([(subspace, x)]), self.features(others))[0]


class IgnoresPending(OneHotGP):
    def with_pending(self, subspaces: Sequence[Subspace], x: Rows) -> Self:
        return copy.copy(self) if subspaces else self


class IsChangedByPending(OneHotGP):
    def with_pending(self, subspaces: Sequence[Subspace], x: Rows) -> Self:
        extended = super().with_pending(subspaces, x)
        self._seen, self._conditioned = extended._seen, extended._conditioned
        return extended


class ComputesInFloat32(OneHotGP):
    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = super().posteriors(batches)
        return mean.float(), variance.float()


class TakesAnyScore(OneHotGP):
    def fit(self, data: Data) -> None:
        scores = np.resize(np.nan_to_num(data.scores, posinf=1.0), 2)
        super().fit(Data(data.space, [data.subspaces[0]] * 2, [data.x[0]] * 2, scores))


class DividesByTheSpread(OneHotGP):
    def fit(self, data: Data) -> None:
        if not data.scores.std():
            raise FitError("the standard deviation must be > 0, got 0")
        super().fit(data)


class DependsOnTheProcess(OneHotGP):
    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = super().posteriors(batches)
        return mean + 1e-9 * os.getpid(), variance


class DrawsFromTheGlobalGenerator(OneHotGP):
    def fit(self, data: Data) -> None:
        super().fit(data)
        self.theta = self.theta + 1e-3 * torch.randn(len(self.theta), dtype=torch.float64)
        self.condition(list(data.subspaces), list(data.x), self._conditioned.y)


class PrefersTheWorst(UCB):
    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        return super().score(-mean, variance)


class HalvesTheGradient(UCB):
    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        whole = super().score(mean, variance)
        return 0.5 * whole + 0.5 * whole.detach()


class RanksTheBatch(UCB):
    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        scores = super().score(mean, variance)
        return scores - scores.detach().mean()


class Underflows(LogEI):
    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        return super().score(mean, variance).exp().log()
