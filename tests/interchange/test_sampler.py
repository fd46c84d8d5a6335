"""The sampler for Optuna: what it learns of a space, and how it treats trials."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from nasbo.errors import NasboError
from nasbo.interchange.define_by_run import SeenSpace
from nasbo.interchange.distributions import distribution_of
from nasbo.interchange.listing import listing_of
from nasbo.optuna import NasboSampler
from nasbo.space import load_space

optuna.logging.set_verbosity(optuna.logging.ERROR)


def svm(trial: Any) -> float:
    """A loss with two branches; the best is 0, of rbf with C = 10 and gamma = 0.1."""
    c = trial.suggest_float("C", 1e-3, 1e3, log=True)
    kernel = trial.suggest_categorical("kernel", ["linear", "poly", "rbf"])
    value = 0.1 * (math.log10(c) - 1) ** 2
    if kernel == "linear":
        return value + 1.5
    value += (math.log10(trial.suggest_float("gamma", 1e-3, 1e3, log=True)) + 1) ** 2
    return float(value + (trial.suggest_int("degree", 2, 5) if kernel == "poly" else 0))


def _study(objective: Any, n: int, sampler: Any, **given: Any) -> optuna.Study:
    study = optuna.create_study(sampler=sampler, **given)
    study.optimize(objective, n_trials=n)
    return study


def _params(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


def test_it_beats_random_on_a_conditional_space() -> None:
    found = _study(svm, 20, NasboSampler(seed=0)).best_value
    drawn = [_study(svm, 20, optuna.samplers.RandomSampler(seed)).best_value for seed in range(20)]
    assert found < min(0.01, *drawn)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_direction(direction: str) -> None:
    def objective(trial: Any) -> float:
        return float(trial.suggest_float("x", -1, 1))

    study = _study(objective, 8, NasboSampler(seed=1), direction=direction)
    assert study.best_value == pytest.approx(-1 if direction == "minimize" else 1, abs=0.01)


def test_same_seed_same_trials() -> None:
    one, two = (_params(_study(svm, 8, NasboSampler(seed=3))) for _ in range(2))
    other = _params(_study(svm, 8, NasboSampler(seed=4)))
    assert one == two
    assert one != other


def test_a_study_goes_on_in_another_sampler() -> None:
    whole = _study(svm, 10, NasboSampler("random", seed=3))
    study = _study(svm, 6, NasboSampler("random", seed=3))
    copied = pickle.loads(pickle.dumps(study.sampler))
    study.sampler = copied
    study.optimize(svm, n_trials=4)
    assert _params(study) == _params(whole)


def test_reseeding_gives_other_trials() -> None:
    sampler = NasboSampler("random", seed=0)
    before = _params(_study(svm, 5, sampler))
    sampler = NasboSampler("random", seed=0)
    sampler.reseed_rng()
    assert _params(_study(svm, 5, sampler)) != before


def test_a_sampler_may_serve_several_studies() -> None:
    sampler = NasboSampler("random", seed=0)
    _study(svm, 8, sampler)
    study = _study(lambda trial: trial.suggest_float("other", 0, 1), 8, sampler)
    assert all(list(params) == ["other"] for params in _params(study))


def test_new_parameters_are_drawn_and_then_known() -> None:
    seen: list[set[str]] = []

    class Watched(NasboSampler):
        def sample_relative(self, study: Any, trial: Any, search_space: Any) -> Any:
            found = super().sample_relative(study, trial, search_space)
            seen.append({*found})
            return found

    study = _study(svm, 12, Watched("random", seed=0))
    assert seen[0] == set()
    for at in range(3, 12):  # by then the design has seen every kernel
        kernel = study.trials[at].params["kernel"]
        if kernel in {one.params["kernel"] for one in study.trials[:at]}:
            assert seen[at] == {*study.trials[at].params}
    counts = Counter(trial.params["kernel"] for trial in study.trials)
    assert min(counts[kernel] for kernel in ("linear", "poly", "rbf")) >= 2


def test_the_space_is_that_of_the_objective() -> None:
    study = _study(svm, 30, optuna.samplers.RandomSampler(seed=0))
    seen = SeenSpace.of(study.trials)
    assert seen is not None
    assert seen.space.n_subspaces == 3
    assert seen.loose == frozenset()
    for trial in study.trials:
        config = seen.config_of(trial.params)
        assert config is not None
        assert seen.params_of(config) == pytest.approx(trial.params)
    assert seen.config_of({"C": 1.0, "kernel": "rbf"}) is None
    assert seen.config_of({"C": 1.0, "kernel": "linear", "gamma": 1.0}) is None


@pytest.mark.parametrize(("n", "n_subspaces", "n_fitting"), [(20, None, 95), (200, 21_760, 100)])
def test_rare_branches_are_inferred(n: int, n_subspaces: int | None, n_fitting: int) -> None:
    """Three of four networks have seven blocks, one of a hundred has four."""
    space = load_space("nas_cifar10_conditional")
    entries, translation = listing_of(space)
    distributions = {one.name: distribution_of(one.parameter) for one in entries}
    rng = np.random.default_rng(0)
    drawn = [translation.values(space.sample(rng)) for _ in range(n)]
    trials = [
        optuna.create_trial(
            params=values, distributions={name: distributions[name] for name in values}, value=0.0
        )
        for values in drawn
    ]
    seen = SeenSpace.of(trials)
    assert seen is not None
    fitting = [seen.config_of(translation.values(space.sample(rng))) for _ in range(100)]
    assert sum(config is not None for config in fitting) >= n_fitting
    assert n_subspaces in (None, seen.space.n_subspaces)


def test_ranges_steps_and_odd_choices() -> None:
    distributions = {
        "step": optuna.distributions.FloatDistribution(-1, 1, step=0.1),
        "even": optuna.distributions.IntDistribution(2, 20, step=2),
        "log": optuna.distributions.IntDistribution(1, 1000, log=True),
        "mixed": optuna.distributions.CategoricalDistribution([1, True, None, "1", 1.5]),
    }
    study = optuna.create_study(sampler=NasboSampler(seed=0))
    for number in range(12):
        trial = study.ask(distributions)
        study.tell(trial, float(number))
        for name, one in distributions.items():
            assert one._contains(one.to_internal_repr(trial.params[name]))
        assert type(trial.params["even"]) is int
        assert type(trial.params["step"]) is float


def test_running_trials_are_not_asked_again() -> None:
    choices = optuna.distributions.CategoricalDistribution([*"abcdef"])
    study = optuna.create_study(sampler=NasboSampler(seed=0))
    study.tell(study.ask({"x": choices, "y": choices}), 1.0)
    study.tell(study.ask({"x": choices, "y": choices}), 0.0)
    asked = [study.ask({"x": choices, "y": choices}) for _ in range(8)]
    assert len({(one.params["x"], one.params["y"]) for one in study.trials}) == 10
    assert len(asked) == 8


def test_running_trials_that_have_suggested_little_count_too() -> None:
    study = _study(lambda t: t.suggest_float("x", 0, 1) + t.suggest_float("y", 0, 1), 6,
                   NasboSampler(seed=0))  # fmt: skip
    trials = [study.ask() for _ in range(3)]
    first = [one.suggest_float("x", 0, 1) for one in trials]
    second = [one.suggest_float("y", 0, 1) for one in trials]
    places = np.array([first, second]).T
    apart = [np.abs(places[i] - places[j]).max() for i in range(3) for j in range(i)]
    assert min(apart) > 1e-6


def test_workers_share_a_storage(tmp_path: Path) -> None:
    backend = optuna.storages.journal.JournalFileBackend
    path = str(tmp_path / "study.log")

    def worker() -> optuna.Study:
        return optuna.create_study(
            storage=optuna.storages.JournalStorage(backend(path)),
            study_name="shared",
            load_if_exists=True,
            sampler=NasboSampler(seed=0),
        )

    distributions = {"x": optuna.distributions.IntDistribution(0, 11)}
    first, second = worker(), worker()
    first.tell(first.ask(distributions), 0.0)
    first.tell(first.ask(distributions), 1.0)
    for _ in range(5):  # none of these is told
        first.ask(distributions)
        second.ask(distributions)
    assert len({trial.params["x"] for trial in second.trials}) == len(second.trials) == 12


def test_threads_share_a_study() -> None:
    study = optuna.create_study(sampler=NasboSampler(seed=0))
    study.optimize(svm, n_trials=12, n_jobs=3)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 12
    assert len({tuple(sorted(p.items())) for p in _params(study)}) == 12


def test_regions_that_fail_are_left_out() -> None:
    def objective(trial: Any) -> float:
        kind = trial.suggest_categorical("kind", ["good", "bad"])
        x = trial.suggest_float("x", 0, 1)
        if kind == "bad":
            raise RuntimeError("out of memory")
        return float((x - 0.5) ** 2)

    study = optuna.create_study(sampler=NasboSampler("random", seed=0))
    study.optimize(objective, n_trials=40, catch=(RuntimeError,))
    kinds = [trial.params["kind"] for trial in study.trials]
    assert kinds[:5].count("bad") >= 2
    bad = [number for number, kind in enumerate(kinds) if kind == "bad"]
    gaps = [after - before for before, after in pairwise(bad[2:])]
    assert gaps == [4, 8, 16], "probes, ever fewer of them"


def test_pruned_trials_count_with_their_last_value() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        for step in range(1, 4):
            trial.report((x - 0.8) ** 2, step)
            if x < 0.5:
                raise optuna.TrialPruned
        return float((x - 0.8) ** 2)

    study = _study(objective, 14, NasboSampler(seed=0))
    states = Counter(trial.state.name for trial in study.trials)
    assert states["PRUNED"] >= 1
    assert study.best_params["x"] == pytest.approx(0.8, abs=0.02)


def test_all_pruned_or_failed() -> None:
    def pruned(trial: Any) -> float:
        trial.suggest_float("x", 0, 1)
        raise optuna.TrialPruned

    def failing(trial: Any) -> float:
        trial.suggest_float("x", 0, 1)
        return math.nan

    for objective in (pruned, failing):
        study = _study(objective, 5, NasboSampler(seed=0))
        assert len({one.params["x"] for one in study.trials}) == 5
    study = _study(lambda t: math.inf * t.suggest_float("x", 0.1, 1), 5, NasboSampler(seed=0))
    assert len({one.params["x"] for one in study.trials}) == 5


def test_finite_spaces_have_an_end() -> None:
    study = _study(lambda t: t.suggest_int("x", 0, 3), 9, NasboSampler(seed=0))
    assert {one.params["x"] for one in study.trials[:4]} == {0, 1, 2, 3}
    assert len(study.trials) == 9


def test_conditions_on_floats_are_no_branches() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        return float(x + (trial.suggest_float("y", 0, 1) if x > 0.5 else 2))

    study = _study(objective, 15, NasboSampler("random", seed=0))
    seen = SeenSpace.of(study.trials)
    assert seen is not None
    assert seen.loose == {"y"}
    assert seen.space.n_subspaces == 1
    assert all(seen.config_of(one.params) is not None for one in study.trials)


def test_added_and_enqueued_trials_are_used() -> None:
    study = optuna.create_study(sampler=NasboSampler(seed=0))
    study.enqueue_trial({"C": 10.0, "kernel": "rbf", "gamma": 0.1})
    study.optimize(svm, n_trials=1)
    assert study.best_value == 0
    other = optuna.create_study(sampler=NasboSampler(seed=0))
    other.add_trials(_study(svm, 12, optuna.samplers.RandomSampler(seed=0)).trials)
    other.optimize(svm, n_trials=8)
    assert min(one.value for one in other.trials[12:]) < min(one.value for one in other.trials[:12])


def test_wrong_settings() -> None:
    with pytest.raises(NasboError, match=r"unknown method 'no'; known: .*attnbo"):
        NasboSampler("no")
    with pytest.raises(NasboError, match=r"'attnbo' has no option 'no'"):
        NasboSampler(no=1)
    with pytest.raises(NasboError, match=r"seed must be an integer >= 0 or None, got -1"):
        NasboSampler(seed=-1)


def test_missing_package_names_the_extra() -> None:
    code = "import sys; sys.modules['optuna'] = None\nimport nasbo\nimport nasbo.optuna"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "nasbo.optuna needs the package 'optuna': pip install 'nasbo[optuna]'" in done.stderr
    code = "import nasbo.optuna, optuna, sys; assert 'site-packages' in optuna.__file__"
    subprocess.run([sys.executable, "-c", code], check=True)
