"""Exponential moving average of a network's weights, which is scored and saved."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


class AveragedNetwork:
    """Exponential moving average of a network's weights and of its batch norm statistics.

    The decay grows with the number of steps, so that the random initial weights are soon forgotten.

    Args:
        network: its weights are averaged.
        decay: weight of the old average at each step, after many steps.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.network = copy.deepcopy(network).requires_grad_(False).eval()
        self._own = _values(self.network)
        self._followed = _values(network)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the average with the weights after `step` steps."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._own, self._followed, 1.0 - decay)


def _values(network: nn.Module) -> list[Tensor]:
    values = [*network.parameters(), *network.buffers()]
    return [value.detach() for value in values if value.is_floating_point()]
