"""Command line without Ray: spaces, sweeps, errors, and imports of the commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import nasbo
from nasbo.cli import cli
from nasbo.search import Search
from nasbo.space import load_space
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import make_sweep

TOY = ["--trainer", "tests.tune.toy:simulation"]


def _call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    create_folder(folder, make_sweep({"space": "svm", "trainer": "cli_own:train", "trials": 3}))
    with Search("svm", method="attnbo", journal=folder / JOURNAL_FILE) as search:
        for trial in search.ask(3):
            search.tell(trial, float(trial.id))
    return folder


def _python(code: str) -> set[str]:
    code += "\nimport sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_nasbo_needs_neither_ray_nor_torchvision() -> None:
    loaded = _python("import nasbo; nasbo.Search('svm', method='random').ask(9)")
    assert "nasbo" in loaded
    assert not loaded & {"ray", "torchvision", "trainers"}


def test_help_imports_neither_torch_nor_ray() -> None:
    code = "import sys; sys.argv = ['nasbo', '--help']\nfrom nasbo.cli import main\n"
    loaded = _python(f"{code}try:\n    main()\nexcept SystemExit as e:\n    assert not e.code")
    assert "click" in loaded
    assert not loaded & {"torch", "ray", "torchvision", "gpytorch", "botorch", "matplotlib"}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["space"],
        ["space", "show"],
        ["run"],
        ["resume"],
        ["status"],
        ["best"],
        ["why"],
        ["export"],
        ["finalize"],
        ["data"],
    ],
)
def test_help_of_every_command(words: list[str]) -> None:
    result = _call(*words, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


def test_console_script_tells_its_version() -> None:
    script = Path(sys.executable).with_name("nasbo")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("nasbo, version ")


def test_show_draws_the_tree() -> None:
    result = _call("space", "show", "svm")
    assert result.exit_code == 0
    assert "kernel  one of 'linear', 'poly', 'sigmoid', 'rbf'" in result.stdout
    assert "4 subspaces" in result.stdout


def test_check_counts() -> None:
    result = _call("space", "check", "nas_cifar10_conditional")
    assert result.exit_code == 0
    assert "21760 subspaces" in result.stdout


def test_sample_is_repeatable_and_valid() -> None:
    first, again = (
        _call("space", "sample", "cash", "-n", "3", "--seed", "0", "--json") for _ in "ab"
    )
    assert first.exit_code == 0
    assert first.stdout == again.stdout
    configs = json.loads(first.stdout)
    assert len(configs) == 3
    assert [load_space("cash").canonical(config) for config in configs] == configs
    lines = _call("space", "sample", "cash", "-n", "3", "--seed", "0").stdout.splitlines()
    assert [json.loads(line) for line in lines] == configs
    assert (
        _call("space", "sample", "cash", "--seed", "1", "-n", "3", "--json").stdout != first.stdout
    )


@pytest.mark.parametrize(
    "words",
    [
        ["space", "show", "nowhere"],
        ["space", "show"],
        ["space", "sample", "svm", "-n", "0"],
        ["space", "sample", "svm", "--seed", "-1"],
        ["space", "sample", "svm", "--seed", "x"],
        ["run", "nowhere.yaml"],
        ["run", "nas_cifar10", "-o", "recipe=nowhere", "--dry-run"],
        ["run", "nas_cifar10", "-o", "epochs=0", "--dry-run"],
        ["run", "nas_cifar10", "--constraint", "params", "--dry-run"],
        ["run", "nas_cifar10", "--constraint", "watts<=3", "-o", "recipe=tiny", "--dry-run"],
        ["space", "sample", "svm", "--summary"],
        ["finalize", "nowhere"],
        ["run", "svm"],
        ["run", "svm", "--trainer", "nowhere_at_all:train"],
        ["run", "svm", "--trainer", "no_colon"],
        ["run", "svm", "--trainer", "a:b", "--slots", "many"],
        ["run", "svm", "--trainer", "a:b", "--time-limit", "soon"],
        ["run", "svm", "--trainer", "a:b", "-o", "novalue"],
        ["run", "svm", "--trainer", "a:b", "--trials", "0"],
        ["run", "svm", "--trainer", "a:b", "--schedule", "later"],
        ["run", "svm", "--trainer", "a:b", "--seed", "-1"],
        ["run", "simulation", *TOY, "-m", "seed=3"],
        ["run", "simulation", *TOY, "-m", "name=3"],
        ["run", "simulation", *TOY, "--method", ":"],
        ["run", "simulation", *TOY, "--method", ".a:b"],
        ["run", "simulation", *TOY, "--method", "os:getcwd"],
        ["run", "simulation", *TOY, "--method", "builtins:print"],
        ["run", "simulation", *TOY, "--gpus-per-trial", "inf"],
        ["run", "simulation", *TOY, "-o", "a=!!timestamp 2001-99-99"],
        ["data", "cifar10", "--folder", "/etc/passwd"],
        ["data", "cifar10", "--folder", "/proc/nasbo"],
        ["resume", "nowhere"],
        ["status", "nowhere"],
        ["best", "nowhere"],
        ["best", "nowhere", "--json", "--explain"],
        ["why", "nowhere", "0"],
        ["why", "nowhere"],
        ["why", "nowhere", "-1"],
        ["why", "nowhere", "first"],
        ["export", "nowhere", "--csv"],
        ["dance"],
    ],
)
def test_mistakes_end_with_code_two_and_words(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = _call(*words)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert result.stderr
    assert "Traceback" not in result.output
    assert os.listdir(tmp_path) == []


def test_status_best_and_export(folder: Path) -> None:
    found = json.loads(_call("status", folder, "--json").stdout)
    wanted = {"state", "n_trials", "finished", "running", "failed", "rounds", "best"}
    assert wanted <= set(found)
    assert {"trial", "value", "config"} <= set(found["best"])
    assert (found["state"], found["n_trials"], found["finished"]) == ("finished", 3, 3)
    told = _call("status", folder).stdout
    assert "finished   3" in told
    assert "best       0 (trial 0)" in told
    best = json.loads(_call("best", folder, "--json").stdout)
    assert best == {"trial": 0, "value": 0.0, "config": found["best"]["config"]}
    assert "best: trial 0, value 0" in _call("best", folder).stdout
    exported = json.loads(_call("export", folder, "--json").stdout)
    assert [row["trial"] for row in exported] == [0, 1, 2]
    assert exported[0]["config"] == best["config"]
    assert _call("export", folder, "--json", "--csv").exit_code == 2
    rows = _call("export", folder, "--csv").stdout.splitlines()
    columns = (
        "trial,round,subspace,source,state,value,n_values,repeat_of,twin,step,attempts,seconds"
    )
    assert rows[0].startswith(columns)
    assert rows[0].endswith("config.C,config.kernel,config.degree,config.gamma")
    assert len(rows) == 4


def test_why_a_trial(folder: Path) -> None:
    told = _call("why", folder, "2")
    assert told.exit_code == 0, told.stderr
    assert "trial 2 (kernel=" in told.stdout
    assert "from the 2 other results" in told.stdout
    best = _call("best", folder, "--explain").stdout
    assert best.startswith("best: trial 0, value 0")
    assert "trial 0 (kernel=" in best
    result = _call("why", folder, "3")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no trial 3: they go from 0 to 2" in result.stderr


def test_why_needs_a_model(tmp_path: Path) -> None:
    given = {"space": "svm", "trainer": "cli_own:train", "method": "random"}
    create_folder(tmp_path / "run", make_sweep(given))
    with Search("svm", method="random", journal=tmp_path / "run" / JOURNAL_FILE) as search:
        for trial in search.ask(4):
            search.tell(trial, float(trial.id))
    for words in (["why", tmp_path / "run", "0"], ["best", tmp_path / "run", "--explain"]):
        result = _call(*words)
        assert result.exit_code == 2
        assert "random cannot explain trial 0: the method has no surrogate" in result.stderr


def test_why_needs_no_ray(folder: Path) -> None:
    code = f"import sys; sys.argv = ['nasbo', 'why', {str(folder)!r}, '1']\n"
    code += "from nasbo.cli import main\n"
    loaded = _python(f"{code}try:\n    main()\nexcept SystemExit as e:\n    assert not e.code")
    assert "torch" in loaded
    assert not loaded & {"ray", "torchvision"}


def test_best_of_nothing(tmp_path: Path) -> None:
    create_folder(tmp_path / "new", make_sweep({"space": "svm", "trainer": "cli_own:train"}))
    for words in (["best"], ["best", "--json"]):
        result = _call(*words, tmp_path / "new")
        assert result.exit_code == 2
        assert "nothing has finished yet" in result.stderr
    assert _call("status", tmp_path / "new").exit_code == 0


def test_methods_are_listed() -> None:
    told = _call("methods").stdout
    assert "attnbo" in told
    assert "random" in told


def test_resume_of_a_finished_sweep_shows_its_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (folder.parent / "cli_own.py").write_text("def train(config):\n    return 1.0\n")
    result = _call("resume", folder)
    assert result.exit_code == 0
    assert "has finished, 3 of 3 trials have ended" in result.stdout
    assert "best: trial 0, value 0" in result.stdout
    assert (folder / "best_so_far.png").read_bytes().startswith(b"\x89PNG")
    result = _call("resume", folder, "--trials", "2")
    assert result.exit_code == 2
    assert "--trials must be at least 3" in result.stderr


def test_a_dry_run_lists_options_that_the_trainer_does_not_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["-o", "epohcs=3", "-o", "name='[x]'", "--dry-run"]
    told = _call("run", "simulation", *TOY, *words)
    assert told.exit_code == 0, told.stderr
    line = f"options for {TOY[1]}, not checked by it: epohcs=3, name=[x]"
    assert line in told.stdout.splitlines()
    told = _call("run", "simulation", *TOY, "--dry-run")
    assert (told.exit_code, "options for" in told.stdout) == (0, False)
    text = "def train(config): return 1.0\ndef check_options(options): pass\n"
    (tmp_path / "cli_checked.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    told = _call("run", "simulation", "--trainer", "cli_checked:train", *words)
    assert (told.exit_code, "options for" in told.stdout) == (0, False), told.stderr


def test_a_dry_run_warns_of_resources_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from nasbo.resources import n_gpus

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    words = ["--gpus-per-trial", str(n_gpus() + 1), "--dry-run"]
    told = _call("run", "simulation", *TOY, *words)
    assert told.exit_code == 0, told.stderr
    begin = f"warning: a trial needs {n_gpus() + 1} GPU, this machine has "
    assert any(line.startswith(begin) for line in told.stdout.splitlines()), told.stdout
    told = _call("run", "simulation", *TOY, *words, "--address", "head:6379")
    assert "GPU: the cluster at head:6379 was not looked at" in told.stdout
    assert "warning" not in told.stdout
    told = _call("run", "simulation", *TOY, "--resource", "spot=1", "--dry-run")
    assert "a trial needs 1 spot: whether this machine has it" in told.stdout
    told = _call("run", "simulation", *TOY, "--cpus-per-trial", "999", "--dry-run")
    assert "warning: a trial needs 999 CPU, this machine has " in told.stdout
    told = _call("run", "simulation", *TOY, "--dry-run")
    assert (told.exit_code, "GPU" in told.stdout) == (0, False)


def test_dry_run_and_summaries_of_a_trainer_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("n: {type: int, range: [1, 20]}\n")
    words = ["--trainer", "tests.tune.sized:train", "--constraint", "params<=5e3"]
    told = _call("run", file, *words, "--trials", "6", "--slots", "2", "--dry-run")
    assert told.exit_code == 0, told.stderr
    assert "constraints: params <= 5000: kept by" in told.stdout
    assert "for 6 trainings on 2 slots" in told.stdout
    told = _call("space", "sample", file, "--summary", "-n", "30", *words)
    assert told.exit_code == 0, told.stderr
    assert "30 configs of own" in told.stdout


def test_a_bug_report_names_versions_the_machine_and_the_place() -> None:
    done = CliRunner().invoke(cli, ["--version", "--verbose"])
    assert done.exit_code == 0, done.output
    facts = dict(line.split(maxsplit=1) for line in done.output.splitlines())
    names = {"nasbo", "ray", "torch", "torchvision", "gpytorch", "botorch", "numpy", "python"}
    assert names | {"platform", "processors", "gpus", "package"} <= set(facts)
    assert facts["package"] == str(Path(nasbo.__file__).parent)
    assert facts["torch"] == metadata.version("torch")
    assert sys.executable in facts["python"]
    alone = CliRunner().invoke(cli, ["--verbose"])
    assert (alone.exit_code, "--verbose goes with --version" in alone.output) == (2, True)
