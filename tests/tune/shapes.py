"""Trainer whose configs all have the same fingerprint, except x = 9, which has none."""

from __future__ import annotations

from typing import Any


def train(config: dict[str, Any]) -> float:
    if config["x"] == 0:
        raise ValueError("this one cannot be trained")
    return 1.0


def fingerprint(config: dict[str, Any]) -> str:
    if config["x"] == 9:
        raise KeyError("no number for this one")
    return "the same network"
