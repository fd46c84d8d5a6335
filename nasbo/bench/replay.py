"""Script that runs cells with the code of one checkout: a request on stdin, JSON lines on stdout.

``nasbo.bench.checkout`` starts it by its path, with another checkout's ``nasbo`` on the path. So it
may only use what every checkout has: ``Cell``, ``cell_key``, ``run_cell``, ``run_tasks``.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from nasbo.bench.cell import Cell, Protocol, cell_key, run_cell
from nasbo.bench.lookup import find_problem
from nasbo.bench.workers import Outcome, run_tasks
from nasbo.errors import NasboError


def main() -> None:
    """Answer one request: the keys of cells, or their results."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # packages may print to stdout
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # also ends the workers
    request = json.load(sys.stdin)
    home = str(Path(inspect.getfile(run_cell)).resolve().parents[2])
    if home != request["root"]:
        sys.exit(f"nasbo must come from {request['root']}, but came from {home}")
    cells = [
        Cell(raw["problem"], raw["method"], raw["seed"], Protocol(**raw["protocol"]))
        for raw in request["cells"]
    ]
    indices = {cell: index for index, cell in enumerate(cells)}
    jobs = request["jobs"]
    for outcome in run_tasks(run_cell, cells, jobs) if jobs else _keys(cells):
        answer = {"at": indices[outcome.task], "result": outcome.result, "error": outcome.error}
        print(json.dumps(answer, default=str), file=answers, flush=True)


def _keys(cells: Sequence[Cell]) -> Iterator[Outcome[Cell]]:
    for cell in cells:
        try:
            yield Outcome(cell, cell_key(cell, find_problem(cell.problem)))
        except NasboError as error:
            yield Outcome(cell, error=str(error))


if __name__ == "__main__":
    main()
