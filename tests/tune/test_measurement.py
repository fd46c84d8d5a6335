"""Sweeps on a real Ray with limits on configs and repeats of the best ones."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from rich.console import Console

from nasbo.history import Repeating
from nasbo.start import Display, resume_sweep, start_sweep
from nasbo.sweeps.folder import SweepFolder, trial_folder
from nasbo.sweeps.rows import to_csv, trial_rows
from nasbo.sweeps.status import status

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]
QUIET = Display(Console(quiet=True))
SPACE = "n: {type: int, range: [1, 20]}\nx: {type: float, range: [0, 1]}\n"


def start(folder: Path, **given: Any) -> Path:
    space = folder / "own_space.yaml"
    space.write_text(SPACE)
    settings = {"trainer": "tests.tune.sized:train", "slots": "2", "cpus_per_trial": 0.5, **given}
    assert start_sweep(str(space), folder / "s", settings, QUIET) == 0
    return folder / "s"


def trained(folder: Path, number: int) -> list[str]:
    file = trial_folder(folder, number) / "trained.txt"
    return file.read_text().split() if file.exists() else []


def test_limits_and_repeats_of_a_sweep(tmp_path: Path) -> None:
    folder = start(
        tmp_path, trials=6, method="attnbo", constraints=("parameters<=12e3",), repeats=1,
        repeat_top=2, batch=4,
    )  # fmt: skip
    history = SweepFolder(folder).history
    assert max(trial.config["n"] for trial in history.trials) <= 12
    assert history.n_ended == 6
    for trial in history.ranked()[:2]:
        (again,) = trial.repeats
        assert trained(folder, again.number) != trained(folder, trial.id)
        assert trial.value == fmean([trial.values[0], again.value or 0.0])
    found = status(SweepFolder(folder))
    assert (found["state"], found["finished"]) == ("finished", 6)
    assert found["repeats"]["finished"] == len(history.repeats) >= 2
    assert len(found["best"]["values"]) == 2
    rows = list(csv.DictReader(io.StringIO(to_csv(trial_rows(SweepFolder(folder).history)))))
    repeats = [row for row in rows if row["source"] == "repeat"]
    assert [int(row["repeat_of"]) for row in repeats] == [run.trial for run in history.repeats]
    assert resume_sweep(folder, None, QUIET, None, Repeating(2, 1)) == 0
    history = SweepFolder(folder).history
    assert history.best is not None
    assert len(history.best.values) == 3
    assert history.n_ended == 6


def test_what_slips_through_ends_as_invalid_without_a_worker(tmp_path: Path) -> None:
    method = "tests.tune.careless:Careless"
    folder = start(tmp_path, trials=8, method=method, constraints=("parameters<=1e4",))
    history = SweepFolder(folder).history
    outside = [trial for trial in history.trials if trial.config["n"] > 10]
    assert outside
    for trial in history.trials:
        is_outside = trial.config["n"] > 10
        assert (trial.cause == "invalid") == is_outside
        assert bool(trained(folder, trial.id)) != is_outside
    words = outside[0].message
    assert (
        words == f"constraint: parameters <= 10000 must hold, but got {outside[0].config['n']}000"
    )
