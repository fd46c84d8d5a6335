"""A checkout of nasbo whose code is asked for cells, in a process of its own."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from nasbo.bench.cell import Cell
from nasbo.bench.workers import Outcome
from nasbo.errors import NasboError

PRESENT = Path(__file__).resolve().parents[2]
"""The checkout that this module is part of."""
_SCRIPT = Path(__file__).with_name("replay.py")
_NO_CODE = ("__pycache__", "published")


@dataclass(frozen=True)
class Checkout:
    """The code below one folder, run with the packages of this process.

    Attributes:
        root: the folder that holds ``nasbo/``.
    """

    root: Path

    def __post_init__(self) -> None:
        if not (self.root / "nasbo" / "bench" / "cell.py").is_file():
            raise NasboError(f"{self.root}: is no checkout: there is no nasbo/bench/cell.py")

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all code in ``nasbo/``; a cell's version covers the deciding part only."""
        digest = hashlib.sha256()
        for file in sorted((self.root / "nasbo").rglob("*")):
            name = file.relative_to(self.root)
            if file.is_file() and not set(_NO_CODE) & set(name.parts):
                digest.update(f"{name}\n".encode() + file.read_bytes())
        return digest.hexdigest()[:12]

    def keys(self, cells: Sequence[Cell]) -> list[Outcome[Cell]]:
        """The key of each cell, in their order; an error where it cannot be run here."""
        return list(self._ask(cells, jobs=0))

    def run(self, cells: Sequence[Cell], jobs: int) -> Generator[Outcome[Cell], None, None]:
        """Run cells, ``jobs`` at a time, one thread each; in the order in which they end."""
        return self._ask(cells, jobs)

    def _ask(self, cells: Sequence[Cell], jobs: int) -> Generator[Outcome[Cell], None, None]:
        root = self.root.resolve()
        paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
        asked = {"root": str(root), "jobs": jobs, "cells": [asdict(cell) for cell in cells]}
        with tempfile.TemporaryFile("w+") as request, tempfile.TemporaryFile("w+") as errors:
            json.dump(asked, request)
            request.seek(0)
            with subprocess.Popen(
                [sys.executable, "-P", str(_SCRIPT)],
                stdin=request,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                text=True,
                start_new_session=True,  # an interrupt reaches it once, from here
            ) as process:
                try:
                    for line in process.stdout or ():
                        answer = json.loads(line)
                        yield Outcome(cells[answer["at"]], answer["result"], answer["error"])
                except BaseException:  # nobody waits for the rest
                    process.terminate()
                    raise
            if process.returncode:
                errors.seek(0)
                text = last_line(errors.read()) or f"exit code {process.returncode}"
                raise NasboError(f"{self.root}: its code cannot be run here: {text}")


def machine_tag() -> str:
    """A short text for what changes the last digits: processor, Python and packages."""
    packages = sorted(f"{one.name} {one.version}" for one in importlib.metadata.distributions())
    told = [platform.platform(), _processor(), platform.python_version(), *packages]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]


def last_line(text: str) -> str:
    """What a traceback ends with."""
    return text.strip().rpartition("\n")[2]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith("model name")), platform.machine())
