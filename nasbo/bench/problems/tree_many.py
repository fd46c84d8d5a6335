"""Synthetic formula over the 21,760 subspaces of the shipped space `nas_cifar10_conditional`.

Every subspace is one pattern of operations. The worth of a block depends on its operation, its
depth, its other parameters and the operation before it, so that one subspace is informative about
others. Each block also has a cost. The best learning rate depends on the number of blocks. No
noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.entry import Entry
from nasbo.space import load_space

Array = NDArray[np.float64]

SEED = 1000
COUNTS = (4, 5, 6, 7)
N_OPERATIONS = 4
EXPANDING = 2
LEVELS: dict[str, tuple[float, ...]] = {
    "seratio": (0, 8, 16),
    "kernel_size": (3, 5),
    "nums_layer": (0, 1, 2),
    "nums_channel": (1, 1.25, 1.3),
}
EXPANSIONS = (5, 6)
STRIDES = (43, 44)
BATCHES = (32, 64, 128)
PRICE = 0.35

Block = tuple[int, dict[str, int], int]
"""Operation, levels by name, level of the expansion (0 if there is none)."""


@dataclass(frozen=True)
class Worth:
    """Random coefficients of the formula.

    Attributes:
        operation: (4,); `slope` is its change with depth.
        detail: by name, (4, levels): worth of a level under an operation; `detail_slope`,
            (levels,), is its change with depth.
        pair: (4, 4), by previous operation and operation.
        stride: (2, 4), by stride pattern and operation, growing with depth.
    """

    operation: Array
    slope: Array
    detail: dict[str, Array]
    detail_slope: dict[str, Array]
    expansion: Array
    pair: Array
    stride: Array
    rate: float
    rate_slope: float
    step: float

    def block(self, at: int, stride: int, block: Block) -> float:
        """Worth of block `at` = 0, 1, ... without its neighbours, minus its cost."""
        operation, levels, expansion = block
        position = (at - 3) / 3
        worth = self.operation[operation] + self.slope[operation] * position - PRICE
        for name, level in levels.items():
            worth += self.detail[name][operation, level] + self.detail_slope[name][level] * position
        if operation == EXPANDING:
            worth += self.expansion[expansion]
        return float(worth + self.stride[stride, operation] * position)

    def training(self, n_blocks: int, rate: float, step: float, batch: float) -> float:
        """Loss term of learning rate, step and batch, all in [0, 1]."""
        best = self.rate + self.rate_slope * (n_blocks - 5.5) + 0.15 * (batch - 0.5)
        return 2 * (rate - best) ** 2 + 0.2 * (step - self.step) ** 2 + 0.1 * (batch - 0.5) ** 2


@lru_cache(maxsize=1)
def draw_worth() -> Worth:
    """The coefficients of the only instance."""
    rng = np.random.default_rng(SEED)
    return Worth(
        operation=rng.uniform(0, 1, N_OPERATIONS),
        slope=0.25 * rng.standard_normal(N_OPERATIONS),
        detail={
            name: 0.2 * rng.standard_normal((N_OPERATIONS, len(v))) for name, v in LEVELS.items()
        },
        detail_slope={name: 0.1 * rng.standard_normal(len(v)) for name, v in LEVELS.items()},
        expansion=0.2 * rng.standard_normal(len(EXPANSIONS)),
        pair=0.3 * rng.standard_normal((N_OPERATIONS, N_OPERATIONS)),
        stride=0.15 * rng.standard_normal((len(STRIDES), N_OPERATIONS)),
        rate=rng.uniform(0.4, 0.6),
        rate_slope=rng.uniform(-0.1, 0.1),
        step=rng.uniform(0.2, 0.8),
    )


def evaluate(config: Config, rng: np.random.Generator | None = None) -> float:
    """The value of a config."""
    worth, stride = draw_worth(), STRIDES.index(config["stride_layer"])
    blocks = list(_blocks(config))
    total = sum(worth.block(at, stride, block) for at, block in enumerate(blocks))
    total += sum(worth.pair[a[0], b[0]] for a, b in pairwise(blocks))
    rate = (config["learning_rate"] - 0.07) / (0.15 - 0.07)
    batch = BATCHES.index(config["batch_size"]) / (len(BATCHES) - 1)
    step = (config["step_size"] - 70) / 19
    return float(np.exp(-total / 3)) + worth.training(len(blocks), rate, step, batch)


def _blocks(config: Config) -> Iterator[Block]:
    for at, operation in enumerate(config["conv_op"]):
        levels = {name: values.index(config[name][at]) for name, values in LEVELS.items()}
        is_expanding = operation == EXPANDING
        yield operation, levels, EXPANSIONS.index(config["expand_ratio"][at]) if is_expanding else 0


@lru_cache(maxsize=1)
def optimum() -> float:
    """The exact least value, by dynamic programming over chains of operations.

    The learning rate can always take its best value, with the middle batch; steps are integers.
    """
    worth, most = draw_worth(), -np.inf
    for stride in range(len(STRIDES)):
        chain = np.zeros(N_OPERATIONS)
        for at in range(COUNTS[-1]):
            own = np.array([_best_block(worth, at, stride, o) for o in range(N_OPERATIONS)])
            chain = own + ((chain[:, None] + worth.pair).max(0) if at else 0.0)
            if at + 1 in COUNTS:
                most = max(most, float(chain.max()))
    steps = min(0.2 * (s / 19 - worth.step) ** 2 for s in range(20))
    return float(np.exp(-most / 3)) + steps


def _best_block(worth: Worth, at: int, stride: int, operation: int) -> float:
    picks = product(*(range(len(values)) for values in LEVELS.values()))
    blocks = [
        (operation, dict(zip(LEVELS, pick, strict=True)), expansion)
        for pick in picks
        for expansion in range(len(EXPANSIONS))
    ]
    return max(worth.block(at, stride, block) for block in blocks)


def make() -> Problem:
    """The problem with its exact optimum."""
    return Problem("tree_many", load_space("nas_cifar10_conditional"), evaluate, optimum=optimum())


ENTRIES: dict[str, Entry] = {
    "tree_many": Entry(make, "synthetic", "held-out", "21,760 patterns of operations, no noise")
}
