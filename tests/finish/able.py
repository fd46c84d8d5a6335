"""Trainer with all functions that ``nasbo finalize`` can use, on the simulation space."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.tune.toy import simulation

METRIC, MODE = "loss", "min"
TRAINED = "weights.txt"
HASH = "abc123"


def train(config: dict[str, Any], session: Any) -> None:
    """Two reports; the metric of a finalist is only in the last one."""
    noise = (session.seed % 1000) / 1e6
    loss = simulation(config) + noise
    session.report({"loss": loss + 1.0})
    (session.folder / TRAINED).write_text(f"{loss}")
    if session.options.get("is_final"):
        session.report({"final_loss": loss / 2, "trial_seed": session.seed})
    else:
        session.report({"loss": loss})


def fingerprint(config: dict[str, Any]) -> str:
    """Configs are the same network if their first digits are equal."""
    return str({name: round(value, 1) for name, value in config.items()})


def final_options(options: Mapping[str, Any], recipe: str | None) -> dict[str, Any]:
    return {"recipe": recipe or "usual", "is_final": True}


def final_metric(options: Mapping[str, Any]) -> str:
    return "final_loss" if options.get("is_final") else "loss"


def provenance(options: Mapping[str, Any]) -> dict[str, Any]:
    return {"data_hash": HASH, "n_train": 50 if options.get("is_final") else 40}


def export(
    config: dict[str, Any], trial_folder: Path, folder: Path, options: Mapping[str, Any]
) -> dict[str, Any]:
    (folder / "network.txt").write_text((trial_folder / TRAINED).read_text())
    return {"params": 7, "regenerate": "look at {folder}", "latency_ms": 0.5}
