"""Every method of the registry in sweeps and in a Tuner, on one real Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ray import tune

from nasbo.bench.cost import installed_methods
from nasbo.history import Trial
from nasbo.tune import NasboSearch

from .test_run import make, run
from .test_searcher import fit
from .toy import simulation

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("local_ray")]
N_DESIGN, N_TRIALS = 8, 12


def check(trials: list[Trial]) -> None:
    """The design, then a round of suggestions by the method itself."""
    sources = [trial.source for trial in trials[:N_TRIALS]]
    reasons = [trial.info.get("reason") for trial in trials]
    assert sources == ["design"] * N_DESIGN + ["model"] * (N_TRIALS - N_DESIGN), reasons
    assert all(
        trial.value == pytest.approx(simulation(trial.config)) for trial in trials[:N_TRIALS]
    )


@pytest.mark.parametrize("method", installed_methods())
def test_a_sweep_with_it_finishes(method: str, tmp_path: Path) -> None:
    make(tmp_path / "sweep", method=method, trials=N_TRIALS)
    outcome = run(tmp_path / "sweep")
    assert outcome.state == "finished"
    assert outcome.history.n_ended == N_TRIALS
    check(outcome.history.trials)


@pytest.mark.parametrize("method", installed_methods())
def test_a_tuner_with_it_finishes(method: str, tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> None:
        tune.report({"loss": simulation(config)})

    searcher = NasboSearch("simulation", metric="loss", mode="min", method=method, seed=1)
    results = fit(train, searcher, N_TRIALS, tmp_path)
    assert len(results) == N_TRIALS
    assert not results.errors
    check(searcher.search.history.trials)
