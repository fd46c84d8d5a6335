"""Sweep that runs while it is observed, on a real Ray with dashboard and metrics."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray

ROOT = Path(__file__).resolve().parents[3]
TRAINER = "tests.system.watching.simulated:train"
REPORT_INTERVAL_MS = 1000


@dataclass(frozen=True)
class Stage:
    """A running sweep with its addresses.

    Attributes:
        folder: of the sweep, whose name is ``small``.
        session: folder of the Ray session.
        dashboard: address of Ray's dashboard.
        token: of the dashboard.
        log: output of the driver.
        driver: its process.
    """

    folder: Path
    session: Path
    dashboard: str
    token: str
    log: Path
    driver: subprocess.Popen[bytes]

    def get(self, path: str) -> Any:
        """The dashboard's response."""
        request = urllib.request.Request(
            self.dashboard + path, headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def wait_until(self, what: str, is_done: Callable[[], Any], timeout_s: float = 420) -> None:
        """Poll until a condition holds, while the sweep runs."""
        deadline = time.monotonic() + timeout_s
        while not is_done():
            assert self.driver.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, f"no {what}: {self.log.read_text()}"
            time.sleep(0.5)


@pytest.fixture(scope="package")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The sweep is longer than the tests; it is ended by SIGTERM after them."""
    root = tmp_path_factory.mktemp("stage")
    context = ray.init(
        address="local", num_cpus=2, include_dashboard=True, dashboard_host="127.0.0.1",
        log_to_driver=False, logging_level="ERROR",
        _system_config={"metrics_report_interval_ms": REPORT_INTERVAL_MS},
    )  # fmt: skip
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", Path.home() / ".ray" / "auth_token"))
    driver = _drive(root, context.address_info["gcs_address"])
    try:
        yield Stage(
            folder=root / "small",
            session=Path(context.address_info["session_dir"]),
            dashboard=f"http://{context.dashboard_url}",
            token=token.read_text().strip(),
            log=root / "driver.log",
            driver=driver,
        )
        assert driver.poll() is None, "the sweep ended while it was looked at"
    finally:
        driver.send_signal(signal.SIGTERM)
        code = driver.wait(timeout=120)
        ray.shutdown()
    assert code == 130, (root / "driver.log").read_text()


def _drive(root: Path, address: str) -> subprocess.Popen[bytes]:
    words = [
        "run", "simulation", "--trainer", TRAINER, "--metric", "loss", "--method", "gp",
        "--trials", "5000", "--slots", "2", "--rungs", "1,3", "--eta", "2", "-o", "pause_s=0.6",
        "--address", address, "--dir", str(root / "small"), "--live-report", "0",
    ]  # fmt: skip
    with (root / "driver.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "nasbo.cli", *words],
            cwd=ROOT,
            stdout=log,
            stderr=log,
            env={**os.environ, "RAY_AUTH_MODE": "token"},
        )
