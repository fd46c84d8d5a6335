"""Rows of data for surrogates."""

from __future__ import annotations

import numpy as np
import pytest

from nasbo.history.data import Data
from nasbo.search import Search
from nasbo.testing import SPACES


def test_rows_of_a_history() -> None:
    search = Search(SPACES["nested"], "random", mode="max")
    for trial in search.ask(8)[:6]:
        search.tell(trial, float(trial.id))
    for trial in search.ask(3):
        search.tell(trial, 10.0 + trial.id)
    data = Data.of_trials(search.space, search.history.rows())
    assert (len(data), data.y.shape, data.n_design) == (9, (9, 1), 6)
    assert data.scores.tolist() == [0, 1, 2, 3, 4, 5, 18, 19, 20]
    assert data.step.tolist() == [1.0] * 9
    assert data.task.tolist() == [0] * 9
    for trial, subspace, x in zip(search.history.trials[:6], data.subspaces, data.x, strict=False):
        assert subspace.decode(x) == trial.config
    some = data.take([7, 0, 2])
    assert some.scores.tolist() == [19, 0, 2]
    assert (some.n_design, len(some.x)) == (2, 3)
    assert some.subspaces[1] is data.subspaces[0]
    assert len(data.take([])) == 0
    assert data.take([]).y.shape == (0, 1)


def test_several_objectives_are_columns() -> None:
    space = Search(SPACES["one_leaf"], "random").space
    y = np.arange(6.0).reshape(3, 2)
    data = Data(space, [space.subspace(0)] * 3, [np.array([0.5])] * 3, y)
    assert data.y.shape == (3, 2)
    assert data.scores.tolist() == [0, 2, 4]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_repeats_are_counted_with_their_spread(mode: str) -> None:
    search = Search(SPACES["one_leaf"], "random", mode=mode)
    often, once, bad, twin = search.ask(4)
    repeats = [search.repeat(often)[0] for _ in range(3)]
    for run, value in zip((often, *repeats[:2], once), (1.0, 2.0, 6.0, 5.0), strict=True):
        search.tell(run, value)
    search.tell(repeats[2], error="crashed")
    search.tell(bad, error="diverged")
    search.answer(twin, search.history.trial(often.id))
    data = Data.of_trials(search.space, search.history.rows())
    assert np.abs(data.scores)[[0, 1, 3]].tolist() == [3.0, 5.0, 3.0]
    assert data.n_values.tolist() == [3, 1, 1, 1]
    assert data.spread.tolist() == [14.0, 0.0, 0.0, 0.0]
    some = data.take([1, 0])
    assert (some.n_values.tolist(), some.spread.tolist()) == ([1, 3], [0.0, 14.0])


def test_rows_without_repeats_have_one_value_each() -> None:
    space = Search(SPACES["one_leaf"], "random").space
    data = Data(space, [space.subspace(0)] * 3, [np.array([0.5])] * 3, np.arange(3.0))
    assert data.n_values.tolist() == [1, 1, 1]
    assert data.spread.tolist() == [0.0, 0.0, 0.0]
