"""Reader of W&B's offline files, a JSON list on standard output: ``python wandb_files.py FOLDER``.

A file has a head of 7 bytes and blocks of 32 KiB, in which records may be split; each part has a
checksum of 4 bytes, a length of 2 and a kind of 1 (whole, first, middle, last). Runs in an
environment that has W&B, whose own package knows the records but has no reader in Python.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK, HEAD, PART = 32768, 7, 7
WHOLE, LAST = 1, 4


def records(data: bytes) -> Iterator[bytes]:
    """The records of a file, without one that is not whole."""
    at, found = HEAD, b""
    while at + PART <= len(data):
        if BLOCK - at % BLOCK < PART:
            at += BLOCK - at % BLOCK
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        if kind == 0:
            return
        found += data[at + PART : at + PART + length]
        at += PART + length
        if kind in (WHOLE, LAST):
            yield found
            found = b""


def read(file: Path) -> dict[str, Any]:
    """A run: its id, group, config, rows, summary, files, and whether it ended and how."""
    from wandb.proto.wandb_internal_pb2 import Record

    run: dict[str, Any] = {"config": {}, "rows": [], "summary": {}, "files": [], "exit": None}
    for data in records(file.read_bytes()):
        record = Record.FromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run |= {"id": record.run.run_id, "name": record.run.display_name}
            run |= {"group": record.run.run_group, "kind": record.run.job_type}
            run["config"] |= _plain(record.run.config.update)
        elif kind == "history":
            run["rows"].append(_plain(record.history.item))
        elif kind == "summary":
            run["summary"] |= _plain(record.summary.update)
        elif kind == "files":
            run["files"] += [one.path for one in record.files.files]
        elif kind == "exit":
            run["exit"] = record.exit.exit_code
    return run


def _plain(items: Any) -> dict[str, Any]:
    plain = {".".join(i.nested_key) or i.key: json.loads(i.value_json) for i in items}
    return {name: value for name, value in plain.items() if name != "_wandb"}


if __name__ == "__main__":
    found = sorted(Path(sys.argv[1]).glob("offline-run-*/*.wandb"))
    print(json.dumps([read(file) for file in found]))
