"""Settings and folder of a sweep: rules, reading, status, tables; and the messages at the start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.errors import JournalError, NasboError, SpaceError, SweepError
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import (
    SETTINGS_FILE,
    SPACE_FILE,
    SweepFolder,
    create_folder,
)
from nasbo.sweeps.parsing import parse_duration, parse_pairs
from nasbo.sweeps.settings import (
    MAY_DIFFER,
    PLACEMENT,
    SETTINGS,
    Sweep,
    make_sweep,
    parsed,
    read_settings,
    taken_by,
)
from nasbo.sweeps.status import status

GOOD = {"space": "svm", "trainer": "own:train"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"trials": 0}, "trials >= 1 must hold, but got 0"),
        ({"trials": 2.5}, "trials >= 1 must hold, but got 2.5"),
        ({"trials": True}, "trials >= 1"),
        ({"batch": 0}, "batch >= 1 must hold, but got 0"),
        ({"stop_at": "1e-3"}, "stop_at must be a number, got '1e-3'"),
        ({"stop_at": float("nan")}, "stop_at must be a number, got nan"),
        ({"slots": 0}, "slots must be a number >= 1 or auto, got 0"),
        ({"slots": "many"}, "got 'many'"),
        ({"mode": "up"}, "mode must be min or max, got 'up'"),
        ({"schedule": "later"}, "schedule must be round or async, got 'later'"),
        ({"share": 0}, "0 < share <= 1 must hold, but got 0"),
        ({"share": 1.5}, "but got 1.5"),
        ({"share": float("nan")}, "0 < share"),
        ({"share": "half"}, "bad settings"),
        ({"cpus_per_trial": -1}, "cpus_per_trial >= 0"),
        ({"gpus_per_trial": -1}, "gpus_per_trial >= 0"),
        ({"cpus_per_trial": 0}, "must be above 0"),
        ({"cpus_per_trial": float("nan")}, "cpus_per_trial >= 0 must hold, but got nan"),
        ({"gpus_per_trial": float("inf")}, "gpus_per_trial >= 0 must hold, but got inf"),
        ({"gpus_per_trial": 1.5}, "must be whole above 1, but got 1.5"),
        ({"stop_at": 10**400}, "stop_at must be a number, got 1000"),
        ({"report_timeout_s": float("inf")}, "report_timeout_s <= 31536000 must hold, but got inf"),
        ({"report_timeout_s": 1e12}, "report_timeout_s <= 31536000 must hold"),
        ({"report_timeout_s": 0}, "0 < report_timeout_s"),
        ({"keep_checkpoints": 1.5}, "keep_checkpoints >= 0 must hold, but got 1.5"),
        ({"warm_start": 5}, "warm_start must be text, got 5"),
        ({"metric": 5}, "metric must be text, got 5"),
        ({"method_options": {1: 2}}, r"names of method_options must be text, got \{1: 2\}"),
        ({"max_failures": -1}, "max_failures >= 0"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"seed": "x"}, "seed must be an integer >= 0, got 'x'"),
        ({"time_limit_s": "30m"}, "time_limit_s must be seconds above 0, got '30m'"),
        ({"deadline_s": 0}, "deadline_s must be seconds above 0, got 0"),
        ({"trainer_options": [1]}, r"trainer_options must be a mapping, got \[1\]"),
        ({"trainer": 5}, "trainer must be text, got 5"),
        ({"method": 5}, "method must be text, got 5"),
        ({"speed": 5}, "bad settings: .*'speed'"),
        ({"trainer": None}, "a trainer is needed"),
    ],
)
def test_rules(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SweepError, match=words):
        make_sweep({**GOOD, **settings})


@pytest.mark.parametrize("command", ["run", "resume", "finalize", "launch"])
def test_every_setting_is_a_flag_of_the_commands_that_take_it(command: str) -> None:
    options = {option.name: set(option.opts) for option in cli.commands[command].params}
    taken = taken_by("run" if command == "launch" else command)
    for declared in taken:
        assert options[declared.name] == set(declared.flags)
    strangers = (SETTINGS.keys() & options) - {declared.name for declared in taken}
    assert strangers == ({"trainer_options"} if command == "finalize" else set())


def test_what_resume_takes_may_differ_or_is_noted_in_the_journal() -> None:
    names = {declared.name for declared in taken_by("resume")}
    assert names - MAY_DIFFER == {"repeats", "repeat_top"}
    assert set(PLACEMENT) < MAY_DIFFER


def test_helps_tell_what_holds_without_the_flag() -> None:
    helps = {name: CliRunner().invoke(cli, [name, "--help"]).output for name in ("run", "resume")}
    assert "[default: auto]" in helps["run"]
    assert "[default: as in the sweep]" in " ".join(helps["resume"].split())


def test_words_of_the_command_line_are_checked_at_the_door(tmp_path: Path) -> None:
    assert parsed({"slots": "auto", "batch": None, "trainer_options": ("a=1",)}) == {
        "slots": "auto",
        "trainer_options": {"a": 1},
    }
    create_folder(tmp_path / "s", make_sweep(GOOD))
    done = CliRunner().invoke(cli, ["resume", str(tmp_path / "s"), "--trials", "0"])
    assert (done.exit_code, done.output) == (2, "nasbo: trials >= 1 must hold, but got 0\n")


def test_what_a_trial_needs() -> None:
    sweep = Sweep("svm", "own:train", gpus_per_trial=0.5, resources={"spot": 1})
    assert sweep.needs == {"CPU": 1, "GPU": 0.5, "spot": 1}
    for name in sweep.needs.keys() - {"spot"}:
        with pytest.raises(SweepError, match="resources must be amounts above 0 by name"):
            make_sweep({**GOOD, "resources": {name: 1}})


def test_defaults_and_shipped_trainers() -> None:
    sweep = make_sweep({**GOOD, "trials": None})
    assert (sweep.trials, sweep.method, sweep.schedule, sweep.slots) == (
        40,
        "attnbo",
        "round",
        "auto",
    )
    for space in (
        "nas_cifar10",
        "search_spaces/nas_cifar10_conditional.yaml",
        "nas_cifar10_mine.yaml",
        "mnasnet",
    ):
        assert make_sweep({"space": space}).trainer == "trainers.cifar10:train"
    with pytest.raises(SweepError, match="a trainer is needed: --trainer module:function"):
        make_sweep({"space": "svm"})


def test_settings_from_a_sweep_file_or_a_space(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("x: {type: float, range: [0...1]}")
    (tmp_path / "sweep.yaml").write_text("space: mine.yaml\ntrials: 7\ntrainer: own:train\n")
    (tmp_path / "shipped.yaml").write_text("space: svm\n")
    assert read_settings(tmp_path / "mine.yaml") == {"space": str(tmp_path / "mine.yaml")}
    found = read_settings(tmp_path / "sweep.yaml")
    assert found == {"space": str(tmp_path / "mine.yaml"), "trials": 7, "trainer": "own:train"}
    assert read_settings(tmp_path / "shipped.yaml")["space"].endswith("svm.yaml")


def test_numbers_of_sweep_files_and_folders(tmp_path: Path) -> None:
    text = "space: svm\ntrainer: own:train\nstop_at: 1e-3\ntrainer_options: {rate: 5e-4}\n"
    (tmp_path / "sweep.yaml").write_text(text)
    sweep = make_sweep(read_settings(tmp_path / "sweep.yaml"))
    assert (sweep.stop_at, sweep.trainer_options) == (0.001, {"rate": 0.0005})
    options = {"rate": 5e-4, "tag": "5e-4", "day": "2001-01-01", "word": "null", "empty": ""}
    create_folder(tmp_path / "run", make_sweep({**GOOD, "trainer_options": options}))
    assert SweepFolder(tmp_path / "run").settings.trainer_options == options


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (
            "space: svm\nspeed: 3",
            SweepError,
            "bad.yaml:2: unknown setting 'speed' .*known: space, trainer",
        ),
        ("trails: 3\nspace: svm", SweepError, r"bad.yaml:1: .* \(did you mean 'trials'\?\); known"),
        (
            "space: svm\n\ntrials: three",
            SweepError,
            "bad.yaml:3: trials >= 1 must hold, but got 't",
        ),
        ("space: svm\nconstraints: 3", SweepError, "bad.yaml:2: constraints must be a list"),
        ("space: nowhere", SpaceError, "nowhere: no such file"),
        ("trials: 3", SpaceError, "bad.yaml:1: 'trials' must be a mapping"),
        ("[" * 1_000, SpaceError, "bad.yaml:1: is nested too deeply"),
        ('space: !!int ""', SpaceError, "bad.yaml:1: '' is not a value"),
        ("space: [", SpaceError, "bad.yaml:1: is not YAML"),
        ("- 1", SpaceError, "bad.yaml:1: must be a mapping"),
        ("", SpaceError, "bad.yaml:1: is empty"),
    ],
)
def test_bad_sweep_files(text: str, error: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(error, match=words):
        read_settings(tmp_path / "bad.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sweep of nine trials: five finished, one failed, one stopped, two running."""
    folder = tmp_path / "run"
    sweep = create_folder(folder, make_sweep({**GOOD, "trials": 12, "method": "random"}))
    journal = folder / JOURNAL_FILE
    with Search("svm", method="random", journal=journal, notes=sweep.notes()) as search:
        for trial in search.ask(9)[:5]:
            search.tell(trial, float(trial.id), metrics={"loss": 1.0})
        search.tell(5, error="crashed", message="boom")
        search.tell(6, -1.0, error="stopped")
    return folder


def test_settings_come_back(folder: Path) -> None:
    held = SweepFolder(folder)
    assert held.settings == Sweep(space="svm", trainer="own:train", trials=12, method="random")
    assert held.space.n_subspaces == 4
    assert folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(SweepError, match="holds a sweep already: continue it by nasbo resume"):
        create_folder(folder, held.settings)


def test_status(folder: Path) -> None:
    found = status(SweepFolder(folder))
    assert found["state"] == "interrupted"
    counts = {key: found[key] for key in ("n_trials", "finished", "running", "failed", "rounds")}
    assert counts == {"n_trials": 12, "finished": 5, "running": 0, "failed": 2, "rounds": 1}
    assert found["causes"] == {"crashed": 1, "stopped": 1}
    assert (found["best"]["trial"], found["best"]["value"]) == (0, 0.0)
    assert json.loads(json.dumps(found)) == found
    with Search("svm", method="random", journal=folder / JOURNAL_FILE) as search:
        assert status(SweepFolder(folder))["state"] == "running"
        assert status(SweepFolder(folder))["running"] == 2
        for trial in search.ask(5):
            search.tell(trial, 1.0)
    assert status(SweepFolder(folder))["state"] == "finished"


def test_status_of_a_sweep_that_has_not_begun(tmp_path: Path) -> None:
    create_folder(tmp_path / "new", make_sweep(GOOD))
    found = status(SweepFolder(tmp_path / "new"))
    assert (found["finished"], found["rounds"], found["best"]) == (0, 0, None)
    with pytest.raises(NasboError, match="nothing has finished yet"):
        _ = SweepFolder(tmp_path / "new").best


@pytest.mark.parametrize(
    ("name", "text", "error", "words"),
    [
        (SETTINGS_FILE, None, SweepError, "holds no sweep"),
        (SETTINGS_FILE, "[", SweepError, "sweep.yaml: cannot be read"),
        (SETTINGS_FILE, "- 1", SweepError, "must be a mapping of settings"),
        (SETTINGS_FILE, "space: svm\ntrainer: a:b\ntrials: 0", SweepError, "trials >= 1"),
        (SPACE_FILE, "x: 1", SweepError, "copy of its space is broken: .*space.yaml:1:"),
        (SPACE_FILE, None, SweepError, "copy of its space is broken"),
        (JOURNAL_FILE, "junk\n", JournalError, "journal.jsonl:1: "),
        (SPACE_FILE, "x: {type: int, range: [0...2]}", JournalError, "another search space"),
    ],
)
def test_broken_folders(name: str, text: str | None, error: Any, words: str, folder: Path) -> None:
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    with pytest.raises(error, match=words):
        status(SweepFolder(folder))


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SweepError, match="cannot be written"):
        create_folder(tmp_path / "file" / "run", make_sweep(GOOD))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("1.5h", 5400), (" 2 d ", 172_800), ("0s", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1h30m", "1w", "nan"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(SweepError, match="a time must be like 90s, 30m or 12h, got"):
        parse_duration(text)


def test_pairs() -> None:
    assert parse_pairs(["a=1", "b=x=y", "c=[1, 2]", "d=", "e=true"]) == {
        "a": 1,
        "b": "x=y",
        "c": [1, 2],
        "d": None,
        "e": True,
    }
    numbers = parse_pairs(["a=5e-4", "b=-1E+2", "c='5e-4'", "d=2001-99-99"])
    assert numbers == {"a": 0.0005, "b": -100.0, "c": "5e-4", "d": "2001-99-99"}
    for bad in ("a", "=1", "", "a=[", "a=!!timestamp 2001-99-99", "a=!!int x"):
        with pytest.raises(SweepError, match=r"must be key=value|cannot be read"):
            parse_pairs([bad])


def test_a_setting_of_a_wrong_type_is_said_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("space: svm\ntrainer: nobodys:train\nshare: high\n")
    with pytest.raises(SweepError, match=r"sweep.yaml:3: "):
        read_settings(file)
