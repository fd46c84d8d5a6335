"""Cause of a trial's death, from Ray's error and the trial's folder."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import ray

from nasbo.trainer import STORAGE_ERRORS
from nasbo.tune.trial import TIMEOUT_FILE, WORKER_FILE

LAST_TIMEOUT_FILE = "last_timeout.txt"
_LOST = (
    "its node has died",
    "NodeDiedError",
    "ActorUnavailableError",
    "all references to the actor were removed",
    "preempted",
    "owner died",
    "ActorUnschedulableError",
    "RpcError",
)

_KILLED = ("ActorDiedError", "actor died", "worker process has died", "WorkerCrashedError")

_STORAGE = tuple(os.strerror(number) for number in STORAGE_ERRORS)


def is_storage_error(text: str) -> bool:
    """Whether a message is about a disk that is full, read-only or gone."""
    return any(words in text for words in _STORAGE)


def cause_of_loss(error_text: str, folder: Path) -> str:
    """Cause of a trial's death: ``lost`` (the machine), ``timeout``, ``oom``,
    ``killed`` or ``crashed``.

    The watchdog's traceback is moved away, as it does not belong to the next attempt.

    Args:
        error_text: Ray's error.
        folder: of the trial, with the node where it ran and the watchdog's traceback.
    """
    timeout = folder / TIMEOUT_FILE
    if timeout.exists() and timeout.stat().st_size:
        with suppress(OSError):  # the next attempt also removes it
            timeout.replace(folder / LAST_TIMEOUT_FILE)
        return "timeout"
    if is_storage_error(error_text) or any(mark in error_text for mark in _LOST):
        return "lost"
    if _node_is_gone(folder):
        return "lost"
    if "OutOfMemoryError" in error_text:
        return "oom"
    return "killed" if any(mark in error_text for mark in _KILLED) else "crashed"


def _node_is_gone(folder: Path) -> bool:
    try:
        node = json.loads((folder / WORKER_FILE).read_text(encoding="utf-8"))["node"]
    except (OSError, ValueError, KeyError):
        return False
    return node not in {item["NodeID"] for item in ray.nodes() if item["Alive"]}
