"""Upper confidence bound (UCB) acquisitions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from torch import Tensor

from nasbo.acquisition.base import Pointwise
from nasbo.history.data import Data
from nasbo.surrogates.base import Surrogate


@dataclass
class UCB(Pointwise):
    """mean + k sd (Srinivas et al. 2010).

    Attributes:
        sds: k; 1.96 is CASMOPOLITAN's at a restart.
    """

    sds: float = 1.96

    name: ClassVar[str] = "ucb"

    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        return mean + self.sds * variance.sqrt()


@dataclass
class AddTreeUCB(UCB):
    """mean + sqrt(beta_t) sd with beta_t = 0.2 d log(2 t) (Ma and Blaschko 2020).

    t counts the results.

    Attributes:
        n_dimensions: d, the dimensions of the space in which the bound is maximised; 0 counts as 1.
    """

    n_dimensions: int = 1

    def prepare(self, surrogate: Surrogate, data: Data) -> Self:
        self.sds = math.sqrt(0.2 * max(self.n_dimensions, 1) * math.log(2.0 * len(data)))
        return self
