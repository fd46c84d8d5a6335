"""A network and the number of parts of a batch come in; its running statistics keep their pace."""

from __future__ import annotations

from torch import nn


class PacedStatistics:
    """Sets the momentum of batch normalisation for each part of a batch.

    After all parts the running statistics are `(1 - m) old + m mean(parts)`: what one whole batch
    does, and what the average over ranks that see one part each does.
    """

    def __init__(self, network: nn.Module, n_parts: int) -> None:
        self._layers = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
        self._momenta = [layer.momentum or 0.0 for layer in self._layers]
        self._n_parts = n_parts

    def start_part(self, index: int) -> None:
        """Call it before the forward pass of part `index` (from 0)."""
        if self._n_parts == 1:
            return
        for layer, momentum in zip(self._layers, self._momenta, strict=True):
            share = momentum / self._n_parts
            # What later parts leave of this one is undone beforehand.
            layer.momentum = share / (1.0 - share * (self._n_parts - 1 - index))
