"""MLflow servers on the loopback, and ``nasbo track``, in an environment of their own."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from nasbo.history import History
from nasbo.sweeps.rows import measurement_rows
from tests.launch.hosts import ROOT, free_port

PYTHON = Path(os.environ.get("NASBO_TRACKING") or ROOT / ".venv-tracking" / "bin" / "python")


def require_trackers() -> None:
    assert PYTHON.exists(), f"{PYTHON} is missing: make tracking"


class Run(NamedTuple):
    """What a server holds of a run; ``rows`` are (name, step, value), each as often as there."""

    id: str
    name: str
    status: str
    params: dict[str, str]
    tags: dict[str, str]
    rows: list[tuple[str, int, float]]


class MlflowServer:
    """A server whose database is a file: it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        require_trackers()
        self.folder, self.port = folder, free_port()
        self.database = folder / "mlflow.db"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self.folder / "mlflow.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(str(PYTHON), "-m", "mlflow", "server", "--host", "127.0.0.1"),
                    *("--port", str(self.port), "--workers", "1"),
                    *("--backend-store-uri", f"sqlite:///{self.database}"),
                    *("--artifacts-destination", str(self.folder / "artifacts")),
                ],
                stdout=log, stderr=log, start_new_session=True, cwd=self.folder,
                env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            )  # fmt: skip
        deadline = time.monotonic() + 180
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "mlflow.log").read_text()
            assert time.monotonic() < deadline, (self.folder / "mlflow.log").read_text()
            time.sleep(0.3)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def kill(self) -> None:
        """End the server and its workers at once, in whatever they were doing."""
        if self.process is not None:
            os.killpg(self.process.pid, 9)
            self.process.wait(timeout=30)
            self.process = None

    def create(self, tags: dict[str, str]) -> None:
        """A run of the first experiment that nasbo made, with these tags."""
        listed = [{"key": key, "value": text} for key, text in tags.items()]
        body = json.dumps({"experiment_id": "1", "tags": listed}).encode()
        url = f"{self.url}/api/2.0/mlflow/runs/create"
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as got:
            assert got.status == 200

    def runs(self) -> list[Run]:
        """All runs that are not deleted, from the database itself."""
        with closing(sqlite3.connect(self.database, timeout=60)) as base:
            params, tags = _texts(base, "params"), _texts(base, "tags")
            rows: dict[str, list[tuple[str, int, float]]] = defaultdict(list)
            for run, key, step, value in base.execute(
                "SELECT run_uuid, key, step, value FROM metrics"
            ):
                rows[run].append((key, step, value))
            found = base.execute(
                "SELECT run_uuid, name, status FROM runs WHERE lifecycle_stage = 'active'"
            )
            return [Run(*one, params[one[0]], tags[one[0]], rows[one[0]]) for one in found]


def _texts(base: sqlite3.Connection, table: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for run, key, value in base.execute(f"SELECT run_uuid, key, value FROM {table}"):
        found[run][key] = value
    return found


def track(folder: Path | str, *words: str, **variables: str) -> subprocess.Popen[str]:
    """A tracker in a process of its own; what it says goes to a log beside the folder."""
    require_trackers()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    with log_of(folder).open("ab") as log:
        return subprocess.Popen(
            [str(PYTHON), "-m", "nasbo.cli", "track", str(folder), *words],
            stdout=log, stderr=log, env=environment, cwd=log_of(folder).parent, text=True,
        )  # fmt: skip


def log_of(folder: Path | str) -> Path:
    return Path(folder).parent / f"{Path(folder).name}.track.log"


def finished_track(folder: Path | str, *words: str, **variables: str) -> str:
    """Track once; what it said."""
    process = track(folder, *words, **variables)
    assert process.wait(timeout=300) == 0, log_of(folder).read_text()
    return log_of(folder).read_text()


def reports(history: History, metric: str) -> dict[tuple[str, str, int], float]:
    """The points that a tracker must have, by run, name and step: the first report of each step."""
    found: dict[tuple[str, str, int], float] = {}
    for row in measurement_rows(history):
        values = {metric: row["value"], **row["metrics"]}
        for name, value in values.items():
            if isinstance(value, int | float):
                found.setdefault((f"{row['trial']:05d}", name, row["step"]), value)
    return found


def points(runs: Iterable[Run]) -> list[tuple[tuple[str, str, int], float]]:
    """What the server has of trials and repeats, but for nasbo's own metrics."""
    return [
        ((run.tags["nasbo.run"], name, step), value)
        for run in runs
        if run.tags["nasbo.kind"] in ("trial", "repeat")
        for name, step, value in run.rows
        if not name.startswith("nasbo.")
    ]


def read_offline(folder: Path) -> list[dict[str, Any]]:
    """W&B's offline files of a folder: a mapping per run."""
    command = [str(PYTHON), str(Path(__file__).with_name("wandb_files.py")), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
