"""Learning rate schedules: step, cosine and one-cycle, with linear warm-up."""

from __future__ import annotations

import math

from trainers.architecture import Config
from trainers.recipe import Recipe

DECAY = 0.1
PEAK = 0.25
"""Peak of a one-cycle schedule, as a fraction of all steps."""


def learning_rate(config: Config, recipe: Recipe, step: int, total: int) -> float:
    """Learning rate of one step.

    Args:
        config: has the largest rate and, for the schedule `step`, the percentage of the steps after
            which it falls to a tenth.
        recipe: names the schedule and the fraction of steps for the warm-up.
        step: number of steps done before.
        total: number of steps of the whole training.
    """
    return float(config["learning_rate"]) * _factor(config, recipe, step, total)


def _factor(config: Config, recipe: Recipe, step: int, total: int) -> float:
    warmup = round(recipe.warmup_share * total)
    if recipe.schedule == "one_cycle":
        peak = max(1, round(PEAK * total))
        return min((step + 1) / peak, (total - step) / max(1, total - peak))
    rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
    if recipe.schedule == "cosine":
        passed = max(0, step - warmup) / max(1, total - warmup)
        return rise * 0.5 * (1.0 + math.cos(math.pi * passed))
    decay_every = max(1, round(int(config["step_size"]) / 100 * total))
    return rise * float(DECAY ** (step // decay_every))
