"""Connection to Ray, and the number of trials that the cluster can hold."""

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
from nasbo.tune.daemons import apart
from nasbo.tune.door import opened
from nasbo.tune.nodes import NodeCheck, alive_nodes, check_nodes, room
from nasbo.tune.shipping import is_local_code, runtime_env
from nasbo.tune.token import on_loopback, protect_token, require_token, token_file

JOB_VARIABLE = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Set by Ray in the driver of a submitted job, whose code was shipped with the submission."""
REFRESH_S = 2.0
_ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    # Tune's warning about a cluster that is too small aborts a run without trials.
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S": "inf",
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S_AUTOSCALER": "inf",
    "TUNE_WARN_THRESHOLD_S": "5",
}


@contextmanager
def connect(sweep: Sweep, metadata: Mapping[str, str] | None = None) -> Iterator[str]:
    """Join the cluster at the sweep's address, or start Ray on this machine.

    An initialised Ray of this process is used as it is and left running. Yields how to
    reach Ray's dashboard, or "" if unknown. A trainer in the working folder is shipped to
    every node of a cluster.

    Args:
        sweep: its address, slots and resources are used.
        metadata: metadata of this job in Ray's list of jobs.
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
        with apart():
            return _connect(sweep, address, job)
    except Exception as error:  # Ray has no exception class for a start that timed out
        raise ClusterError(f"no Ray at {address}: {error}") from error


def _connect(sweep: Sweep, address: str, job: JobConfig) -> Any:
    """Connect. A local Ray requires the user's token and binds to loopback; a
    cluster sets its own access.
    """
    words = {"job_config": job, "logging_level": logging.ERROR, "log_to_driver": False}
    if address != "local":
        return ray.init(address=address, runtime_env=_shipped(sweep), **words)
    require_token()
    with on_loopback():
        return ray.init(address="local", **_local_settings(sweep), **words)


def dashboard_words(url: str, address: str) -> str:
    """How to reach the dashboard, locally and through ssh.

    Args:
        url: ``127.0.0.1:8265`` as given by Ray; "" if there is no dashboard.
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
    """The head's host name in ``host:port`` or ``ray://host:port``."""
    host = address.rpartition("://")[2].rpartition(":")[0].strip("[]")
    is_here = host in ("", "127.0.0.1", "localhost")
    return socket.gethostname() if is_here else host


def _local_settings(sweep: Sweep) -> dict[str, Any]:
    """Settings of a local Ray. Its dashboard binds to loopback, as the token does not encrypt."""
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
    """Silence Ray's output and snapshots: nasbo has its own display and journal."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in ("ray.tune.tune", "ray.tune.execution.tune_controller"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _check_resources(sweep: Sweep) -> None:
    """Raise if this machine lacks a resource, for which trials would wait
    forever. A cluster may grow.
    """
    if cluster_of(sweep):
        return
    have = ray.cluster_resources()
    for name, need in sweep.needs.items():
        if have.get(name, 0) < need:
            told = f"a trial needs {need:g} {name}, this machine has {have.get(name, 0):g}"
            raise SweepError(told)


class Capacity:
    """Number of trials that can run at once: fixed, or what the cluster holds at the moment.

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
        """Count per node, as a trial does not span nodes, and check new nodes."""
        self._check = self._check or NodeCheck()
        nodes = alive_nodes()
        self.problem = self.problem or self._check.look(nodes)
        self._known = sum(room(node["Resources"], self._sweep.needs) for node in nodes)
