"""Published cells: compressed files that ship with nasbo."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path

from nasbo.bench.cell import Cell, Protocol, Record
from nasbo.bench.curves.cell import CurveCell, CurveProtocol
from nasbo.bench.results import one_version_each
from nasbo.bench.run import CELLS, cell_file, make_folder, read_cells, write_record, write_whole
from nasbo.errors import NasboError

SHIPPED = Path(__file__).with_name("published")
"""Files that ship with nasbo, so that results can be compared without hours of computing."""
_LEFT_OUT = ("configs",)
"""Keys left out: half of the size, and not needed by the tables."""


def publish_cells(out: Path, file: Path) -> int:
    """Write one version of each cell of a folder as compressed JSON lines; returns their number."""
    return write_published(read_cells(out), file)


def write_published(cells: Iterable[Record], file: Path) -> int:
    """Write cells, one version of each, as compressed JSON lines; returns their number."""
    records = sorted(one_version_each(cells)[0], key=_file_of)
    lines = [
        json.dumps({k: v for k, v in record.items() if k not in _LEFT_OUT}, separators=(",", ":"))
        for record in records
    ]
    make_folder(file.parent)
    write_whole(file, lzma.compress("\n".join(lines).encode()))
    return len(lines)


def adopt_cells(out: Path, folder: Path = SHIPPED) -> int:
    """Copy published cells into the folder of a benchmark; returns the number of new ones.

    Args:
        out: folder of a benchmark.
        folder: folder of the published files.
    """
    make_folder(out / CELLS)
    n_new = 0
    for file in sorted(folder.glob("*.jsonl.xz")):
        for record in read_published(file):
            path = out / CELLS / _file_of(record)
            if not path.exists():
                write_record(path, record)
                n_new += 1
    return n_new


def read_published(file: Path) -> list[Record]:
    """The cells of a file; raises ``NasboError`` if it is not a file of cells."""
    try:
        return [json.loads(line) for line in lzma.decompress(file.read_bytes()).splitlines()]
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise NasboError(f"{file}: is no file of cells: {error}") from error


def is_by_cost(record: Record) -> bool:
    """Whether a record is of a cell by cost."""
    return "budget" in record["key"]


def curve_cell_of(record: Record) -> CurveCell:
    """The cell by cost that a record is of."""
    key = record["key"]
    protocol = CurveProtocol(key["budget"], key["workers"])
    return CurveCell(key["problem"], record["label"], key["seed"], protocol)


def cell_of(record: Record) -> Cell:
    """The cell over trials that a record is of."""
    key = record["key"]
    protocol = Protocol(key["trials"], key["batch"], key["design"])
    return Cell(key["problem"], record["label"], key["seed"], protocol)


def _file_of(record: Record) -> str:
    cell = curve_cell_of(record) if is_by_cost(record) else cell_of(record)
    return cell_file(cell, record["key"])
