"""NasboSearch inside a user's Tuner, on a real Ray."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from ray import tune
from ray.tune.schedulers import ASHAScheduler

from nasbo import Search, run_loop
from nasbo.errors import NasboError
from nasbo.history import History
from nasbo.tune import NasboSearch
from tests.tune.toy import simulation

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]
KINDS = {"kind": {"type": "choice", "range": ["good", "nan", "crash", "silent"]}}


def fit(
    trainable: Any, searcher: NasboSearch, n: int, folder: Path, **options: Any
) -> tune.ResultGrid:
    scheduler = options.pop("scheduler", None)
    n_slots = options.pop("n_slots", 2)
    try:
        return tune.Tuner(
            tune.with_resources(trainable, {"CPU": 0.5}),
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                num_samples=n,
                max_concurrent_trials=n_slots,
                reuse_actors=True,
                scheduler=scheduler,
                **options,
            ),
            run_config=tune.RunConfig(verbose=0, storage_path=str(folder), name="run"),
        ).fit()
    finally:
        searcher.close()


def test_rounds_have_one_config_per_subspace(tmp_path: Path) -> None:
    searcher = NasboSearch("simulation", metric="loss", mode="min", seed=3)

    def train(config: dict[str, Any]) -> None:
        tune.report({"loss": simulation(config)})

    results = fit(train, searcher, 16, tmp_path)
    history = searcher.search.history
    assert [r.size for r in history.rounds][:3] == [8, 4, 4]
    for number in (1, 2):
        assert sorted(t.subspace for t in history.trials if t.round == number) == [0, 1, 2, 3]
    assert [t.source for t in history.trials[:8]] == ["design"] * 8
    assert {t.source for t in history.trials[8:16]} == {"model"}
    assert len(results) == 16
    assert history.best is not None
    assert history.best.value == pytest.approx(
        results.get_best_result("loss", "min").metrics["loss"]
    )


@pytest.fixture(scope="module")
def ended(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> NasboSearch:
    """A searcher after sixteen trials."""
    searcher = NasboSearch("simulation", metric="loss", mode="min", seed=7, method="random")

    def train(config: dict[str, Any]) -> None:
        tune.report({"loss": simulation(config)})

    fit(train, searcher, 16, tmp_path_factory.mktemp("ended"))
    return searcher


def test_same_search_as_without_ray(ended: NasboSearch) -> None:
    on_ray = [t.config for t in ended.search.history.trials][:16]
    assert on_ray == [t.config for t in _alone().trials]


def _alone() -> Search:
    """The same search without Ray."""
    alone = Search("simulation", method="random", seed=7)
    run_loop(alone, simulation, 16)
    return alone


def test_endings_are_recorded_by_cause(tmp_path: Path) -> None:
    searcher = NasboSearch(KINDS, metric="loss", mode="min", method="random")

    def train(config: dict[str, Any]) -> None:
        if config["kind"] == "crash":
            raise ValueError("a bug of the user")
        if config["kind"] != "silent":
            tune.report({"loss": float("nan") if config["kind"] == "nan" else 1.0})

    fit(train, searcher, 4, tmp_path)
    causes = {t.config["kind"]: (t.state, t.cause) for t in searcher.search.history.trials}
    assert causes == {
        "good": ("finished", None),
        "nan": ("failed", "diverged"),
        "crash": ("failed", "crashed"),
        "silent": ("failed", "no result"),
    }


def test_a_scheduler_stops_trials_early(tmp_path: Path) -> None:
    space = {"x": {"type": "float", "range": [0, 1]}}
    searcher = NasboSearch(space, metric="loss", mode="min", method="random")

    def train(config: dict[str, Any]) -> None:
        for step in range(8):
            tune.report({"loss": config["x"] + 1 / (step + 1)})

    scheduler = ASHAScheduler(
        metric="loss", mode="min", max_t=8, grace_period=1, reduction_factor=2
    )
    fit(train, searcher, 12, tmp_path, scheduler=scheduler)
    trials = searcher.search.history.trials
    stopped = [t for t in trials if t.cause == "stopped"]
    assert stopped
    assert all(t.first.value == pytest.approx(t.config["x"] + 1 / t.step) for t in stopped)
    rows = {t.id: score for t, score in searcher.search.history.rows()}
    assert {trial.id: -trial.last_value for trial in trials if trial.last_value} == rows
    assert {t.id for t in trials if t.value is not None} == {t.id for t in trials if t.step == 8}
    assert {t.step for t in stopped} >= {1, 8}
    assert searcher.search.best.step == 8


@pytest.mark.slow
def test_points_to_evaluate_run_first(tmp_path: Path) -> None:
    point = {"x1": 0, "r8": 0, "x2": 0, "x4": 0.25}
    searcher = NasboSearch(
        "simulation", metric="loss", mode="min", method="random", points_to_evaluate=[point]
    )

    def train(config: dict[str, Any]) -> None:
        tune.report({"loss": simulation(config)})

    fit(train, searcher, 8, tmp_path)
    trials = searcher.search.history.trials
    assert trials[0].config == point
    assert sum(t.subspace == 0 for t in trials if t.source == "design") == 2


def test_known_values_are_not_run_and_count_as_design() -> None:
    points = [{"x1": 0, "r8": 0, "x2": 0, "x4": x} for x in (0.25, 0.5)]
    searcher = NasboSearch("simulation", "loss", "min", points, [0.1625, 0.35], method="random")
    searcher.add_evaluated_point({"x1": 0, "r8": 0, "x2": 1, "x5": 0.0}, 0.2)
    searcher.add_evaluated_point({"x1": 0, "r8": 0, "x2": 1, "x5": 0.5}, 0.2, error=True)
    history = searcher.search.history
    assert [t.value for t in history.trials] == [0.1625, 0.35, 0.2]
    assert history.design_counts() == {0: 2, 1: 1}
    with pytest.raises(NasboError, match="evaluated_rewards must match"):
        NasboSearch("simulation", "loss", "min", points, [1.0])


def test_mode_and_metric_from_the_tuner(tmp_path: Path) -> None:
    searcher = NasboSearch({"x": {"type": "float", "range": [0, 1]}}, method="random")

    def train(config: dict[str, Any]) -> None:
        tune.report({"accuracy": config["x"], "fixed": config["fixed"]})

    tune.Tuner(
        train,
        param_space={"fixed": 5},
        tune_config=tune.TuneConfig(
            search_alg=searcher, num_samples=3, metric="accuracy", mode="max"
        ),
        run_config=tune.RunConfig(verbose=0, storage_path=str(tmp_path)),
    ).fit()
    searcher.close()
    history = searcher.search.history
    assert history.mode == "max"
    assert history.best is not None
    assert history.best.value == max(t.value or 0 for t in history.trials if t.value is not None)
    assert history.best.metrics["fixed"] == 5


def test_save_and_restore_give_the_same_search(ended: NasboSearch, tmp_path: Path) -> None:
    ended.save(str(tmp_path / "state.json"))
    other = NasboSearch("simulation", metric="loss", mode="min", method="random", seed=7)
    other.restore(str(tmp_path / "state.json"))
    assert _told(other.search.history) == _told(ended.search.history)
    continued, alone = (search.open_round(4) for search in (other.search, _alone()))
    assert [t.config for t in continued] == [t.config for t in alone]


def _told(history: History) -> list[Any]:
    return [(t.config, t.state, t.value, t.cause) for t in history.trials]


def test_results_are_handled_during_a_long_fit(tmp_path: Path) -> None:
    """While the method computes for ten seconds, trials continue and
    their reports are processed.
    """
    happened: list[tuple[str, float]] = []

    class Watched(NasboSearch):
        def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
            happened.append(("thinking" if self.driver.is_deciding else "idle", time.time()))
            super().on_trial_result(trial_id, result)

    def train(config: dict[str, Any]) -> None:
        for _ in range(int(config["x"])):
            time.sleep(0.5)
            tune.report({"loss": config["x"]})

    searcher = Watched(
        {"x": {"type": "int", "range": [2, 28]}},
        metric="loss",
        mode="min",
        method="nasbo.bench.event_loop:SlowMethod",
        method_options={"seconds": 10.0},
        schedule="async",
        points_to_evaluate=[{"x": 2}, {"x": 3}, {"x": 26}, {"x": 27}],
    )
    fit(train, searcher, 6, tmp_path, n_slots=4)
    during = [at for state, at in happened if state == "thinking"]
    assert len(during) >= 5
    rounds = searcher.search.history.rounds
    assert max(r.seconds for r in rounds) >= 10.0
    slow = max(rounds, key=lambda r: r.seconds)
    assert all(at < slow.time for at in during[:5]), "results waited for the fit"


def test_a_broken_method_never_reaches_tune(tmp_path: Path) -> None:
    searcher = NasboSearch(
        {"x": {"type": "float", "range": [0, 1]}},
        metric="loss",
        mode="min",
        method="tests.tune.broken:DyingMethod",
    )

    def train(config: dict[str, Any]) -> None:
        tune.report({"loss": config["x"]})

    results = fit(train, searcher, 5, tmp_path)
    assert len(results) == 5
    sources = [t.source for t in searcher.search.history.trials]
    assert "fallback" in sources
    assert sources[:2] == ["design", "design"]


def test_bad_schedule_is_refused() -> None:
    with pytest.raises(NasboError, match="'round' or 'async'"):
        NasboSearch("simulation", schedule="sometimes")
