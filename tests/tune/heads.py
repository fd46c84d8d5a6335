"""Heads of real Ray clusters on this machine, with a token or without one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

RAY = Path(sys.executable).with_name("ray")


@contextmanager
def started_head(settings: Mapping[str, str]) -> Iterator[str]:
    """Start a head with these variables, for the duration of the block; yields its address."""
    port, folder = _free_port(), tempfile.mkdtemp(prefix="nb")
    command = [RAY, "start", "--head", "--block", f"--port={port}", f"--temp-dir={folder}"]
    command += ["--num-cpus=1", "--include-dashboard=false", "--disable-usage-stats"]
    ports = ("ray-client-server-port", "dashboard-agent-listen-port")
    command += [f"--{name}={_free_port()}" for name in ports]
    process = subprocess.Popen(
        command, env={**os.environ, **settings}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _await(port, process)
        yield f"127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        assert process.poll() is None, "the head ended"
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                time.sleep(5)  # the node is ready after the port
                return
        time.sleep(0.2)
    raise AssertionError("the head did not answer")
