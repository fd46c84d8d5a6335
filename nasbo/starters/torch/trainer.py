"""Trainer of small convolutional networks. Replace the two parts marked YOUR DATA, YOUR NETWORK."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainers import summarise

METRIC = "val_accuracy"  # which of the reported numbers drives the search,
MODE = "max"  # and whether it is to be large
RESUMES = True  # a trial that was interrupted, or has paused, goes on from its checkpoint
BATCH = 64
CHECKPOINT = "checkpoint.pt"  # files called checkpoint* are removed when nobody needs them any more
SHAPE, CLASSES = (3, 16, 16), 4


# YOUR DATA: what is here draws stripes of four directions with much noise, so that this runs at
# once and anywhere. Return your own tensors, or make your own torch.utils.data.DataLoader from
# them in `train`. Whatever is drawn at random must be the same for every trial: hold out the same
# pictures.
def load_data(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pictures `(n, 3, 16, 16)` and their classes `(n,)`."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (n,), generator=generator)
    angles = labels * torch.pi / CLASSES + 0.2 * torch.randn(n, generator=generator)
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    along = x * angles.cos()[:, None, None] + y * angles.sin()[:, None, None]
    phases = 2 * torch.pi * torch.rand(n, 1, 1, generator=generator)
    stripes = (along + phases).sin()[:, None].expand(-1, *SHAPE)
    return stripes + 2.5 * torch.randn(n, *SHAPE, generator=generator), labels


# YOUR NETWORK: any torch.nn.Module, made from a config of space.yaml. A config is a plain dict; a
# parameter of each layer is a list.
def build(config: Mapping[str, Any]) -> nn.Module:
    """The network of a config."""
    parts: list[nn.Module] = []
    before = SHAPE[0]
    for channels, kernel in zip(config["channels"], config["kernel"], strict=True):
        parts += [
            nn.Conv2d(before, channels, kernel, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        before = channels
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(config["dropout"])]
    return nn.Sequential(*parts, *head, nn.Linear(before, CLASSES))


def make_optimizer(config: Mapping[str, Any], network: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of a config; `momentum` exists only below `optimizer: sgd`."""
    rate = config["learning_rate"]
    if config["optimizer"] == "sgd":
        return torch.optim.SGD(network.parameters(), lr=rate, momentum=config["momentum"])
    return torch.optim.Adam(network.parameters(), lr=rate)


def summary(config: Mapping[str, Any]) -> dict[str, int]:
    """Parameters and FLOPs, for constraints, `nasbo run --dry-run` and reports."""
    return summarise(lambda: build(config), SHAPE)


def steps(options: Mapping[str, Any]) -> int:
    """Epochs of a full training, for rungs."""
    return int(options.get("epochs", 8))


def train(config: Mapping[str, Any], session: Any) -> None:
    """Trains one config and reports each epoch; a restart ends with the same bits on a CPU."""
    torch.manual_seed(session.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # Ray shows the trial's
    images, labels = (part.to(device) for part in load_data(2000, seed=0))
    held_out = tuple(part.to(device) for part in load_data(1000, seed=1))
    network = build(config).to(device)
    optimizer = make_optimizer(config, network)
    file = session.folder / CHECKPOINT
    epoch, metrics = restore(file, network, optimizer)
    if ends_here(epoch, session):  # it was killed after its last epoch, before anybody heard of it
        session.report(metrics, step=epoch)
    while not ends_here(epoch, session):
        loss = run_epoch(network, optimizer, images, labels)
        epoch += 1
        metrics = {"train_loss": loss, **score(network, *held_out)}
        save(file, network, optimizer, epoch, metrics)
        if not session.report(metrics, step=epoch):
            return  # paused or stopped: what it needs to go on is in its folder


def ends_here(epoch: int, session: Any) -> bool:
    """Whether nothing is to be trained now: it is finished, or where it is to pause."""
    return epoch >= (session.until or steps(session.options))


def run_epoch(
    network: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, labels: Tensor
) -> float:
    """The mean loss of an epoch."""
    network.train()
    total = torch.zeros((), device=images.device)
    batches = torch.randperm(len(images)).to(images.device).split(BATCH)
    for batch in batches:
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return float(total) / len(batches)


@torch.inference_mode()
def score(network: nn.Module, images: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy and loss on the pictures that were held out."""
    logits = network.eval()(images)
    accuracy = (logits.argmax(1) == labels).float().mean()
    return {
        "val_accuracy": float(accuracy),
        "val_loss": float(functional.cross_entropy(logits, labels)),
    }


def save(
    file: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    epoch: int,
    metrics: Mapping[str, float],
) -> None:
    """Writes all that an exact restart needs; a crash leaves the old file or the new one."""
    state = {
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "epoch": epoch,
        "metrics": dict(metrics),
    }
    fresh = file.with_suffix(".new")
    torch.save(state, fresh)
    os.replace(fresh, file)


def restore(
    file: Path, network: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[int, dict[str, float]]:
    """The epochs that are done and the last metrics; 0 and none without a checkpoint."""
    if not file.exists():
        return 0, {}
    state = torch.load(file, map_location="cpu", weights_only=True)
    network.load_state_dict(state["network"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"])
    return state["epoch"], state["metrics"]
