"""Fixtures: real CIFAR-10, downloaded once into the cache, and configurations of the NAS space."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainers.data import open_cifar10, prepare
from trainers.sources import Arrays


@pytest.fixture(scope="session")
def cache() -> Path:
    """The verified cache of this machine."""
    return prepare()


@pytest.fixture(scope="session")
def arrays(cache: Path) -> Arrays:
    """The whole data set, memory-mapped."""
    return open_cifar10(cache.parent)


def _sample(seed: int, is_conditional: bool = True) -> dict[str, Any]:
    """A random configuration of the NAS space."""
    draw = random.Random(seed)
    n = draw.randint(4, 7)
    ops = [draw.randint(0, 3) for _ in range(n)]
    ratios = [draw.choice([5, 6]) for _ in range(n)]
    return {
        "nums_block": n,
        "conv_op": ops,
        "expand_ratio": [
            ratio if op == 2 or not is_conditional else None
            for op, ratio in zip(ops, ratios, strict=True)
        ],
        "seratio": [draw.choice([0, 8, 16]) for _ in range(n)],
        "kernel_size": [draw.choice([3, 5]) for _ in range(n)],
        "nums_layer": [draw.randint(0, 2) for _ in range(n)],
        "nums_channel": [draw.choice([1, 1.25, 1.3]) for _ in range(n)],
        "stride_layer": draw.choice([43, 44]),
        "learning_rate": draw.uniform(0.07, 0.15),
        "step_size": draw.randint(70, 89),
        "batch_size": draw.choice([32, 64, 128]),
    }


def _uniform(op: int, **changes: Any) -> dict[str, Any]:
    """Four blocks of one operation, 3x3, without squeeze-and-excitation, one layer each."""
    config = {
        "nums_block": 4,
        "conv_op": [op] * 4,
        "expand_ratio": [5 if op == 2 else None] * 4,
        "seratio": [0] * 4,
        "kernel_size": [3] * 4,
        "nums_layer": [0] * 4,
        "nums_channel": [1] * 4,
        "stride_layer": 43,
        "learning_rate": 0.1,
        "step_size": 80,
        "batch_size": 32,
    }
    return {**config, **changes}


@pytest.fixture(scope="session")
def sample_config() -> Callable[..., dict[str, Any]]:
    """Function `sample_config(seed)`: a random configuration of the NAS space."""
    return _sample


@pytest.fixture(scope="session")
def uniform_config() -> Callable[..., dict[str, Any]]:
    """Function `uniform_config(op, **changes)`: four equal blocks of one operation."""
    return _uniform
