"""Launcher for Slurm: a sweep as a batch job."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from nasbo.errors import SweepError
from nasbo.launch.launcher import RUNNING, Tell, follow_file
from nasbo.launch.order import Order
from nasbo.launch.programs import run
from nasbo.launch.recipes import RECIPES, count
from nasbo.launch.records import Record, log_file
from nasbo.storage.location import is_url

SCRIPT = RECIPES / "slurm" / "sweep.sbatch"
ADDRESS = "NASBO_RAY_ADDRESS"
"""Placeholder that the batch script replaces by the head's address, which is known only then."""
COUNTS = {"nodes": 1, "cpus_per_node": 1, "signal_s": 0, "ray_port": 1}
"""Integer values with their minimum. GPUs are no such value: they may have
a type, as in ``a100:4``."""
_WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED")
_RUNNING = ("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED")


class SlurmLauncher:
    """Submits ``cluster/slurm/sweep.sbatch``, which starts Ray on the nodes of the job."""

    def plan(self, order: Order) -> str:
        words = sbatch_words(order)
        script = words.index(str(SCRIPT))
        log = log_file(order.folder, is_url(order.folder))
        lines = [*map(shlex.quote, words[:script]), shlex.join(words[script:])]
        return f"mkdir -p -m 700 {shlex.quote(str(log.parent))}\n" + " \\\n  ".join(lines)

    def submit(self, order: Order, tell: Tell) -> Record:
        log = log_file(order.folder, is_url(order.folder))
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        job = run(sbatch_words(order)).partition(";")[0]
        return Record(order.folder, "slurm", job, str(log))

    def state(self, record: Record) -> str:
        try:
            found = run(["squeue", "--noheader", "--jobs", record.id, "--format", "%T"])
        except SweepError as error:
            if "Invalid job id" not in str(error):
                raise
            found = ""
        state = found.splitlines()[0] if found else "ended"
        if state in _WAITING:
            return "waiting"
        return "running" if state in _RUNNING else state.lower()

    def stop(self, record: Record) -> None:
        """Signal the batch script of a running job, which prevents a requeue; cancel other jobs."""
        if self.state(record) == "running":
            run(["scancel", "--batch", "--signal=TERM", record.id])
        else:
            run(["scancel", record.id])

    def logs(self, record: Record, follow: bool, write: Tell) -> None:
        follow_file(Path(record.log), lambda: self.state(record) not in RUNNING, follow, write)

    def find(self, folder: str) -> Record | None:
        listed = run(["squeue", "--me", "--noheader", "--format", "%i %k"])
        for line in listed.splitlines():
            job, _, comment = line.partition(" ")
            if comment.strip() == folder:
                return Record(folder, "slurm", job, str(log_file(folder, is_url(folder))))
        return None


def sbatch_words(order: Order) -> list[str]:
    """The sbatch command: options from the recipe's values, the script,
    and the script's command.
    """
    values = order.values
    python = values.get("python") or sys.executable
    return [
        "sbatch",
        "--parsable",
        f"--job-name={order.name}",
        f"--comment={order.folder}",
        f"--chdir={order.working_dir}",
        f"--output={log_file(order.folder, is_url(order.folder))}",
        "--open-mode=append",
        "--requeue",
        f"--export={','.join(['ALL', *_exports(order, python)])}",
        *_options(values),
        str(SCRIPT),
        *order.command(python, ADDRESS),
    ]


def _exports(order: Order, python: str) -> list[str]:
    values = order.values
    own = {
        "NASBO_PYTHON": python,
        "NASBO_SETUP": values.get("setup"),
        "NASBO_RAY_PORT": values.get("ray_port"),
        **order.env,
    }
    for name, value in own.items():
        if value is not None and "," in str(value):
            raise SweepError(f"sbatch takes no comma in {name}, got {value!r}")
    return [f"{name}={value}" for name, value in own.items() if value is not None]


def _options(values: Mapping[str, str | None]) -> list[str]:
    """Options for one task per node with all of its resources, as Ray places the trials."""
    for name, least in COUNTS.items():
        if values.get(name) is not None:
            count(values, name, least)
    gpus, signal_s = values.get("gpus_per_node"), values.get("signal_s")
    options = {
        "signal": signal_s and f"B:USR1@{signal_s}",
        "partition": values.get("partition"),
        "account": values.get("account"),
        "qos": values.get("qos"),
        "nodes": values.get("nodes"),
        "ntasks-per-node": 1,
        "cpus-per-task": values.get("cpus_per_node"),
        "gpus-per-node": None if gpus == "0" else gpus,
        "mem": values.get("memory_per_node"),
        "time": values.get("time_limit"),
    }
    return [f"--{name}={value}" for name, value in options.items() if value is not None]
