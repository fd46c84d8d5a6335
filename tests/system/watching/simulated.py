"""Trainer for observed sweeps: a few slow epochs, and a subspace that diverges."""

from __future__ import annotations

import time
from typing import Any

from tests.tune.toy import simulation

N_EPOCHS = 3


def train(config: dict[str, Any], session: Any) -> None:
    """The simulation function, which improves with the epochs; one part of the space diverges."""
    pause_s = float(session.options.get("pause_s", 0.2))
    for epoch in range(1, N_EPOCHS + 1):
        time.sleep(pause_s)
        if config["x1"] == 1 and config["x3"] == 1 and epoch == N_EPOCHS:
            raise FloatingPointError("the loss is not finite")
        rest = 0.5 * (N_EPOCHS - epoch) / N_EPOCHS
        if not session.report({"loss": simulation(config) + rest, "epochs": N_EPOCHS}):
            return
