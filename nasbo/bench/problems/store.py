"""Keys and values come in and stay on disk: expensive evaluations, shared by all processes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nasbo.bench.problems.folders import tables_folder
from nasbo.errors import NasboError

PATIENCE_S = 60.0
_TABLE = """CREATE TABLE IF NOT EXISTS results (
    made_with TEXT, key TEXT, value REAL NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (made_with, key)
)"""


@dataclass(frozen=True)
class Result:
    """A stored value, and the CPU seconds that it once took."""

    key: str
    value: float
    seconds: float


@dataclass(frozen=True)
class Store:
    """Values of one problem in one SQLite file.

    Every call opens the file anew: processes may share it, and a fork holds no connection.

    Attributes:
        name: of the problem, with its version: the name of the file.
        made_with: versions of the packages that computed the values; others are not seen.
    """

    name: str
    made_with: str = ""

    @property
    def path(self) -> Path:
        return tables_folder() / f"{self.name}.sqlite"

    def value(self, key: str, compute: Callable[[], float]) -> float:
        """The stored value of a key; computed and stored if there is none."""
        known = self.find(key)
        if known is not None:
            return known
        begin = time.process_time()
        value = float(compute())
        self.add(Result(key, value, time.process_time() - begin))
        return value

    def find(self, key: str) -> float | None:
        """The stored value of a key, if there is one."""
        if not self.path.exists():
            return None
        with self._open() as database:
            row = database.execute(
                "SELECT value FROM results WHERE made_with = ? AND key = ?", (self.made_with, key)
            ).fetchone()
        return None if row is None else float(row[0])

    def add(self, result: Result) -> None:
        """Keep a value; the first one of a key stays."""
        row = (self.made_with, result.key, result.value, result.seconds)
        with self._open() as database:
            database.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)", row)

    def results(self) -> list[Result]:
        """All that is stored for these versions, in the order of the keys."""
        if not self.path.exists():
            return []
        query = "SELECT key, value, seconds FROM results WHERE made_with = ? ORDER BY key"
        with self._open() as database:
            return [Result(*row) for row in database.execute(query, (self.made_with,))]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self.path, timeout=PATIENCE_S)
            try:
                with database:
                    database.execute(_TABLE)
                    yield database
            finally:
                database.close()
        except (OSError, sqlite3.Error) as error:
            raise NasboError(
                f"{self.path}: values of problems must be readable and writable there, "
                f"or elsewhere by $NASBO_TABLES, but: {error}"
            ) from error
