"""Folders of data sets and of stored values, from environment variables."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """The folder of all data sets: $NASBO_DATA, else ~/.cache/nasbo."""
    return Path(os.environ.get("NASBO_DATA") or "~/.cache/nasbo").expanduser()


def tables_folder() -> Path:
    """The folder of stored values: $NASBO_TABLES, else `tables` in the data folder."""
    own = os.environ.get("NASBO_TABLES")
    return Path(own).expanduser() if own else data_folder() / "tables"
