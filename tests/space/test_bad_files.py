"""Every kind of invalid space file: one SpaceError with location, rule and value; exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.errors import SpaceError
from nasbo.space import load_space
from tests.space.bad_files import BAD_FILES


def _write(name: str, folder: Path) -> Path:
    file = folder / "bad.yaml"
    file.write_text(BAD_FILES[name].text, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", BAD_FILES)
def test_error_names_place_rule_and_value(name: str, tmp_path: Path) -> None:
    file, bad = _write(name, tmp_path), BAD_FILES[name]
    with pytest.raises(SpaceError) as caught:
        load_space(file)
    message = str(caught.value)
    assert message.startswith(f"{file}:{bad.line}: "), message
    assert bad.rule in message
    assert bad.value in message
    assert "\n" not in message


@pytest.mark.parametrize("command", ["show", "check", "sample"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_command_line_says_it_in_one_line(name: str, command: str, tmp_path: Path) -> None:
    file = _write(name, tmp_path)
    result = CliRunner().invoke(cli, ["space", command, str(file)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"nasbo: {file}:{BAD_FILES[name].line}: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["cyclic mapping", "object tag", "nested deeply", "empty int tag"])
def test_run_refuses_as_check_does(name: str, tmp_path: Path) -> None:
    file = _write(name, tmp_path)
    result = CliRunner().invoke(cli, ["run", str(file), "--trainer", "m:f"])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"nasbo: {file}:")


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(b"# fine\na: \xff\n")
    with pytest.raises(SpaceError, match=r"bad.yaml:2: must be UTF-8 text, but byte 10 is not"):
        load_space(file)


@pytest.mark.parametrize("name", ["nowhere.yaml", "folder/nowhere.yaml", "a" * 5_000, "a\0b"])
def test_missing_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match=r"no such file|cannot be read"):
        load_space(tmp_path / name)


def test_missing_name_lists_the_shipped_ones() -> None:
    with pytest.raises(SpaceError, match=r"nowhere: no such file.*cash.*svm.*xgboost"):
        load_space("nowhere")


def test_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match="cannot be read"):
        load_space(tmp_path)


@pytest.mark.parametrize("source", [3, None, ["a"], b"svm"])
def test_neither_path_nor_dict(source: object) -> None:
    with pytest.raises(SpaceError, match="must be a path or a dict"):
        load_space(source)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["a: !!python/object/apply:os.system ['touch hit']", "a: [", ""])
def test_console_script_has_no_traceback(text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    script = Path(sys.executable).with_name("nasbo")
    done = subprocess.run(
        [script, "space", "check", "bad.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("nasbo: bad.yaml:1: ")
    assert "Traceback" not in done.stderr + done.stdout
    assert os.listdir(tmp_path) == ["bad.yaml"]
