"""Trainings with Lightning: whole, killed, and paused at rungs; prints what became of each."""

from __future__ import annotations

import json
import os
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from nasbo.trainer import load_trainer
from trainers.session import LocalSession

CONFIG = {
    "layers": 2, "channels": [8, 8], "kernel": [3, 5], "optimizer": "sgd", "momentum": 0.9,
    "learning_rate": 0.05, "dropout": 0.3,
}  # fmt: skip
OPTIONS = {"epochs": 4}


class Killed(LocalSession):
    """Its process dies without a word while it reports a step."""

    def report(self, metrics: dict[str, Any], step: int | None = None) -> bool:
        if step == 2:
            os._exit(9)
        return super().report(metrics, step)


def train(folder: Path, until: int | None = None, kind: type[LocalSession] = LocalSession) -> Any:
    """The reports of a training in a folder, which goes on from what it finds there."""
    session = kind(folder, 1, OPTIONS, until)
    load_trainer("trainer:train")(CONFIG, session)
    return session.reports


def weights(folder: Path) -> dict[str, list[float]]:
    state = torch.load(folder / "checkpoint.ckpt", weights_only=False)["state_dict"]
    return {name: value.double().flatten().tolist() for name, value in state.items()}


def main() -> None:
    base = Path("trials")
    whole = train(base / "whole")
    child = get_context("spawn").Process(target=train, args=(base / "killed", None, Killed))
    child.start()
    child.join()
    found = {
        "exit": child.exitcode,
        "whole": whole,
        "killed": train(base / "killed"),
        "rungs": [train(base / "rungs", until) for until in (1, 1, 3, None, None)],
    }
    ends = [weights(base / name) for name in ("whole", "killed", "rungs")]
    found["is_equal"] = ends[0] == ends[1] == ends[2]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
