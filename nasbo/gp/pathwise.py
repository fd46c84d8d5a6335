"""Posterior samples of a GP as functions, by pathwise conditioning."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from nasbo.gp.conditioning import Conditioned
from nasbo.gp.features import ParameterFeatures
from nasbo.gp.kernels import ARDKernel

N_WAVES = 256


class DrawableGP(Protocol):
    """What pathwise conditioning needs of a GP with a Matérn-5/2 kernel.

    Attributes:
        noise: index of the log noise variance.
        n_values: number of values that each score is the mean of, shape (n,).
    """

    map: ParameterFeatures
    kernel: ARDKernel
    theta: Tensor
    noise: int
    n_values: Tensor

    @property
    def seen(self) -> tuple[Tensor, Conditioned] | None:
        """Features of the training rows, and the posterior; ``None`` without data."""


class PosteriorDraw:
    """A sample function of a GP's posterior, defined everywhere and differentiable.

    A prior sample from random Fourier features of the Matérn-5/2 kernel is updated by Matheron's
    rule: f(x) + k(x, X) (K + noise)^-1 (z - f(X) - noise sample).
    """

    def __init__(self, model: DrawableGP, rng: Generator) -> None:
        self._model = model
        d = model.map.n_features
        scale = torch.exp(-model.theta[model.kernel.scales]).numpy()
        # The spectral density of a Matérn-nu kernel is a Student t with 2 nu degrees of freedom.
        stretch = np.sqrt(5.0 / rng.chisquare(5.0, size=(1, N_WAVES)))
        waves = rng.standard_normal((d, N_WAVES)) * stretch * scale[:, None]
        self._waves = torch.from_numpy(waves)
        self._phases = torch.from_numpy(rng.uniform(0.0, 2.0 * math.pi, N_WAVES))
        size = math.sqrt(2.0 / N_WAVES) * float((0.5 * model.theta[model.kernel.weight]).exp())
        self._sizes = torch.from_numpy(rng.standard_normal(N_WAVES)) * size
        self._update = self._move_to_data(rng)

    def __call__(self, x: Tensor) -> Tensor:
        """Values, shape (n,), at rows of the unit cube, shape (n, n_free)."""
        features = self._model.map(x)
        values = self._prior(features)
        if self._update is not None:
            seen, solved = self._update
            values = values + self._model.kernel.gram(self._model.theta, features, seen) @ solved
        return values

    def _prior(self, features: Tensor) -> Tensor:
        return torch.cos(features @ self._waves + self._phases) @ self._sizes

    def _move_to_data(self, rng: Generator) -> tuple[Tensor, Tensor] | None:
        if self._model.seen is None:
            return None
        seen, conditioned = self._model.seen
        noise_sd = float((0.5 * self._model.theta[self._model.noise]).exp())
        noise_sds = noise_sd / self._model.n_values.sqrt()
        noise = torch.from_numpy(rng.standard_normal(len(conditioned.y))) * noise_sds
        away = conditioned.y - self._prior(seen) - noise
        return seen, torch.cholesky_solve(away[:, None], conditioned.factor)[:, 0]
