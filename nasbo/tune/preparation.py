"""Preparation of a trainer's data, once per node."""

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
    """A trainer's data could not be prepared on a node: not the config's fault."""

    cause = DATA


def prepare_node(trainer: Trainer, options: Mapping[str, Any]) -> None:
    """Call the trainer's ``prepare``, if any, before the first trial of this process.

    The first worker of a node does the work while the others wait for a file lock. They then call
    it again, as ``prepare`` must be quick if everything exists.

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
        fcntl.flock(handle, fcntl.LOCK_EX)  # released when the process ends, even if it is killed
        yield
    finally:
        os.close(handle)
