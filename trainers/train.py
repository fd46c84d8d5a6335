"""A configuration and a session come in, one report per epoch comes out: training on CIFAR-10."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainers import checkpoint
from trainers.architecture import Config, InvalidArchitecture
from trainers.augment import Pictures, shrink
from trainers.blocks import build
from trainers.cost import fingerprint, summary
from trainers.data import open_cifar10, stratified_split, stratified_subset
from trainers.recipe import Recipe, load_recipe
from trainers.session import Session

CHECKPOINT = "checkpoint.pt"
FORMAT = 1
DECAY = 0.1
EVALUATION_BATCH = 500
CHECK_FINITE_EVERY = 20


class Diverged(ArithmeticError):  # noqa: N818, the name says what happened
    """The training loss is not finite any more."""


def train(config: Config, session: Session) -> None:
    """Trains one configuration and reports after every epoch.

    The trial continues from `session.folder` if a checkpoint is there; one that is already at its
    end reports its last metrics again and returns.

    Args:
        config: a configuration of the NAS space.
        session: folder, seed, options (`{"recipe": "proxy", **overrides}`) and `report`.

    Raises:
        InvalidArchitecture: the configuration cannot be trained.
        Diverged: the loss is not finite any more.
    """
    training = Training(config, session)
    if training.is_finished:
        session.report(training.metrics)
        return
    with _scalars(session, training) as write:
        while not training.is_finished:
            training.run_epoch()
            write(training.metrics)
            session.report(training.metrics)


class Training:
    """The whole state of one trial: what a checkpoint holds, and the steps that change it.

    Attributes:
        step: number of optimiser steps done.
        metrics: of the last finished epoch.
    """

    def __init__(self, config: Config, session: Session) -> None:
        self.recipe = load_recipe(session.options)
        self.config = config
        session.folder.mkdir(parents=True, exist_ok=True)
        self.path = session.folder / CHECKPOINT
        self.identity = _identity(config, self.recipe, session.seed)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.set_num_threads(self.recipe.threads)
        torch.manual_seed(session.seed)
        self.generator = torch.Generator().manual_seed(session.seed)
        self.n_batches = _n_batches(config, self.recipe)
        self.network = _network(config, self.recipe, self.device)
        self.optimiser = _optimiser(self.network, self.recipe)
        self.train_set, self.validation_set, self.score_order = _pictures(self.recipe, self.device)
        # After a lack of memory the batch goes through in halves; batch-norm sees each half alone.
        self.n_parts = 2 ** int(getattr(session, "n_out_of_memory", 0))
        self.step = 0
        self.seconds = 0.0
        self.metrics: dict[str, float] = {}
        self._start_epoch()
        self._restore()
        self._saved_at = self._resumed_at = time.monotonic()

    @property
    def epoch(self) -> int:
        """Number of whole epochs done."""
        return self.step // self.n_batches

    @property
    def n_scored(self) -> int:
        """Number of epochs that have been trained and scored."""
        return int(self.metrics.get("epoch", 0))

    @property
    def is_finished(self) -> bool:
        """Whether the last epoch has been trained and scored."""
        return self.n_scored == self.recipe.epochs

    def run_epoch(self) -> None:
        """Trains the rest of the current epoch, scores it and stores everything."""
        while self.epoch == self.n_scored:
            self.run_step()
            if time.monotonic() - self._saved_at >= self.recipe.checkpoint_every_s:
                self.save()
        self._finish_epoch()

    def run_step(self) -> None:
        """One optimiser step on the next batch of the epoch's order."""
        size, position = int(self.config["batch_size"]), self.step % self.n_batches
        began = time.monotonic()
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate()
        chosen = self.order[position * size : (position + 1) * size]
        self.network.train()
        self.optimiser.zero_grad()
        for part in chosen.chunk(self.n_parts):
            images, labels = self.train_set.augmented(part, self.generator)
            loss = functional.cross_entropy(self.network(images), labels) * (len(part) / size)
            loss.backward()
            self.loss_sum += loss.detach()
        self.optimiser.step()
        self.step += 1
        self.epoch_seconds += time.monotonic() - began
        if self.step % CHECK_FINITE_EVERY == 0:
            self._check_finite()

    def learning_rate(self) -> float:
        """Of the next step: linear warm-up, one tenth after `step_size` per cent of all steps."""
        total = self.recipe.epochs * self.n_batches
        warmup = round(self.recipe.warmup_share * total)
        decay_every = max(1, round(int(self.config["step_size"]) / 100 * total))
        rise = min(1.0, (self.step + 1) / warmup) if warmup else 1.0
        return float(self.config["learning_rate"]) * rise * DECAY ** (self.step // decay_every)

    @torch.inference_mode()
    def evaluate(self, positions: Tensor) -> tuple[float, float]:
        """Accuracy and mean loss over validation pictures `(n,)`."""
        self.network.eval()
        right = torch.zeros((), device=self.device)
        loss = torch.zeros((), device=self.device)
        for part in positions.split(EVALUATION_BATCH):
            images, labels = self.validation_set.batch(part)
            logits = self.network(images)
            right += (logits.argmax(1) == labels).sum()
            loss += functional.cross_entropy(logits, labels, reduction="sum")
        return float(right) / len(positions), float(loss) / len(positions)

    def save(self) -> None:
        """Stores the whole state, unless it is already lost."""
        self._check_finite()
        self._add_time()
        state = {
            "identity": self.identity,
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "generator": self.generator.get_state(),
            "random": checkpoint.random_state(),
            "order": self.order,
            "loss_sum": self.loss_sum,
            "plain": {name: getattr(self, name) for name in PLAIN},
        }
        checkpoint.save(state, self.path)
        self._saved_at = time.monotonic()

    def _restore(self) -> None:
        state = checkpoint.load(self.path, self.identity)
        if state is None:
            return
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.generator.set_state(state["generator"])
        checkpoint.set_random_state(state["random"])
        self.order = state["order"]
        self.loss_sum = state["loss_sum"].to(self.device)
        for name in PLAIN:
            setattr(self, name, state["plain"][name])

    def _start_epoch(self) -> None:
        self.order = torch.randperm(len(self.train_set), generator=self.generator)
        self.loss_sum = torch.zeros((), device=self.device)
        self.epoch_seconds = 0.0

    def _finish_epoch(self) -> None:
        self._check_finite()
        last_rate = self.optimiser.param_groups[0]["lr"]
        is_last = self.epoch == self.recipe.epochs
        n_pictures = len(self.validation_set) if is_last else self.recipe.n_validation_early
        accuracy, loss = self.evaluate(self.score_order[:n_pictures])
        if not math.isfinite(loss):
            raise Diverged(f"the validation loss must be finite, got {loss} in epoch {self.epoch}")
        self._add_time()
        self.metrics = {
            "val_accuracy": accuracy,
            "val_loss": loss,
            "train_loss": float(self.loss_sum) / self.n_batches,
            "lr": last_rate,
            "images_per_second": self._images_per_epoch() / max(self.epoch_seconds, 1e-9),
            "epoch": self.epoch,
            "epochs": self.recipe.epochs,
            **_size(self.config, self.recipe),
            "seconds": self.seconds,
        }
        self._start_epoch()
        self.save()

    def _images_per_epoch(self) -> int:
        return self.n_batches * int(self.config["batch_size"])

    def _add_time(self) -> None:
        now = time.monotonic()
        self.seconds += now - self._resumed_at
        self._resumed_at = now

    def _check_finite(self) -> None:
        # The sum of the epoch keeps a NaN once it is there: one look now and then is enough, and a
        # GPU does not have to wait after every step.
        if not bool(torch.isfinite(self.loss_sum)):
            raise Diverged(
                f"the training loss must be finite, got {float(self.loss_sum)} "
                f"at step {self.step} (epoch {self.epoch + 1})"
            )


PLAIN = ("step", "seconds", "epoch_seconds", "metrics")


def _identity(config: Config, recipe: Recipe, seed: int) -> str:
    """What must be equal for a checkpoint to be continued; how it is run may differ."""
    same = {name: value for name, value in asdict(recipe).items() if name not in HOW_IT_IS_RUN}
    content = {"format": FORMAT, "fingerprint": fingerprint(config), "seed": seed, "recipe": same}
    return json.dumps(content, sort_keys=True)


HOW_IT_IS_RUN = ("threads", "checkpoint_every_s", "is_tensorboard", "data")


def _n_batches(config: Config, recipe: Recipe) -> int:
    """Whole batches per epoch; the rest is dropped, since a batch of one has no variance."""
    size = int(config["batch_size"])
    if size > recipe.n_train:
        raise InvalidArchitecture(
            f"batch_size must be at most n_train = {recipe.n_train}, got {size}"
        )
    return recipe.n_train // size


def _network(config: Config, recipe: Recipe, device: torch.device) -> nn.Module:
    network = build(config, recipe.width, image_size=recipe.image_size)
    return network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]


def _optimiser(network: nn.Module, recipe: Recipe) -> torch.optim.SGD:
    """SGD with Nesterov momentum; biases and normalisation do not decay."""
    decaying = [weight for weight in network.parameters() if weight.ndim > 1]
    others = [weight for weight in network.parameters() if weight.ndim <= 1]
    groups = [
        {"params": decaying, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.SGD(
        groups, lr=0.1, momentum=recipe.momentum, nesterov=recipe.momentum > 0, fused=True
    )


def _pictures(recipe: Recipe, device: torch.device) -> tuple[Pictures, Pictures, Tensor]:
    """Training set, validation set, and the order in which validation pictures are scored."""
    arrays = open_cifar10(recipe.data)
    rest, validation = stratified_split(arrays.train_y, recipe.n_validation, recipe.split_seed)
    train = rest[stratified_subset(arrays.train_y[rest], recipe.n_train, recipe.split_seed)]
    padding = recipe.crop_padding * recipe.image_size // 32
    sets = [
        Pictures(
            shrink(torch.from_numpy(arrays.train_x[chosen]), recipe.image_size),
            torch.from_numpy(arrays.train_y[chosen]),
            border,
            device,
        )
        for chosen, border in ((train, padding), (validation, 0))
    ]
    later, early = stratified_split(
        arrays.train_y[validation], recipe.n_validation_early, recipe.split_seed
    )
    return sets[0], sets[1], torch.cat([torch.from_numpy(early), torch.from_numpy(later)])


def _size(config: Config, recipe: Recipe) -> dict[str, float]:
    whole = summary(config, recipe.width, image_size=recipe.image_size)
    return {"params": whole["params"], "flops": whole["flops"]}


@contextmanager
def _scalars(session: Session, training: Training) -> Iterator[Callable[[dict[str, float]], None]]:
    """A function that writes an epoch's metrics for TensorBoard, or does nothing if not wanted."""
    if not training.recipe.is_tensorboard:
        yield lambda metrics: None
        return
    # Imported here: it takes a second that the checks of a configuration need not wait for.
    from torch.utils.tensorboard.writer import SummaryWriter

    writer = SummaryWriter(str(session.folder), purge_step=training.n_scored + 1)
    try:
        yield lambda metrics: _write(writer, metrics)
    finally:
        writer.close()


def _write(writer: Any, metrics: dict[str, float]) -> None:
    for name, value in metrics.items():
        writer.add_scalar(name, value, int(metrics["epoch"]))
