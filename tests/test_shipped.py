"""Shipped trainers and a user's package of the same name, each in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nasbo.errors import SweepError
from nasbo.shipped import ROOT, check_own_name
from nasbo.trainer import check_outside
from nasbo.tune.shipping import is_local_code

SHIPPED = "trainers.cifar10:train"
OWN_TRAINER = "from trainers.data import VALUE\n\ndef train(config):\n    return VALUE\n"
LOAD = """
import sys
from nasbo.trainer import load_trainer

for path in sys.argv[1:]:
    function = load_trainer(path).function
    print(function.__code__.co_filename)
"""
WORKER = """
import os, sys
import ray

ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False,
         logging_level="ERROR", runtime_env={"working_dir": os.getcwd()})

@ray.remote
def look(path):
    from nasbo.trainer import load_trainer
    from nasbo.tune.trial import HOME
    return load_trainer(path, HOME).function.__code__.co_filename

for path in sys.argv[1:]:
    print(ray.get(look.options(runtime_env={"env_vars": {"FOR": path}}).remote(path)))
ray.shutdown()
"""


def write_own(folder: Path, kind: str) -> Path:
    """A user's ``trainers``: a package, a folder without ``__init__.py`` or a module."""
    if kind == "module":
        (folder / "trainers.py").write_text("def train(config):\n    return 5.0\n")
        return folder
    own = folder / "trainers"
    own.mkdir()
    (own / "mine.py").write_text(OWN_TRAINER)
    (own / "data.py").write_text("VALUE = 7.0\n")  # a shipped module has the same name
    if kind == "package":
        (own / "__init__.py").write_text("from trainers.data import VALUE\n")
    return folder


def printed(folder: Path, *words: str) -> list[str]:
    """Output of a process that was started in a folder, which is first on its path."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env={**os.environ, "PYTHONPATH": paths},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("kind", ["package", "folder", "module"])
def test_the_shipped_trainer_is_found_beside_a_users_own(kind: str, tmp_path: Path) -> None:
    found = printed(write_own(tmp_path, kind), "-c", LOAD, SHIPPED)
    assert [Path(file).parent for file in found] == [ROOT / "trainers"]


@pytest.mark.parametrize("kind", ["package", "folder", "module"])
def test_a_users_own_trainer_is_found_beside_the_shipped(kind: str, tmp_path: Path) -> None:
    own = "trainers:train" if kind == "module" else "trainers.mine:train"
    found = printed(write_own(tmp_path, kind), "-c", LOAD, SHIPPED, own, SHIPPED)
    assert [Path(file).is_relative_to(tmp_path) for file in found] == [False, True, False]


@pytest.mark.ray
@pytest.mark.parametrize("kind", ["package", "folder"])
def test_workers_that_were_shipped_the_folder(kind: str, tmp_path: Path) -> None:
    found = printed(write_own(tmp_path, kind), "-c", WORKER, SHIPPED, "trainers.mine:train")
    assert Path(found[0]).parent == ROOT / "trainers"
    assert found[1].endswith("/trainers/mine.py")


@pytest.mark.ray
@pytest.mark.parametrize("kind", ["package", "folder"])
def test_a_sweep_with_a_trainer_of_such_a_package(kind: str, tmp_path: Path) -> None:
    words = ("--trainer", "trainers.mine:train", "--method", "random", "--trials", "1")
    command = ("-m", "nasbo.cli", "run", "simulation", *words, "--dir", "runs/x")
    said = printed(write_own(tmp_path, kind), *command)
    assert any(line.startswith("best: trial 0, value 7") for line in said), said


def test_a_name_for_two_files_is_refused_where_a_user_wrote_it(tmp_path: Path) -> None:
    own = write_own(tmp_path, "folder") / "trainers" / "cifar10.py"
    check_own_name(SHIPPED, tmp_path)
    own.write_text("def train(config): return 0.0\n")
    with pytest.raises(SweepError, match=r"may be .* or nasbo's own .*: rename the first") as found:
        check_own_name(SHIPPED, tmp_path)
    assert str(own) in str(found.value)
    assert str(ROOT / "trainers" / "cifar10.py") in str(found.value)
    check_own_name(SHIPPED, ROOT)
    check_own_name("trainers.mine:train", tmp_path)
    assert Path(printed(tmp_path, "-c", LOAD, SHIPPED)[0]).parent == ROOT / "trainers"


def test_the_command_line_refuses_it_too(tmp_path: Path) -> None:
    write_own(tmp_path, "folder").joinpath("trainers", "cifar10.py").write_text("")
    command = [sys.executable, "-m", "nasbo.cli", "run", "nas_cifar10", "--trainer", SHIPPED]
    done = subprocess.run(
        [*command, "--dry-run"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, "rename the first" in done.stderr) == (2, True), done.stderr


def test_a_folder_of_that_name_holds_no_shipped_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_own(tmp_path, "package")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    check_outside(SHIPPED, tmp_path / "trainers")
    with pytest.raises(SweepError, match="lies in the sweep's own folder"):
        check_outside("trainers.mine:train", tmp_path / "trainers")
    with pytest.raises(SweepError, match="lies in the sweep's own folder"):
        check_outside(SHIPPED, ROOT)
    assert not is_local_code(SHIPPED, tmp_path)
    assert is_local_code(SHIPPED, ROOT)


@pytest.mark.parametrize("kind", ["package", "folder", "module"])
def test_a_users_trainer_finds_the_shipped_package_beside_an_own_one(
    kind: str, tmp_path: Path
) -> None:
    write_own(tmp_path, kind)
    text = "from trainers import summarise\n\ndef train(config):\n    return 1.0\n"
    (tmp_path / "own_trainer.py").write_text(text)
    (found,) = printed(tmp_path, "-c", LOAD, "own_trainer:train")
    assert Path(found) == tmp_path / "own_trainer.py"


def test_what_neither_package_has_is_said_with_the_shipped_one(tmp_path: Path) -> None:
    write_own(tmp_path, "package")
    (tmp_path / "own_trainer.py").write_text("from trainers import nothing\n")
    code = LOAD.replace("load_trainer(path)", "load_trainer(path, '.')")
    done = subprocess.run(
        [sys.executable, "-c", code, "own_trainer:train"], cwd=tmp_path, capture_output=True,
        text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120,
    )  # fmt: skip
    assert "own_trainer.py:1: ImportError: cannot import name 'nothing'" in done.stderr


@pytest.mark.parametrize("name", ["cluster", "search_spaces"])
@pytest.mark.parametrize("is_package", [True, False])
def test_folders_of_the_shipped_names_are_no_obstacle(
    name: str, is_package: bool, tmp_path: Path
) -> None:
    own = tmp_path / name
    own.mkdir()
    (own / "mine.py").write_text("def train(config):\n    return 7.0\n")
    if is_package:
        (own / "__init__.py").write_text("")
    (found,) = printed(tmp_path, "-c", LOAD, f"{name}.mine:train")
    assert Path(found) == own / "mine.py"
    said = printed(tmp_path, "-m", "nasbo.cli", "space", "show", "svm")
    assert str(ROOT / "search_spaces" / "svm.yaml") in said[0]
    words = ("launch", "nas_cifar10", "--on", "slurm", "-o", "recipe=tiny", "--dir", "x")
    said = printed(tmp_path, "-m", "nasbo.cli", *words, "--dry-run")
    assert any(str(ROOT / "cluster" / "slurm") in line for line in said)
    printed(tmp_path, "-m", "nasbo.cli", "grafana", "--out", "boards")
    assert list((tmp_path / "boards").glob("*.json"))
