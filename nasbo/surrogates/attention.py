"""The AttnBO paper's attention deep-kernel GP."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

import gpytorch
import numpy as np
import torch
from gpytorch.distributions import MultivariateNormal
from linear_operator.utils.errors import NanError, NotPSDError
from numpy.typing import NDArray
from torch import Tensor

from nasbo.history.data import Data
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Batches, FitError, Surrogate, as_batches, batches_of
from nasbo.surrogates.encoder import Encoder, EncoderShape, make_encoder
from nasbo.surrogates.exact import Conditioned
from nasbo.surrogates.transform import model_scale
from nasbo.tokens import Tokenizer

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """How the deep kernel is trained; the defaults are those of appendix B.1.3."""

    learning_rate: float = 0.001
    epochs: int = 100
    halve_every: int = 30


@dataclass(frozen=True)
class AttentionSettings:
    """Sizes and training of the deep kernel."""

    shape: EncoderShape = field(default_factory=EncoderShape)
    training: Training = field(default_factory=Training)


class AttentionGP(Surrogate):
    """Exact GP with zero mean and a Matérn-5/2 kernel on encoded configs (eq. 5 to 10).

    Embeddings, encoder, lengthscale and noise are trained jointly by the marginal likelihood. The
    paper is silent on these: numbers enter in the unit cube, choices as index / (k - 1), scores
    are standardised, and the kernel has no output scale. The encoder computes in float32, the GP
    in float64. Each fit starts from new weights, drawn from ``seed``.
    """

    def __init__(
        self, space: Space, settings: AttentionSettings | None = None, seed: int = 0
    ) -> None:
        self.space = space
        self.settings = settings or AttentionSettings()
        self.seed = seed
        self._tokenizer = Tokenizer(space)

    def fit(self, observations: Data) -> None:
        """Train everything on the observations, then condition on them."""
        y = np.asarray(observations.scores, dtype=np.float64)
        if len(y) < 2 or not np.isfinite(y).all():
            raise FitError(f"at least two finite scores must be given, got {y!r}")
        scores, self.scale = model_scale(y, observations.n_design, is_straightened=False)
        z = torch.from_numpy(scores)
        self._start()
        try:
            self._train(batches_of(observations), z)
        except (NanError, NotPSDError) as error:
            raise FitError(f"the deep kernel could not be trained: {error}") from error
        with torch.no_grad():
            self._encoded = self._encode(batches_of(observations))
            K = self._gram(self._encoded, self._encoded)
            self._conditioned = Conditioned.on(self._noisy(K), z)
            self._incumbent = float((K @ self._conditioned.alpha).max())

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        encoded = self._encode(batches)
        cross = self._gram(encoded, self._encoded)
        return self._conditioned.marginals(cross, cross.new_ones(len(cross)))

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        encoded = self._encode(batches)
        cross = self._gram(encoded, self._encoded)
        return self._conditioned.joint(cross, self._gram(encoded, encoded))

    def incumbent(self) -> float:
        return self._incumbent

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> AttentionGP:
        if not subspaces:
            return self
        extended = copy.copy(self)
        with torch.no_grad():
            pending = self._encode(as_batches(subspaces, x))
            cross = self._gram(pending, self._encoded)
            K = self._noisy(self._gram(pending, pending))
            extended._conditioned = self._conditioned.extended(cross, K)
            extended._encoded = torch.cat([self._encoded, pending])
        return extended

    def attention_map(self, subspace: Subspace, x: Tensor) -> Tensor:
        """Attention among a config's tokens in the first block, mean of the heads.

        Args:
            subspace: of the config.
            x: its place, shape (n_free,).

        Returns:
            Shape (n_tokens, n_tokens); row i is what token i looks at.
        """
        return self.encoder.attention_map(self._tokenizer.batch([(subspace, x[None])]))[0]

    def _start(self) -> None:
        shape = self.settings.shape
        self.encoder: Encoder = make_encoder(self.space, shape, self.seed, torch.float32)
        self.kernel = gpytorch.kernels.MaternKernel(nu=2.5).double()
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood().double()

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
            with gpytorch.settings.max_cholesky_size(len(z)):  # beyond, gpytorch draws at random
                loss = -self.likelihood(prior).log_prob(z) / len(z)
            if not bool(torch.isfinite(loss)):
                raise FitError(f"the marginal likelihood must be finite, got {-float(loss)}")
            loss.backward()
            optimizer.step()
            schedule.step()
        for weight in weights:
            weight.requires_grad_(False)

    def _encode(self, batches: Batches) -> Tensor:
        encoded: Tensor = self.encoder(self._tokenizer.batch(batches)).double()
        return encoded

    def _gram(self, left: Tensor, right: Tensor) -> Tensor:
        K: Tensor = self.kernel(left, right).to_dense()
        return K

    def _noisy(self, K: Tensor) -> Tensor:
        noise = self.likelihood.noise.detach() + 1e-6
        return K + noise * torch.eye(len(K), dtype=K.dtype)
