"""Keys and values come in and stay on disk: expensive evaluations, shared by all processes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
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

    def add(self, *results: Result) -> None:
        """Keep values; the first one of a key stays."""
        rows = [(self.made_with, one.key, one.value, one.seconds) for one in results]
        with self._open() as database:
            database.executemany("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)", rows)

    def curve(self, key: str, n_steps: int, compute: Callable[[], Sequence[float]]) -> list[float]:
        """The stored values of a key after 1, 2, ... steps; computed and stored if there are none.

        Each step is a value of its own; the seconds are shared among them.
        """
        keys = [f"{key} step {step}" for step in range(1, n_steps + 1)]
        if (known := self._find_all(keys)) is not None:
            return known
        begin = time.process_time()
        values = [float(value) for value in compute()]
        seconds = (time.process_time() - begin) / n_steps
        self.add(*(Result(k, v, seconds) for k, v in zip(keys, values, strict=True)))
        return values

    def _find_all(self, keys: Sequence[str]) -> list[float] | None:
        """The stored values of keys, if all are there."""
        if not self.path.exists():
            return None
        query = "SELECT key, value FROM results WHERE made_with = ? AND key IN "
        query += f"({','.join('?' * len(keys))})"
        with self._open() as database:
            found = dict(database.execute(query, (self.made_with, *keys)).fetchall())
        return [float(found[key]) for key in keys] if len(found) == len(keys) else None

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
