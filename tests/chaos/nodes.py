"""Killed and frozen worker nodes of a local Ray cluster, whose trials continue elsewhere."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nasbo.sweeps.folder import SweepFolder, create_folder, trial_folder
from nasbo.sweeps.settings import Sweep
from nasbo.tune.trial import WORKER_FILE
from tests.chaos.audit import Audit, Witness, audit
from tests.chaos.drivers import drive

HEALTH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_raylet_start_wait_time_s": "120",
}


class LocalCluster:
    """A head without CPUs, and worker nodes that can be killed and frozen."""

    def __init__(self, n_nodes: int) -> None:
        os.environ.update(HEALTH)
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        self.nodes: list[Any] = []
        self._folders: list[str] = []
        for _ in range(n_nodes):
            self.add()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self) -> None:
        """Add a node with its own files: otherwise it would unpack shipped code
        into the others' folder.
        """
        self._folders.append(tempfile.mkdtemp(prefix="nb"))
        node = self._cluster.add_node(num_cpus=2, temp_dir=self._folders[-1])
        self.nodes.append(node)

    def kill(self, node: Any) -> None:
        """Kill the raylet and its workers at once, as in a power cut."""
        for process in family(_raylet(node)):
            _signal(process, signal.SIGKILL)
        self.nodes.remove(node)

    def freeze(self, node: Any) -> list[int]:
        """Make a node unresponsive, as in a network failure; its processes stay."""
        frozen = family(_raylet(node))
        for process in frozen:
            _signal(process, signal.SIGSTOP)
        self.nodes.remove(node)
        return frozen

    def shutdown(self) -> None:
        self._cluster.shutdown()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


def _raylet(node: Any) -> int:
    return int(node.all_processes["raylet"][0].process.pid)


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, open_ = [], [pid]
    while open_:
        found.append(open_.pop())
        open_ += children.get(found[-1], [])
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def break_nodes(
    folder: Path, seed: int, n_faults: int, n_trials: int, rungs: Sequence[int] | None = None
) -> tuple[Audit, list[float]]:
    """Run a sweep on a cluster whose nodes are broken; also the seconds until trials ran again."""
    rng = random.Random(seed)
    cluster = LocalCluster(3)
    sweep = Sweep(
        space="simulation", trainer="tests.chaos.trainer:train", method="random", trials=n_trials,
        metric="loss", seed=seed, address=cluster.address, trainer_options={"step_s": 0.5},
        rungs="off" if rungs is None else list(rungs),
    )  # fmt: skip
    create_folder(folder, sweep)
    witness, found, frozen, delays = Witness(folder), Audit(), [], []
    process = drive(folder, "--address", cluster.address)
    try:
        for number in range(n_faults):
            _wait_for_progress(folder, process)
            node = rng.choice(_busy(folder, cluster.nodes) or cluster.nodes)
            before = sum(SweepFolder(folder).history.retry_counts().values())
            began = time.monotonic()
            if number % 3 == 2:
                frozen += cluster.freeze(node)
                found.faults["node frozen"] += 1
            else:
                cluster.kill(node)
                found.faults["node killed"] += 1
            cluster.add()
            if _wait_for_retry(folder, process, before):
                delays.append(time.monotonic() - began)
            witness.look()
        if process.wait(timeout=900) != 0:
            raise RuntimeError(f"the sweep failed: see {folder}.log")
    finally:
        process.kill()
        for pid in frozen:
            _signal(pid, signal.SIGKILL)
        cluster.shutdown()
    return found + audit(witness, n_trials, None), delays


def _wait_for_progress(folder: Path, process: Any) -> None:
    """Wait until trials that were not there before run and report."""
    start = _n_reports(folder)
    deadline = time.monotonic() + 120
    while _n_reports(folder) < start + 4 and time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the sweep ended before its faults: see {folder}.log")
        time.sleep(0.2)


def _busy(folder: Path, nodes: list[Any]) -> list[Any]:
    """The nodes that run trials: breaking another one proves nothing."""
    running = [trial for trial in SweepFolder(folder).history.trials if trial.state == "running"]
    files = [trial_folder(folder, trial.id) / WORKER_FILE for trial in running]
    at_work = {json.loads(file.read_text())["node"] for file in files if file.exists()}
    return [node for node in nodes if node.node_id in at_work]


def _n_reports(folder: Path) -> int:
    return sum(len(trial.curve) for trial in SweepFolder(folder).history.trials)


def _wait_for_retry(folder: Path, process: Any, before: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if sum(SweepFolder(folder).history.retry_counts().values()) > before:
            return True
        time.sleep(0.1)
    return False


def describe(delays: list[float]) -> str:
    if not delays:
        return "no trial was on a broken node"
    return f"median {statistics.median(delays):.1f} s, worst {max(delays):.1f} s"
