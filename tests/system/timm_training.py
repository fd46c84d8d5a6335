"""Trainings of timm's smallest networks on CIFAR-10; prints what became of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

import trainers
from trainers import timm
from trainers.session import LocalSession

OPTIONS = {
    "recipe": "quick", "epochs": 2, "n_train": 1500, "n_validation": 500, "is_tensorboard": False,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "resnet": {"model": "test_resnet", "learning_rate": 0.05, "batch_size": 50},
    "vit": {"model": "test_vit", "patch_size": 4, "learning_rate": 1e-3, "optimizer": "adamw",
            "weight_decay": 0.05, "drop_path_rate": 0.1, "batch_size": 50},
}  # fmt: skip


def reports(folder: Path, config: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    until = changes.pop("until", None)
    session = LocalSession(folder, 1, {**OPTIONS, **changes}, until)
    timm.train(config, session)
    return session.reports


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(folder / "checkpoint.pt")["network"]
    return found


def is_equal(first: Path, second: Path) -> bool:
    one, other = weights(first), weights(second)
    return all(torch.equal(one[name], other[name]) for name in one)


def refusals() -> list[str]:
    told = []
    for config in (
        {"model": "resnet_of_mine"},
        {"model": "test_resnet", "heads": 3},
        {"model": "test_resnet", "batch_size": 2000},
        {"model": "test_resnet", "optimizer": "lion"},
    ):
        try:
            timm.check(config, OPTIONS)
        except trainers.timm_networks.InvalidArchitecture as error:
            told.append(str(error))
    return told


def main() -> None:
    base, found = Path("trials"), dict[str, Any]()
    for name, config in CONFIGS.items():
        whole = reports(base / name, config)
        reports(base / f"{name}-paused", config, until=1)
        reports(base / f"{name}-paused", config)
        found[name] = {
            "reports": whole,
            "is_equal": is_equal(base / name, base / f"{name}-paused"),
            "summary": timm.summary(config, OPTIONS),
            "n_epochs": timm.steps(OPTIONS),
        }
    final = {**OPTIONS, **timm.final_options(OPTIONS, "quick"), "epochs": 1}
    last = LocalSession(base / "final", 2, final)
    timm.train(CONFIGS["vit"], last)
    (base / "best").mkdir()
    timm.export(CONFIGS["vit"], base / "final", base / "best", final)
    from trainers.evaluate import score

    found["final"] = last.reports[-1]["test_accuracy"], score(trainers.load(base / "best"))
    shared = reports(base / "ranks", CONFIGS["resnet"], ranks=2, epochs=1)
    found["ranks"] = shared[-1]["n_ranks"], shared[-1]["val_accuracy"]
    found["refusals"] = refusals()
    found["same"] = timm.fingerprint({"model": "x"}) == timm.fingerprint(
        {"model": "x", "batch_size": 64, "drop_rate": None}
    )
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
