"""GP of learning curves: predictions from partial trainings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from nasbo.history.data import Data, Earlier
from nasbo.space import Space, load_space
from nasbo.surrogates.base import batches_of
from nasbo.surrogates.curves import CurveGP
from nasbo.surrogates.structured import StructuredGP

STEPS = (0.04, 0.11, 0.33)
SPACE = {
    "kind": {
        "type": "choice",
        "range": ["a", "b"],
        "submodule": {
            branch: {name: {"type": "float", "range": [0, 1]} for name in "pq"} for branch in "ab"
        },
    }
}


def final(space: Space, data: Data) -> np.ndarray:
    """The scores of full trainings."""
    configs = [s.decode(x) for s, x in zip(data.subspaces, data.x, strict=True)]
    offset = {"a": 0.0, "b": 0.4}
    return np.array(
        [offset[c["kind"]] - 3 * (c["p"] - 0.3) ** 2 - (c["q"] - 0.6) ** 2 for c in configs]
    )


def curve(score: np.ndarray, step: float) -> np.ndarray:
    """Early values are low, and carry little information about the final ones."""
    return -2.0 + (score + 2.0) * (0.3 + 0.7 * step**0.3)


def partly_trained(n: int, seed: int = 0) -> tuple[Space, Data, np.ndarray]:
    """Configs of which one in four was trained in full and the others to a
    rung, and the full scores.
    """
    space, rng = load_space(SPACE), np.random.default_rng(seed)
    subspaces = [space.subspace(at % 2) for at in range(n)]
    data = Data(space, subspaces, [s.sample(1, rng)[0] for s in subspaces], np.zeros(n), 4)
    scores = final(space, data)
    reached = np.array([3 if at % 4 == 0 else at % 3 for at in range(n)])
    steps = np.array([*STEPS, 1.0])[reached]
    last = np.array([curve(score, t) for score, t in zip(scores, steps, strict=True)])
    rungs = [(row, t) for row in range(n) for t in STEPS[: reached[row]]]
    rows, at = np.array([row for row, _ in rungs]), np.array([t for _, t in rungs])
    earlier = Earlier(rows, at, curve(scores[rows], at))
    return space, replace(data, y=last[:, None], step=steps, earlier=earlier), scores


def test_full_trainings_are_predicted_from_partial_ones() -> None:
    _, data, scores = partly_trained(32)
    errors = {}
    for model in (CurveGP(data.space), StructuredGP(data.space)):
        model.fit(data)
        mean, _ = model.posteriors(batches_of(data))
        means = np.array([model.scale.to_score(float(z)) for z in mean])
        errors[type(model)] = math.sqrt(np.square(means - scores).mean())
        assert torch.equal(mean, model.observed_means()) or type(model) is StructuredGP
    assert errors[CurveGP] < 0.5 * errors[StructuredGP]
    assert errors[CurveGP] < 0.25 * scores.std()


def test_values_of_other_rungs_change_what_is_predicted() -> None:
    _, data, _ = partly_trained(24)
    model, without = CurveGP(data.space), CurveGP(data.space)
    model.fit(data)
    without.fit(replace(data, earlier=Earlier.none()))
    assert not torch.allclose(model.observed_means(), without.observed_means(), atol=1e-3)


def test_rows_taken_keep_their_earlier_values() -> None:
    _, data, _ = partly_trained(12)
    some = data.take([8, 3])
    for row, source in ((0, 8), (1, 3)):
        mine, theirs = some.earlier.row == row, data.earlier.row == source
        assert np.array_equal(some.earlier.y[mine], data.earlier.y[theirs])
        assert np.array_equal(some.earlier.step[mine], data.earlier.step[theirs])
    assert len(some.earlier.row) == sum(np.isin(data.earlier.row, [8, 3]))


@pytest.mark.parametrize("max_rows", [1000, 20])
def test_running_configs_keep_their_mean_and_lose_variance(max_rows: int) -> None:
    space, data, _ = partly_trained(24)
    model = CurveGP(space, max_rows=max_rows)
    model.fit(data)
    subspace, x = space.subspace(1), np.array([0.9, 0.1])
    before = model.posterior(subspace, torch.from_numpy(x[None]))
    after = model.with_pending([subspace], [x]).posterior(subspace, torch.from_numpy(x[None]))
    assert float(after[0]) == pytest.approx(float(before[0]), abs=1e-6)
    assert float(after[1]) < 0.7 * float(before[1])


def test_gradients_are_the_derivatives() -> None:
    space, data, _ = partly_trained(16)
    model = CurveGP(space)
    model.fit(data)
    subspace = space.subspace(0)
    x = torch.tensor([[0.4, 0.7]], dtype=torch.float64, requires_grad=True)
    for part in range(2):
        (slope,) = torch.autograd.grad(model.posterior(subspace, x)[part].sum(), x)
        for column in range(2):
            ends = []
            for step in (1e-5, -1e-5):
                moved = x.detach().clone()
                moved[0, column] += step
                ends.append(float(model.posterior(subspace, moved)[part]))
            expected = (ends[0] - ends[1]) / 2e-5
            assert float(slope[0, column]) == pytest.approx(expected, rel=1e-4, abs=1e-7)
