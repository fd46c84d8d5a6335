"""A network in training comes in, its running average comes out: what is scored and saved."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


class AveragedNetwork:
    """Exponential moving average of a network's weights and of its batch statistics.

    The decay grows with the number of steps, so that the first, random weights are soon forgotten.

    Args:
        network: whose weights are followed.
        decay: share of the old average that is kept at each step in the long run.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.network = copy.deepcopy(network).requires_grad_(False).eval()
        self._own = _values(self.network)
        self._followed = _values(network)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Takes in the weights after `step` steps."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._own, self._followed, 1.0 - decay)


def _values(network: nn.Module) -> list[Tensor]:
    values = [*network.parameters(), *network.buffers()]
    return [value.detach() for value in values if value.is_floating_point()]
