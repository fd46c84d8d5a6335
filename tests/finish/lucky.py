"""Trainer for final trainings that reverses the order of ``simulation``."""

from __future__ import annotations

from typing import Any

from tests.tune.toy import simulation


def train(config: dict[str, Any]) -> dict[str, float]:
    """Negated ``simulation``: the best config of a search is the worst here."""
    return {"loss": -simulation(config)}
