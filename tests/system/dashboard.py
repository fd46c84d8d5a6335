"""optuna-dashboard on this machine's loopback, in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.launch.hosts import ROOT, free_port

PROGRAM = Path(
    os.environ.get("NASBO_OPTUNA_DASHBOARD")
    or ROOT / ".venv-dashboard" / "bin" / "optuna-dashboard"
)
TIMEOUT_S = 180.0


class Dashboard:
    """A dashboard of a study's file, until it is shut down."""

    def __init__(self, study: Path) -> None:
        assert PROGRAM.exists(), f"{PROGRAM} is missing: make dashboard"
        self.url = f"http://127.0.0.1:{free_port()}"
        log = study.with_name("dashboard.log")
        port = self.url.rpartition(":")[2]
        command = [str(PROGRAM), str(study), "--host", "127.0.0.1", "--port", port]
        with log.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)
        deadline = time.monotonic() + TIMEOUT_S
        while self.get("api/studies") is None:
            assert self.process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.5)

    def get(self, path: str) -> Any:
        """An answer of its API; ``None`` while it does not listen."""
        try:
            with urllib.request.urlopen(f"{self.url}/{path}", timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except OSError:
            return None

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
