"""Momentum of batch normalisation for batches that are processed in parts."""

from __future__ import annotations

from torch import nn


class PacedStatistics:
    """Sets the momentum of batch normalisation for each part of a batch.

    After all parts the running statistics are `(1 - m) old + m mean(parts)`. One whole batch gives
    the same update, and so does the average over ranks that process one part each.
    """

    def __init__(self, network: nn.Module, n_parts: int) -> None:
        self._layers = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
        self._momenta = [layer.momentum or 0.0 for layer in self._layers]
        self._n_parts = n_parts

    def start_part(self, index: int) -> None:
        """Set the momentum for part `index` (from 0); call it before the forward pass."""
        if self._n_parts == 1:
            return
        for layer, momentum in zip(self._layers, self._momenta, strict=True):
            share = momentum / self._n_parts
            # Compensates in advance for the decay by the later parts.
            layer.momentum = share / (1.0 - share * (self._n_parts - 1 - index))
