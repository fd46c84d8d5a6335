"""Lightning and timm in an environment of their own, which sees the packages of this one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.launch.hosts import ROOT

PYTHON = Path(os.environ.get("NASBO_KIT") or ROOT / ".venv-kit" / "bin" / "python")


def run(*words: str | Path, folder: Path, seconds: float = 900) -> str:
    """What Python prints there that ends well."""
    assert PYTHON.exists(), f"{PYTHON} is missing: make kit"
    done = subprocess.run(
        [str(PYTHON), *map(str, words)], cwd=folder, capture_output=True, text=True, check=False,
        timeout=seconds, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
