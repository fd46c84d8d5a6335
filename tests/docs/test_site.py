"""The documentation site: built as `make docs` does, with every warning an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    built = tmp_path / "site"
    words = [
        "-E",
        "-W",
        "--keep-going",
        "-q",
        "-c",
        "docs",
        "-d",
        str(tmp_path / "trees"),
        ".",
        built,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "nasbo" in (built / "docs" / "index.html").read_text(encoding="utf-8")
