"""Rows that surrogates take."""

from __future__ import annotations

import numpy as np

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
