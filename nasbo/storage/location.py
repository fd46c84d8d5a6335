"""Folder of an object store: objects below a URL are read, written, listed and deleted."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nasbo.errors import SweepError
from nasbo.storage.bucket import BucketObject
from nasbo.storage.conditional import FileObject, VersionedObject

logger = logging.getLogger(__name__)
T = TypeVar("T")
ATTEMPTS = 5
SCHEMES = ("s3", "gs", "file")


def is_url(text: str) -> bool:
    """Whether a folder is given by a URL and not by a path."""
    return "://" in text


class Location:
    """A folder of an object store.

    Names are relative to it and separated by ``/``. Objects appear atomically and are visible to
    all readers as soon as they are written: S3 and GCS guarantee both. Network errors are retried
    with exponential back-off.

    Args:
        url: ``s3://bucket/path`` or ``gs://bucket/path``; ``file:///path`` for tests. Credentials,
            region and endpoint are found as by the AWS and Google tools, e.g. ``AWS_ENDPOINT_URL``
            for other S3 servers.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._files, self._root = _connect(self.url)

    def read(self, name: str) -> bytes | None:
        """An object's bytes, ``None`` if there is no such object."""

        def once() -> bytes | None:
            try:
                with self._files.open_input_stream(self._path(name)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

        return self._retry(once, f"read {name}")

    def write(self, name: str, data: bytes, attempts: int = ATTEMPTS) -> None:
        """Store an object durably."""

        def once() -> None:
            path = self._path(name)
            if not self.url.startswith("file:"):
                self._put(path, data)
                return
            # A file is visible while it is written, unlike an object: rename it when complete.
            part = f"{path}.{uuid.uuid4().hex}.part"
            self._files.create_dir(path.rpartition("/")[0])
            self._put(part, data)
            self._files.move(part, path)

        self._retry(once, f"write {name}", attempts)

    def _put(self, path: str, data: bytes) -> None:
        with self._files.open_output_stream(path) as stream:
            stream.write(data)

    def sizes(self, folder: str) -> dict[str, int]:
        """Sizes of the objects below a folder, by their names relative to this location."""
        from pyarrow import fs

        def once() -> dict[str, int]:
            start = self._path(folder)
            selector = fs.FileSelector(start, allow_not_found=True, recursive=True)
            return {
                info.path[len(self._root) + 1 :]: int(info.size)
                for info in self._files.get_file_info(selector)
                if info.type == fs.FileType.File
            }

        return self._retry(once, f"list {folder}")

    def delete(self, name: str) -> None:
        """Remove an object, if it exists."""

        def once() -> None:
            try:
                self._files.delete_file(self._path(name))
            except FileNotFoundError:
                return

        self._retry(once, f"delete {name}")

    def versioned(self, name: str) -> VersionedObject:
        """An object for conditional writes.

        Raises:
            SweepError: there are no credentials for it.
        """
        path = self._path(name)
        if self.url.startswith("file:"):
            return FileObject(Path(path))
        return BucketObject(self.url, path, getattr(self._files, "region", None))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _retry(self, call: Callable[[], T], what: str, attempts: int = ATTEMPTS) -> T:
        for attempt in range(1, attempts + 1):
            try:
                return call()
            except OSError as error:
                if attempt == attempts:
                    raise
                logger.info("%s: could not %s: %s; trying again", self.url, what, error)
                time.sleep(min(0.2 * 2**attempt, 5.0))
        raise AssertionError("unreachable")


def _connect(url: str) -> tuple[Any, str]:
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        raise SweepError(f"{url}: a URL must begin with one of {', '.join(SCHEMES)}")
    from pyarrow import ArrowException, fs

    try:
        files, path = fs.FileSystem.from_uri(_tuned(url))
    except (ArrowException, OSError) as error:
        raise SweepError(f"{url}: cannot be used: {error}") from error
    return files, path.rstrip("/")


def _tuned(url: str) -> str:
    """The URL with an option that stores a small S3 object in one request,
    not in a multipart upload.
    """
    if not url.startswith("s3:") or "allow_delayed_open" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}allow_delayed_open=true"
