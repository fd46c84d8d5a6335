"""Import of ``nasbo.testing`` without pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
sys.modules["pytest"] = None
import nasbo.cli, nasbo.methods, nasbo.search
import nasbo.testing
"""


def test_without_pytest_it_says_what_to_install() -> None:
    run = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1
    error = "ModuleNotFoundError: nasbo.testing needs the package 'pytest': pip install 'nasbo["
    assert done.stderr.splitlines()[-1].startswith(error)
