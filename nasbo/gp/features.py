"""Features of parameters: numbers are centred, choices are one-hot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nasbo.space import Parameter

ONE_HOT = math.sqrt(0.5)  # two different choices are then at distance 1


class FeatureMap:
    """Columns of ``x`` to features: numbers as value - 0.5, choices one-hot times sqrt(0.5).

    Args:
        base: initial features, which stay where no column fills them, shape (n_features,).
        columns: for each column of ``x`` where its features start and how many there are; 0 means a
            number.
    """

    def __init__(self, base: Tensor, columns: Sequence[tuple[int, int]]) -> None:
        numbers = [(at, start) for at, (start, width) in enumerate(columns) if not width]
        choices = [(at, start, width - 1) for at, (start, width) in enumerate(columns) if width]
        self._base = base
        self._numbers, self._number_to = torch.tensor(numbers).long().view(-1, 2).T
        self._choices, self._choice_to, self._tops = torch.tensor(choices).long().view(-1, 3).T

    def __call__(self, x: Tensor) -> Tensor:
        """Features, shape (n, n_features), of rows (n, n_columns); numbers differentiable."""
        features = self._base.expand(len(x), -1).index_copy(
            1, self._number_to, x[:, self._numbers] - 0.5
        )
        if len(self._choices):
            levels = (x[:, self._choices].detach() * self._tops).round().long()
            features = features.scatter(1, self._choice_to + levels, ONE_HOT)
        return features


class ParameterFeatures(FeatureMap):
    """Features of several parameters side by side.

    Attributes:
        owners: index of the parameter that each feature belongs to.
        columns: for each parameter where its features start, and how many choices it has.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        widths = [0 if p.is_ordered else p.n_levels for p in parameters]
        self.owners = [at for at, width in enumerate(widths) for _ in range(width or 1)]
        self.columns = [(self.owners.index(at), width) for at, width in enumerate(widths)]
        super().__init__(torch.zeros(len(self.owners), dtype=torch.float64), self.columns)

    @property
    def n_features(self) -> int:
        return len(self.owners)
