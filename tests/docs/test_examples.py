"""What examples of the documentation promise beyond running."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nasbo import Search, load_space, load_sweep, run_loop
from nasbo.space.plain_yaml import read_yaml
from nasbo.sweeps.settings import make_sweep
from tests.docs.conftest import Prepare
from tests.docs.pages import ROOT, Block, blocks
from tests.tune.toy import simulation

DOCS = ROOT / "docs"


def block(page: Path, language: str, words: str) -> Block:
    """The one block of a page that has these words."""
    (found,) = (b for b in blocks(language) if b.page == page and words in b.text)
    return found


def run(example: Block, prepare: Prepare) -> dict[str, Any]:
    prepare(example.page)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example.text, str(example), "exec"), names)
    return names


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 160


@pytest.mark.parametrize(
    ("page", "limit"),
    [("README.md", 0.001), ("docs/python.md", 0.01), ("docs/coming-from.md", 0.2)],
)
def test_a_search_finds_the_minimum(
    page: str, limit: float, prepare: Prepare, capsys: pytest.CaptureFixture[str]
) -> None:
    example = block(ROOT / page, "python", "nasbo.Search(")
    run(example, prepare)
    assert float(capsys.readouterr().out.strip().rsplit(" ", 1)[1]) < limit


def test_optuna_searches_the_same_problem(
    prepare: Prepare, capsys: pytest.CaptureFixture[str]
) -> None:
    run(block(DOCS / "coming-from.md", "python", "create_study"), prepare)
    assert float(capsys.readouterr().out.strip().rsplit(" ", 1)[1]) < 1


def test_the_method_is_a_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = block(DOCS / "methods.md", "python", "class Nearest")
    (tmp_path / "nearest_method.py").write_text(example.text)
    monkeypatch.syspath_prepend(tmp_path)
    search = Search("simulation", method="nearest_method:Nearest", seed=1)
    run_loop(search, simulation, 20)
    assert {trial.source for trial in search.trials[8:]} == {"model"}
    assert search.best.id >= 8


def test_the_space_of_the_readme_has_six_subspaces() -> None:
    example = block(ROOT / "README.md", "yaml", "optimizer")
    space = load_space(read_yaml(example.text))
    assert space.n_subspaces == 6
    assert space.names == ("optimizer", "momentum", "n_layers", "units", "learning_rate")


def test_the_trainer_of_the_readme_takes_a_config(prepare: Prepare, tmp_path: Path) -> None:
    from trainers.session import LocalSession

    example = block(ROOT / "README.md", "python", "def train")
    config = load_space(
        read_yaml(block(ROOT / "README.md", "yaml", "optimizer").text)
    ).default_config()
    session = LocalSession(tmp_path / "trial", options={"epochs": 3})
    run(example, prepare)["train"](config, session)
    losses = [report["loss"] for report in session.reports]
    assert losses == sorted(losses, reverse=True)
    assert len(losses) == 3


def test_the_space_of_shapes_has_four_subspaces() -> None:
    space = load_space(read_yaml(block(DOCS / "own.md", "yaml", "family").text))
    assert space.n_subspaces == 4


def test_a_training_of_shapes_goes_on_from_its_checkpoint(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainers.session import LocalSession

    example = block(DOCS / "own.md", "python", "def train")
    names = run(example, prepare)
    monkeypatch.setitem(names, "Shapes", lambda n, seed, real=names["Shapes"]: real(n // 20, seed))
    config = load_space("space.yaml").default_config()
    session = LocalSession(tmp_path / "trial", options={"epochs": 3}, until=1)
    names["train"](config, session)
    assert [report["epoch"] for report in session.reports] == [1]
    session.until = None
    names["train"](config, session)
    assert [report["epoch"] for report in session.reports] == [1, 2, 3]
    assert names["summary"](config)["params"] > 100


def test_a_training_of_shapes_that_was_killed_before_a_report_loses_nothing(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainers.session import LocalSession

    class Killed(LocalSession):
        def report(self, metrics: dict[str, Any], step: int | None = None) -> bool:
            if step == self.n_kept:
                raise InterruptedError
            return super().report(metrics, step)

        n_kept = 0

    names = run(block(DOCS / "own.md", "python", "def train"), prepare)
    monkeypatch.setitem(names, "Shapes", lambda n, seed, real=names["Shapes"]: real(n // 20, seed))
    config = load_space("space.yaml").default_config()
    whole = LocalSession(tmp_path / "whole", options={"epochs": 3})
    names["train"](config, whole)
    for n_kept in (2, 3):
        killed = Killed(tmp_path / f"killed-{n_kept}", options={"epochs": 3})
        killed.n_kept = n_kept
        with pytest.raises(InterruptedError):
            names["train"](config, killed)
        again = LocalSession(killed.folder, options={"epochs": 3})
        names["train"](config, again)
        assert again.reports == whole.reports[min(n_kept, 2) :]


@pytest.mark.ray
def test_an_own_model_is_searched_by_the_commands_of_its_page(prepare: Prepare) -> None:
    folder = prepare(DOCS / "own.md")
    begin = "nasbo run sweep.yaml --dir runs/shapes"
    shell = next(one for one in blocks("sh") if begin in one.text and one.page == DOCS / "own.md")
    for line in shell.text.replace(begin, f"{begin} --trials 9 -o epochs=1").splitlines():
        command = [sys.executable, "-m", "nasbo.cli", *shlex.split(line)[1:]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "runs" / "shapes" / "report.html").stat().st_size > 10_000
    sweep = load_sweep(folder / "runs" / "shapes")
    assert [trial.state for trial in sweep.trials] == ["finished"] * 9
    assert sweep.best.value > 0.3


def test_the_sweep_file_has_these_settings() -> None:
    example = block(DOCS / "commands.md", "yaml", "trainer_options")
    sweep = make_sweep(yaml.safe_load(example.text))
    assert (sweep.trials, sweep.trainer_options) == (60, {"epochs": 20})


def test_the_sweep_object_has_trials_and_reports(prepare: Prepare) -> None:
    names = run(block(DOCS / "python.md", "python", "load_sweep"), prepare)
    assert len(names["trials"]) == 4
    assert len(names["reports"]) == 16


def test_limits_leave_out_a_kernel(prepare: Prepare, capsys: pytest.CaptureFixture[str]) -> None:
    run(block(DOCS / "how-to" / "constraints.md", "python", "limits"), prepare)
    assert set(re.findall(r"'(\w+)'", capsys.readouterr().out)) == {"linear", "sigmoid", "rbf"}


def test_the_example_with_rungs_pauses_a_trial(prepare: Prepare) -> None:
    names = run(block(DOCS / "how-to" / "early-stopping.md", "python", "rungs=[2, 6, 18]"), prepare)
    assert names["search"].trials[0].partial == (2, 0.3)


def test_a_network_comes_back(prepare: Prepare) -> None:
    names = run(block(DOCS / "how-to" / "finalists.md", "python", "trainers.load"), prepare)
    assert names["network"].classes == ("cat", "dog")


def test_the_picture_of_mnasnets_space_is_that_of_the_code() -> None:
    spec = importlib.util.spec_from_file_location("drawing", DOCS / "drawings" / "mnasnet.py")
    assert spec is not None
    assert spec.loader is not None
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    drawn = drawing.PICTURE.read_text(encoding="utf-8")
    assert drawn == drawing.picture(), "python docs/drawings/mnasnet.py writes it again"
    for parameter in load_space("mnasnet").parameters[0].repeated:
        assert f">{parameter.name}</text>" in drawn
