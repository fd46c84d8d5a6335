"""A sweep's settings come in; a connection to Ray, and how many trials it can hold, go out."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray.job_config import JobConfig

from nasbo.errors import ClusterError, SweepError
from nasbo.sweeps.checks import cluster_of, local_cpus
from nasbo.sweeps.settings import Sweep
from nasbo.tune.door import opened
from nasbo.tune.nodes import NodeCheck, alive_nodes, check_nodes, room
from nasbo.tune.shipping import is_local_code, runtime_env
from nasbo.tune.token import on_loopback, protect_token, require_token, token_file

JOB_VARIABLE = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Ray sets it in the driver of a job, whose code was shipped when it was submitted."""
REFRESH_S = 2.0
_ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    # Tune's warning about a cluster that is too small breaks off a run that has no trial yet.
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S": "inf",
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S_AUTOSCALER": "inf",
    "TUNE_WARN_THRESHOLD_S": "5",
}


@contextmanager
def connect(sweep: Sweep, metadata: Mapping[str, str] | None = None) -> Iterator[str]:
    """Join the cluster at the sweep's address, or start Ray on this machine.

    A Ray that is already running in this process is used as it is and left running. What is given
    to the block is how to reach Ray's dashboard, or "" where that is not known. A trainer that
    lies in the working folder is shipped to every node of a cluster.

    Args:
        sweep: its address, slots and resources are used.
        metadata: what Ray's list of jobs is to say of this one.
    """
    quieten()
    if ray.is_initialized():
        yield ""
        return
    address = cluster_of(sweep) or "local"
    with opened(address):
        context = _init(sweep, address, JobConfig(metadata=dict(metadata or {})))
        protect_token()
        try:
            _check_resources(sweep)
            check_nodes()
            yield dashboard_words(context.dashboard_url or "", address)
        finally:
            ray.shutdown()


def _init(sweep: Sweep, address: str, job: JobConfig) -> Any:
    try:
        return _connect(sweep, address, job)
    except Exception as error:  # Ray has no class of its own for a start that took too long
        raise ClusterError(f"no Ray at {address}: {error}") from error


def _connect(sweep: Sweep, address: str, job: JobConfig) -> Any:
    """A Ray of this machine alone is for its user alone; a cluster says itself whom it serves."""
    words = {"job_config": job, "logging_level": logging.ERROR, "log_to_driver": False}
    if address != "local":
        return ray.init(address=address, runtime_env=_shipped(sweep), **words)
    require_token()
    with on_loopback():
        return ray.init(address="local", **_local_settings(sweep), **words)


def dashboard_words(url: str, address: str) -> str:
    """How to reach the dashboard, from here and by ssh.

    Args:
        url: ``127.0.0.1:8265`` as Ray tells it; "" if there is no dashboard.
        address: of the cluster, or ``local``.
    """
    host, _, port = url.rpartition(":")
    if not port.isdigit():
        return ""
    head = socket.gethostname() if address in ("local", "auto") else _host_of(address)
    token = token_file()
    lines = [f"dashboard: http://{url}" + (f" (token: {token})" if token.is_file() else "")]
    if host in ("127.0.0.1", "localhost"):
        lines.append(f"  from elsewhere: ssh -N -L {port}:127.0.0.1:{port} {head}")
    return "\n".join(lines)


def _host_of(address: str) -> str:
    """The head's name in ``host:port`` or ``ray://host:port``."""
    host = address.rpartition("://")[2].rpartition(":")[0].strip("[]")
    is_here = host in ("", "127.0.0.1", "localhost")
    return socket.gethostname() if is_here else host


def _local_settings(sweep: Sweep) -> dict[str, Any]:
    """The dashboard is for this machine alone: the token does not encrypt."""
    return {"num_cpus": local_cpus(sweep), "dashboard_host": "127.0.0.1"}


def _shipped(sweep: Sweep) -> dict[str, Any] | None:
    folder = sweep.working_folder
    if not folder or JOB_VARIABLE in os.environ or not is_local_code(sweep.trainer, folder):
        return None
    return runtime_env(Path(folder))


def is_shipped() -> bool:
    """Whether workers find the trainer in their own working directory."""
    return bool(ray.get_runtime_context().runtime_env.get("working_dir"))


def quieten() -> None:
    """Leave the words to nasbo's own display, and the state to its journal."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in ("ray.tune.tune", "ray.tune.execution.tune_controller"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _check_resources(sweep: Sweep) -> None:
    """A cluster may grow; what a machine alone does not have would be waited for without end."""
    if cluster_of(sweep):
        return
    have = ray.cluster_resources()
    for name, need in sweep.needs.items():
        if have.get(name, 0) < need:
            told = f"a trial needs {need:g} {name}, this machine has {have.get(name, 0):g}"
            raise SweepError(told)


class Capacity:
    """How many trials run at once: a fixed number, or what the cluster holds just now.

    Attributes:
        problem: what is wrong with a node that joined; empty if nothing is.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._known = 0
        self._read_at = -REFRESH_S
        self._check: NodeCheck | None = None
        self.problem = ""

    def slots(self) -> int:
        if time.monotonic() - self._read_at >= REFRESH_S:
            self._refresh()
            self._read_at = time.monotonic()
        return self._sweep.slots if isinstance(self._sweep.slots, int) else self._known

    def _refresh(self) -> None:
        """Count node by node, as a trial does not span nodes, and look at those that are new."""
        self._check = self._check or NodeCheck()
        nodes = alive_nodes()
        self.problem = self.problem or self._check.look(nodes)
        self._known = sum(room(node["Resources"], self._sweep.needs) for node in nodes)
