"""Trainer that goes on from its checkpoint, and says nothing if there is nothing left to train."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

RESUMES = True


def train(config: dict[str, Any], session: Any) -> None:
    """Three steps; its process is killed once, between the last checkpoint and its report."""
    file, once = session.folder / "checkpoint.txt", session.folder / "killed.txt"
    done = int(file.read_text()) if file.exists() else 0
    for step in range(done + 1, 4):
        file.write_text(str(step))
        print("step", step)
        if step == 3 and not once.exists():
            once.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        session.report({"loss": config["x"] + 1 / step}, step=step)


def talkative(config: dict[str, Any], session: Any) -> float:
    """Prints a word and a bar."""
    print("a word")
    sys.stderr.write("\r 10 %")
    sys.stderr.write("\r100 %")
    return 1.0


def quiet(config: dict[str, Any]) -> float:
    return 1.0


def silent(config: dict[str, Any], session: Any) -> None:
    """Writes a checkpoint, and never says anything."""
    (session.folder / "checkpoint.txt").write_text("3")
