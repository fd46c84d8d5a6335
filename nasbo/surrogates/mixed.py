"""GP with the mixed kernel of CASMOPOLITAN: overlap kernel for choices, Matérn for numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.features import ONE_HOT
from nasbo.gp.kernels import matern, squared_distances
from nasbo.gp.rows import Batches
from nasbo.gp.units import Layout
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import KernelGP


class MixedRows(NamedTuple):
    """Numbers, shape (n, k), and one-hot choices with a code for "absent", shape (n, m)."""

    numbers: Tensor
    choices: Tensor


class MixedGP(KernelGP):
    """GP of CASMOPOLITAN (Wan et al. 2021) on the flattened space.

    k = w [lambda k_x k_h + (1 - lambda) (k_h + k_x)], where k_x is a Matérn-5/2 over the numbers
    and k_h = exp(sum_i l_i (1(h_i = h'_i) - 1) / d_h) over the choices, structural ones included;
    w, lambda and all l_i are learned. On a tree, an inactive choice has the extra value "absent",
    and an inactive number is at the middle of its range. Departure: k_h is divided by its value at
    equal configs, so that lambda weighs parts of equal variance. If a space has only numbers or
    only choices, the other kernel is left out.
    """

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.layout = Layout(space)
        columns = self.layout.columns
        numbers = [column for column in columns if not column.values]
        choices = [column for column in columns if column.values]
        self.n_numbers, self.n_choices = len(numbers), len(choices)
        self._numbers = torch.tensor([column.start for column in numbers], dtype=torch.long)
        self._number_of = {(c.name, c.index): at for at, c in enumerate(numbers)}
        spread = [(c.start + k, at) for at, c in enumerate(choices) for k in range(c.width)]
        self._codes = torch.tensor([feature for feature, _ in spread], dtype=torch.long)
        self._owners = torch.tensor([at for _, at in spread], dtype=torch.long)
        scales = self.priors.add_lengthscales(self.n_numbers)
        self._scales = torch.tensor(scales, dtype=torch.long)
        self._overlaps = torch.tensor(self.priors.add(self.n_choices, 1.0, 1.0), dtype=torch.long)
        self._mix, self._weight = self.priors.add(1, 0.0, 1.5) + self.priors.add(1, 0.0, 1.0)

    def features(self, batches: Batches) -> MixedRows:
        features = self.layout.rows(batches).features
        codes = features[:, self._codes] / ONE_HOT
        present = codes.new_zeros(len(codes), self.n_choices).index_add(1, self._owners, codes)
        return MixedRows(features[:, self._numbers], torch.cat([codes, 1.0 - present], 1))

    def gram(self, theta: Tensor, left: MixedRows, right: MixedRows) -> Tensor:
        weight = theta[self._weight].exp()
        if not self.n_choices:
            return weight * self._number_gram(theta, left, right)
        if not self.n_numbers:
            return weight * self._choice_gram(theta, left, right)
        k_x = self._number_gram(theta, left, right)
        k_h = self._choice_gram(theta, left, right)
        mix = torch.sigmoid(theta[self._mix])
        return weight * (mix * k_x * k_h + (1.0 - mix) * (k_h + k_x))

    def diagonal(self, theta: Tensor, rows: MixedRows) -> Tensor:
        size = theta[self._weight].exp()
        if self.n_choices and self.n_numbers:
            size = size * (2.0 - torch.sigmoid(theta[self._mix]))
        return size.expand(len(rows.numbers))

    def box_weights(self, subspace: Subspace) -> NDArray[np.float64]:
        """Relative lengthscales of the numbers, with geometric mean 1; 1 for choices: (n_free,).

        The trust region is longer along parameters with which the score changes slowly.
        """
        logs = self.theta[self._scales].numpy()
        logs = logs - logs.mean() if len(logs) else logs
        numbers = {key: logs[at] for key, at in self._number_of.items()}
        own = ((one.parameter.is_ordered, (one.name, one.index)) for one in subspace.free)
        return np.exp([numbers.get(key, 0.0) if is_number else 0.0 for is_number, key in own])

    def _number_gram(self, theta: Tensor, left: MixedRows, right: MixedRows) -> Tensor:
        scale = torch.exp(-theta[self._scales])
        return matern(squared_distances(left.numbers * scale, right.numbers * scale))

    def _choice_gram(self, theta: Tensor, left: MixedRows, right: MixedRows) -> Tensor:
        overlap = theta[self._overlaps].exp() / self.n_choices
        per_code = torch.cat([overlap[self._owners], overlap])
        return torch.exp((left.choices * per_code) @ right.choices.T - overlap.sum())
