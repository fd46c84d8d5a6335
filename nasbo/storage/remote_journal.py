"""Journal of a sweep on object storage: a local file whose writes are uploaded at once."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nasbo.errors import JournalError
from nasbo.history.journal import Journal
from nasbo.storage.lease import LEASE_S, Lease
from nasbo.storage.location import Location
from nasbo.storage.segments import FOLDER, Segment, chain, last_epoch, parse

logger = logging.getLogger(__name__)
MAX_SEGMENTS = 300
"""On opening, more segments than this are merged, so that listing and download stay quick."""


def fetch_journal(location: Location, known: bytes = b"") -> tuple[bytes, list[Segment]]:
    """The journal's bytes in the bucket, and all segments there.

    Args:
        location: the sweep's folder in the bucket.
        known: bytes from an earlier fetch; if still valid, only what follows is fetched.
    """
    found = parse(location.sizes(FOLDER))
    parts = chain(found)
    n_known = sum(part.end <= len(known) for part in parts)
    if n_known:
        last = parts[n_known - 1]
        if location.read(last.name) != known[last.start : last.end]:
            n_known = 0
    kept = known[: parts[n_known - 1].end] if n_known else b""
    return kept + _join(location, parts[n_known:]), found


def _join(location: Location, parts: list[Segment]) -> bytes:
    with ThreadPoolExecutor(16) as pool:
        data = list(pool.map(lambda part: location.read(part.name), parts))
    for part, content in zip(parts, data, strict=True):
        if content is None or len(content) != part.end - part.start:
            raise JournalError(f"{location.url}/{part.name}: is missing or cut off")
    return b"".join(content for content in data if content)


class RemoteJournal(Journal):
    """The only writer of a journal in a bucket.

    ``append`` returns when the events are stored in the bucket: acknowledged events survive the
    loss of this machine. Progress events without fsync are uploaded with the next synchronous
    write. If the bucket cannot be written, the sweep ends and can be resumed.

    Args:
        path: the local file, which is replaced by the bucket's content.
        location: the sweep's folder in the bucket.
        lease_s: see ``Lease``.
        tell: called with a line if it has to wait.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        location: Location,
        lease_s: float = LEASE_S,
        tell: Callable[[str], object] = logger.warning,
    ) -> None:
        self._location, self._lease_s, self._tell = location, lease_s, tell
        self._broken: str = ""
        self._waiting = b""
        super().__init__(path)

    def _open(self) -> None:
        try:
            epoch = last_epoch(parse(self._location.sizes(FOLDER)))
            self._lease = Lease(self._location, epoch, self._lease_s, self._tell)
        except OSError as error:
            raise JournalError(f"{self._location.url}: cannot be used: {error}") from error
        try:
            self._fill(self._take_over())
        except OSError as error:
            self._lease.release()
            raise JournalError(f"{self._location.url}: cannot be used: {error}") from error
        except BaseException:
            self._lease.release()
            raise

    def _fill(self, data: bytes) -> None:
        """Replace the local file by the bucket's content; anything beyond
        it was never acknowledged.
        """
        partial = Path(f"{self.path}.partial")
        partial.write_bytes(data)
        partial.replace(self.path)
        super()._open()
        self._stored = self._size
        if self._stored != len(data):
            raise JournalError(f"{self._location.url}: the journal ends inside a transaction")

    def _take_over(self) -> bytes:
        """Store a marker where this writer starts, which invalidates later
        segments of older writers.
        """
        data, found = fetch_journal(self._location)
        begin = 0 if len(found) > MAX_SEGMENTS else len(data)
        mark = Segment(self._lease.epoch, begin, len(data))
        self._location.write(mark.name, data[begin:])
        if begin == 0:
            for old in found:
                self._location.delete(old.name)
        return data

    def _publish(self, data: bytes, sync: bool) -> None:
        if self._broken:
            raise JournalError(self._broken)
        if not sync:
            self._waiting += data
            return
        self._store(self._waiting + data)
        self._waiting = b""

    def _store(self, data: bytes) -> None:
        segment = Segment(self._lease.epoch, self._stored, self._stored + len(data))
        # Before the answer, the state of the write is unknown; a second object could contradict it.
        self._broken = f"{self._location.url}: cannot be written: a write was interrupted"
        try:
            self._location.write(segment.name, data)
            self._lease.confirm()
        except (OSError, JournalError) as error:
            self._broken = f"{self._location.url}: cannot be written: {error}"
            raise JournalError(self._broken) from error
        self._stored, self._broken = segment.end, ""

    def close(self) -> None:
        """Upload the remaining progress events, and release the journal."""
        if self._file >= 0:
            try:
                if self._waiting and not self._broken:
                    self._publish(b"", True)
            except JournalError as error:
                logger.warning("%s", error)
            self._lease.release()
        super().close()
