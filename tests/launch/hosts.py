"""Ray cluster of several nodes on this machine, started by the recipe for plain hosts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.nodes import family

ROOT = Path(__file__).parents[2]
N_ATTEMPTS = 3
START = ROOT / "cluster" / "hosts" / "start.sh"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Hosts:
    """A first host without CPUs for trials, and others that can be added and killed.

    Each has its own folder for Ray, as separate hosts have: Ray unpacks shipped code there.
    """

    def __init__(self, folder: Path, variables: dict[str, str] | None = None) -> None:
        self.folder, self.port, self.dashboard_port = folder, free_port(), free_port()
        self.token = folder / "token"
        self.variables = variables or {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._temporary: list[tempfile.TemporaryDirectory[str]] = []
        (folder / "cluster.env").write_text(
            f"HEAD_ADDRESS=127.0.0.1\nRAY_PORT={self.port}\nMETRICS_PORT=0\n"
            f"DASHBOARD_PORT={self.dashboard_port}\nTOKEN_FILE={self.token}\n"
        )
        self._start("head", "head", "--num-cpus=0", f"--ray-client-server-port={free_port()}")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.dashboard_port}"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "NASBO_CLUSTER_ENV": str(self.folder / "cluster.env"),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token),
            **self.variables,
        }

    def add(self, name: str, *options: str, **variables: str) -> None:
        """Add a host, with options of ``ray start`` such as ``--num-gpus=2``."""
        self._start(name, "worker", *options, **variables)

    def _start(self, name: str, role: str, *options: str, **variables: str) -> None:
        """Start a host, with retries: Ray waits for 30 s, which may be too
        short on a busy machine.
        """
        log = self.folder / f"{name}.log"
        for _ in range(N_ATTEMPTS):
            log.write_text("")
            process = self._begin(log, role, *options, **variables)
            deadline = time.monotonic() + 120
            while process.poll() is None and time.monotonic() < deadline:
                if "Ray runtime started" in log.read_text():
                    self.processes[name] = process
                    return
                time.sleep(0.2)
            end(process)
            if "timed out during startup" not in log.read_text():
                break
        raise RuntimeError(f"{name} did not start:\n{log.read_text()}")

    def _begin(
        self, log: Path, role: str, *options: str, **variables: str
    ) -> subprocess.Popen[bytes]:
        self._temporary.append(tempfile.TemporaryDirectory(prefix="nr"))
        folder = self._temporary[-1].name
        own = ["--block", f"--temp-dir={folder}", "--object-store-memory=80000000"]
        own.append(f"--dashboard-agent-listen-port={free_port()}")  # another Ray may have Ray's own
        with log.open("ab") as words:
            return subprocess.Popen(
                [str(START), role, *own, *options],
                env={**self.environment, **variables},
                stdout=words,
                stderr=words,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """Kill the host at once, with all that runs there."""
        end(self.processes.pop(name))

    def shutdown(self) -> None:
        for name in reversed(list(self.processes)):
            self.kill(name)
        for folder in self._temporary:
            folder.cleanup()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all its descendants."""
    for pid in family(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait(timeout=30)
