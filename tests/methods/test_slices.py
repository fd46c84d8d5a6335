"""Slices through a surrogate: its posterior along one parameter of the best config."""

from __future__ import annotations

import math

import pytest

from nasbo.methods import make_method
from nasbo.methods.slices import N_POINTS
from nasbo.search import Search
from nasbo.testing import SPACES
from nasbo.testing.spaces import objective


def _search(shape: str, mode: str = "max", n: int = 30, method: str = "gp") -> Search:
    search = Search(SPACES[shape], method, mode, seed=3)  # type: ignore[arg-type]
    sign = 1.0 if mode == "max" else -1.0
    for trial in search.ask(n):
        search.tell(trial, sign * objective(search.space, trial.config))
    return search


MODELS = ("addtree", "arc", "attnbo", "gp", "independent")


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize("shape", ["nested", "repeated"])
def test_every_model_has_slices(shape: str, method: str) -> None:
    history = _search(shape, n=20).history
    slices = make_method(method, history.space, 3).explain(history).slices
    assert len(slices) > 3
    predictions = [one for each in slices for one in each.predictions]
    assert all(math.isfinite(end) for one in predictions for end in one)
    assert all(low < high for _, low, high in predictions)


@pytest.mark.parametrize("mode", ["max", "min"])
def test_a_choice_that_brings_parameters_into_being_is_predicted_with_typical_ones(
    mode: str,
) -> None:
    history = _search("nested", mode).history
    slices = make_method("gp", history.space, 3).explain(history).slices
    structural = [one for one in slices if one.coordinate.parameter.is_structural]
    assert structural
    for one in structural:
        assert list(one.values) == [
            one.coordinate.parameter.value_at(at) for at in range(one.coordinate.parameter.n_levels)
        ]
        assert one.coordinate.value_in(one.trial.config) in one.values


@pytest.mark.parametrize("method", ["gp", "attnbo"])
@pytest.mark.parametrize("shape", SPACES)
def test_every_coordinate_of_the_best_has_a_slice(shape: str, method: str) -> None:
    history = _search(shape, method=method).history
    told = make_method(method, history.space, 3).explain(history)
    best = history.best
    assert best is not None
    labels = {one.coordinate.label for one in told.slices}
    assert labels >= {one.label for one in history.subspace(best).coordinates}
    assert told.n_results == len(history.rows())
    for one in told.slices:
        assert 1 <= len(one.values) <= N_POINTS
        assert all(low <= mean <= high for mean, low, high in one.predictions)
        assert len({repr(value) for value in one.values}) == len(one.values)


@pytest.mark.parametrize("mode", ["max", "min"])
def test_predictions_are_those_of_the_model_in_units_of_the_metric(mode: str) -> None:
    history = _search("flat", mode).history
    method = make_method("gp", history.space, 3)
    best = history.best
    assert best is not None
    assert best.value is not None
    found = {one.coordinate.label: one for one in method.explain(history).slices}
    along = found["n"]
    assert along.trial.id == best.id
    at = along.values.index(best.config["n"])
    mean, low, high = along.predictions[at]
    spread = max(v for t in history.trials if (v := t.value) is not None) - min(
        v for t in history.trials if (v := t.value) is not None
    )
    assert abs(mean - best.value) < 0.2 * spread
    assert high - low < spread
