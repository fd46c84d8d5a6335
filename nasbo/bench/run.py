"""Runner of a benchmark: the cells of a plan in parallel processes, one result file each."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nasbo.bench.cell import Cell, Record, cell_key, key_hash, run_cell
from nasbo.bench.curves.cell import CurveCell, curve_cell_key, run_curve_cell
from nasbo.bench.plan import Plan
from nasbo.bench.workers import run_tasks
from nasbo.errors import NasboError

CELLS, CRASHES, PLAN = "cells", "crashes", "plan.json"


@dataclass(frozen=True)
class Settings:
    """Settings of a run of a plan.

    Attributes:
        out: the folder of the results.
        fresh: whether finished cells are run again.
        fresh: whether finished cells are run again.
        any_version: whether cells of other versions of a method count as finished.
        command: command that the tables name as their origin.
    """

    out: Path
    jobs: int = 2
    fresh: bool = False
    any_version: bool = False
    command: str = ""


@dataclass
class Progress:
    """Progress of a run: number of cells, cached, run, and tracebacks of crashed ones."""

    n_cells: int
    n_cached: int = 0
    n_run: int = 0
    crashes: dict[Cell | CurveCell, str] = field(default_factory=dict)

    @property
    def n_left(self) -> int:
        return self.n_cells - self.n_cached - self.n_run - len(self.crashes)


def run_plan(
    plan: Plan, settings: Settings, on_progress: Callable[[Progress], Any] = lambda state: None
) -> Progress:
    """Run the cells that are not finished.

    A crashed cell is recorded with its traceback and does not stop the others. The
    next run tries it again.

    Args:
        plan: what to run.
        settings: where and how.
        on_progress: called at the start and after each cell.
    """
    make_folder(settings.out / CELLS)
    write_record(settings.out / PLAN, plan_record(plan) | {"command": settings.command})
    files = {cell: _file_of(cell, plan, settings.out) for cell in plan.cells}
    waiting = [cell for cell in files if settings.fresh or not _is_known(files[cell], settings)]
    state = Progress(len(files), n_cached=len(files) - len(waiting))
    on_progress(state)
    for outcome in run_tasks(run_any_cell, waiting, settings.jobs):
        file = files[outcome.task].path
        crash = settings.out / CRASHES / f"{file.stem}.txt"
        if outcome.error:
            state.crashes[outcome.task] = outcome.error
            make_folder(crash.parent)
            crash.write_text(outcome.error, encoding="utf-8")
        else:
            state.n_run += 1
            write_record(file, outcome.result)
            crash.unlink(missing_ok=True)
        on_progress(state)
    return state


def run_any_cell(cell: Cell | CurveCell) -> Record:
    """Run one cell, over trials or by cost."""
    return run_curve_cell(cell) if isinstance(cell, CurveCell) else run_cell(cell)


@dataclass(frozen=True)
class _File:
    """Path of a cell's result, and its expected key."""

    path: Path
    key: Record


def _file_of(cell: Cell | CurveCell, plan: Plan, out: Path) -> _File:
    problem = plan.problems[cell.problem]
    key = curve_cell_key(cell, problem) if isinstance(cell, CurveCell) else cell_key(cell, problem)
    return _File(out / CELLS / cell_file(cell, key), key)


def cell_file(cell: Cell | CurveCell, key: Record) -> str:
    """File name of a cell: readable parts, then the hash of the whole key."""
    readable = f"{cell.problem}--{cell.method}--seed{cell.seed}"
    return f"{re.sub(r'[^A-Za-z0-9_.=@-]+', '_', readable)}--{key_hash(key)}.json"


def plan_record(plan: Plan) -> Record:
    """A plan as it is stored in the folder, for the tables."""
    return {"parts": [asdict(part) for part in plan.parts], "left_out": dict(plan.left_out)}


def read_cells(out: Path) -> list[Record]:
    """All finished cells of a folder.

    Raises:
        NasboError: there are none, or a file is not a cell.
    """
    files = sorted((out / CELLS).glob("*.json"))
    if not files:
        raise NasboError(f"{out}: there are no finished cells in {CELLS}/")
    return [_read(file) for file in files]


def read_record(file: Path) -> Record:
    """Read a JSON object from a file."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NasboError(f"{file}: cannot be read: {error}") from error
    if not isinstance(record, dict):
        raise NasboError(f"{file}: must hold an object, got {type(record).__name__}")
    return record


def _read(file: Path) -> Record:
    record = read_record(file)
    if missing := {"key", "label", "rounds"} - set(record):
        raise NasboError(f"{file}: is no cell of a benchmark: {min(missing)!r} is missing")
    return record


def _is_known(file: _File, settings: Settings) -> bool:
    if file.path.is_file():
        return True
    if not settings.any_version:
        return False
    wanted, _, _ = file.path.name.rpartition("--")
    others = file.path.parent.glob(f"{glob.escape(wanted)}--*.json")
    return any(
        without_version(_read(other)["key"]) == without_version(file.key) for other in others
    )


def without_version(key: Record) -> Record:
    """A key without the version of the method."""
    return {name: value for name, value in key.items() if name != "version"}


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; raises ``NasboError`` if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NasboError(f"{folder}: cannot be made: {error}") from error


def write_record(path: Path, record: Record | Sequence[Any]) -> None:
    """Write a JSON file atomically: a cell's file exists only when it is finished."""
    write_whole(path, json.dumps(record, separators=(",", ":")).encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically, by rename; raises ``NasboError`` if that fails."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):  # the disk may be gone; the first error counts
            partial.unlink(missing_ok=True)
        raise NasboError(f"{path}: cannot be written: {error}") from error
