"""What the README promises works as it is written there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import nasbo
from nasbo import Search, load_space, run_loop
from nasbo.cli import cli
from nasbo.sweeps.settings import make_sweep
from tests.tune.toy import simulation

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_python_example_finds_the_minimum(capsys: pytest.CaptureFixture[str]) -> None:
    example = next(block for block in blocks("python") if "nasbo.Search" in block)
    exec(compile(example, "README.md", "exec"), {})
    config, value = capsys.readouterr().out.strip().rsplit(" ", 1)
    assert "'kind': 'a'" in config
    assert float(value) < 0.01


def test_the_method_example_is_a_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = next(block for block in blocks("python") if "class Nearest" in block)
    (tmp_path / "nearest_method.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    search = Search("simulation", method="nearest_method:Nearest", seed=1)
    run_loop(search, simulation, 20)
    assert {trial.source for trial in search.trials[8:]} == {"model"}
    assert search.best.id >= 8


def test_the_space_example_is_a_space(tmp_path: Path) -> None:
    text = next(block for block in blocks("yaml") if "optimizer" in block)
    file = tmp_path / "my_space.yaml"
    file.write_text(text)
    space = load_space(file)
    assert space.n_subspaces == 6
    assert space.names == ("optimizer", "momentum", "n_layers", "units", "learning_rate")


def test_the_sweep_example_has_known_settings(tmp_path: Path) -> None:
    import yaml

    text = next(block for block in blocks("yaml") if "trainer_options" in block)
    sweep = make_sweep(yaml.safe_load(text))
    assert (sweep.trials, sweep.trainer_options) == (60, {"epochs": 20})


def test_the_commands_exist() -> None:
    known = set(cli.commands)
    named = set(re.findall(r"`nasbo ([a-z-]+)", README))
    assert {"run", "resume", "status", "best", "export", "space", "data"} <= named
    assert named <= known, named - known
    for name in known:
        assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0


@pytest.mark.parametrize(
    "file",
    ["README.md", "cluster/README.md", "nasbo/methods/README.md", "search_spaces/README.md"],
)
def test_links_lead_somewhere_and_pictures_are_small(file: str) -> None:
    page = Path(__file__).parents[1] / file
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    for link in links:
        target = page.parent / link
        assert target.exists(), f"{file} links to {link}"
        assert target.suffix not in (".png", ".webp") or target.stat().st_size < 150_000
    assert links or file == "search_spaces/README.md"


def test_the_sweep_object_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = next(block for block in blocks("python") if "load_sweep" in block)
    fixture = Path(__file__).with_name("fixtures") / "journals" / "reports"
    shutil.copytree(fixture, tmp_path / "runs" / "first")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"nasbo": nasbo}
    exec(compile(example, "README.md", "exec"), names)
    assert len(names["trials"]) == 4  # type: ignore[arg-type]
    assert len(names["reports"]) == 16  # type: ignore[arg-type]


def test_the_example_with_rungs_pauses_a_trial() -> None:
    example = next(block for block in blocks("python") if "rungs=[2, 6, 18]" in block)
    names: dict[str, Any] = {"nasbo": nasbo}
    exec(compile(example, "README.md", "exec"), names)
    assert names["search"].trials[0].partial == (2, 0.3)
