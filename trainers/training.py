"""State and steps of the training of one trial."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainers import checkpoint
from trainers.architecture import Config, check_batch
from trainers.augment import Draws, Pictures, mixed
from trainers.average import AveragedNetwork
from trainers.dataset import open_dataset
from trainers.device import pick_device, pick_precision, set_up
from trainers.families import BLOCKS, Family
from trainers.memory import check_memory
from trainers.optimiser import make_optimiser
from trainers.ranks import ONE_RANK, Group
from trainers.recipe import Recipe, load_recipe
from trainers.schedule import learning_rate
from trainers.session import Session
from trainers.statistics import PacedStatistics

T = TypeVar("T")
CHECKPOINT = "checkpoint.pt"
FORMAT = 2
EVALUATION_BATCH = 500
CHECK_FINITE_EVERY = 20
PLAIN = ("step", "seconds", "cpu_seconds", "epoch_seconds", "metrics")
HOW_IT_IS_RUN = (
    "threads", "ranks", "compile", "checkpoint_every_s", "checkpoint_every_epochs",
    "is_tensorboard", "data", "save", "seed",
)  # fmt: skip


class Diverged(ArithmeticError):  # noqa: N818, the name says what happened
    """The training loss is not finite any more."""


class Training:
    """Training of one trial: the state that a checkpoint holds, and the steps that change it.

    Attributes:
        step: number of optimiser steps done.
        metrics: of the last finished epoch.
        is_stored: whether the checkpoint is from the end of the last finished epoch, or later.

    Args:
        config: a configuration of the family's networks.
        session: folder, seed and options.
        group: the processes that share the trial's batches, and the place of this one.
        family: of networks.
    """

    def __init__(
        self,
        config: Config,
        session: Session,
        group: Group = ONE_RANK,
        family: Family = BLOCKS,
    ) -> None:
        self.family, self.config = family, family.complete(config)
        self.group, self.until = group, session.until
        self.recipe = load_recipe(session.options)
        self.device = pick_device(group.rank)
        self.kind = pick_precision(self.recipe, self.device)
        set_up(self.recipe)
        self.data = open_dataset(self.recipe, self.device)
        self.seed = _training_seed(self.recipe.seed, session.seed)
        # After an out-of-memory error a batch is split in halves; batch norm sees each half alone.
        self.n_parts = 2**session.n_out_of_memory
        self.n_batches = _n_batches(self.config, len(self.data.train), group.n * self.n_parts)
        described = self._described(family.summary)
        n_at_once = self._n_at_once()
        self.memory = check_memory(described, self.recipe, n_at_once, self.device, self.kind)
        session.folder.mkdir(parents=True, exist_ok=True)
        self.path = session.folder / CHECKPOINT
        self.identity = _identity(
            family.fingerprint(config), self.recipe, self.seed, self.data.facts
        )
        self._make_network()
        self.generator = torch.Generator().manual_seed(self.seed)
        self.step = 0
        self.seconds = self.cpu_seconds = 0.0
        self.metrics: dict[str, Any] = {}
        self.is_stored = False
        self.start_epoch()
        self._restore()
        self._saved_at = self._resumed_at = time.monotonic()
        self._cpu_at = time.process_time()

    def _make_network(self) -> None:
        torch.manual_seed(self.seed)
        recipe = self.recipe
        network = self._described(self.family.build)
        kind = torch.float64 if self.kind == torch.float64 else torch.float32
        self.network = network.to(self.device, kind, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimiser = make_optimiser(self.network, recipe, self.config)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.kind == torch.float16)
        self.average = AveragedNetwork(self.network, recipe.ema_decay) if recipe.ema_decay else None
        self.statistics = PacedStatistics(self.network, self.n_parts)
        compiled: nn.Module = torch.compile(self.network) if recipe.compile else self.network  # type: ignore[assignment]
        self.forward = self.group.shared(compiled)

    def _described(self, function: Callable[[Config, float, int, int], T]) -> T:
        """What a function of the family says of this trial's network."""
        n_classes, recipe = len(self.data.classes), self.recipe
        return function(self.config, recipe.width, n_classes, recipe.image_size)

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

    @property
    def is_where_it_ends(self) -> bool:
        """Whether no training is left to do now: the trial is finished, or where it is to pause."""
        return self.is_finished or (self.until is not None and self.n_scored >= self.until)

    @property
    def final_network(self) -> nn.Module:
        """The network that is scored and saved: the averaged one if there is one."""
        return self.network if self.average is None else self.average.network

    def run_epoch(self) -> None:
        """Train the rest of the current epoch, score it and store whatever is due."""
        while self.epoch == self.n_scored:
            self.run_step()
            if time.monotonic() - self._saved_at >= self.recipe.checkpoint_every_s:
                self.save()
        self._finish_epoch()

    def run_step(self) -> None:
        """One optimiser step on the next batch of the epoch's order."""
        began = time.monotonic()
        size = int(self.config["batch_size"])
        rate = self.learning_rate()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        draws, mix = self.plan.batch(self.step % self.n_batches, size)
        self.network.train()
        self.optimiser.zero_grad()
        self._accumulate(draws.part(*self.group.share(size)), mix)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.step += 1
        if self.average is not None:
            self.average.update(self.step)
        if self.step % CHECK_FINITE_EVERY == 0:
            self._check_finite()
        self.epoch_seconds += time.monotonic() - began

    def _accumulate(self, draws: Draws, mix: float) -> None:
        """Add up the gradients of this rank's images, in as many parts as memory requires."""
        n, size = len(draws.positions), int(self.config["batch_size"])
        for index in range(self.n_parts):
            start, stop = n * index // self.n_parts, n * (index + 1) // self.n_parts
            images, labels = self.data.train.augmented(draws.part(start, stop))
            is_last = index == self.n_parts - 1
            self.statistics.start_part(index)
            with self.group.synchronised(self.forward, is_last), self._autocast():
                # Ranks are averaged, parts are summed: either way all images have the same weight.
                weight = (stop - start) * self.group.n / size
                loss = self._loss(images, labels, mix) * weight
            self.scaler.scale(loss).backward()
            self.loss_sum += loss.detach() / self.group.n

    def _loss(self, images: Tensor, labels: Tensor, mix: float) -> Tensor:
        if self.kind == torch.float64:
            images = images.double()
        smoothing = self.recipe.label_smoothing
        if mix == 1.0:
            return functional.cross_entropy(
                self._logits(images, labels), labels, label_smoothing=smoothing
            )
        images, others = mixed(images, labels, mix)
        logits = self._logits(images, labels)
        own = functional.cross_entropy(logits, labels, label_smoothing=smoothing)
        return own * mix + functional.cross_entropy(logits, others, label_smoothing=smoothing) * (
            1.0 - mix
        )

    def _logits(self, images: Tensor, labels: Tensor) -> Tensor:
        logits: Tensor = self.forward(images).float() if self._is_reduced else self.forward(images)
        self.n_right += (logits.detach().argmax(1) == labels).sum()
        return logits

    @property
    def _is_reduced(self) -> bool:
        return self.kind in (torch.float16, torch.bfloat16)

    def _autocast(self) -> AbstractContextManager[Any]:
        if not self._is_reduced:
            return nullcontext()
        return torch.autocast(self.device.type, self.kind)

    def learning_rate(self) -> float:
        """Learning rate of the next step."""
        total = self.recipe.epochs * self.n_batches
        return learning_rate(self.config, self.recipe, self.step, total)

    @torch.inference_mode()
    def evaluate(self, pictures: Pictures, positions: Tensor) -> tuple[float, float]:
        """Accuracy and mean loss over images `(n,)`."""
        network = self.final_network.eval()
        right = torch.zeros((), device=self.device, dtype=torch.long)
        loss = torch.zeros((), device=self.device, dtype=torch.float64)
        for part in positions.split(EVALUATION_BATCH):
            images, labels = pictures.batch(part)
            images = images.double() if self.kind == torch.float64 else images
            with self._autocast():
                logits = network(images)
            right += (logits.argmax(1) == labels).sum()
            logits = logits.float() if self._is_reduced else logits
            loss += functional.cross_entropy(logits, labels, reduction="sum")
        return float(right) / len(positions), float(loss) / len(positions)

    def save(self) -> None:
        """Store the whole state, unless it has diverged; rank 0 stores it for all ranks."""
        self._check_finite()
        self._add_time()
        self._saved_at = time.monotonic()
        if self.group.rank > 0:
            return
        state = {
            "identity": self.identity,
            "network": self.network.state_dict(),
            "average": None if self.average is None else self.average.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "scaler": self.scaler.state_dict(),
            # From this state the order and all random draws of the epoch can be drawn again.
            "generator": self.epoch_began,
            "random": checkpoint.random_state(),
            "sums": (self.loss_sum, self.n_right),
            "plain": {name: getattr(self, name) for name in PLAIN},
        }
        checkpoint.save(state, self.path)
        self._saved_at = time.monotonic()

    def _restore(self) -> None:
        state = checkpoint.load(self.path, self.identity)
        if state is None:
            return
        self.network.load_state_dict(state["network"])
        if self.average is not None:
            self.average.network.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        if state["scaler"]:  # empty if the data type needs no scaler
            self.scaler.load_state_dict(state["scaler"])
        self.generator.set_state(state["generator"])
        self.start_epoch()
        self.loss_sum, self.n_right = (value.to(self.device) for value in state["sums"])
        checkpoint.set_random_state(state["random"])
        for name in PLAIN:
            setattr(self, name, state["plain"][name])

    def start_epoch(self) -> None:
        """Draw the order of the next epoch and all its random numbers."""
        self.epoch_began = self.generator.get_state()
        self.plan = self.data.train.plan(int(self.config["batch_size"]), self.generator)
        self.loss_sum = torch.zeros((), device=self.device, dtype=torch.float64)
        self.n_right = torch.zeros((), device=self.device, dtype=torch.long)
        self.epoch_seconds = 0.0

    def _finish_epoch(self) -> None:
        began = time.monotonic()
        self._check_finite()  # waits for the GPU
        self.epoch_seconds += time.monotonic() - began
        self.group.average_buffers(self.network)
        if self.average is not None:
            self.group.average_buffers(self.average.network)
        n_pictures = self.n_batches * int(self.config["batch_size"])
        scores = self._scores() if self.group.rank == 0 else {}
        self._add_time()
        self.metrics = {
            **scores,
            "train_loss": self.group.total(self.loss_sum) / self.n_batches,
            "train_accuracy": self.group.total(self.n_right) / n_pictures,
            "lr": self.optimiser.param_groups[0]["lr"],
            "images_per_second": n_pictures / max(self.epoch_seconds, 1e-9),
            "epoch": self.epoch,
            "epochs": self.recipe.epochs,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            **self._described(self.family.sizes),
            **(self.facts() if self.epoch == self.recipe.epochs else {}),
        }
        self.start_epoch()
        every = self.recipe.checkpoint_every_epochs
        self.is_stored = self.is_finished or (every > 0 and self.epoch % every == 0)
        if self.is_stored:
            self.save()

    def _scores(self) -> dict[str, float]:
        """Validation in every epoch; the test set at the end, if the recipe asks for it.

        All validation images are used where results are compared: at the end, and at a pause.
        """
        is_last = self.epoch == self.recipe.epochs
        is_compared = is_last or self.epoch == self.until
        found: dict[str, float] = {}
        if self.data.validation is not None and len(self.data.validation):
            n = len(self.data.score_order) if is_compared else self.data.n_early
            found |= self._score("val", self.data.validation, self.data.score_order[:n])
        if self.data.test is not None and (is_last or self.recipe.objective == "test"):
            found |= self._score("test", self.data.test, torch.arange(len(self.data.test)))
        return found

    def _score(self, name: str, pictures: Pictures, positions: Tensor) -> dict[str, float]:
        accuracy, loss = self.evaluate(pictures, positions)
        if not math.isfinite(loss):
            words = {"val": "validation", "test": "test"}[name]
            raise Diverged(f"the {words} loss must be finite, got {loss} in epoch {self.epoch}")
        return {f"{name}_accuracy": accuracy, f"{name}_loss": loss}

    def facts(self) -> dict[str, Any]:
        """Facts about how a result was made."""
        return {
            **self.data.facts,
            "train_on": self.recipe.train_on,
            "objective": self.recipe.objective,
            "trial_seed": self.seed,
            "batch_norm": self.group.batch_norm(self.n_parts),
            "n_ranks": self.group.n,
            "precision": str(self.kind).removeprefix("torch."),
            "device": self.device.type,
            "predicted_memory": self.memory,
        }

    def _n_at_once(self) -> int:
        return math.ceil(int(self.config["batch_size"]) / (self.group.n * self.n_parts))

    def _add_time(self) -> None:
        now, cpu_now = time.monotonic(), time.process_time()
        self.seconds += now - self._resumed_at
        self.cpu_seconds += cpu_now - self._cpu_at
        self._resumed_at, self._cpu_at = now, cpu_now

    def _check_finite(self) -> None:
        # A NaN stays in the sum of the epoch: a check every few steps is enough, and a GPU does not
        # have to wait after every step.
        if not bool(torch.isfinite(self.loss_sum)):
            raise Diverged(
                f"the training loss must be finite, got {float(self.loss_sum)} "
                f"at step {self.step} (epoch {self.epoch + 1})"
            )


def _training_seed(option: int | None, own: int) -> int:
    """The trial's own seed; with the option `seed` another one, which
    still differs between trials.
    """
    if option is None:
        return own
    return int(hashlib.sha256(f"{option}/{own}".encode()).hexdigest()[:8], 16)


def _identity(fingerprint: str, recipe: Recipe, seed: int, facts: dict[str, Any]) -> str:
    """What must be equal for a checkpoint to be continued; how it is run may differ."""
    same = {name: value for name, value in asdict(recipe).items() if name not in HOW_IT_IS_RUN}
    content = {"format": FORMAT, "fingerprint": fingerprint, "seed": seed, "recipe": same}
    return json.dumps({**content, "data": facts}, sort_keys=True)


def _n_batches(config: Config, n_train: int, n_parts: int) -> int:
    """Whole batches per epoch; the remainder is dropped, since a batch of one has no variance."""
    check_batch(config, n_train, n_parts)
    return n_train // int(config["batch_size"])
