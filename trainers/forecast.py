"""Forecast of a configuration's size, memory and seconds, before it is trained.

The seconds require one short measurement of this machine: a few training steps with
networks of each operation. The result is stored in the data folder, by machine and by the
options that affect speed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from trainers import cost
from trainers.architecture import OPERATIONS, Config, check_batch
from trainers.blocks import build
from trainers.data import SHAPES, data_folder
from trainers.dataset import is_cifar10, n_trained, open_collection
from trainers.device import expected_precision, pick_device, set_up
from trainers.families import family_of
from trainers.memory import memory_of
from trainers.recipe import Recipe, load_recipe

Rates = dict[str, tuple[float, float]]

BATCH = 64
MIN_STEPS, MIN_SECONDS = 3, 0.3
TRAINED_PER_SCORED = 3.0
"""Cost of training on an image, relative to scoring it."""
SETUP_S = 1.0


def summary(config: Config, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Size, memory and seconds of a configuration, as far as they are known before the training.

    Args:
        config: a configuration of a NAS space.
        options: of a sweep; without them only the full architecture is described.

    Returns:
        `params`, `flops`, `layers` and `receptive_field` of the architecture at its full width and
        size, which of them are `features`, and `rows` to draw it; with
        options also `trial_params`, `trial_flops` and `memory_bytes` of the network that is
        trained, and `seconds` once `calibrate` has measured this machine.
    """
    describe = family_of(config).summary
    if options is None:
        return describe(config, 1.0, 10, cost.FULL_SIZE)
    recipe = _recipe(json.dumps(dict(options), sort_keys=True))
    n_classes, _ = counts(recipe.data, recipe.image_size)
    whole = describe(config, 1.0, n_classes, max(cost.FULL_SIZE, recipe.image_size))
    is_full = recipe.width == 1.0 and recipe.image_size >= cost.FULL_SIZE
    small = (recipe.width, n_classes, recipe.image_size)
    trial = whole if is_full else describe(config, *small)
    found = {
        "params": whole["params"],
        "flops": whole["flops"],
        "trial_params": trial["params"],
        "trial_flops": trial["flops"],
        "layers": whole["layers"],
        "receptive_field": whole["receptive_field"],
        "memory_bytes": memory_of(trial, recipe, n_at_once(config, recipe), precision(recipe)),
    }
    rates = _known_rates(_speed_file(recipe))
    seconds = {} if rates is None else {"seconds": _seconds(trial["rows"], recipe, rates)}
    return {**found, **seconds, "features": list(cost.FEATURES), "rows": whole["rows"]}


def tabulate(values: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`params`, `flops`, `layers` and `receptive_field` of many configurations at once.

    Args:
        values: by parameter, shape (n,), or (n, n_blocks) for those of a block.
        options: of a sweep.
    """
    recipe = _recipe(json.dumps(dict(options or {}), sort_keys=True))
    n_classes, _ = counts(recipe.data, recipe.image_size)
    sizes_of = family_of(values).tabulate
    assert sizes_of is not None
    return sizes_of(values, 1.0, n_classes, max(cost.FULL_SIZE, recipe.image_size))


def calibrate(options: Mapping[str, Any]) -> Rates:
    """Measure this machine once for the given options, and store the result.

    Returns:
        For each operation, the seconds of training per FLOP of the forward pass and per number of
        its feature maps: small layers are limited by memory and by their count.
    """
    recipe = load_recipe(options)
    file = _speed_file(recipe)
    known = _known_rates(file)
    if known is not None:
        return known
    set_up(recipe)
    rates = {name: _measure(number, recipe) for number, name in enumerate(OPERATIONS)}
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_text(json.dumps(rates))
    fresh.replace(file)
    _known_rates.cache_clear()
    return rates


def check(config: Config, options: Mapping[str, Any] | None = None) -> None:
    """Raise `InvalidArchitecture` for a configuration that cannot be built or trained.

    Args:
        config: a configuration of a NAS space.
        options: of a sweep; without them the batch is not compared with the number of images.
    """
    family_of(config).check(config)
    if options is None:
        return
    recipe = _recipe(json.dumps(dict(options), sort_keys=True))
    _, n_pictures = counts(recipe.data, recipe.image_size)
    check_batch(config, n_trained(recipe, n_pictures), recipe.ranks or 1)


def n_at_once(config: Config, recipe: Recipe) -> int:
    """Pictures per process; how many GPUs a trial will see is not known here."""
    return math.ceil(int(config["batch_size"]) / (recipe.ranks or 1))


@lru_cache(maxsize=64)
def precision(recipe: Recipe) -> torch.dtype:
    return expected_precision(recipe)


def _seconds(rows: list[dict[str, Any]], recipe: Recipe, rates: Rates) -> float:
    each = 0.0
    for row in rows:
        per_flop, per_number = rates.get(row["op"], rates["conv"])
        each += per_flop * row["flops"] + per_number * _numbers(row)
    _, n_all = counts(recipe.data, recipe.image_size)
    n = recipe.n_validation
    held_out = int(n) if n >= 1 else round(n * n_all)
    is_all = recipe.train_on == "train+validation"
    trained = n_trained(recipe, n_all)
    early = min(recipe.n_validation_early or held_out, held_out)
    scored = 0 if is_all else early * (recipe.epochs - 1) + held_out
    return each * (trained * recipe.epochs + scored / TRAINED_PER_SCORED) + SETUP_S


@lru_cache(maxsize=64)
def _recipe(options: str) -> Recipe:
    """Cached, since reading a recipe's file takes longer than the rest, and a search
    asks thousands of times.
    """
    return load_recipe(json.loads(options))


@lru_cache(maxsize=64)
def counts(data: str | None, image_size: int) -> tuple[int, int]:
    """Classes and training pictures."""
    if is_cifar10(data):
        return 10, SHAPES["train_y"][0]
    whole = open_collection(data, image_size)
    return len(whole.classes), len(whole.arrays.train_y)


def _numbers(row: Mapping[str, Any]) -> int:
    """Number of elements in the feature maps of a block."""
    channels = max(row["in_channels"] * row["expansion"], row["out_channels"])
    return int(row["layers"] * channels * row["image_size"] ** 2)


def _measure(operation: int, recipe: Recipe) -> tuple[float, float]:
    """Seconds per FLOP and per element, from a small and a large network."""
    sizes = []
    for n_blocks, kernel in ((4, 3), (7, 5)):
        config = _typical(operation, n_blocks, kernel)
        rows = cost.summary(config, recipe.width, 10, recipe.image_size)["rows"]
        flops, numbers = sum(row["flops"] for row in rows), sum(map(_numbers, rows))
        sizes.append((_step_seconds(config, recipe) / BATCH, flops, numbers))
    (t, f, m), (u, g, n) = sizes
    per_flop = (u * m - t * n) / (g * m - f * n)
    per_flop = min(max(per_flop, 0.0), t / f)
    return per_flop, (t - per_flop * f) / m


def _step_seconds(config: Config, recipe: Recipe) -> float:
    device = pick_device()
    network = build(config, recipe.width, 10, recipe.image_size)
    network = network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = torch.randn(BATCH, 3, recipe.image_size, recipe.image_size, device=device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.zeros(BATCH, dtype=torch.long, device=device)
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        functional.cross_entropy(network(images), labels).backward()
        optimiser.step()

    return _time(step, device)


def _time(step: Any, device: torch.device) -> float:
    """Seconds of one step; on a CPU with one thread CPU seconds, which other
    processes hardly affect.
    """
    is_alone = device.type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if is_alone else time.perf_counter
    step()
    n, began = 0, clock()
    while n < MIN_STEPS or clock() - began < MIN_SECONDS:
        step()
        n += 1
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return (clock() - began) / n


def _typical(operation: int, n: int, kernel: int) -> dict[str, Any]:
    """A configuration of `n` blocks, all of one operation."""
    return {
        "nums_block": n,
        "conv_op": [operation] * n,
        "expand_ratio": [6] * n,
        "seratio": [8] * n,
        "kernel_size": [kernel] * n,
        "nums_layer": [1] * n,
        "nums_channel": [1.0] * n,
        "stride_layer": 43,
        "learning_rate": 0.1,
        "step_size": 80,
        "batch_size": BATCH,
    }


@lru_cache(maxsize=64)
def _speed_file(recipe: Recipe) -> Path:
    """File of this machine's measurement for these options."""
    device = pick_device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    way = [recipe.image_size, recipe.width, recipe.threads, recipe.precision]
    content = json.dumps([platform.node(), os.cpu_count(), name, torch.__version__, way])
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return data_folder() / "speed" / f"{digest}.json"


@lru_cache(maxsize=64)
def _known_rates(file: Path) -> Rates | None:
    try:
        found = {
            name: (float(a), float(b)) for name, (a, b) in json.loads(file.read_text()).items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return found if set(found) == set(OPERATIONS) else None
