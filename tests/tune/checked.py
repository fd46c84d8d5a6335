"""Trainer whose module has ``check`` and ``fingerprint``."""

from __future__ import annotations

from typing import Any


def train(config: dict[str, Any]) -> float:
    return float(config["x"] ** 2)


def check(config: dict[str, Any]) -> None:
    if config["x"] == 3:
        raise ValueError("3 cannot be built")


def fingerprint(config: dict[str, Any]) -> str:
    return str(config["x"])
