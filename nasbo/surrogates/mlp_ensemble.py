"""Ensemble of small neural networks on feature rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

N_NETWORKS = 5
WIDTH = 32
N_HIDDEN = 3
N_STEPS = 200
BATCH = 32
LEARNING_RATE = 0.01
MIN_SD = 1e-3
"""Least standard deviation of a prediction; the scores have one of about 1."""


@dataclass
class MLPEnsemble:
    """Networks of equal shape that start at different random weights.

    All are trained together, as one batched computation, by Adam on the mean absolute error with a
    decreasing learning rate. Each network sees mini-batches of its own.

    Attributes:
        weights: (n_networks, n_in, n_out) and (n_networks, 1, n_out) of each layer.
    """

    weights: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def fit(self, X: Tensor, z: Tensor, seed: int) -> None:
        """Train new networks.

        Args:
            X: features, shape (n, d).
            z: scores with a standard deviation of about 1, shape (n,).
            seed: of the weights and the mini-batches.
        """
        X, z = X.float(), z.float()
        rng = torch.Generator().manual_seed(seed)
        self.weights = _random_weights(X.shape[1], rng)
        free = [one.requires_grad_() for layer in self.weights for one in layer]
        optimiser = torch.optim.Adam(free, lr=LEARNING_RATE)
        for rows, share in _mini_batches(len(X), rng):
            optimiser.param_groups[0]["lr"] = LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * share))
            optimiser.zero_grad()
            loss = (self._outputs(X[rows]) - z[rows]).abs().mean(1).sum()
            loss.backward()
            optimiser.step()

    def predict(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation over the networks, shape (n,) each, float64."""
        with torch.no_grad():
            found = self._outputs(X.float().expand(N_NETWORKS, -1, -1)).double()
        return found.mean(0), found.std(0).clamp_min(MIN_SD)

    def _outputs(self, X: Tensor) -> Tensor:
        """The networks' outputs, shape (n_networks, n), for ``X`` of shape (n_networks, n, d)."""
        *hidden, (weight, bias) = self.weights
        for inner, shift in hidden:
            X = torch.relu(torch.baddbmm(shift, X, inner))
        return torch.baddbmm(bias, X, weight)[:, :, 0]


def _random_weights(n_in: int, rng: torch.Generator) -> list[tuple[Tensor, Tensor]]:
    """Weights of variance 2 / n_in (He et al. 2015), and biases of 0."""
    layers = []
    for n_out in (*[WIDTH] * N_HIDDEN, 1):
        weight = torch.randn(N_NETWORKS, n_in, n_out, generator=rng) * math.sqrt(2.0 / n_in)
        layers.append((weight, torch.zeros(N_NETWORKS, 1, n_out)))
        n_in = n_out
    return layers


def _mini_batches(n: int, rng: torch.Generator) -> Iterable[tuple[Tensor, float]]:
    """Rows of each network, shape (n_networks, m), and the share of the training that is done."""
    for step in range(N_STEPS):
        order = torch.rand(N_NETWORKS, n, generator=rng).argsort(1)
        yield order[:, :BATCH], step / N_STEPS
