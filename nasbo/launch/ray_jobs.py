"""Launcher for an existing Ray cluster: a sweep as a Ray job."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlsplit

import yaml

from nasbo.launch.launcher import Tell
from nasbo.launch.order import Order
from nasbo.launch.records import Record

STOP_WAIT_S = 60
_STATES = {"PENDING": "waiting", "RUNNING": "running"}


class RayJobLauncher:
    """Submits to the Jobs API, which the dashboard on the cluster's head serves."""

    def __init__(self, address: str) -> None:
        self.address = address

    def plan(self, order: Order) -> str:
        return yaml.safe_dump({"ray job submit": self._job(order)}, sort_keys=False, width=100)

    def submit(self, order: Order, tell: Tell) -> Record:
        from nasbo.tune.jobs import open_jobs

        jobs = open_jobs(self.address)
        job = self._job(order)
        jobs.submit({key: value for key, value in job.items() if key != "address"})
        tell(f"dashboard: {jobs.url}")
        if (host := urlsplit(jobs.url).hostname) not in ("127.0.0.1", "localhost", "::1"):
            tell(
                f"the token travels unencrypted to {host}: better ssh -N -L 8265:127.0.0.1:8265 "
                f"{host} and --on http://127.0.0.1:8265"
            )
        return Record(order.folder, self.address, str(job["submission_id"]))

    def _job(self, order: Order) -> dict[str, Any]:
        from nasbo.tune.shipping import runtime_env

        python = order.values.get("python") or "python"
        # nasbo stops cleanly on SIGTERM, but takes longer than the 3 s that Ray waits by default.
        env = {"RAY_JOB_STOP_WAIT_TIME_S": str(STOP_WAIT_S), **order.env}
        return {
            "address": self.address,
            "submission_id": order.name,
            "entrypoint": shlex.join(order.command(python, "auto")),
            "runtime_env": {**runtime_env(order.working_dir), "env_vars": env},
            "metadata": order.metadata,
        }

    def state(self, record: Record) -> str:
        from nasbo.tune.jobs import open_jobs

        status = open_jobs(self.address).status(record.id)
        return _STATES.get(status, status.lower())

    def stop(self, record: Record) -> None:
        from nasbo.tune.jobs import open_jobs

        open_jobs(self.address).stop(record.id)

    def logs(self, record: Record, follow: bool, write: Tell) -> None:
        from nasbo.tune.jobs import open_jobs

        open_jobs(self.address).logs(record.id, follow, write)

    def find(self, folder: str) -> Record | None:
        from nasbo.tune.jobs import open_jobs

        found = open_jobs(self.address).find({"nasbo_folder": folder})
        return Record(folder, self.address, found) if found else None
