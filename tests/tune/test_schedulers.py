"""Tune's own schedulers with NasboSearch, and rungs in a user's Tuner, on a real Ray."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from ray import tune
from ray.tune.schedulers import (
    HyperBandForBOHB,
    HyperBandScheduler,
    PopulationBasedTraining,
)

from nasbo.tune import NasboSearch
from tests.tune.test_searcher import fit

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]
SPACE = {"x": {"type": "float", "range": [0, 1]}}
FULL = 9


def train(config: dict[str, Any]) -> None:
    """Continues from Tune's checkpoint, which schedulers that pause require."""
    start = 0
    if (held := tune.get_checkpoint()) is not None:
        with held.as_directory() as folder:
            start = json.loads((Path(folder) / "step.json").read_text())
    for step in range(start + 1, FULL + 1):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "step.json").write_text(json.dumps(step))
            checkpoint = tune.Checkpoint.from_directory(folder)
            tune.report({"loss": config["x"] + 1 / step}, checkpoint=checkpoint)


def searcher(**options: Any) -> NasboSearch:
    return NasboSearch(SPACE, metric="loss", mode="min", method="random", **options)


def test_rungs_in_a_tuner_of_ones_own(tmp_path: Path) -> None:
    """The trainable returns at `until`; its checkpoint is in the folder of the trial's number."""
    folder = tmp_path / "kept"
    folder.mkdir()

    def climb(config: dict[str, Any]) -> None:
        own = config["nasbo"]
        file = folder / f"{own['trial']}.json"
        start = json.loads(file.read_text())["step"] if file.exists() else 0
        assert start == own["start"]
        for step in range(start + 1, (own["until"] or FULL) + 1):
            file.write_text(json.dumps({"step": step}))
            tune.report({"loss": config["x"] + 1 / step, "training_iteration": step})

    one = searcher(rungs=[1, 3, FULL], schedule="async")
    fit(climb, one, 30, tmp_path)
    history = one.search.history
    trials = history.trials
    assert {trial.step for trial in trials} == {1, 3, FULL}
    assert history.state_counts()["finished"] >= 1
    for trial in trials:
        assert trial.last_value == pytest.approx(trial.config["x"] + 1 / trial.step)
    best_at_first = sorted(trials, key=lambda trial: trial.config["x"])[: len(trials) // 3]
    went_on = {trial.id for trial in trials if trial.step > 1}
    assert len(went_on & {trial.id for trial in best_at_first}) >= len(went_on) // 2


def test_hyperband_loses_no_result(tmp_path: Path) -> None:
    scheduler = HyperBandScheduler(metric="loss", mode="min", max_t=FULL, reduction_factor=3)
    one = searcher()
    fit(train, one, 9, tmp_path, scheduler=scheduler)
    trials = [trial for trial in one.search.history.trials if not trial.is_open]
    assert len(trials) == 9  # Tune may have asked for one more
    rows = {trial.id for trial, _ in one.search.history.rows()}
    rows = {trial.id for trial, _ in one.search.history.rows()}
    assert rows == {trial.id for trial in trials}


def test_a_scheduler_that_changes_configs_is_refused_by_tune(tmp_path: Path) -> None:
    scheduler = PopulationBasedTraining(
        metric="loss", mode="min", perturbation_interval=2,
        hyperparam_mutations={"x": tune.uniform(0, 1)},
    )  # fmt: skip
    with pytest.raises(ValueError, match="cannot be used with PopulationBasedTraining"):
        fit(train, searcher(), 8, tmp_path, scheduler=scheduler)


def test_the_scheduler_of_bohb_is_refused(tmp_path: Path) -> None:
    scheduler = HyperBandForBOHB(metric="loss", mode="min", max_t=FULL, reduction_factor=3)
    with pytest.raises(Exception, match="TuneBOHB"):
        fit(train, searcher(), 9, tmp_path, scheduler=scheduler)
