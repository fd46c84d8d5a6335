"""A sweep in the background of this machine: an order comes in, a process goes out."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from nasbo.errors import SweepError
from nasbo.journal import is_locked
from nasbo.launch.launcher import RUNNING, Tell, follow_file
from nasbo.launch.order import Order
from nasbo.launch.records import Record, log_file
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.storage.place import is_url

FIRST_LOOK_S = 1.0


class LocalLauncher:
    """Starts the driver as a process that outlives the terminal; it brings its own Ray."""

    def plan(self, order: Order) -> str:
        log = log_file(order.folder, is_url(order.folder))
        command = shlex.join(order.command(sys.executable, "local"))
        env = "".join(f"{name}={shlex.quote(value)} " for name, value in order.env.items())
        return f"cd {shlex.quote(str(order.working_dir))}\n{env}{command} >> {log} 2>&1 &"

    def submit(self, order: Order, tell: Tell) -> Record:
        log = log_file(order.folder, is_url(order.folder))
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with log.open("ab") as words:
            process = subprocess.Popen(
                order.command(sys.executable, "local"),
                cwd=order.working_dir,
                env={**os.environ, **order.env, "RAY_USAGE_STATS_ENABLED": "0"},
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        time.sleep(FIRST_LOOK_S)
        if process.poll():
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise SweepError(f"the driver ended with code {process.returncode}: {''.join(last)}")
        return Record(order.folder, "local", f"{process.pid}@{_born(process.pid)}", str(log))

    def state(self, record: Record) -> str:
        number, _, born = record.id.partition("@")
        return "running" if _born(int(number)) == born else "ended"

    def stop(self, record: Record) -> None:
        if self.state(record) in RUNNING:
            os.kill(int(record.id.partition("@")[0]), signal.SIGTERM)

    def logs(self, record: Record, follow: bool, write: Tell) -> None:
        if not record.log:
            raise SweepError(f"process {record.id} was not launched: its words are where it runs")
        follow_file(Path(record.log), lambda: self.state(record) not in RUNNING, follow, write)

    def find(self, folder: str) -> Record | None:
        """The process of this machine that writes the folder's journal, by ``nasbo run``."""
        journal = Path(folder) / JOURNAL_FILE
        if is_url(folder) or not is_locked(journal):
            return None
        words = Path(f"{journal}.lock").read_text(encoding="utf-8", errors="replace")
        match = re.fullmatch(r"process (\d+) on (\S+)\s*", words)
        if not match or match[2] != socket.gethostname():
            return None
        return Record(folder, "local", f"{match[1]}@{_born(int(match[1]))}")


def _born(process: int) -> str:
    """When a process began, as the kernel counts; empty if there is none, or only its remains."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if stat[0] == "Z" else stat[19]
