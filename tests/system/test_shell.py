"""Shell scripts of the recipes, checked by shellcheck."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.system]
ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    [*(ROOT / "cluster").rglob("*.sh"), *(ROOT / "cluster").rglob("*.sbatch")], key=str
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_finds_nothing(script: Path) -> None:
    program = shutil.which("shellcheck")
    assert program, "shellcheck is missing: apt-get install shellcheck"
    done = subprocess.run([program, "-x", str(script)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_there_are_scripts() -> None:
    assert {script.name for script in SCRIPTS} >= {"start.sh", "sweep.sbatch"}
