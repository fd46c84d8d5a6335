"""Guide for authors of methods: its files are a package that passes the contracts."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "nasbo" / "methods" / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The files of the guide, as installed by pip."""
    for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        name = block.partition("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(block, encoding="utf-8")
    (toml,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    points = tomllib.loads(toml)["project"]["entry-points"]["nasbo.methods"]
    lines = ["[nasbo.methods]", *(f"{name} = {path}" for name, path in points.items())]
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(lines))
    return tmp_path


def test_methods_of_the_guide_pass_the_contracts(package: Path) -> None:
    files = sorted(file.name for file in package.glob("*.py"))
    assert files == ["neighbours.py", "rational.py", "test_mine.py", "test_spreads.py"]
    strict = ["--strict-markers", "-W", "error::pytest.PytestWarning"]
    run = [sys.executable, "-m", "pytest", "-q", *strict, "--rootdir", str(package)]
    done = subprocess.run(run, cwd=package, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    (n_passed,) = re.findall(r"^(\d+) passed", done.stdout, re.MULTILINE)
    assert int(n_passed) > 100


def test_methods_of_the_guide_are_short() -> None:
    for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        code = [line for line in block.splitlines() if line.strip()]
        assert len(code) <= 35
