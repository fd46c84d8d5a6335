"""Worker process that times training steps.

The first line of the standard input is a job; each further line is a number of steps to time. Each
side of a comparison has a process of its own, since the trainer changes the memory allocation of
its process; one side waits while the other runs.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

from trainers.bench.plain import PlainTraining
from trainers.recipe import load_recipe
from trainers.session import LocalSession
from trainers.training import Training

GEMM_SIZE = 1024


class Clock:
    """CPU seconds of this process on a CPU, wall seconds with a GPU."""

    def __init__(self) -> None:
        self._now = time.perf_counter if torch.cuda.is_available() else time.process_time

    def __call__(self) -> float:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return self._now()


def timed_ours(job: dict[str, Any], clock: Clock, folder: str) -> Callable[[], float]:
    """A function that trains one step and returns how many seconds of it went into the input."""
    session = LocalSession(folder, 0, {**job["options"], "is_tensorboard": False, "threads": 1})
    training = Training(job["config"], session)
    pictures, seconds = training.data.train, [0.0]
    augmented = pictures.augmented

    def augmented_and_timed(*args: Any) -> Any:
        began = clock()
        made = augmented(*args)
        seconds[0] += clock() - began
        return made

    setattr(pictures, "augmented", augmented_and_timed)  # noqa: B010, a method is replaced

    def step() -> float:
        seconds[0] = 0.0
        if training.step and training.step % training.n_batches == 0:
            began = clock()
            training.start_epoch()
            seconds[0] += clock() - began
        training.run_step()
        return seconds[0]

    return step


def timed_plain(job: dict[str, Any], clock: Clock) -> Callable[[], float]:
    """The same for the plain loop."""
    torch.set_num_threads(1)
    training = PlainTraining(job["config"], load_recipe(job["options"]))

    def step() -> float:
        began = clock()
        images, labels = training.next_batch()
        seconds = clock() - began
        training.train_on(images, labels)
        return seconds

    return step


def gemm_flops(clock: Clock) -> float:
    """FLOPs per second of a large float32 product, the median of nine.

    The maximum would not be comparable with steps, whose mean is taken: other
    processes slow down both.
    """
    a, b = torch.randn(2, GEMM_SIZE, GEMM_SIZE)
    seconds = []
    for _ in range(9):
        began = clock()
        torch.mm(a, b)
        seconds.append(clock() - began)
    return 2 * GEMM_SIZE**3 / statistics.median(seconds)


def main() -> None:
    """Answer every number of steps by one line of JSON."""
    job, clock = json.loads(sys.stdin.readline()), Clock()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        is_ours = job["side"] == "ours"
        step = timed_ours(job, clock, folder) if is_ours else timed_plain(job, clock)
        for line in sys.stdin:
            began, input_seconds = clock(), 0.0
            for _ in range(int(line)):
                input_seconds += step()
            found = {"seconds": clock() - began, "input_seconds": input_seconds}
            print(json.dumps({**found, "gemm_flops": gemm_flops(clock)}), flush=True)


if __name__ == "__main__":
    main()
