"""A trainer whose values are turned round in the final trainings."""

from __future__ import annotations

from typing import Any

from tests.tune.toy import simulation


def train(config: dict[str, Any]) -> dict[str, float]:
    """What was best in a search by ``simulation`` is worst here."""
    return {"loss": -simulation(config)}
