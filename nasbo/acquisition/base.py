"""Base classes of acquisition functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

from torch import Tensor

from nasbo.history.data import Data
from nasbo.surrogates.base import Batches, Surrogate

Score = Callable[[Batches], Tensor]
"""Scores of rows of several subspaces, n in all: shape (n,), differentiable in the rows."""


class Acquisition(ABC):
    """Acquisition function over configs of any subspace.

    Attributes:
        name: of the scores in the journal.
        is_sampled: whether subspaces are sampled where there are too many to visit them all.
    """

    name: ClassVar[str]
    is_sampled: ClassVar[bool] = True

    def prepare(self, surrogate: Surrogate, data: Data) -> Self:
        """Set what is to be improved upon. The surrogate is fitted and has no pending configs."""
        return self

    @abstractmethod
    def under(self, surrogate: Surrogate) -> Score:
        """The score of rows under a surrogate. It also ranks subspaces where they are sampled."""


class Pointwise(Acquisition):
    """Acquisition that depends on the posterior mean and variance of each config alone."""

    @abstractmethod
    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Acquisition values, shape (n,), from posterior means and variances, (n,) each."""

    def under(self, surrogate: Surrogate) -> Score:
        return lambda batches: self.score(*surrogate.posteriors(batches))
