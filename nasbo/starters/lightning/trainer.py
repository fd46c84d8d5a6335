"""Trainer of a LightningModule. Replace the two parts marked YOUR DATA and YOUR NETWORK."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from nasbo.lightning import Report
from trainers import summarise

METRIC = "val_accuracy"  # which of the logged numbers drives the search,
MODE = "max"  # and whether it is to be large
RESUMES = True  # a trial that was interrupted, or has paused, goes on from its checkpoint
SHAPE, CLASSES = (3, 16, 16), 4


# YOUR DATA: what is here draws stripes of four directions with much noise, so that this runs at
# once and anywhere. Return any data loaders, or give a LightningDataModule to `fit` below. Hold out
# the same pictures in every trial.
def load_data(n: int, seed: int) -> TensorDataset:
    """Pictures `(n, 3, 16, 16)` and their classes `(n,)`."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (n,), generator=generator)
    angles = labels * torch.pi / CLASSES + 0.2 * torch.randn(n, generator=generator)
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    along = x * angles.cos()[:, None, None] + y * angles.sin()[:, None, None]
    phases = 2 * torch.pi * torch.rand(n, 1, 1, generator=generator)
    stripes = (along + phases).sin()[:, None].expand(-1, *SHAPE)
    return TensorDataset(stripes + 2.5 * torch.randn(n, *SHAPE, generator=generator), labels)


# YOUR NETWORK: any LightningModule, made from a config of space.yaml. A config is a plain dict; a
# parameter of each layer is a list.
class Network(LightningModule):
    """A convolutional network that logs `val_accuracy` and `val_loss`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.config = dict(config)
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
        self.layers = nn.Sequential(*parts, *head, nn.Linear(before, CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        """Pictures `(batch, 3, 16, 16)` to logits `(batch, 4)`."""
        logits: Tensor = self.layers(images)
        return logits

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """The loss of a batch."""
        images, labels = batch
        loss = functional.cross_entropy(self(images), labels)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor]) -> None:
        """Logs accuracy and loss on pictures that were held out."""
        images, labels = batch
        logits = self(images)
        self.log("val_accuracy", (logits.argmax(1) == labels).float().mean())
        self.log("val_loss", functional.cross_entropy(logits, labels))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """`momentum` exists only below `optimizer: sgd`."""
        rate = self.config["learning_rate"]
        if self.config["optimizer"] == "sgd":
            return torch.optim.SGD(self.parameters(), lr=rate, momentum=self.config["momentum"])
        return torch.optim.Adam(self.parameters(), lr=rate)


def summary(config: Mapping[str, Any]) -> dict[str, int]:
    """Parameters and FLOPs, for constraints, `nasbo run --dry-run` and reports."""
    return summarise(lambda: Network(config), SHAPE)


def steps(options: Mapping[str, Any]) -> int:
    """Epochs of a full training, for rungs."""
    return int(options.get("epochs", 6))


def train(config: Mapping[str, Any], session: Any) -> None:
    """Trains one config; `Report` tells the sweep of each epoch and ends it where it is to end."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    seed_everything(session.seed, verbose=False)
    report = Report(session)
    trainer = Trainer(
        max_epochs=steps(session.options),
        callbacks=[report],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=session.folder,
    )
    training = DataLoader(load_data(2000, seed=0), batch_size=64, shuffle=True)
    validation = DataLoader(load_data(1000, seed=1), batch_size=250)
    trainer.fit(Network(config), training, validation, ckpt_path=report.checkpoint)
