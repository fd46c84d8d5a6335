"""Trainers for the tests: the simulation function of Jenatton et al., and failures."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from typing import Any

OFFSETS = {(0, 0): 0.1, (0, 1): 0.2, (1, 0): 0.3, (1, 1): 0.4}


def simulation(config: dict[str, Any]) -> float:
    """Optimum 0.1 at x1 = 0, x2 = 0, x4 = 0, r8 = 0."""
    if config["x1"] == 0:
        choice, r = config["x2"], config["r8"]
        x = config["x4"] if choice == 0 else config["x5"]
    else:
        choice, r = config["x3"], config["r9"]
        x = config["x6"] if choice == 0 else config["x7"]
    return float(x**2 + OFFSETS[config["x1"], choice] + r)


def pause(config: dict[str, Any]) -> float:
    """Sleeps long enough for both slots to have work."""
    time.sleep(0.3)
    return simulation(config)


def always(config: dict[str, Any]) -> float:
    """A value for any config."""
    return 1.0


def checkpointed(config: dict[str, Any], session: Any) -> None:
    """Four slow steps; a restart continues after the last saved step."""
    file = session.folder / "state.json"
    done = json.loads(file.read_text()) if file.exists() else 0
    with (session.folder / "steps.txt").open("a") as log:
        for step in range(done, 4):
            time.sleep(0.15)
            log.write(f"{step}\n")
            log.flush()
            file.write_text(json.dumps(step + 1))
            session.report({"loss": simulation(config) + (3 - step)})
    if done == 4:
        session.report({"loss": simulation(config)})


def quick_or_slow(config: dict[str, Any], session: Any) -> dict[str, float]:
    """Writes a file; a slow one reports each second."""
    for _ in range(5 if config["kind"] == "slow" else 0):
        time.sleep(1)
        session.report({"loss": 1.0})
    (session.folder / "weights.bin").write_text(config["kind"])
    return {"loss": 0.5}


def returning(config: dict[str, Any], session: Any) -> float | None:
    """Reports or not, then writes a file; returns the value only if it has not reported it."""
    if config["kind"] == "report":
        session.report({"loss": 1.0})
    (session.folder / "weights.bin").write_text(config["kind"])
    return None if config["kind"] == "report" else 1.0


def endings(config: dict[str, Any], session: Any) -> dict[str, float] | None:
    """Ends in the way that the config names."""
    kind = config["kind"]
    if kind == "nan":
        return {"loss": float("nan")}
    if kind == "zero_division":
        raise ZeroDivisionError("the loss is not finite")
    if kind == "oom":
        raise MemoryError("out of memory")
    if kind == "crash":
        raise ValueError("a bug of the user")
    if kind == "silent":
        return None
    if kind == "other_metric":
        time.sleep(2)  # after a result with the metric: without one the sweep would end
        return {"accuracy": 1.0}
    return {"loss": 0.5, "size": 3.0}


def faults(config: dict[str, Any], session: Any) -> float:
    """Fails in the way that the config names, once or always; logs each attempt."""
    kind = config["kind"]
    with (session.folder / "attempts.txt").open("a") as log:
        log.write(f"{session.n_out_of_memory}\n")
    n_attempts = len((session.folder / "attempts.txt").read_text().split())
    (session.folder / "checkpoint.pt").write_text(kind)
    if kind.endswith("once") and n_attempts > 1:
        return float(config["x"])
    if kind.startswith("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    if kind.startswith("hung"):
        time.sleep(600)
    if kind.startswith("full_disk"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if kind.startswith("oom"):
        raise MemoryError("out of memory")
    if kind.startswith("crash"):
        raise ValueError("a bug of the user")
    return float(config["x"])
