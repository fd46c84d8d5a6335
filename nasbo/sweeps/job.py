"""Name of a sweep, and its metadata in a cluster's list of jobs."""

from __future__ import annotations

import os
from pathlib import Path

from nasbo.storage.location import is_url
from nasbo.storage.mirror import shown
from nasbo.sweeps.settings import Sweep


def sweep_name(folder: str | os.PathLike[str]) -> str:
    """Name of a sweep: the last part of its path or URL."""
    return _full_name(folder).rpartition("/")[2]


def _full_name(folder: str | os.PathLike[str]) -> str:
    """A folder's URL or absolute path."""
    text = os.fspath(folder) if is_url(os.fspath(folder)) else shown(Path(folder))
    return text.rstrip("/") if is_url(text) else str(Path(text).resolve())


def job_metadata(
    folder: str | os.PathLike[str], sweep: Sweep, report_url: str = ""
) -> dict[str, str]:
    """Metadata of a sweep's job in Ray's list of jobs (``/api/jobs/``, ``ray job list``).

    Args:
        folder: of the sweep, a path or a URL.
        sweep: its settings.
        report_url: URL of the live report, if served; else the command that serves it is given.
    """
    full_name = _full_name(folder)
    return {
        "job_name": f"nasbo {sweep_name(folder)}",
        "sweep": sweep_name(folder),
        "space": Path(sweep.space).stem,
        "method": sweep.method,
        "trainer": sweep.trainer,
        "folder": full_name,
        "report": report_url or f"nasbo report {full_name} --serve",
    }
