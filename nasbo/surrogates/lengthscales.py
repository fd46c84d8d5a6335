"""Lengthscales per parameter of a fitted kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import torch
from scipy.optimize import brentq
from torch import Tensor

from nasbo.gp.features import ONE_HOT
from nasbo.gp.rows import Rows
from nasbo.gp.units import Column, Layout

STEP = 0.1
"""Step along a number at which the correlation is measured."""
LEAST = 1e-13
"""Margin of correlations from 0 and 1."""


def shortest(lengths: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Lengthscales by name, the shortest if a name occurs several times."""
    found: dict[str, float] = {}
    for name, length in lengths:
        found[name] = min(length, found.get(name, length))
    return found


def summed_lengthscales(
    layout: Layout, covariance: Callable[[Rows, Rows], Tensor]
) -> dict[str, float]:
    """Lengthscales of a sum of kernels on a layout's rows, by parameter.

    A column has a lengthscale in each kernel of the sum, and one of them alone says little: its
        kernel may have next to no weight. Instead the decrease of the correlation over a small step
        along the column is measured, among the kernels that contain it. The lengthscale is that of
        the Matérn-5/2 kernel with the same decrease.

    Args:
        layout: whose columns they are.
        covariance: of rows, shape (n, m); stationary.
    """
    return shortest(
        (column.label, _lengthscale(layout, column, gate, covariance))
        for gate, column in _gates(layout)
        if column.width > 1 or not column.values
    )


def _gates(layout: Layout) -> Iterator[tuple[int, Column]]:
    """Columns with the gates of the units or decisions that contain them."""
    for at, number in enumerate(layout.decisions):
        yield layout.decision_gate(at), layout.columns[number]
    for at, unit in enumerate(layout.units):
        for number in unit.columns:
            yield layout.unit_gate(at), layout.columns[number]


def _lengthscale(
    layout: Layout, column: Column, gate: int, covariance: Callable[[Rows, Rows], Tensor]
) -> float:
    features = torch.zeros(2, layout.width, dtype=torch.float64)
    active = torch.zeros(2, 1 + len(layout.units) + len(layout.decisions), dtype=torch.bool)
    active[:, [0, gate]] = True
    if column.values:
        features[[0, 1], [column.start, column.start + 1]] = ONE_HOT
    else:
        features[1, column.start] = STEP
    K = covariance(Rows(features, active), Rows(features, active))
    correlation = min(max(float(K[0, 1] / K[0, 0]), LEAST), 1.0 - LEAST)
    return (1.0 if column.values else STEP) / _distance(correlation)


def _distance(correlation: float) -> float:
    """Distance at which the Matérn-5/2 correlation takes a value."""
    r = brentq(lambda r: (1.0 + r + r * r / 3.0) * math.exp(-r) - correlation, 0.0, 100.0)
    return float(r) / math.sqrt(5.0)
