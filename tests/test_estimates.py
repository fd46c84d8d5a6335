"""Estimates of noise-free values: replay from the journal, and ranks by them."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from nasbo.errors import JournalError, NasboError
from nasbo.history import Estimate, History, Trial, replay
from nasbo.history.estimates import ESTIMATES, probability_of_best, take_estimates, updated
from nasbo.history.events import RoundOpened, from_json
from nasbo.history.journal import read_events
from nasbo.search import Search
from nasbo.search.repeats import due_repeats
from nasbo.sweeps.folder import trial_folder
from nasbo.sweeps.policies import prune_checkpoints
from tests.noisy import LUCKY, MEANS, NOISE_SD, TRUE_BEST, VALUES, decide, estimates, told

SPACE = {"x": {"type": "float", "range": [0, 1]}}


@pytest.fixture
def search() -> Search:
    return told(Search(SPACE, "random", "max"))


def _of(trial: Trial) -> Estimate:
    assert trial.estimate is not None
    return trial.estimate


def test_the_best_is_the_one_that_is_expected_to_be(search: Search) -> None:
    assert search.best.id == TRUE_BEST
    assert [trial.id for trial in search.ranked()] == [2, 3, 0, 1], "an unlisted trial comes last"
    assert [trial.id for trial in search.ranked("observed")] == [0, 2, 3, 1]
    best = search.history.trials[TRUE_BEST]
    assert (best.value, best.expected, best.estimate) == (0.92, 0.90, (0.90, 0.02))
    assert search.history.trials[1].estimate is None
    assert search.history.trials[1].expected == 0.70
    assert search.history.best_so_far() == [0.95] * 4, "curves are of observed values"
    snapshot = search.history.snapshot()
    assert (snapshot.best, snapshot.certainty) == (search.history.best, search.history.certainty)


def test_small_values_are_ranked_the_other_way_round() -> None:
    search = told(Search(SPACE, "random", "min"))
    assert [trial.id for trial in search.ranked()] == [0, 3, 2, 1]
    assert search.history.certainty is not None
    assert search.history.certainty > 0.5


def test_ranks_by_anything_else_are_refused(search: Search) -> None:
    with pytest.raises(NasboError, match="by must be 'estimate' or 'observed', got 'luck'"):
        search.ranked("luck")  # type: ignore[arg-type]


def test_without_noise_nothing_has_an_estimate() -> None:
    search = Search(SPACE, "random", "max")
    for trial, value in zip(search.ask(4), VALUES, strict=True):
        search.tell(trial, value)
    for info in ({}, {ESTIMATES: {}}):
        decide(search, info)
        assert not any(trial.estimate for trial in search.history.trials)
        assert search.ranked() == search.ranked("observed")
        assert (search.best.id, search.history.certainty) == (LUCKY, None)


def test_estimates_go_into_the_round_and_not_into_a_trial(search: Search) -> None:
    opened = [event for event in search.events if isinstance(event, RoundOpened)][-1]
    assert opened.estimates == {
        "noise_sd": NOISE_SD,
        "trials": {str(number): [mean, 0.02] for number, mean in MEANS.items()},
    }
    assert search.history.trials[4].info == {}
    assert take_estimates([{"a": 1}, {"b": 2}]) == (None, [{"a": 1}, {"b": 2}])


def test_a_new_decision_replaces_all_estimates(search: Search) -> None:
    decide(search, {ESTIMATES: estimates({1: 0.99})})
    assert [trial.id for trial in search.ranked()] == [1, 0, 2, 3]
    assert [trial.estimate for trial in search.history.trials[:4]] == [
        None,
        (0.99, 0.02),
        None,
        None,
    ]
    decide(search, {})
    assert search.best.id == 1, "a decision without a model knows nothing better"
    decide(search, {ESTIMATES: {}})
    assert search.best.id == LUCKY, "one that finds no noise does"


def test_a_later_result_updates_what_was_predicted(search: Search) -> None:
    predicted = {"predicted": 0.8, "predicted_low": 0.7, "predicted_high": 0.9}
    (trial,) = decide(search, {**predicted, ESTIMATES: estimates(MEANS)})
    assert search.history.trial(trial.id).estimate is None
    search.tell(trial, 0.95)
    gain = 0.1**2 / (0.1**2 + NOISE_SD**2)
    mean, sd = _of(search.history.trial(trial.id))
    assert mean == pytest.approx(0.8 + gain * 0.15)
    assert sd == pytest.approx(1 / math.sqrt(1 / 0.1**2 + 1 / NOISE_SD**2))
    assert search.best.id == trial.id


def test_a_later_result_without_a_prediction_stands_for_itself(search: Search) -> None:
    search.tell(4, 0.88)
    assert _of(search.history.trial(4)) == (0.88, NOISE_SD)
    search.observe({"x": 0.5}, 0.6)
    assert _of(search.history.trials[-1]) == (0.6, NOISE_SD)
    search.observe({"x": 0.6}, 0.99, origin="other", is_comparable=False)
    assert search.history.trials[-1].estimate is None


def test_repeats_count_with_as_little_noise_as_their_mean_has(search: Search) -> None:
    best = search.history.trials[TRUE_BEST]
    for run, value in zip(search.repeat(best, best), (0.80, 0.84), strict=True):
        search.tell(run, value)
    mean, sd = _of(search.history.trial(TRUE_BEST))
    variance = NOISE_SD**2 / 2
    assert mean == pytest.approx(0.90 + 0.02**2 / (0.02**2 + variance) * (0.82 - 0.90))
    assert sd == pytest.approx(1 / math.sqrt(1 / 0.02**2 + 1 / variance))
    search.tell(4, 0.8)
    (run,) = search.repeat(search.history.trials[4])
    search.tell(run, 0.9)
    assert _of(search.history.trial(4)) == pytest.approx((0.85, NOISE_SD / math.sqrt(2)))
    (run,) = search.repeat(search.history.trials[1])
    search.tell(run, 0.9)
    assert search.history.trial(1).estimate is None, "until a decision looks at it again"


def test_what_ended_while_the_method_decided_is_a_later_result() -> None:
    search = Search(SPACE, "random", "max")
    first, second, third = search.ask(3)
    search.tell(first, 0.9)
    drawn, _ = search.decide(1)
    unseen = search.history.open_numbers
    search.tell(second, 0.8)
    drawn[0].info[ESTIMATES] = estimates({first.id: 0.85})
    search.add_round(drawn, 0.0, unseen)
    assert _of(search.history.trial(second.id)) == (0.8, NOISE_SD)
    search.tell(third, 0.7)
    assert _of(search.history.trial(third.id)) == (0.7, NOISE_SD)


def test_a_paused_trial_that_ends_later_is_a_later_result(search: Search) -> None:
    search.tell(4, 0.5, error="paused", step=2)
    decide(search, {ESTIMATES: estimates(MEANS)})
    assert search.history.trial(4).estimate is None
    search.target(4, None)
    search.tell(4, 0.8, step=9)
    assert _of(search.history.trial(4)) == (0.8, NOISE_SD)


def test_a_twin_has_the_estimate_of_its_network(search: Search) -> None:
    search.answer(4, search.history.trials[TRUE_BEST])
    assert search.history.trial(4).estimate == (0.90, 0.02)
    assert search.best.id == TRUE_BEST
    decide(search, {ESTIMATES: estimates({TRUE_BEST: 0.5})})
    assert search.history.trial(4).estimate == (0.5, 0.02)


def test_an_update_without_noise_or_without_doubt() -> None:
    assert updated(Estimate(1.0, 0.0), [5.0], 1.0) == (1.0, 0.0)
    assert updated(Estimate(1.0, 1.0), [5.0], 0.0) == (5.0, 0.0)
    assert updated(Estimate(1.0, 0.0), [5.0], 0.0) == (5.0, 0.0)
    assert updated(None, [], 1.0) is None


def test_a_journal_gives_the_same_ranks(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with told(Search(SPACE, "random", "max", journal=path)) as search:
        search.tell(4, 0.88)
        before = search.ranked()
    history = replay(search.space, "max", read_events(path))
    assert history.ranked() == before
    again: History = pickle.loads(pickle.dumps(history))
    assert again.ranked() == before
    with Search(SPACE, "random", "max", journal=path) as resumed:
        assert resumed.ranked() == before


def test_a_round_of_an_older_journal_has_no_estimates(search: Search) -> None:
    line = search.events[-2].to_json()
    assert line["event"] == "round"
    del line["estimates"]
    opened = from_json(line)
    assert isinstance(opened, RoundOpened)
    assert opened.estimates is None


@pytest.mark.parametrize("broken", [{"trials": {"0": [1.0]}}, {"noise_sd": None}, {"trials": 3}])
def test_estimates_that_cannot_be_read_are_refused(
    search: Search, broken: dict[str, object]
) -> None:
    told = "the estimates of a round cannot be read"
    with pytest.raises(JournalError, match=told):
        search.history.apply(RoundOpened(round=2, size=1, estimates=broken))
    n_events = len(search.events)
    with pytest.raises(JournalError, match=told):
        decide(search, {ESTIMATES: broken})
    assert len(search.events) == n_events, "nothing is written that cannot be read"


def test_estimates_of_an_unknown_trial_are_refused(search: Search) -> None:
    with pytest.raises(JournalError, match="no trial 77: there are 5"):
        search.history.apply(RoundOpened(round=2, size=1, estimates=estimates({77: 1.0})))


def test_the_probability_of_the_first_place() -> None:
    assert probability_of_best([1.0], [0.1]) == pytest.approx(1.0)
    assert probability_of_best([1.0, 1.0], [0.1, 0.3]) == pytest.approx(0.5)
    assert probability_of_best([0.0] * 5, [0.2] * 5) == pytest.approx(0.2)
    gap = 0.5 * (1 + math.erf(1.0 / math.sqrt(2) / math.sqrt(0.25 + 0.09)))
    assert probability_of_best([1.0, 0.0], [0.5, 0.3]) == pytest.approx(gap)
    assert probability_of_best([1.0, 0.0], [0.0, 0.0]) == pytest.approx(1.0)
    assert probability_of_best([1.0, 1.0], [0.0, 0.0]) == pytest.approx(0.5)


def test_the_probability_agrees_with_draws() -> None:
    rng = np.random.default_rng(0)
    means, sds = np.sort(rng.normal(size=12))[::-1], rng.uniform(0.05, 1.0, size=12)
    draws = rng.normal(means, sds, size=(200_000, 12))
    wins = np.bincount(draws.argmax(1), minlength=12) / len(draws)
    for at in range(12):
        order = [at, *(other for other in range(12) if other != at)]
        exact = probability_of_best(means[order].tolist(), sds[order].tolist())
        assert exact == pytest.approx(wins[at], abs=0.004)


def test_certainty_is_that_of_the_best_among_the_estimated(search: Search) -> None:
    means = [MEANS[number] for number in (2, 3, 0)]
    assert search.history.certainty == pytest.approx(probability_of_best(means, [0.02] * 3))


def test_repeats_go_to_the_expected_best() -> None:
    notes = {"repeats": 1, "repeat_top": 2, "trials": 4}
    search = told(Search(SPACE, "random", "max", notes=notes))
    assert [trial.id for trial in due_repeats(search.history)] == [TRUE_BEST, 3]


def test_checkpoints_of_the_expected_best_are_kept(search: Search, tmp_path: Path) -> None:
    (run,) = search.repeat(search.history.trials[1])
    search.tell(run, 0.99)
    ended = [run for run in search.history.runs if not run.is_open]
    for one in ended:
        trial_folder(tmp_path, one.number).mkdir(parents=True)
        (trial_folder(tmp_path, one.number) / "checkpoint.pt").touch()
    kept = prune_checkpoints(tmp_path, ended, search.history, 2)
    assert [one.number for one in kept] == [TRUE_BEST, 3], "not the luckiest, nor a lucky repeat"
    left = sorted(file.parent.name for file in tmp_path.rglob("checkpoint.pt"))
    assert left == [f"{number:05d}" for number in (TRUE_BEST, 3)]
