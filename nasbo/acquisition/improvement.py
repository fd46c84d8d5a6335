"""Logarithms of expected improvement and of probability of improvement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.models.model import Model
from botorch.posteriors import Posterior
from torch import Tensor

from nasbo.acquisition.base import Pointwise
from nasbo.history.data import Data
from nasbo.surrogates.base import Surrogate

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass
class LogEI(Pointwise):
    """log E[max(f - incumbent, 0)], stable far below the incumbent (Ament et al., NeurIPS 2023).

    Attributes:
        incumbent: the score to improve upon: the largest posterior mean of an observed config.
    """

    incumbent: float = 0.0

    name: ClassVar[str] = "log_ei"
    is_sampled: ClassVar[bool] = False

    def prepare(self, surrogate: Surrogate, data: Data) -> Self:
        self.incumbent = float(surrogate.observed_means().max())
        return self

    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        result: Tensor = _LogEI.apply(mean, variance, self.incumbent)
        return result


def log_ei(mean: Tensor, variance: Tensor, incumbent: Tensor) -> Tensor:
    """log-EI of normal variables upon an incumbent of each, all of shape (n,)."""
    result: Tensor = _LogEI.apply(mean, variance, incumbent)
    return result


class SampledLogEI(LogEI):
    """log-EI, but in a sample of the subspaces where there are many (appendix B.1.3 of AttnBO)."""

    is_sampled = True


class LogPI(LogEI):
    """log P[f > incumbent] (Kushner 1964)."""

    name = "log_pi"
    is_sampled = True

    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        return torch.special.log_ndtr((mean - self.incumbent) / variance.sqrt())


class _LogEI(torch.autograd.Function):
    """BoTorch's log-EI with its derivatives Phi(u) / EI by the mean and phi(u) / EI by the sd.

    With u = (mean - incumbent) / sd, log-EI is log sd + log-EI of N(u, 1) upon 0.
    """

    @staticmethod
    def forward(ctx: Any, mean: Tensor, variance: Tensor, incumbent: float | Tensor) -> Tensor:
        sd = variance.sqrt()
        u = (mean - incumbent) / sd
        standard = _STANDARD(u[:, None, None])
        ctx.save_for_backward(u, standard, sd)
        return standard + sd.log()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        u, standard, sd = ctx.saved_tensors
        by_mean = torch.exp(torch.special.log_ndtr(u) - standard) / sd
        by_sd = torch.exp(-0.5 * u * u - _LOG_ROOT_2PI - standard) / sd
        return gradients[0] * by_mean, gradients[0] * by_sd / (2.0 * sd), None


class _Given(Model):
    """Placeholder model for BoTorch's log-EI: the posterior at ``X`` is N(X, 1)."""

    num_outputs = 1

    def posterior(self, X: Tensor, *_: Any, **__: Any) -> Posterior:
        return Moments(X, torch.ones_like(X))


class Moments(Posterior):
    """Posterior with given means and variances, for BoTorch's closed forms."""

    def __init__(self, mean: Tensor, variance: Tensor) -> None:
        self.mean, self.variance = mean, variance

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        raise NotImplementedError("moments alone have no samples")

    @property
    def device(self) -> torch.device:
        return self.mean.device

    @property
    def dtype(self) -> torch.dtype:
        return self.mean.dtype


_STANDARD = LogExpectedImprovement(_Given(), 0.0)
