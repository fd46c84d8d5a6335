"""Files of a sweep that are worth keeping beside its runs: the report, and what finalize wrote."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from nasbo.sweeps.folder import SweepFolder

REPORT_FILE, BEST_FOLDER = "report.html", "best"
MAX_BYTES = 200_000_000
"""Larger files, such as the weights of a large network, stay where they are."""


@contextmanager
def kept_files(sweep: SweepFolder) -> Iterator[dict[str, Path]]:
    """The files by their names in the sweep's folder; those of a bucket lie here meanwhile.

    Raises:
        OSError: the bucket cannot be read.
    """
    location = sweep.location
    if location is None:
        best = sorted(path for path in (sweep.path / BEST_FOLDER).rglob("*") if path.is_file())
        found = [path for path in (sweep.path / REPORT_FILE, *best) if path.is_file()]
        yield {
            path.relative_to(sweep.path).as_posix(): path
            for path in found
            if path.stat().st_size <= MAX_BYTES
        }
        return
    sizes = location.sizes(BEST_FOLDER)
    names = [name for name, size in sizes.items() if size <= MAX_BYTES]
    with TemporaryDirectory(prefix="nasbo-track-") as folder:
        kept = {}
        for name in (REPORT_FILE, *sorted(names)):
            data = location.read(name)
            if data is not None:
                kept[name] = Path(folder, name)
                kept[name].parent.mkdir(parents=True, exist_ok=True)
                kept[name].write_bytes(data)
        yield kept


def digest(path: Path) -> str:
    """What tells a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
