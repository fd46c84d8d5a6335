"""GP with the arc kernel."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nasbo.gp.features import ONE_HOT
from nasbo.gp.kernels import matern, squared_distances
from nasbo.gp.rows import Batches
from nasbo.gp.units import Layout
from nasbo.space import Space
from nasbo.surrogates.base import KernelGP
from nasbo.surrogates.lengthscales import shortest


class ArcRows(NamedTuple):
    """Features of the arc kernel: numbers in [0, 1], shape (n, k), and choices one-hot, (n, m),
    both 0 where inactive; and which numbers are active, (n, k).
    """

    numbers: Tensor
    choices: Tensor
    active: Tensor


class ArcGP(KernelGP):
    """Matérn-5/2 GP on the cylinder embedding of Swersky et al. (2014).

    An active number v in [0, 1] becomes w (sin pi rho v, cos pi rho v), an inactive one (0, 0):
    the distance of an active and an inactive parameter is the same whatever the value. w and rho
    in (0, 1) are learned for each parameter. Choices and structural decisions become w times their
    one-hot code, which has the same property.
    """

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.layout = Layout(space)
        columns = self.layout.columns
        scales = self.priors.add_lengthscales(len(columns))
        numbers = [at for at, column in enumerate(columns) if not column.values]
        choices = [at for at, column in enumerate(columns) if column.values]
        spread = [(columns[at].start + k, scales[at]) for at in choices
                  for k in range(columns[at].width)]  # fmt: skip
        self._numbers = torch.tensor([columns[at].start for at in numbers], dtype=torch.long)
        self._number_scales = torch.tensor([scales[at] for at in numbers], dtype=torch.long)
        self._choices = torch.tensor([feature for feature, _ in spread], dtype=torch.long)
        self._choice_scales = torch.tensor([scale for _, scale in spread], dtype=torch.long)
        self._bends = torch.tensor(self.priors.add(len(numbers), 0.0, 1.5), dtype=torch.long)
        (self._weight,) = self.priors.add(1, 0.0, 1.0)
        self._holds = self._gates_of_columns()[:, numbers]

    def features(self, batches: Batches) -> ArcRows:
        rows = self.layout.rows(batches)
        active = (rows.active.to(torch.float64) @ self._holds > 0).to(torch.float64)
        numbers = (rows.features[:, self._numbers] + 0.5) * active
        return ArcRows(numbers, rows.features[:, self._choices] / ONE_HOT, active)

    def embed(self, theta: Tensor, rows: ArcRows) -> Tensor:
        """Points on the cylinder, shape (n, 2 k + m)."""
        angles = torch.pi * torch.sigmoid(theta[self._bends]) * rows.numbers
        size = torch.exp(-theta[self._number_scales]) * rows.active
        choices = rows.choices * torch.exp(-theta[self._choice_scales])
        return torch.cat([size * torch.sin(angles), size * torch.cos(angles), choices], 1)

    def gram(self, theta: Tensor, left: ArcRows, right: ArcRows) -> Tensor:
        distances = squared_distances(self.embed(theta, left), self.embed(theta, right))
        return theta[self._weight].exp() * matern(distances)

    def diagonal(self, theta: Tensor, rows: ArcRows) -> Tensor:
        return theta[self._weight].exp().expand(len(rows.numbers))

    def lengthscales(self) -> dict[str, float]:
        """Along the arc: a small step dv of a number moves its point by w pi rho dv."""
        turns = torch.pi * torch.sigmoid(self.theta[self._bends])
        arcs = (self.theta[self._number_scales].exp() / turns).tolist()
        steps = (self.theta[self._choice_scales].exp() * ONE_HOT).tolist()
        lengths = dict(
            zip(self._numbers.tolist() + self._choices.tolist(), arcs + steps, strict=True)
        )
        return shortest((column.label, lengths[column.start]) for column in self.layout.columns)

    def _gates_of_columns(self) -> Tensor:
        """1 where a unit or decision contains a column, shape (n_gates, n_columns)."""
        layout = self.layout
        n_gates = 1 + len(layout.units) + len(layout.decisions)
        holds = torch.zeros(n_gates, len(layout.columns), dtype=torch.float64)
        for at, unit in enumerate(layout.units):
            holds[layout.unit_gate(at), list(unit.columns)] = 1.0
        for at, column in enumerate(layout.decisions):
            holds[layout.decision_gate(at), column] = 1.0
        return holds
