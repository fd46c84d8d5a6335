"""The command that converts spaces."""

from __future__ import annotations

from pathlib import Path

import ConfigSpace
import pytest
from click.testing import CliRunner, Result

from nasbo.cli import cli
from nasbo.errors import NasboError
from nasbo.interchange import convert_space
from nasbo.space import load_space


def _convert(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["space", "convert", *map(str, arguments)])


def test_chain_of_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = _convert("svm", "--to", "configspace", "--out", "svm.json")
    assert (done.exit_code, done.output) == (0, "svm.json\n")
    assert len(ConfigSpace.ConfigurationSpace.from_json("svm.json")) == 4
    module = "interchange_chain"
    assert _convert("svm.json", "--to", "optuna", "--out", f"{module}.py").exit_code == 0
    assert _convert(f"{module}:suggest", "--to", "nasbo", "--out", "back.yaml").exit_code == 0
    assert load_space("back.yaml").to_dict() == load_space("svm").to_dict()


def test_losses_are_told(tmp_path: Path) -> None:
    told = "lost: 'batch_size' is powers of two: Optuna has categories, without order\n"
    done = _convert("nas_cifar10", "--to", "optuna")
    assert (done.exit_code, done.stderr) == (0, told)
    assert "def suggest(trial):" in done.stdout
    out = tmp_path / "suggest.py"
    done = _convert("nas_cifar10", "--to", "optuna", "--out", out, "--strict")
    assert (done.exit_code, out.exists()) == (2, False)
    assert done.stderr.startswith(told)
    assert "nothing is written" in done.stderr


def test_wrong_words(tmp_path: Path) -> None:
    assert _convert("svm", "--to", "other").exit_code == 2
    with pytest.raises(NasboError, match=r"must be one of configspace, optuna, nasbo, got 'other'"):
        convert_space("svm", "other")  # type: ignore[arg-type]
    done = _convert(tmp_path / "none.json", "--to", "nasbo")
    assert (done.exit_code, "none.json: cannot be read" in done.stderr) == (2, True)
    done = _convert("svm", "--to", "nasbo", "--out", tmp_path / "no" / "folder.yaml")
    assert (done.exit_code, "cannot be written" in done.stderr) == (2, True)
