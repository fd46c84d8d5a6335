"""Lease on a sweep's journal in object storage: one process at a time may write.

The lease is an object that its holder renews every few seconds (a heartbeat). It is free if it was
not renewed for ``LEASE_S``. Each write names the version that it replaces, so that one of several
processes that want a free lease gets it, and a holder that lost it notices on renewal. Before each
acknowledgement the writer checks that it has renewed in time. Clocks of different machines are
never compared: a process that wants the lease watches it for that long.
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
from nasbo.storage.conditional import ChangedError, Version, check_conditions, lacks_conditions
from nasbo.storage.location import Location

logger = logging.getLogger(__name__)
NAME = "lease.json"
LEASE_S = 45.0
RENEW_S = 8.0
_ATTEMPTS = 3


class Lease:
    """The right to write, acquired on construction.

    Args:
        location: the sweep's folder.
        epoch: highest epoch of the journal so far.
        lease_s: life of a lease without renewal, in seconds.
        tell: called with a line if it has to wait.

    Attributes:
        epoch: epoch of this writer, higher than all before it.

    Raises:
        JournalError: another process writes, or the store has no conditional writes.
        OSError: the store cannot be reached.
    """

    def __init__(
        self,
        location: Location,
        epoch: int = 0,
        lease_s: float = LEASE_S,
        tell: Callable[[str], object] = lambda line: None,
    ) -> None:
        self._location, self._lease_s = location, lease_s
        self._object = location.versioned(NAME)
        self._id, self._beat, self._lost = uuid.uuid4().hex, 0, ""
        self._renew_s = min(RENEW_S, lease_s / 5)
        found, self._version = self._read()
        if found is not None and not _is_free(found):
            found = self._wait(found, tell)
        self.epoch = max(epoch, int((found or {}).get("epoch", 0))) + 1
        self._renew()
        check_conditions(self._object, self._content(), location.url)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="nasbo lease", daemon=True)
        self._thread.start()

    def _wait(self, found: dict[str, Any], tell: Callable[[str], object]) -> dict[str, Any] | None:
        """Watch the lease until it is free: released, or not renewed for its whole life.

        Raises:
            JournalError: it was renewed: another process writes.
        """
        holder = holder_of(found)
        tell(
            f"{self._location.url}: {holder} had it; waiting {self._lease_s:.0f} s for a sign of it"
        )
        end = _now() + self._lease_s
        while _now() < end:
            time.sleep(min(1.0, self._lease_s / 20))
            now, self._version = self._read()
            if now is None or _is_free(now):
                return now
            if now != found:
                raise JournalError(f"{self._location.url}: is being written by {holder_of(now)}")
        return found

    def confirm(self) -> None:
        """Check that the lease is still held; quick if it was renewed recently.

        Raises:
            JournalError: another process has it, or may have it: it was not renewed in time.
        """
        if self._lost:
            raise JournalError(self._lost)
        if self._age() > self._lease_s / 2:
            self._check_own(self._read()[0])
        if self._age() > self._lease_s:
            raise JournalError(
                f"{self._location.url}: the lease was not renewed for {self._age():.0f} s; resume"
            )

    def _age(self) -> float:
        return _now() - self._renewed_at

    def release(self) -> None:
        """Stop renewing, and release the lease if it is still held and
        the bucket can be reached.
        """
        self._end.set()
        self._thread.join()
        try:
            self._write(self._content(is_released=True))
        except JournalError as error:
            logger.info("%s", error)
        except OSError as error:
            logger.warning("%s: the lease runs out by itself: %s", self._location.url, error)

    def _loop(self) -> None:
        while not self._end.wait(self._renew_s):
            if self._age() > self._lease_s:
                return  # too late: another process may have it by now
            try:
                self._renew()
            except JournalError as error:
                self._lost = str(error)  # ``confirm`` raises it in the writer
                return
            except OSError:
                continue  # ``confirm`` notices the lease's age

    def _renew(self) -> None:
        begin = _now()
        self._beat += 1
        self._write(self._content())
        self._renewed_at = begin

    def _content(self, **more: Any) -> bytes:
        content = {
            "id": self._id,
            "host": _host(),
            "process": os.getpid(),
            "born": _born(os.getpid()),
            "epoch": self.epoch,
            "beat": self._beat,
            "time": time.time(),
        }
        return json.dumps({**content, **more}).encode()

    def _write(self, data: bytes) -> None:
        """Replace the last known version.

        Raises:
            JournalError: another process has written in the meantime.
        """
        for _ in range(_ATTEMPTS):
            try:
                self._version = self._object.write(data, self._version)
                return
            except ChangedError:
                found, version = self._read()
            if self._version is not None or found is not None:
                self._check_own(found)  # else it is an earlier write whose answer was lost
            self._version = version
        raise lacks_conditions(
            self._location.url, f"it refused to write {NAME}, which had not changed"
        )

    def _check_own(self, found: dict[str, Any] | None) -> None:
        if found is None or found.get("id") != self._id:
            holder = holder_of(found) if found else "nobody: its lease was deleted"
            raise JournalError(f"{self._location.url}: is being written by {holder}")

    def _read(self) -> tuple[dict[str, Any] | None, Version | None]:
        found = self._object.read()
        if found is None:
            return None, None
        return _parse(found.data, self._location), found.version


def _now() -> float:
    """Monotonic clock, which on Linux also counts time in suspend."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def holder_of(found: dict[str, Any]) -> str:
    """The process that holds a lease, as text."""
    return f"process {found.get('process')} on {found.get('host')}"


def is_held(location: Location) -> bool:
    """Whether a process seems to write; only readers use this, which compares clocks."""
    data = location.read(NAME)
    found = None if data is None else _parse(data, location)
    if found is None or _is_free(found):
        return False
    return abs(time.time() - float(found.get("time", 0))) < LEASE_S


def _parse(data: bytes, location: Location) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise JournalError(f"{location.url}/{NAME}: cannot be read: {error}") from error
    return found if isinstance(found, dict) else None


def _is_free(found: dict[str, Any]) -> bool:
    """Whether a lease was released, or its process ran on this host and is dead."""
    if found.get("is_released"):
        return True
    is_here = found.get("host") == _host()
    return is_here and _born(int(found.get("process", 0))) != found.get("born")


def _host() -> str:
    """This host and its PID namespace, as process numbers are only valid inside one."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _born(process: int) -> str | None:
    """Start time of a process with the host's boot id; ``None`` if there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return f"{boot}/{stat.rpartition(')')[2].split()[19]}"
