"""Some parameters of a subspace come in; their columns of ``x`` as kernel features go out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nasbo.space import Parameter
from nasbo.surrogates.kernels import LENGTHSCALE_SD, Priors, lengthscale_mean
from nasbo.surrogates.layout import ONE_HOT


class SlotFeatures:
    """Numbers as value - 0.5, choices one-hot times sqrt(0.5): two choices are at distance 1."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        widths = [1 if p.is_ordered else p.n_levels for p in parameters]
        self.owners = [at for at, width in enumerate(widths) for _ in range(width)]
        self.n_parameters = len(parameters)
        starts = [sum(widths[:at]) for at in range(len(widths))]
        numbers = [at for at, p in enumerate(parameters) if p.is_ordered]
        choices = [at for at, p in enumerate(parameters) if not p.is_ordered]
        self._numbers, self._choices = torch.tensor(numbers).long(), torch.tensor(choices).long()
        self._number_to = torch.tensor([starts[at] for at in numbers]).long()
        self._choice_to = torch.tensor([starts[at] for at in choices]).long()
        self._tops = torch.tensor([widths[at] - 1 for at in choices], dtype=torch.float64)

    @property
    def n_features(self) -> int:
        return len(self.owners)

    def __call__(self, x: Tensor) -> Tensor:
        """Features, shape (n, n_features), of rows (n, n_parameters); numbers differentiable."""
        features = x.new_zeros(len(x), self.n_features)
        features = features.index_copy(1, self._number_to, x[:, self._numbers] - 0.5)
        if len(self._choices):
            levels = (x[:, self._choices].detach() * self._tops).round().long()
            features = features.scatter(1, self._choice_to + levels, ONE_HOT)
        return features

    def add_scales(self, priors: Priors) -> Tensor:
        """Places of a log lengthscale per parameter, one per feature, shape (n_features,)."""
        scales = priors.add(self.n_parameters, lengthscale_mean(self.n_parameters), LENGTHSCALE_SD)
        return torch.tensor([scales[owner] for owner in self.owners]).long()
