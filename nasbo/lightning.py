"""Callback for Lightning: reports, checkpoints and restarts of a trial.

Needs ``pip install 'nasbo[lightning]'``.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint

if TYPE_CHECKING:
    from nasbo.trainer import Session

__all__ = ["Report"]

CHECKPOINT = "checkpoint.ckpt"


class Report(Checkpoint):
    """Tells the sweep each epoch with a validation, and keeps the trial's checkpoint.

    It takes the place of Lightning's own ``ModelCheckpoint``. After each epoch that has validated
    (after each one, where there is nothing to validate) the whole state goes to the trial's folder,
    the metrics go to the session, and the fit ends where the session says so: the trial pauses at a
    rung, or was stopped. ``ckpt_path=report.checkpoint`` goes on from there; random generators are
    where they were, so that a restart on a CPU ends with the same bits::

        def train(config, session):
            lightning.seed_everything(session.seed)
            report = Report(session)
            trainer = Trainer(max_epochs=10, callbacks=[report], logger=False)
            trainer.fit(Network(config), data, ckpt_path=report.checkpoint)

    Args:
        session: of the trial.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._epoch = 0
        self._metrics: dict[str, float] = {}

    @property
    def path(self) -> Path:
        """Where the checkpoint is, or will be."""
        return self._session.folder / CHECKPOINT

    @property
    def checkpoint(self) -> str | None:
        """The trial's checkpoint, for ``ckpt_path``; ``None`` if it begins."""
        return str(self.path) if self.path.exists() else None

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Say it again where nothing is left to train: it was killed before anybody heard."""
        if not self._epoch:
            return
        until, whole = self._session.until, trainer.max_epochs
        is_paused = until is not None and self._epoch >= until
        if is_paused or (whole is not None and 0 <= whole <= self._epoch):
            self._tell(trainer)
            trainer.should_stop = True

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save and report, behind the last validation of the epoch and all that it logged."""
        epoch = trainer.current_epoch + 1
        if trainer.enable_validation and epoch % (trainer.check_val_every_n_epoch or 1):
            return
        self._epoch = epoch
        self._metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        self._save(trainer)
        self._tell(trainer)

    def state_dict(self) -> dict[str, Any]:
        """What the checkpoint has of this callback."""
        version, numbers, gauss = random.getstate()
        name, keys, *rest = np.random.get_state()
        return {
            "epoch": self._epoch,
            "metrics": self._metrics,
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "python": (version, list(numbers), gauss),
            "numpy": (str(name), [int(key) for key in keys], *[float(one) for one in rest]),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Put the random generators back; Lightning calls it before it opens the data."""
        self._epoch, self._metrics = state_dict["epoch"], state_dict["metrics"]
        torch.set_rng_state(state_dict["torch"])
        if torch.cuda.is_available() and state_dict["cuda"]:
            torch.cuda.set_rng_state_all(state_dict["cuda"])
        version, numbers, gauss = state_dict["python"]
        random.setstate((version, tuple(numbers), gauss))
        name, keys, position, has_gauss, cached = state_dict["numpy"]
        state = (name, np.array(keys, np.uint32), int(position), int(has_gauss), cached)
        np.random.set_state(state)

    def _save(self, trainer: Trainer) -> None:
        """Write beside, then replace: a crash leaves the old file or the new one."""
        fresh = self.path.with_suffix(".new")
        trainer.save_checkpoint(fresh)  # waits for all ranks
        if trainer.is_global_zero:
            os.replace(fresh, self.path)

    def _tell(self, trainer: Trainer) -> None:
        """Report on the first rank; all of them end together."""
        goes_on = True
        if trainer.is_global_zero:
            goes_on = self._session.report(dict(self._metrics), step=self._epoch)
        if not trainer.strategy.broadcast(goes_on):
            trainer.should_stop = True
