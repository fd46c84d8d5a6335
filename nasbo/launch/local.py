"""Launcher for this machine: a sweep in a background process."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from nasbo.errors import SweepError
from nasbo.history.journal import is_locked
from nasbo.launch.launcher import RUNNING, Tell, follow_file
from nasbo.launch.order import Order
from nasbo.launch.records import Record, log_file
from nasbo.storage.location import is_url
from nasbo.storage.mirror import JOURNAL_FILE, mirror_folder

START_S = 120.0
FIRST_LOOK_S = 1.0
"""Seconds to watch the driver after it locks the journal, in case it exits at once."""
_LOOK_S = 0.1


class LocalLauncher:
    """Starts the driver, with its own Ray, as a process that outlives the terminal."""

    def plan(self, order: Order) -> str:
        log = log_file(order.folder, is_url(order.folder))
        folder, file = shlex.quote(str(log.parent)), shlex.quote(str(log))
        env = " ".join(f"{name}={shlex.quote(value)}" for name, value in _variables(order).items())
        command = shlex.join(order.command(sys.executable, "local"))
        return (
            f"cd {shlex.quote(str(order.working_dir))}\nmkdir -p -m 700 {folder}\n"
            f"{env} setsid {command} < /dev/null >> {file} 2>&1 &"
        )

    def submit(self, order: Order, tell: Tell) -> Record:
        """Start the driver and wait until it writes the journal or has ended.

        Raises:
            SweepError: it ended with an error; the message has its last line.
        """
        log = log_file(order.folder, is_url(order.folder))
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        n_before = log.stat().st_size if log.exists() else 0
        with log.open("ab") as words:
            process = subprocess.Popen(
                order.command(sys.executable, "local"),
                cwd=order.working_dir,
                env={**os.environ, **_variables(order)},
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if not _has_begun(process, _journal(order.folder)):
            tell(f"process {process.pid} has written nothing after {START_S:.0f} s")
        if process.poll():
            said = log.read_bytes()[n_before:].decode(errors="replace").strip().splitlines()
            last = "".join(said[-1:])
            raise SweepError(f"the driver ended with code {process.returncode}: {last}")
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
        """The process of this machine that writes the folder's journal, e.g. of ``nasbo run``."""
        holder = _holder(_journal(folder))
        return None if holder is None else Record(folder, "local", f"{holder}@{_born(holder)}")


def _variables(order: Order) -> dict[str, str]:
    """Environment variables of the driver besides those of this process."""
    return {**order.env, "RAY_USAGE_STATS_ENABLED": "0"}


def _journal(folder: str) -> Path:
    """The journal that a local driver writes; for a URL that of its mirror."""
    return (mirror_folder(folder) if is_url(folder) else Path(folder)) / JOURNAL_FILE


def _has_begun(process: subprocess.Popen[bytes], journal: Path) -> bool:
    """Wait until a driver has locked its journal or has ended; false on a timeout."""
    deadline = time.monotonic() + START_S
    while _holder(journal) != process.pid:
        if process.poll() is not None:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    with suppress(subprocess.TimeoutExpired):
        process.wait(FIRST_LOOK_S)
    return True


def _holder(journal: Path) -> int | None:
    """The process of this machine that holds the lock of a journal, if any."""
    try:
        words = Path(f"{journal}.lock").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.fullmatch(r"process (\d+) on (\S+)\s*", words)
    if not match or match[2] != socket.gethostname() or not is_locked(journal):
        return None
    return int(match[1])


def _born(process: int) -> str:
    """Start time of a process in kernel ticks; empty for a missing or zombie process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if stat[0] == "Z" else stat[19]
