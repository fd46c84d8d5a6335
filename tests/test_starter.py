"""What ``nasbo init`` writes: it runs, goes on exactly, and overwrites nothing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.shipped import ROOT
from nasbo.space import load_space
from nasbo.starter import FOLDER, KINDS, next_commands, write_starter
from nasbo.sweeps import load_sweep
from nasbo.sweeps.settings import make_sweep, read_settings
from trainers.session import LocalSession

CONFIG = {
    "layers": 2, "channels": [8, 8], "kernel": [3, 5], "optimizer": "sgd", "momentum": 0.9,
    "learning_rate": 0.05, "dropout": 0.3,
}  # fmt: skip
OPTIONS = {"epochs": 3}


@pytest.fixture(scope="module")
def starter() -> ModuleType:
    """The trainer of ``--torch``, imported from where it is shipped."""
    spec = importlib.util.spec_from_file_location("starter", FOLDER / "torch" / "trainer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Killed(LocalSession):
    """Breaks off at a step, before anybody has heard of it."""

    def report(self, metrics: dict[str, Any], step: int | None = None) -> bool:
        if step == 2:
            raise InterruptedError
        return super().report(metrics, step)


@pytest.mark.parametrize("kind", KINDS)
def test_a_starter_is_written_once(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "new" / "sweep"
    done = CliRunner().invoke(cli, ["init", str(target), f"--{kind}"])
    assert done.exit_code == 0, done.output
    assert {"space.yaml", "sweep.yaml", "README.md"} < {file.name for file in target.iterdir()}
    assert f"cd {target}" in done.output
    assert "nasbo run sweep.yaml --dir runs/first" in done.output
    (target / "sweep.yaml").unlink()
    mine = target / "space.yaml"
    mine.write_text("mine: {type: float, range: [0, 1]}\n")
    again = CliRunner().invoke(cli, ["init", str(target), f"--{kind}"])
    assert again.exit_code == 2
    assert f"{mine}" in again.output
    assert "are not overwritten" in again.output
    assert not (target / "sweep.yaml").exists()
    assert mine.read_text().startswith("mine")


@pytest.mark.parametrize("kind", KINDS)
def test_its_settings_and_its_space_can_be_read(kind: str, tmp_path: Path) -> None:
    write_starter(kind, tmp_path)
    sweep = make_sweep(read_settings(tmp_path / "sweep.yaml"))
    assert load_space(sweep.space).n_subspaces > 1
    assert "@" not in (tmp_path / "sweep.yaml").read_text()


def test_in_the_working_directory_there_is_nowhere_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["init"])
    assert (tmp_path / "trainer.py").exists()
    assert "cd " not in done.output
    assert next_commands("torch", tmp_path)[0].startswith("nasbo run")


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(cli, ["init", str(tmp_path / "file" / "below")])
    assert done.exit_code == 2
    assert "cannot be written" in done.output


def test_every_config_of_its_space_can_be_trained(starter: ModuleType) -> None:
    space, rng = load_space(FOLDER / "torch" / "space.yaml"), np.random.default_rng(0)
    for subspace in space.subspaces():
        config = subspace.sample_config(rng)
        network = starter.build(config)
        assert network(torch.zeros(2, *starter.SHAPE)).shape == (2, starter.CLASSES)
        assert starter.make_optimizer(config, network)
        assert starter.summary(config)["params"] == sum(p.numel() for p in network.parameters())


def test_it_learns_and_a_killed_training_ends_with_the_same_bits(
    starter: ModuleType, tmp_path: Path
) -> None:
    whole = LocalSession(tmp_path / "whole", 1, {"epochs": 4})
    starter.train(CONFIG, whole)
    assert whole.reports[-1]["val_accuracy"] > 0.5 > 2 / starter.CLASSES - 0.1
    with pytest.raises(InterruptedError):
        starter.train(CONFIG, Killed(tmp_path / "killed", 1, {"epochs": 4}))
    again = LocalSession(tmp_path / "killed", 1, {"epochs": 4})
    starter.train(CONFIG, again)
    assert again.reports == whole.reports[2:]
    ends = [torch.load(tmp_path / name / starter.CHECKPOINT) for name in ("whole", "killed")]
    first, second = (end["network"] for end in ends)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_it_pauses_where_it_is_told_and_goes_on(starter: ModuleType, tmp_path: Path) -> None:
    whole = LocalSession(tmp_path / "whole", 1, OPTIONS)
    starter.train(CONFIG, whole)
    paused = LocalSession(tmp_path / "trial", 1, OPTIONS, until=1)
    starter.train(CONFIG, paused)
    assert paused.reports == whole.reports[:1]
    starter.train(CONFIG, paused)  # killed before its report was heard: it says it again
    assert paused.reports == [whole.reports[0]] * 2
    on = LocalSession(tmp_path / "trial", 1, OPTIONS)
    starter.train(CONFIG, on)
    assert on.reports == whole.reports[1:]
    assert starter.steps(OPTIONS) == 3


@pytest.mark.ray
def test_its_sweep_runs(tmp_path: Path) -> None:
    write_starter("torch", tmp_path)
    words = ("run", "sweep.yaml", "--trials", "2", "--dir", "runs/first", "-o", "epochs=1")
    done = subprocess.run(
        [sys.executable, "-m", "nasbo.cli", *words, "--address", "local"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        timeout=540,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    sweep = load_sweep(tmp_path / "runs" / "first")
    assert [trial.state for trial in sweep.trials] == ["finished"] * 2
    assert set(sweep.best.metrics) >= {"val_accuracy", "val_loss", "train_loss"}
