"""Acquisitions: what a config promises, from the posterior of its score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

from torch import Tensor

from nasbo.history.data import Data
from nasbo.surrogates.base import Batches, Surrogate

Score = Callable[[Batches], Tensor]
"""Rows of subspaces, n in all, to what they promise, shape (n,), differentiable in the rows."""


class Acquisition(ABC):
    """What configs promise.

    Attributes:
        name: of the scores in the journal.
        is_sampled: whether subspaces are sampled where there are too many to visit them all.
    """

    name: ClassVar[str]
    is_sampled: ClassVar[bool] = True

    def prepare(self, surrogate: Surrogate, data: Data) -> Self:
        """Take in what there is to improve upon; the fitted surrogate has no running configs."""
        return self

    @abstractmethod
    def under(self, surrogate: Surrogate) -> Score:
        """The score of rows under a surrogate, by which promising subspaces are found."""


class Pointwise(Acquisition):
    """An acquisition of the posterior of each config by itself."""

    @abstractmethod
    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        """What configs promise, shape (n,), given posterior means and variances, (n,) each."""

    def under(self, surrogate: Surrogate) -> Score:
        return lambda batches: self.score(*surrogate.posteriors(batches))
