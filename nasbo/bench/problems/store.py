"""Store of the values of expensive problems on disk, shared by all processes.

Some values ship with nasbo, so that hours of training need not be repeated. They are used where the
file on this machine has none.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from nasbo.bench.problems.folders import tables_folder
from nasbo.errors import NasboError

PATIENCE_S = 60.0
SHIPPED = Path(__file__).resolve().parents[1] / "published" / "values"
"""Folder of the values that ship with nasbo, one file per store."""
_TABLE = """CREATE TABLE IF NOT EXISTS results (
    made_with TEXT, key TEXT, value REAL NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (made_with, key)
)"""


@dataclass(frozen=True)
class Result:
    """A stored value and the CPU seconds of its computation."""

    key: str
    value: float
    seconds: float


@dataclass(frozen=True)
class Store:
    """Values of one problem in one SQLite file.

    Every call opens the file anew: processes may share it, and a fork inherits no connection.

    Attributes:
        name: name and version of the problem, which is the name of the file.
        made_with: versions of the packages that computed the values; values of others are ignored.
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
            return self._find_shipped(key)
        with self._open() as database:
            row = database.execute(
                "SELECT value FROM results WHERE made_with = ? AND key = ?", (self.made_with, key)
            ).fetchone()
        return self._find_shipped(key) if row is None else float(row[0])

    def _find_shipped(self, key: str) -> float | None:
        known = shipped(self.name, self.made_with).get(key)
        return None if known is None else known.value

    def add(self, *results: Result) -> None:
        """Add values; an existing value of a key is kept."""
        rows = [(self.made_with, one.key, one.value, one.seconds) for one in results]
        with self._open() as database:
            database.executemany("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)", rows)

    def curve(self, key: str, n_steps: int, compute: Callable[[], Sequence[float]]) -> list[float]:
        """The stored values of a key after 1, 2, ... steps; computed and stored if there are none.

        Each step is stored as a value of its own; the CPU seconds are divided among them.
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
        """The stored values of keys, if all exist."""
        known = shipped(self.name, self.made_with)
        found = {key: known[key].value for key in keys if key in known}
        if self.path.exists():
            query = "SELECT key, value FROM results WHERE made_with = ? AND key IN "
            query += f"({','.join('?' * len(keys))})"
            with self._open() as database:
                found |= dict(database.execute(query, (self.made_with, *keys)).fetchall())
        return [float(found[key]) for key in keys] if len(found) == len(keys) else None

    def results(self) -> list[Result]:
        """All values stored for these versions, ordered by key."""
        found = dict(shipped(self.name, self.made_with))
        if self.path.exists():
            query = "SELECT key, value, seconds FROM results WHERE made_with = ?"
            with self._open() as database:
                rows = database.execute(query, (self.made_with,)).fetchall()
            found |= {one.key: one for one in (Result(*row) for row in rows)}
        return [found[key] for key in sorted(found)]

    def publish(self, file: Path) -> int:
        """Write all values as compressed JSON lines; returns their number."""
        lines = [json.dumps({"made_with": self.made_with} | asdict(one)) for one in self.results()]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(lzma.compress("\n".join(lines).encode()))
        return len(lines)

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


@lru_cache
def shipped(name: str, made_with: str) -> dict[str, Result]:
    """The values of a store that ship with nasbo, by key."""
    file = SHIPPED / f"{name}.jsonl.xz"
    if not file.is_file():
        return {}
    rows = (json.loads(line) for line in lzma.decompress(file.read_bytes()).splitlines())
    return {
        row["key"]: Result(row["key"], row["value"], row["seconds"])
        for row in rows
        if row["made_with"] == made_with
    }
