"""Accel-NASBench: networks of MnasNet's space, trained on ImageNet and timed on accelerators.

A pool: methods propose four choices for each of seven blocks, and the network of the table with the
fewest changed choices is evaluated. Values are top-1 errors in per cent of one short training.
Networks that the table has twice get the mean of their trainings. From Ahmad et al.,
"Accel-NASBench: sustainable benchmarking for accelerator-aware NAS" (2024).
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.choice_pool import ChoicePool
from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.accel_sizes import Block, sizes
from nasbo.bench.problems.entry import Entry
from nasbo.bench.problems.folders import data_folder
from nasbo.bench.problems.parameters import choice, integer, ordinal
from nasbo.errors import NasboError
from nasbo.features import Features
from nasbo.space import Space, load_space

Array = NDArray[np.float64]

FILE = "accel_nasbench/accel_nasbench.csv.xz"
ORIGIN = (
    "https://github.com/afzalxo/Accel-NASBench (anb_dataset/anb_dataset_jsons.tar.gz, Apache-2.0)"
)
N_BLOCKS = 7
EXPANSIONS, KERNELS, SQUEEZES = (1, 4, 6), (3, 5), (False, True)
MOST_LAYERS = (3, 3, 3, 3, 3, 4, 3)
CHOICES = ("expansion", "kernel", "layers", "squeeze")
CHOSEN = tuple(f"block{at}_{letter}" for at in range(N_BLOCKS) for letter in ("e", "k", "l", "se"))
"""Columns of the choices, in the order of the space."""
MEASURED = (
    "val_top1", "val_top5", "train_time_s", "macs_m", "params_m", "throughput_a100",
    "throughput_3090", "throughput_tpuv2", "throughput_tpuv3", "latency_vck190",
    "throughput_vck190", "latency_zcu102", "throughput_zcu102",
)  # fmt: skip
"""Columns of what was measured: accuracies in per cent, millions of multiply-adds and parameters,
pictures per second (`throughput`) and milliseconds (`latency`)."""
OPTIMUM = 100 - 67.052
"""The least error of the pool."""


@dataclass(frozen=True)
class Networks:
    """Distinct networks of the table, in its order, and what was measured, (n,) by column.

    A network that a device has not run has `nan` there.
    """

    configs: tuple[Config, ...]
    measured: Mapping[str, Array]


def load_networks() -> Networks:
    """The table.

    Raises:
        NasboError: the file is missing or is a different one; the message states its origin.
    """
    return _load(data_folder() / FILE)


@lru_cache(maxsize=2)
def _load(path: Path) -> Networks:
    columns = _read(path)
    found, first, owners = np.unique(
        np.column_stack([columns[name] for name in CHOSEN]),
        axis=0, return_index=True, return_inverse=True,
    )  # fmt: skip
    order = np.argsort(first)
    owners = np.argsort(order)[owners.reshape(-1)]
    configs = tuple(_config(row, path) for row in found[order])
    measured = {name: _means(columns[name], owners, len(configs)) for name in MEASURED}
    if not np.isfinite(measured["val_top1"]).all():
        raise NasboError(f"{path}: val_top1 must be a number in every row")
    return Networks(configs, measured)


def _read(path: Path) -> dict[str, Array]:
    """The columns by name, (n,); what is missing is `nan`."""
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            names = file.readline().strip().split(",")
            rows = np.genfromtxt(file, delimiter=",", ndmin=2)
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise NasboError(
            f"{path}: the table of Accel-NASBench is needed there ($NASBO_DATA/{FILE}); make it "
            f"from {ORIGIN}: one row per network, with its choices ({CHOSEN[0]} to {CHOSEN[-1]}) "
            f"and measurements ({', '.join(MEASURED)}); here: {error}"
        ) from error
    missing = [name for name in (*CHOSEN, *MEASURED) if name not in names]
    if missing or rows.shape[1] != len(names):
        raise NasboError(
            f"{path}: a row must have one value for each of {', '.join((*CHOSEN, *MEASURED))}; "
            f"missing: {', '.join(missing) or 'values'}"
        )
    return dict(zip(names, rows.T, strict=True))


def _means(column: Array, owners: NDArray[np.int64], n: int) -> Array:
    """Mean of the known numbers of each network; `nan` where there is none."""
    is_known = np.isfinite(column)
    counts = np.bincount(owners[is_known], minlength=n)
    sums = np.bincount(owners[is_known], weights=column[is_known], minlength=n)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _config(row: Array, path: Path) -> Config:
    """The config of a row of choices; the space says which are possible."""
    names = [p.name for p in accel_space().parameters]
    values = [bool(x) if name.startswith("squeeze") else int(x)
              for name, x in zip(names, row, strict=True)]  # fmt: skip
    try:
        return accel_space().canonical(dict(zip(names, values, strict=True)))
    except NasboError as error:
        raise NasboError(f"{path}: is no table of this space: {error}") from error


@lru_cache(maxsize=1)
def accel_space() -> Space:
    """Expansion, kernel, layers and squeeze-and-excitation of each block."""
    document: dict[str, Any] = {}
    for number, most in enumerate(MOST_LAYERS, start=1):
        kinds = ordinal(*EXPANSIONS), ordinal(*KERNELS), integer(1, most), choice(*SQUEEZES)
        document |= {f"{name}_{number}": kind for name, kind in zip(CHOICES, kinds, strict=True)}
    return load_space(document)


def describe(config: Config) -> dict[str, float]:
    """`params` and `macs` of any network of the space, also of those that the table lacks."""
    numbers = range(1, N_BLOCKS + 1)
    return sizes([Block(*(config[f"{name}_{at}"] for name in CHOICES)) for at in numbers])


def accel_nasbench() -> Problem:
    """The problem; its table is read when the first value is needed."""
    space = accel_space()
    pool = ChoicePool(space, lambda: load_networks().configs)

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        return 100 - float(load_networks().measured["val_top1"][pool.row(config)])

    return Problem(
        "accel_nasbench",
        space,
        evaluate,
        optimum=OPTIMUM,
        snap=pool.snap,
        features=Features(describe),
    )


def _check() -> None:
    load_networks()


ENTRIES: dict[str, Entry] = {
    "accel_nasbench": Entry(
        make=accel_nasbench,
        group="nas",
        half="held-out",
        summary="Accel-NASBench: a pool of 5,125 networks of MnasNet's space, ImageNet",
        needs=FILE,
        check=_check,
    )
}
