"""Records of launches, one per folder, on the launching machine."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nasbo.errors import SweepError


@dataclass(frozen=True)
class Record:
    """A launched sweep.

    Attributes:
        folder: of the sweep, a path or a URL.
        on: ``local``, ``slurm``, ``kuberay`` or the address of a Ray cluster.
        id: of the process or job there.
        log: file with the driver's output, if any.
        time: of the launch.
    """

    folder: str
    on: str
    id: str
    log: str = ""
    time: float = field(default_factory=time.time)


def state_folder() -> Path:
    """``$NASBO_STATE``, else the user's state folder (XDG)."""
    own = os.environ.get("NASBO_STATE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "nasbo"


def record_file(folder: str) -> Path:
    return state_folder() / "launches" / f"{hashlib.sha256(folder.encode()).hexdigest()[:16]}.json"


def save(record: Record) -> None:
    """Store a launch; it replaces an earlier one of the same folder."""
    file = record_file(record.folder)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(record), indent=1), encoding="utf-8")
    partial.replace(file)


def load(folder: str) -> Record | None:
    """The last launch of a folder from this machine, if any."""
    file = record_file(folder)
    try:
        return Record(**json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise SweepError(f"{file}: cannot be read: {error}; delete it") from error


def log_file(folder: str, is_remote: bool) -> Path:
    """File of a driver's output: in the sweep's folder, or next to the records."""
    if not is_remote:
        return Path(folder) / "driver.log"
    return record_file(folder).with_suffix(".log")
