"""Attention deep-kernel GP of the AttnBO paper."""

from __future__ import annotations

from dataclasses import dataclass, field

import gpytorch
import numpy as np
import torch
from gpytorch.distributions import MultivariateNormal
from linear_operator.utils.errors import NanError, NotPSDError
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.conditioning import FitError
from nasbo.gp.encoder import Encoder, EncoderShape, make_encoder
from nasbo.gp.rows import Batches, as_batches
from nasbo.gp.tokens import Tokenizer
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import ExactGP

Array = NDArray[np.float64]
JITTER = 1e-6


@dataclass(frozen=True)
class Training:
    """Training of the deep kernel; the defaults are those of appendix B.1.3."""

    learning_rate: float = 0.001
    epochs: int = 100
    halve_every: int = 30


@dataclass(frozen=True)
class AttentionSettings:
    """Sizes and training of the deep kernel."""

    shape: EncoderShape = field(default_factory=EncoderShape)
    training: Training = field(default_factory=Training)


class AttentionGP(ExactGP):
    """Exact GP with zero mean and a Matérn-5/2 kernel on encoded configs (eq. 5 to 10).

    Embeddings, encoder, lengthscale and noise are trained jointly by the marginal likelihood. Where
    the paper is silent: numbers enter in the unit cube, choices as index / (k - 1), scores are
    standardised, and the kernel has no output scale. The encoder computes in float32, the GP in
    float64. Each fit starts from new weights, drawn from ``seed``. Training uses one noise for all
    scores, as in the paper; in conditioning, the mean of k repeats has noise variance sigma² / k.
    """

    def __init__(
        self, space: Space, settings: AttentionSettings | None = None, seed: int = 0
    ) -> None:
        self.space = space
        self.settings = settings or AttentionSettings()
        self.seed = seed
        self._tokenizer = Tokenizer(space)

    def learn(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        """Train embeddings, encoder, kernel and noise on the rows, then condition on them."""
        batches = as_batches(subspaces, x)
        shape = self.settings.shape
        self.encoder: Encoder = make_encoder(self.space, shape, self.seed, torch.float32)
        self.kernel = gpytorch.kernels.MaternKernel(nu=2.5).double()
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        try:
            self._train(batches, z)
        except (NanError, NotPSDError) as error:
            raise FitError(f"the deep kernel could not be trained: {error}") from error
        self.condition_on(self.features(batches), z)

    def features(self, batches: Batches) -> Tensor:
        """Encoded configs, shape (n, output)."""
        encoded: Tensor = self.encoder(self._tokenizer.batch(batches)).double()
        return encoded

    def covariance(self, left: Tensor, right: Tensor) -> Tensor:
        K: Tensor = self.kernel(left, right).to_dense()
        return K

    def variance(self, rows: Tensor) -> Tensor:
        return rows.new_ones(len(rows))

    def noise_variance(self) -> Tensor:
        noise: Tensor = self.likelihood.noise.detach() + JITTER
        return noise

    def attention_map(self, subspace: Subspace, x: Tensor) -> Tensor:
        """Attention among the tokens of a config ``x``, (n_free,), in the first block.

        Mean of the heads, shape (n_tokens, n_tokens); row i is what token i attends to.
        """
        return self.encoder.attention_map(self._tokenizer.batch([(subspace, x[None])]))[0]

    def _train(self, batches: Batches, z: Tensor) -> None:
        training = self.settings.training
        modules = (self.encoder, self.kernel, self.likelihood)
        weights = [weight for module in modules for weight in module.parameters()]
        optimizer = torch.optim.Adam(weights, lr=training.learning_rate)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, training.halve_every, gamma=0.5)
        tokens, zero = self._tokenizer.batch(batches), torch.zeros_like(z)
        for _ in range(training.epochs):
            optimizer.zero_grad()
            prior = MultivariateNormal(zero, self.kernel(self.encoder(tokens).double()))
            with gpytorch.settings.max_cholesky_size(len(z)):  # larger ones are only estimated
                loss = -self.likelihood(prior).log_prob(z) / len(z)
            if not bool(torch.isfinite(loss)):
                raise FitError(f"the marginal likelihood must be finite, got {-float(loss)}")
            loss.backward()
            optimizer.step()
            schedule.step()
        for weight in weights:
            weight.requires_grad_(False)
