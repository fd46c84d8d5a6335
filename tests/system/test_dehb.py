"""DEHB, whose pinned NumPy conflicts with ours, on a small problem with learning curves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".venv-dehb"
SCRIPT = """
import json, sys
from nasbo.bench.curves.cell import CurveCell, CurveProtocol, run_curve_cell
print(json.dumps(run_curve_cell(CurveCell(sys.argv[1], "dehb+hb", 1, CurveProtocol(budget=6)))))
"""


def cell(problem: str) -> dict[str, Any]:
    """A cell of DEHB, run in a process with the package on its path."""
    if not (PACKAGES / "dehb").is_dir():
        pytest.fail("DEHB is missing: make dehb")
    path = os.pathsep.join([str(ROOT), str(PACKAGES)])
    command = [sys.executable, "-c", SCRIPT, problem]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "problem", ["tests.bench.tiny:curved_problem", "tests.bench.tiny:pool_problem"]
)
def test_it_keeps_the_budget_and_trains_some_in_full(problem: str) -> None:
    first, second = cell(problem), cell(problem)
    for changing in ("seconds", "made"):
        first.pop(changing), second.pop(changing)
    assert first == second
    assert 4.5 < first["spent"] <= 6
    assert min(first["steps"]) < max(first["steps"]) == 18
    assert "DEHB 0" in first["key"]["version"]
