"""A trainer comes in; its data are made ready on this node, once, however many workers ask."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nasbo.trainer import DATA, Trainer

_PREPARED: set[str] = set()


class PreparationError(RuntimeError):
    """The data of a trainer could not be made ready on a node: no fault of the config."""

    cause = DATA


def prepare_node(trainer: Trainer, options: Mapping[str, Any]) -> None:
    """Call the trainer's ``prepare``, if it has one, before the first trial of this process.

    The first worker of a node does the work while the others wait for the lock; they then find it
    done, as ``prepare`` must be quick where everything is there.

    Raises:
        PreparationError: whatever ``prepare`` raised, with this node's name.
    """
    if trainer.prepare is None or trainer.path in _PREPARED:
        return
    with _node_lock(trainer.path):
        try:
            trainer.prepare(options)
        except Exception as error:  # a user's function may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise PreparationError(f"{trainer.path} on {socket.gethostname()}: {reason}") from error
    _PREPARED.add(trainer.path)


@contextmanager
def _node_lock(name: str) -> Iterator[None]:
    safe = "".join(letter if letter.isalnum() else "-" for letter in name)
    file = Path(tempfile.gettempdir()) / f"nasbo-{os.getuid()}-{safe}.lock"
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # ends with the process, whatever becomes of it
        yield
    finally:
        os.close(handle)
