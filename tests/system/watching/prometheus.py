"""Prometheus process that scrapes one Ray session by Ray's service discovery."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

INSTRUCTIONS = (
    "Prometheus is needed for the system tests: apt-get install prometheus (Debian), or set "
    "NASBO_PROMETHEUS to the program's path"
)
SETTINGS = """
global: {{scrape_interval: 4s, scrape_timeout: 4s}}
scrape_configs:
- job_name: ray
  file_sd_configs:
  - files: ['{targets}']
    refresh_interval: 1s
"""
"""As in the configuration by Ray, but more often."""
PATIENCE_S = 90.0
"""A busy machine may miss some scrapes."""


def find_prometheus() -> str:
    """Path of the program; fails with instructions if there is none."""
    names = (os.environ.get("NASBO_PROMETHEUS", ""), "prometheus")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    assert found is not None, INSTRUCTIONS
    return found


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Prometheus:
    """A Prometheus process on the loopback, which scrapes one Ray session."""

    def __init__(self, folder: Path, session: Path) -> None:
        targets = session / "prom_metrics_service_discovery.json"
        (folder / "prometheus.yml").write_text(SETTINGS.format(targets=targets))
        self.url = f"http://127.0.0.1:{free_port()}"
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(
            [
                find_prometheus(),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ],
            stdout=self._log,
            stderr=self._log,
        )
        self.wait_until(self._is_ready, 60)

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)
        self._log.close()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query, repeated until there are some."""
        found: list[dict[str, Any]] = []

        def ask() -> bool:
            found[:] = self.ask(expression)
            return bool(found)

        self.wait_until(ask, PATIENCE_S)
        return found

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query at present."""
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return list(found["data"]["result"])

    def label_values(self, expression: str, label: str) -> list[str]:
        """Result of Grafana's ``label_values(expression, label)``."""
        given = urllib.parse.urlencode({"match[]": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/label/{label}/values?{given}") as answer:
            return list(json.load(answer)["data"])

    def wait_until(self, is_done: Any, timeout_s: float) -> None:
        """Poll until a condition holds; the caller reports what was missing."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and not is_done():
            assert self._process.poll() is None, Path(self._log.name).read_text()
            time.sleep(0.5)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
