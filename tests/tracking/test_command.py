"""``nasbo track`` on the command line, as far as it needs no tracker."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nasbo.cli import cli
from nasbo.commands.tracking import NAMES
from nasbo.errors import NasboError
from nasbo.tracking import DESTINATIONS, Wish, open_destination
from tests.report.sample import make_folder


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_missing_package_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    result = CliRunner().invoke(cli, ["track", str(tmp_path), "--to", name])
    assert result.exit_code == 2
    assert f"--to {name} needs the package {name}: pip install 'nasbo[{name}]'" in result.output


def test_names_of_trackers() -> None:
    assert tuple(DESTINATIONS) == NAMES
    with pytest.raises(NasboError, match="unknown tracker 'comet'; known: mlflow, wandb, tens"):
        open_destination("comet", Wish())


def test_patience_goes_with_follow(tmp_path: Path) -> None:
    words = ["track", str(tmp_path), "--to", "tensorboard", "--patience", "1m"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2
    assert "--patience goes with --follow" in result.output


def _scalars(folder: Path, name: str) -> list[tuple[int, float]]:
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    return [(event.step, event.value) for event in found.Scalars(name)]


def test_tensorboard_files_are_there_once(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "s", 6, "svm", method="random")
    before = sorted(folder.rglob("*"))
    target = tmp_path / "shown"
    words = ["track", str(folder), "--to", "tensorboard", "--tracking-uri", str(target)]
    for _ in range(2):
        result = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    assert f"tensorboard --logdir {target}" in result.output
    assert [step for step, _ in _scalars(target, "best/val_accuracy")] == [*range(1, 7)]
    first = _scalars(target / "trials" / "00000", "val_accuracy")
    assert [step for step, _ in first] == [1, 2, 3]
    assert sorted(folder.rglob("*")) == before, "the sweep's own folder is left alone"


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "s", 2, "svm", method="random")
    words = ["track", str(folder), "--to", "tensorboard", "--tracking-uri", str(tmp_path)]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2
    assert "holds other files than this sweep's" in result.output


def test_ctrl_c_ends_it_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "s", 2, "svm", budget=9, method="random")
    words = ["--to", "tensorboard", "--tracking-uri", str(tmp_path / "shown"), "--follow"]
    command = [sys.executable, "-m", "nasbo.cli", "track", str(folder), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "shown in" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "ended here; the same command goes on\n"
    assert process.returncode == 130
