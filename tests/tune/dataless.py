"""Trainer whose data may be missing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


class NoPictures(RuntimeError):  # noqa: N818
    cause = "data"


def prepare(options: Mapping[str, Any]) -> None:
    if options.get("is_missing"):
        raise OSError("no pictures in /nowhere")


def check(config: dict[str, Any], options: Mapping[str, Any]) -> None:
    if options.get("is_missing"):
        raise NoPictures("they cannot be counted")
    if options.get("is_refused"):
        raise ValueError("nothing can be built")


def train(config: dict[str, Any]) -> float:
    return 1.0


def train_without_data(config: dict[str, Any]) -> float:
    raise NoPictures("a picture is broken")


def count_gpus(config: dict[str, Any]) -> float:
    return len([one for one in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if one])
