"""Synthetic networks of 3 to 6 blocks with repeated parameters: a formula with noise.

The loss falls with the sum of the blocks' worths. The worth of an operation changes slowly with its
depth and depends on the kernel and on the operation before. More channels help with diminishing
returns, but cost. The optima of learning rate and batch size depend on the number of blocks. The
noise is 5 % of the range of values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.entry import Entry
from nasbo.bench.problems.parameters import choice, integer, real
from nasbo.space import Space, load_space

Array = NDArray[np.float64]

SEED = 1000
COUNTS = (3, 4, 5, 6)
OPERATIONS = ("plain", "separable", "inverted", "residual")
KERNELS = (3, 5, 7)
N_CHANNELS = 8
BATCHES = (16, 32, 64, 128, 256)
NOISE = 0.061


@dataclass(frozen=True)
class Worth:
    """Random coefficients of the formula; positions of blocks run from -1 to 1."""

    operation: Array
    slope: Array
    kernel: Array
    kernel_slope: Array
    channels: float
    channels_slope: float
    rate: float
    rate_slope: float
    cost: float
    pair: Array

    def block(self, at: int, operation: int, kernel: int, width: float) -> float:
        """Worth of block `at` = 0, 1, ... without its neighbours; `width` in [0, 1]."""
        position = (at - 2.5) / 2.5
        own = self.operation[operation] + self.slope[operation] * position
        fit = self.kernel[operation, kernel] + self.kernel_slope[kernel] * position
        wide = (self.channels + self.channels_slope * (at - 2.5)) * (1 - np.exp(-3 * width))
        return float(own + fit + wide)

    def best_rate(self, n_blocks: int, batch: float) -> float:
        """The best learning rate, scaled to [0, 1]; `batch` in [0, 1]."""
        return self.rate + self.rate_slope * (n_blocks - 4) + 0.1 * (batch - 0.5)

    def loss(self, worth: float, width: float) -> float:
        """Loss from the worth and the width of all blocks together."""
        return float(np.exp(-worth / 3) + self.cost * width / 3)


@lru_cache(maxsize=1)
def draw_worth() -> Worth:
    """The coefficients of the only instance."""
    rng = np.random.default_rng(SEED)
    return Worth(
        operation=rng.uniform(0, 1, 4),
        slope=0.25 * rng.standard_normal(4),
        kernel=0.35 * rng.standard_normal((4, 3)),
        kernel_slope=0.2 * rng.standard_normal(3),
        channels=rng.uniform(0.3, 1),
        channels_slope=rng.uniform(-0.15, 0.15),
        rate=rng.uniform(0.3, 0.7),
        rate_slope=rng.uniform(-0.06, 0.06),
        cost=rng.uniform(0.1, 0.3),
        pair=0.3 * rng.standard_normal((4, 4)),
    )


def blocks_space() -> Space:
    """Space of repeated blocks with two parameters of the training."""
    block = {
        "operation": choice(*OPERATIONS),
        "kernel": choice(*KERNELS),
        "channels": integer(1, N_CHANNELS),
    }
    counts = {**integer(COUNTS[0], COUNTS[-1]), "submodule": block}
    batch = {"type": "powerint2", "range": [4, 9]}
    return load_space({"n_blocks": counts, "learning_rate": real(1e-4, 1, True), "batch": batch})


def truth(config: Config) -> float:
    """The noise-free value."""
    worth = draw_worth()
    operations = [OPERATIONS.index(name) for name in config["operation"]]
    kernels = [KERNELS.index(size) for size in config["kernel"]]
    widths = [(channels - 1) / (N_CHANNELS - 1) for channels in config["channels"]]
    rows = enumerate(zip(operations, kernels, widths, strict=True))
    total = sum(worth.block(at, *row) for at, row in rows)
    total += sum(worth.pair[a, b] for a, b in pairwise(operations))
    rate = 1 + np.log10(config["learning_rate"]) / 4
    batch = BATCHES.index(config["batch"]) / (len(BATCHES) - 1)
    away = rate - worth.best_rate(config["n_blocks"], batch)
    training = 3 * away**2 + 0.05 * (batch - 0.4) ** 2
    return float(worth.loss(total, sum(widths)) + training)


def evaluate(config: Config, rng: np.random.Generator) -> float:
    """The noisy value."""
    return truth(config) + NOISE * float(rng.standard_normal())


@lru_cache(maxsize=1)
def optimum() -> float:
    """The exact least true value, by dynamic programming over chains of blocks and total widths.

    The learning rate can always take its best value; 0.5 is the batch level nearest to 0.4.
    """
    worth, least = draw_worth(), np.inf
    best = np.full((4, 1), -np.inf)  # worth of a chain by its last operation and summed level
    for at in range(COUNTS[-1]):
        best = _longer(worth, best, at)
        if at + 1 in COUNTS:
            totals = best.max(0)
            losses = [worth.loss(w, s / (N_CHANNELS - 1)) for s, w in enumerate(totals)]
            least = min(least, *losses)
    return float(least + 0.05 * 0.1**2)


def _longer(worth: Worth, best: Array, at: int) -> Array:
    """Chains extended by one block: shape (4, levels) to (4, levels + 7)."""
    longer = np.full((4, best.shape[1] + N_CHANNELS - 1), -np.inf)
    for operation in range(4):
        before = (best + worth.pair[:, operation : operation + 1]).max(0) if at else np.zeros(1)
        for level in range(N_CHANNELS):
            width = level / (N_CHANNELS - 1)
            own = max(worth.block(at, operation, kernel, width) for kernel in range(3))
            part = longer[operation, level : level + len(before)]
            np.maximum(part, before + own, out=part)
    return longer


def make() -> Problem:
    """The problem with its exact optimum."""
    return Problem("blocks", blocks_space(), evaluate, truth, optimum())


ENTRIES: dict[str, Entry] = {
    "blocks": Entry(make, "synthetic", "tuning", "3 to 6 repeated blocks, 5 % noise")
}
