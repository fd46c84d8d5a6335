"""Command of a subprocess that runs a module of this package.

`python -m` would look into the working directory first, where a user may have
another package `trainers`.
"""

from __future__ import annotations

import sys
from pathlib import Path

_START = """
import importlib.util, runpy, sys
folder, module = sys.argv[1:]
spec = importlib.util.spec_from_file_location(
    "trainers", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules["trainers"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["trainers"])
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def command(module: str) -> list[str]:
    """The command that runs a module such as `trainers.ranks` as the main
    module of a new process.
    """
    return [sys.executable, "-c", _START, str(Path(__file__).resolve().parent), module]
