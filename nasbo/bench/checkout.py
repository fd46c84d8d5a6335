"""Checkout of nasbo whose code runs cells in a separate process."""

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
"""The checkout that contains this module."""
_SCRIPT = Path(__file__).with_name("replay.py")
_NO_CODE = ("__pycache__", "published")


@dataclass(frozen=True)
class Checkout:
    """The code in one folder, run with the packages of this process.

    Attributes:
        root: the folder that holds ``nasbo/``.
    """

    root: Path

    def __post_init__(self) -> None:
        if not (self.root / "nasbo" / "bench" / "cell.py").is_file():
            raise NasboError(f"{self.root}: is no checkout: there is no nasbo/bench/cell.py")

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all code in ``nasbo/``; a cell's version covers only the deciding code."""
        digest = hashlib.sha256()
        for file in sorted((self.root / "nasbo").rglob("*")):
            name = file.relative_to(self.root)
            if file.is_file() and not set(_NO_CODE) & set(name.parts):
                digest.update(f"{name}\n".encode() + file.read_bytes())
        return digest.hexdigest()[:12]

    def keys(self, cells: Sequence[Cell]) -> list[Outcome[Cell]]:
        """The key of each cell, in order; an error if the cell cannot be run here."""
        return list(self._ask(cells, jobs=0))

    def run(self, cells: Sequence[Cell], jobs: int) -> Generator[Outcome[Cell], None, None]:
        """Run cells in ``jobs`` processes of one thread each; yields outcomes as they finish."""
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
                start_new_session=True,  # an interrupt reaches it once, from this process
            ) as process:
                try:
                    for line in process.stdout or ():
                        answer = json.loads(line)
                        yield Outcome(cells[answer["at"]], answer["result"], answer["error"])
                except BaseException:  # the caller has stopped waiting
                    process.terminate()
                    raise
            if process.returncode:
                errors.seek(0)
                text = last_line(errors.read()) or f"exit code {process.returncode}"
                raise NasboError(f"{self.root}: its code cannot be run here: {text}")


def machine_tag() -> str:
    """Hash of what affects the last digits: processor, Python and package versions."""
    packages = sorted(f"{one.name} {one.version}" for one in importlib.metadata.distributions())
    told = [platform.platform(), _processor(), platform.python_version(), *packages]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]


def last_line(text: str) -> str:
    """The last line of a traceback."""
    return text.strip().rpartition("\n")[2]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith("model name")), platform.machine())
