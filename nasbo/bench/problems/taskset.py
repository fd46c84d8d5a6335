"""TaskSet: learning curves of recurrent networks for 1,000 optimiser settings.

A pool: methods propose in the unit cube of eight numbers, and the nearest config of the table is
trained. Values are validation losses at 51 evaluations, the first of them before any training. Most
settings learn nothing, so that values are extremely skewed. From Metz et al. (2020), as tabulated
by Wistuba et al. (DyHPO).
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.pool import Pool
from nasbo.bench.problem import Config, Curve, Problem
from nasbo.bench.problems.curves import GROUPS, curve_problem, with_curve_noise, with_lying_curve
from nasbo.bench.problems.entry import Entry, Half
from nasbo.bench.problems.folders import data_folder
from nasbo.bench.problems.parameters import real
from nasbo.errors import NasboError
from nasbo.space import load_space

FILE = "taskset/taskset.npz"
ORIGIN = "https://github.com/machinelearningnuremberg/DyHPO (TaskSet, Apache-2.0)"
N_STEPS = 51
NAMES = (
    "log_rate", "one_minus_beta1", "one_minus_beta2", "epsilon", "l1", "l2", "linear_decay",
    "exponential_decay",
)  # fmt: skip
TASKS: dict[str, tuple[str, Half]] = {
    "gru64": ("patch32_GRU64_avg_bs128", "tuning"),
    "lstm128": ("patch128_LSTM128_bs64", "tuning"),
    "irnn64": ("patch32_IRNN64_relu_last_bs128", "tuning"),
    "gru128": ("patch32_GRU128_bs128", "held-out"),
    "lstm128_embed": ("patch32_LSTM128_E128_bs128", "held-out"),
    "vrnn64": ("patch32_VRNN64_relu_avg_bs128", "held-out"),
}
"""Name in the table, and half; chosen by name, not by results."""
NOISY, LYING = ("gru64", "gru128"), ("lstm128", "lstm128_embed")


@dataclass(frozen=True)
class Task:
    """Configs in the unit cube, (n, 8), and their losses, (n, steps)."""

    configs: NDArray[np.float64]
    losses: NDArray[np.float64]


def load_task(name: str) -> Task:
    """A task by its short name.

    Raises:
        NasboError: the file is missing or is a different one; the message states its origin.
    """
    return _load(name, data_folder() / FILE)


@lru_cache(maxsize=len(TASKS))
def _load(name: str, path: Path) -> Task:
    long_name, _ = TASKS[name]
    try:
        with np.load(path) as table:
            task = Task(table[f"ts_{long_name}_X"], table[f"ts_{long_name}_V"])
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise NasboError(
            f"{path}: the table of TaskSet is needed there ($NASBO_DATA/{FILE}); make it from "
            f"{ORIGIN}: for each task ts_NAME_X, configs in the unit cube, (n, {len(NAMES)}), and "
            f"ts_NAME_V, validation losses, (n, {N_STEPS}); here: {error}"
        ) from error
    n = len(task.configs)
    if task.configs.shape != (n, len(NAMES)) or task.losses.shape != (n, N_STEPS):
        raise NasboError(
            f"{path}: {long_name} must have {len(NAMES)} numbers and {N_STEPS} losses per config, "
            f"got {task.configs.shape} and {task.losses.shape}"
        )
    return task


def taskset(name: str) -> Problem:
    """One task; its table is read when the first value is needed."""
    space = load_space({number: real(0.0, 1.0) for number in NAMES})
    pool = Pool(NAMES, lambda: load_task(name).configs)

    def at(config: Config, step: int, rng: np.random.Generator) -> float:
        return float(load_task(name).losses[pool.row(config), step - 1])

    def finals() -> list[float]:
        return [float(loss) for loss in load_task(name).losses[:, -1]]

    curve = Curve(at, N_STEPS, finals, n_untrained=1)
    return curve_problem(f"taskset_{name}", space, curve, pool.snap)


def _entry(name: str, summary: str = "", kind: str = "") -> Entry:
    long_name, half = TASKS[name]
    makers: dict[str, Callable[[], Problem]] = {
        "": lambda: taskset(name),
        "_noisy": lambda: with_curve_noise(taskset(name), f"taskset_{name}_noisy"),
        "_lying": lambda: with_lying_curve(taskset(name), f"taskset_{name}_lying"),
    }
    return Entry(
        make=makers[kind],
        group=GROUPS[kind],
        half=half,
        summary=f"TaskSet, {long_name}: 1,000 configs × {N_STEPS} losses{summary}",
        needs=FILE,
        check=lambda: _check(name),
    )


def _check(name: str) -> None:
    load_task(name)


ENTRIES: dict[str, Entry] = {
    **{f"taskset_{name}": _entry(name) for name in TASKS},
    **{f"taskset_{name}_noisy": _entry(name, ", noisy", "_noisy") for name in NOISY},
    **{f"taskset_{name}_lying": _entry(name, ", early ones mislead", "_lying") for name in LYING},
}
