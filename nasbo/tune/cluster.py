"""A sweep's settings come in; a connection to Ray, and how many trials it can hold, go out."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ray

from nasbo.errors import SweepError
from nasbo.sweep import Sweep

REFRESH_S = 2.0
_ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_WARN_THRESHOLD_S": "5",
}


@contextmanager
def connect(sweep: Sweep) -> Iterator[None]:
    """Join the cluster at the sweep's address, or start Ray on this machine.

    A Ray that is already running in this process is used as it is and left running.
    """
    _quieten()
    if ray.is_initialized():
        yield
        return
    address = sweep.address or os.environ.get("RAY_ADDRESS") or "local"
    try:
        ray.init(
            address=address,
            num_cpus=_local_cpus(sweep) if address == "local" else None,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise SweepError(f"no Ray at {address}: {error}") from error
    _protect_token()
    try:
        _check_resources(sweep)
        yield
    finally:
        ray.shutdown()


def _quieten() -> None:
    """Leave the words to nasbo's own display, and the state to its journal."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in ("ray.tune.tune", "ray.tune.execution.tune_controller"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _local_cpus(sweep: Sweep) -> int:
    """All cores, or more if the sweep asks for more slots than there are."""
    cores = os.cpu_count() or 1
    asked = sweep.slots * sweep.cpus_per_trial if isinstance(sweep.slots, int) else 0
    return max(cores, int(-(-asked // 1)))


def _protect_token() -> None:
    """Ray writes its token readable for everybody."""
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", Path.home() / ".ray" / "auth_token"))
    if token.is_file() and token.stat().st_uid == os.getuid():
        token.chmod(0o600)


def _check_resources(sweep: Sweep) -> None:
    have = ray.cluster_resources()
    if sweep.gpus_per_trial and have.get("GPU", 0) < sweep.gpus_per_trial and not sweep.address:
        raise SweepError(
            f"a trial needs {sweep.gpus_per_trial:g} GPU, this machine has {have.get('GPU', 0):g}"
        )


class Capacity:
    """How many trials run at once: a fixed number, or what the cluster holds just now."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._known = 0
        self._read_at = -REFRESH_S

    def slots(self) -> int:
        if isinstance(self._sweep.slots, int):
            return self._sweep.slots
        if time.monotonic() - self._read_at >= REFRESH_S:
            self._known = self._count()
            self._read_at = time.monotonic()
        return self._known

    def _count(self) -> int:
        """Trials that fit, node by node: a trial does not span nodes."""
        needs = {"CPU": self._sweep.cpus_per_trial, "GPU": self._sweep.gpus_per_trial}
        total = 0
        for node in ray.nodes():
            if node["Alive"]:
                have = node["Resources"]
                fits = (have.get(name, 0) // need for name, need in needs.items() if need)
                total += int(min(fits))
        return total
