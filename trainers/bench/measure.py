"""Comparison of the trainer with a plain training loop, in images per second."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trainers.bench.networks import Measured
from trainers.cost import summary
from trainers.process import command
from trainers.recipe import load_recipe

ROUND_S = 2.0
FORWARD_AND_BACKWARD = 3
"""A backward pass costs as much as two forward passes."""


@dataclass(frozen=True)
class Speed:
    """Result of one comparison; all values are medians over its rounds.

    Attributes:
        ours, plain: images per second.
        ratio: of the two, in each round.
        input_share, plain_input_share: fraction of a step's time that goes into the input.
        peak_share: fraction of the FLOPs per second of a large matrix product in the same process.
    """

    network: Measured
    ours: float
    plain: float
    ratio: float
    input_share: float
    plain_input_share: float
    peak_share: float


@dataclass(frozen=True)
class Round:
    """One answer of a worker."""

    seconds: float
    input_seconds: float
    gemm_flops: float


class Worker:
    """One side of a comparison, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, n_steps: int) -> Round:
        """Train `n_steps` steps and wait for the result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{n_steps}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise ChildProcessError(f"a measuring process ended with {self._process.wait()}")
        return Round(**json.loads(answer))


def compare(network: Measured, n_rounds: int) -> Speed:
    """Measure both sides on one network, in turns."""
    with worker("plain", network) as plain, worker("ours", network) as ours:
        n_steps = _n_steps(plain, ours)
        pairs = [(plain.run(n_steps), ours.run(n_steps)) for _ in range(n_rounds)]
    n_images = n_steps * int(network.config["batch_size"])
    flops = n_images * _step_flops(network)
    return Speed(
        network=network,
        ours=statistics.median(n_images / fast.seconds for _, fast in pairs),
        plain=statistics.median(n_images / slow.seconds for slow, _ in pairs),
        ratio=statistics.median(slow.seconds / fast.seconds for slow, fast in pairs),
        input_share=statistics.median(fast.input_seconds / fast.seconds for _, fast in pairs),
        plain_input_share=statistics.median(slow.input_seconds / slow.seconds for slow, _ in pairs),
        peak_share=statistics.median(flops / fast.seconds / fast.gemm_flops for _, fast in pairs),
    )


def _n_steps(plain: Worker, ours: Worker) -> int:
    """Number of steps for rounds of `ROUND_S`; the first steps, which are slower, are discarded."""
    plain.run(2)
    ours.run(2)
    return max(1, round(ROUND_S / ours.run(2).seconds * 2))


def _step_flops(network: Measured) -> float:
    recipe = load_recipe({"recipe": network.recipe})
    found = summary(network.config, recipe.width, image_size=recipe.image_size)
    return FORWARD_AND_BACKWARD * float(found["flops"])


@contextmanager
def worker(side: str, network: Measured) -> Iterator[Worker]:
    """Start one side, and end it afterwards."""
    job: dict[str, Any] = {
        "side": side,
        "config": network.config,
        "options": {"recipe": network.recipe, "checkpoint_every_s": 1e9},
    }
    with subprocess.Popen(
        command("trainers.bench.worker"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        try:
            yield Worker(process)
        finally:
            process.kill()
