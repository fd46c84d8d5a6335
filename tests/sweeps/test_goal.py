"""Objectives of a sweep: from its file, the command line and the trainer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nasbo.errors import NasboError, SweepError
from nasbo.history import Trial
from nasbo.space import load_space
from nasbo.sweeps.checks import prepare
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import features_of, make_sweep
from nasbo.trainer import load_trainer
from nasbo.tune.sweep_search import SweepSearch
from nasbo.tune.trial import VALUE, MissingMetricError, pick_value

CONSOLE = Console(quiet=True)
SIZED = "tests.tune.sized:train"


@pytest.fixture
def space_file(tmp_path: Path) -> Path:
    file = tmp_path / "space.yaml"
    file.write_text("n: {type: int, range: [1, 20]}\n")
    return file


def objectives(file: Path, given: dict[str, Any], trainer: str = SIZED) -> tuple[Any, ...]:
    sweep, _ = prepare(str(file), {"trainer": trainer, **given}, CONSOLE)
    return sweep.metric, sweep.mode, sweep.objectives


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("loss", "min", [])),
        ({"objectives": ["flops min"]}, ("loss", "min", ["loss min", "flops min"])),
        (
            {"objectives": ["noise max", "params min"]},
            ("noise", "max", ["noise max", "params min"]),
        ),
        (
            {"objectives": ["params min"], "metric": "noise", "mode": "max"},
            ("noise", "max", ["noise max", "params min"]),
        ),
        (
            {"objectives": ["noise min"], "metric": "loss"},
            ("loss", "min", ["loss min", "noise min"]),
        ),
        ({"objectives": ["noise max"]}, ("noise", "max", [])),
        (
            {"objectives": ["loss * params ** 0.1 min"]},
            ("loss * params ** 0.1", "min", []),
        ),
        (
            {"objectives": ["params * 2 min"]},
            ("loss", "min", ["loss min", "params * 2 min"]),
        ),
    ],
)
def test_known_objectives_are_added_to_the_metric(
    space_file: Path, given: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    assert objectives(space_file, given) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"objectives": ["params min", "loss min"]}, "first objective must be a result of train"),
        ({"objectives": ["loss min", "params min"], "mode": "max"}, "'max' contradicts the obj"),
        ({"objectives": ["a min", "b min", "c min", "params min"]}, "one to 3 objectives, got 4"),
        ({"objectives": ["flops min"], "method": "gp"}, "several objectives are searched by"),
        ({"objectives": ["flops min"], "rungs": [2, 6]}, "rungs rank trials by one objective"),
        ({"objectives": ["flops"]}, "must be like 'flops min'"),
        ({"objectives": [3]}, "must be texts such as 'flops min', got"),
    ],
)
def test_objectives_that_do_not_go_are_said(
    space_file: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(NasboError, match=words):
        objectives(space_file, given)


def test_objectives_of_file_and_command_line_are_joined(tmp_path: Path, space_file: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(f"space: space.yaml\ntrainer: {SIZED}\nobjectives: ['loss min']\n")
    assert objectives(file, {"objectives": ["flops min"]})[2] == ["loss min", "flops min"]


def test_known_objectives_are_features_unless_others_are_named() -> None:
    space = load_space("nas_cifar10")
    sweep = make_sweep({"space": "nas_cifar10", "objectives": ["val_accuracy max", "flops min"]})
    found = features_of(sweep, space)
    assert found is not None
    assert found.names == ("params", "flops", "layers", "receptive_field")
    named = features_of(replace(sweep, features=["layers"]), space)
    assert named is not None
    assert named.names == ("layers",)
    trained = replace(sweep, objectives=["val_accuracy max", "val_loss min"])
    assert features_of(trained, space) is None


def make_searcher(tmp_path: Path, space_file: Path, texts: list[str]) -> SweepSearch:
    folder = tmp_path / "sweep"
    sweep, _ = prepare(
        str(space_file), {"trainer": SIZED, "method": "random", "objectives": texts}, CONSOLE
    )
    create_folder(folder, sweep)
    held = SweepFolder(folder)
    return SweepSearch(held.settings, held.space, folder, load_trainer(SIZED))


def end(searcher: SweepSearch, name: str, result: dict[str, float]) -> Trial:
    """Start a trial as Tune does, and end it with a result."""
    trial = searcher.search.ask(1)[0]
    searcher._trials[name] = trial.id
    searcher.on_trial_complete(name, {VALUE: result["loss"], **result, "done": True})
    return searcher.search.history.trial(trial.id)


def test_a_sweep_fills_in_what_is_known(tmp_path: Path, space_file: Path) -> None:
    searcher = make_searcher(tmp_path, space_file, ["flops min"])
    trial = end(searcher, "a", {"loss": 3.5})
    searcher.search.close()
    history = SweepFolder(tmp_path / "sweep").history
    assert len(history.objectives) == 2
    assert history.objectives.values(history.trials[0]) == (3.5, 1e4 * trial.config["n"])


def test_a_trial_without_a_trained_objective_has_no_result(
    tmp_path: Path, space_file: Path
) -> None:
    searcher = make_searcher(tmp_path, space_file, ["loss min", "noise min"])
    first = end(searcher, "a", {"loss": 3.5, "noise": 0.1})
    second = end(searcher, "b", {"loss": 3.4})
    searcher.search.close()
    assert (first.state, second.cause) == ("finished", "no result")
    assert "'noise' is needed" in second.message


def test_the_first_trial_without_it_ends_the_sweep(tmp_path: Path, space_file: Path) -> None:
    searcher = make_searcher(tmp_path, space_file, ["loss min", "noise min"])
    end(searcher, "a", {"loss": 3.4})
    searcher.search.close()
    assert searcher.state == "failed"
    assert "no trial can be judged: the objective 'noise'" in searcher.reason


def test_a_worker_works_out_an_expression() -> None:
    text = "loss * params ** 0.5"
    assert pick_value({"loss": 3.0}, text, {"params": 4.0}) == 6.0
    assert pick_value({text: 1.0, "loss": 3.0}, text) == 1.0
    with pytest.raises(MissingMetricError, match="is needed; the trainer gave loss"):
        pick_value({"loss": 3.0}, text)


def test_a_warm_start_takes_over_one_trained_objective(tmp_path: Path, space_file: Path) -> None:
    given = {"objectives": ["loss min", "noise min"], "warm_start": str(tmp_path)}
    with pytest.raises(SweepError, match="takes over one trained objective"):
        objectives(space_file, given)
