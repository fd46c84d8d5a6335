"""The wheel, installed by pip into an environment that holds nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nasbo.shipped import ROOT
from trainers.data import data_folder

pytestmark = [pytest.mark.system, pytest.mark.timeout(7200)]
MAX_BYTES = 10_000_000
FOLDERS = {"nasbo", "trainers", "cluster", "search_spaces"}
PYTHON = os.environ.get("NASBO_PYTHON", sys.executable)
"""Of which the environment is made; another one tries another version of Python."""


def run(*command: str | Path, folder: Path, seconds: float = 3600) -> str:
    """What a command prints that ends well; it sees nothing of this environment."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False,
        timeout=seconds, env={**environment, "NASBO_DATA": str(data_folder())},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    words = ("-m", "build", "--wheel", "--no-isolation", "--outdir", target, ROOT)
    run(sys.executable, *words, folder=target)
    (found,) = target.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the commands of a new environment with the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("environment")
    run(PYTHON, "-m", "venv", folder / "venv", folder=folder)
    commands = folder / "venv" / "bin"
    run(commands / "pip", "install", "--disable-pip-version-check", "-q", wheel, folder=folder)
    yield commands
    run("rm", "-rf", folder / "venv", folder=folder)


def test_the_wheel_is_small_and_holds_what_it_should(wheel: Path) -> None:
    assert wheel.stat().st_size < MAX_BYTES
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == FOLDERS
    wanted = {"nasbo/starters/torch/trainer.py", "search_spaces/nas_cifar10.yaml", "nasbo/py.typed"}
    assert wanted | {"trainers/recipes/proxy.yaml"} <= names


def test_the_readmes_first_sweep_runs(installed: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^nasbo run nas_cifar10 .*--dir runs/first$", readme, re.MULTILINE)
    words = re.sub(r"--trials \d+", "--trials 2", command).split()
    said = run(installed / words[0], *words[1:], folder=tmp_path)
    assert "finished: 2 of 2 trials" in said
    assert "best: trial" in said


def test_the_readmes_first_example_runs(installed: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (example,) = (block for block in examples if "nasbo.Search(" in block)
    said = run(installed / "python", "-c", example, folder=tmp_path)
    assert "'kernel': 'rbf'" in said


def test_what_it_writes_for_own_networks_runs(installed: Path, tmp_path: Path) -> None:
    run(installed / "nasbo", "init", "mine", folder=tmp_path)
    words = ("run", "sweep.yaml", "--trials", "2", "--dir", "runs/first", "--address", "local")
    assert "finished: 2 of 2" in run(installed / "nasbo", *words, folder=tmp_path / "mine")


def test_a_bug_report_says_what_is_installed(installed: Path, tmp_path: Path) -> None:
    said = run(installed / "nasbo", "--version", "--verbose", folder=tmp_path)
    assert str(installed.parent) in said
    assert re.search(r"^torch +\d", said, re.MULTILINE)
