"""Returned configs under noise: estimates of the methods with a surrogate."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nasbo.history import Mode, Trial
from nasbo.history.events import RoundOpened
from nasbo.methods import make_method
from nasbo.methods.base import Task
from nasbo.methods.estimates import ESTIMATES, MIN_NOISE, N_ESTIMATED, estimate_tried
from nasbo.methods.exclusion import Excluded
from nasbo.search import Search
from nasbo.space import load_space
from nasbo.surrogates.base import ExactGP, batches_of
from nasbo.surrogates.one_hot import OneHotGP
from nasbo.surrogates.structured import StructuredGP
from nasbo.tune.remote_method import MethodActor, MethodRecipe
from tests.methods.functions import searched

SPACE = {"x": {"type": "float", "range": [0, 1]}}
BEST = 0.37
SIGNAL_SD = 0.85
"""Of ``truth`` over the space."""
WITH_NOISE = ["attnbo", "gp", "addtree", "arc", "independent", "tree", "casmopolitan"]


def truth(config: Mapping[str, Any]) -> float:
    """Small values are better."""
    return 8.0 * (float(config["x"]) - BEST) ** 2


def noisy_search(
    method: str = "gp",
    seed: int = 0,
    n: int = 40,
    noise: float = 0.3,
    journal: Path | None = None,
    mode: Mode = "min",
    **options: Any,
) -> Search:
    """Thirty results from the whole space, then a search up to ``n`` trials."""
    search = Search(SPACE, method, mode, seed, journal=journal, **options)
    sign = 1.0 if mode == "min" else -1.0
    rng = np.random.default_rng(seed)
    values = rng.normal(0.0, noise * SIGNAL_SD, size=n)
    if not search.history.trials:
        for x, value in zip(np.linspace(0.0, 1.0, 30), values, strict=False):
            search.observe({"x": float(x)}, sign * (truth({"x": x}) + value))
    while (number := len(search.history.trials)) < n:
        (trial,) = search.ask(1)
        search.tell(trial, sign * (truth(trial.config) + values[number]))
    return search


def rounds(search: Search) -> list[Mapping[str, Any] | None]:
    return [one.estimates for one in search.events if isinstance(one, RoundOpened)]


@pytest.mark.parametrize(("method", "noise"), [("attnbo", 0.3), ("attnbo", 0.6), ("gp", 0.6)])
def test_what_is_returned_is_better_than_the_luckiest(method: str, noise: float) -> None:
    returned, luckiest, n_found = [], [], 0
    for seed in range(6):
        search = noisy_search(method, seed, noise=noise)
        n_found += search.best.estimate is not None
        returned.append(truth(search.best.config))
        luckiest.append(truth(search.ranked("observed")[0].config))
    assert n_found >= 4, "in most of the searches noise was found"
    assert np.mean(returned) < 0.75 * np.mean(luckiest)


@pytest.mark.parametrize("method", WITH_NOISE)
def test_estimates_are_near_the_truth(method: str) -> None:
    search = noisy_search(method, seed=1)
    last = rounds(search)[-1]
    assert last
    assert last["noise_sd"] == pytest.approx(0.3 * SIGNAL_SD, rel=0.35)
    errors = [
        (trial.estimate.mean - truth(trial.config)) / trial.estimate.sd
        for trial in search.history.trials
        if trial.estimate is not None
    ]
    assert len(errors) in (N_ESTIMATED, N_ESTIMATED + 1)
    assert np.sqrt(np.mean(np.square(errors))) < 2.0
    known = [trial for trial in search.history.trials if trial.estimate is not None]
    lucky = [trial.expected for trial in search.ranked("observed")[:3]]
    assert min(lucky) > min(trial.value or 0.0 for trial in known), "lucky values are taken back"


def test_large_values_are_estimated_as_such() -> None:
    small, large = (noisy_search(seed=2, mode=mode) for mode in ("min", "max"))
    assert large.best.id == small.best.id
    assert large.best.estimate is not None
    assert small.best.estimate is not None
    assert large.best.estimate.mean == pytest.approx(-small.best.estimate.mean)
    assert large.best.estimate.sd == pytest.approx(small.best.estimate.sd)


def test_a_search_that_was_killed_returns_the_same(tmp_path: Path) -> None:
    whole = noisy_search(seed=3)
    path = tmp_path / "journal.jsonl"
    noisy_search(seed=3, n=36, journal=path).close()
    with noisy_search(seed=3, journal=path) as resumed:
        assert rounds(resumed) == rounds(whole)
        assert resumed.best.id == whole.best.id
        ranks = [(trial.id, trial.estimate) for trial in resumed.ranked()]
        assert ranks == [(trial.id, trial.estimate) for trial in whole.ranked()]


@pytest.mark.parametrize("method", WITH_NOISE)
def test_without_noise_ranks_are_those_of_the_values(method: str) -> None:
    search = searched(method, 14)
    assert not any(rounds(search)), "nothing is estimated"
    assert not any(trial.estimate for trial in search.history.trials)
    assert search.ranked() == search.ranked("observed")


@pytest.mark.parametrize(
    ("method", "options"), [("bandits", {}), ("attnbo", {"preset": "paper"}), ("random", {})]
)
def test_models_that_cannot_tell_noise_estimate_nothing(
    method: str, options: dict[str, Any]
) -> None:
    search = noisy_search(method, n=31, **options)
    assert rounds(search) == [None]


def _task(search: Search) -> Task:
    rng = np.random.default_rng(0)
    return Task(search.space, search.history.rows(), [], Excluded(), 1, rng, 0)


def _tried(n: int) -> Search:
    search = Search(SPACE, "random")
    rng = np.random.default_rng(0)
    for x in rng.permutation(n) / n:
        search.observe({"x": float(x)}, truth({"x": x}) + float(rng.normal(0.0, 0.3)))
    return search


def _say_noisy(model: ExactGP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "noise_variance", lambda: torch.tensor(0.1))


def test_the_best_of_all_rows_are_listed_where_a_model_rests_on_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = _tried(120)
    model = StructuredGP(search.space, max_rows=60)
    task = _task(search)
    model.fit(task.data)
    _say_noisy(model, monkeypatch)
    assert len(model.observed_means()) == 60
    found = estimate_tried(model, task)[ESTIMATES]["trials"]
    with torch.no_grad():
        means, variances = model.posteriors(batches_of(task.data))
    best = means.argsort(descending=True)[:N_ESTIMATED].tolist()
    assert list(found) == best, "their numbers are those of the rows here"
    at = best[0]
    mean, sd = (float(one) for one in (means[at], variances[at].sqrt()))
    score, spread = found[at]
    assert score == pytest.approx(model.scale.to_score(mean))
    ends = [model.scale.to_score(mean + k * sd) for k in (-1, 1)]
    assert spread == pytest.approx((ends[1] - ends[0]) / 2)


def test_who_cannot_be_the_best_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    search = _tried(20)
    (failed, valued) = search.ask(2)
    search.tell(failed, error="diverged")
    search.tell(valued, 0.1)
    search.observe({"x": BEST}, -1.0, origin="other", is_comparable=False)
    (twin,) = search.ask(1)
    search.answer(twin, search.history.trial(valued.id))
    task = _task(search)
    model = OneHotGP(search.space)
    model.fit(task.data)
    _say_noisy(model, monkeypatch)
    listed = estimate_tried(model, task)[ESTIMATES]["trials"]
    unlisted = {trial.id for trial in search.history.trials} - set(listed)
    assert unlisted == {failed.id, search.history.trials[22].id, twin.id}


def test_a_noise_at_its_prior_is_none() -> None:
    search = Search(SPACE, "random")
    for x in (0.1, 0.9):
        search.observe({"x": x}, x)
    model, task = OneHotGP(search.space), _task(search)
    model.fit(task.data)
    assert float(model.noise_variance()) < MIN_NOISE
    assert estimate_tried(model, task) == {ESTIMATES: {}}


def test_the_journal_grows_by_a_bounded_number_of_estimates() -> None:
    sizes = [len(one["trials"]) for one in rounds(noisy_search(n=50)) if one]
    assert sizes
    assert max(sizes) == N_ESTIMATED


def test_a_decision_in_another_process_says_the_same() -> None:
    search = noisy_search(n=40)
    actor = MethodActor(MethodRecipe(search.space, "min", "gp"))
    decided, seconds = actor.suggest(pickle.loads(pickle.dumps(search.events)), 1)
    search.add_round(pickle.loads(pickle.dumps(decided)), seconds)
    elsewhere = rounds(search)[-1]
    here = noisy_search(n=41)
    assert elsewhere == rounds(here)[-1] != {}
    assert actor.history.ranked()[0].id == noisy_search(n=40).best.id


def test_a_decision_says_it_once() -> None:
    search = noisy_search(n=40)
    method = make_method("gp", load_space(SPACE), 0)
    infos = [one.info for one in method.suggest(search.history, 3)]
    assert [ESTIMATES in info for info in infos] == [True, False, False]
    best: Trial = search.best
    assert math.isfinite(infos[0][ESTIMATES]["trials"][best.id][0])
