"""Who may write a sweep's journal on object storage: one process at a time.

There are no locks in a bucket, so the writer holds a lease: an object that it renews every few
seconds. A lease that is not renewed for ``LEASE_S`` is free. The writer itself looks before each
acknowledgement whether it has renewed in time, so that one that slept for too long finds out.
No two clocks are compared: whoever wants the lease watches it for that long.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nasbo.errors import JournalError
from nasbo.storage.place import Place

logger = logging.getLogger(__name__)
NAME = "lease.json"
LEASE_S = 45.0
RENEW_S = 8.0
SETTLE_S = 1.0


class Lease:
    """The right to write, taken when it is made.

    Args:
        place: the sweep's folder.
        epoch: the highest epoch that the journal has seen.
        lease_s: how long a lease lives without being renewed.
        tell: receives a line if there is something to wait for.

    Attributes:
        epoch: of this writer, higher than all before it.
    """

    def __init__(
        self,
        place: Place,
        epoch: int = 0,
        lease_s: float = LEASE_S,
        tell: Callable[[str], object] = lambda line: None,
    ) -> None:
        self._place, self._lease_s = place, lease_s
        self._id, self._beat = uuid.uuid4().hex, 0
        self._renew_s = min(RENEW_S, lease_s / 5)
        found = _read(place)
        if found is not None and not _is_free(found):
            self._wait(found, tell)
        self.epoch = max(epoch, int((found or {}).get("epoch", 0))) + 1
        self._guard = threading.Lock()
        self._renew()
        time.sleep(min(SETTLE_S, lease_s / 5))  # another one may take it at the same instant
        self._check_own()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="nasbo lease", daemon=True)
        self._thread.start()

    def _wait(self, found: dict[str, Any], tell: Callable[[str], object]) -> None:
        """Until the lease has not been renewed for its whole life.

        Raises:
            JournalError: it is renewed: somebody writes.
        """
        holder = holder_of(found)
        tell(f"{self._place.url}: {holder} had it; waiting {self._lease_s:.0f} s for a sign of it")
        end = time.monotonic() + self._lease_s
        while time.monotonic() < end:
            time.sleep(min(1.0, self._lease_s / 20))
            now = _read(self._place)
            if now is None or _is_free(now):
                return
            if now != found:
                raise JournalError(f"{self._place.url}: is being written by {holder_of(now)}")

    def confirm(self) -> None:
        """Make sure that the lease is still ours; quick if it was renewed lately.

        Raises:
            JournalError: another process has it, or might: it was not renewed in time.
        """
        if self._age() > self._lease_s / 2:
            self._check_own()
        if self._age() > self._lease_s:
            raise JournalError(
                f"{self._place.url}: the lease was not renewed for {self._age():.0f} s; resume"
            )

    def _age(self) -> float:
        return time.monotonic() - self._renewed_at

    def release(self) -> None:
        """Stop renewing, and give the lease back if it is ours and the bucket can be reached."""
        self._end.set()
        self._thread.join()
        try:
            found = _read(self._place)
            if found is not None and found.get("id") == self._id:
                self._write({**found, "is_released": True})
        except (OSError, JournalError) as error:
            logger.warning("%s: the lease runs out by itself: %s", self._place.url, error)

    def _check_own(self) -> None:
        found = _read(self._place)
        if found is None or found.get("id") != self._id:
            holder = holder_of(found) if found else "nobody: its lease was deleted"
            raise JournalError(f"{self._place.url}: is being written by {holder}")

    def _loop(self) -> None:
        while not self._end.wait(self._renew_s):
            if self._age() > self._lease_s:
                return  # too late: somebody else may have it by now
            try:
                self._check_own()
                self._renew()
            except JournalError:
                return  # ``confirm`` says so to the writer
            except OSError:
                continue  # ``confirm`` sees that the lease has grown old

    def _renew(self) -> None:
        with self._guard:
            begin = time.monotonic()
            self._beat += 1
            self._write(
                {
                    "id": self._id,
                    "host": _host(),
                    "process": os.getpid(),
                    "born": _born(os.getpid()),
                    "epoch": self.epoch,
                    "beat": self._beat,
                    "time": time.time(),
                }
            )
            self._renewed_at = begin

    def _write(self, content: dict[str, Any]) -> None:
        self._place.write(NAME, json.dumps(content).encode(), attempts=1)


def holder_of(found: dict[str, Any]) -> str:
    """The process that holds a lease, in words."""
    return f"process {found.get('process')} on {found.get('host')}"


def is_held(place: Place) -> bool:
    """Whether somebody seems to write, for onlookers, who do compare clocks."""
    found = _read(place)
    if found is None or _is_free(found):
        return False
    return abs(time.time() - float(found.get("time", 0))) < LEASE_S


def _read(place: Place) -> dict[str, Any] | None:
    data = place.read(NAME)
    if data is None:
        return None
    try:
        found = json.loads(data)
    except ValueError as error:
        raise JournalError(f"{place.url}/{NAME}: cannot be read: {error}") from error
    return found if isinstance(found, dict) else None


def _is_free(found: dict[str, Any]) -> bool:
    """Whether a lease was given back, or its process ran on this host and is dead."""
    if found.get("is_released"):
        return True
    is_here = found.get("host") == _host()
    return is_here and _born(int(found.get("process", 0))) != found.get("born")


def _host() -> str:
    """This host, and the container on it: process numbers mean something only inside."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _born(process: int) -> str | None:
    """When a process of this host began, with the host's own start; ``None`` if there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return f"{boot}/{stat.rpartition(')')[2].split()[19]}"
