"""Training of one configuration, with one report per epoch."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainers import checkpoint
from trainers.architecture import Config
from trainers.dataset import check_recipe
from trainers.device import n_ranks, pick_device, release
from trainers.families import Family, family_of
from trainers.ranks import Group, launch
from trainers.recipe import load_recipe
from trainers.session import Session
from trainers.training import CHECKPOINT, Diverged, Training

__all__ = ["CHECKPOINT", "Diverged", "Training", "check_options", "train", "train_network"]


def train(config: Config, session: Session) -> None:
    """Train one configuration and report after every epoch.

    The trial continues from the checkpoint in `session.folder`, if there is one. A trial that is
    already at its end, or where it is to pause, reports its last metrics again and returns. A trial
    that is told to stop writes its checkpoint and returns.

    The metrics are `train_loss`, `train_accuracy`, size and speed, and `val_accuracy`
    and `val_loss` unless all images are trained on. The last report also has
    `test_accuracy` and `test_loss`, if the recipe asks for them, and the facts about the
    data, the seed and the precision.

    Args:
        config: a configuration of `nas_cifar10`, `nas_cifar10_conditional` or `mnasnet`.
        session: folder, seed, options (`{"recipe": "proxy", **overrides}`) and `report`.

    Raises:
        InvalidArchitecture: the configuration cannot be trained.
        InvalidOption: an option is unknown or out of range.
        Diverged: the loss is not finite any more.
        PredictedOutOfMemory: the device has too little memory.
    """
    train_network(config, session, family_of(config))


def train_network(config: Config, session: Session, family: Family) -> None:
    """The same for a network of any family."""
    recipe = load_recipe(session.options)
    try:
        with launch(n_ranks(recipe), config, session, family.name) as group:
            _train(Training(config, session, group, family), session, group)
    except BaseException as error:
        _forget(error)
        raise
    finally:
        release(pick_device())


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `InvalidOption` or `DataError` for options that no trial could be trained with."""
    check_recipe(load_recipe(options))


def _forget(error: BaseException | None) -> None:
    """Release what the frames of an error hold: the network, its gradients and the images."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _train(training: Training, session: Session, group: Group) -> None:
    n_left = training.recipe.epochs - training.n_scored
    if training.is_where_it_ends:
        _report(training, session)
        return
    with _scalars(session, training) as write:
        for _ in range(n_left):
            training.run_epoch()
            write(training.metrics)
            if not group.agree(_report(training, session)):
                if not training.is_stored:
                    training.save()
                return


def _report(training: Training, session: Session) -> bool:
    if training.is_finished and training.recipe.save is not None:
        _save_weights(training, session.folder / training.recipe.save)
    return session.report(training.metrics, step=training.n_scored)


def _save_weights(training: Training, path: Path) -> None:
    """Write the final weights, with all that is needed to build and use the network again."""
    recipe = training.recipe
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = training.final_network.state_dict()
    content = {
        "weights": {name: value.cpu() for name, value in weights.items()},
        "family": training.family.name,
        "config": dict(training.config),
        "width": recipe.width,
        "image_size": recipe.image_size,
        "classes": list(training.data.classes),
        "scale": training.data.scale,
        "metrics": training.metrics,
    }
    checkpoint.save(content, path)


@contextmanager
def _scalars(session: Session, training: Training) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that writes an epoch's metrics for TensorBoard, or does nothing if not wanted."""
    if not training.recipe.is_tensorboard:
        yield lambda metrics: None
        return
    # Imported here: it takes a second, which checks of a configuration need not spend.
    from torch.utils.tensorboard.writer import SummaryWriter

    writer = SummaryWriter(str(session.folder), purge_step=training.n_scored + 1)
    try:
        yield lambda metrics: _write(writer, metrics)
    finally:
        writer.close()


def _write(writer: Any, metrics: dict[str, Any]) -> None:
    for name, value in metrics.items():
        if isinstance(value, int | float):
            writer.add_scalar(name, value, int(metrics["epoch"]))
