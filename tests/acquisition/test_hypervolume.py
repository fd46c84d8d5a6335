"""Expected hypervolume improvement: exact, differentiable, and aware of pending configs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nasbo.acquisition.hypervolume import KnownFrontEI, LogEHVI, Pieces
from nasbo.history.data import Data
from nasbo.history.front import hypervolume, on_front
from nasbo.space import Space, Subspace, load_space
from nasbo.surrogates.several import SeveralSurrogates
from nasbo.surrogates.structured import StructuredGP
from nasbo.testing import AcquisitionContract
from nasbo.testing.acquisitions import sampled
from nasbo.testing.spaces import MIXED

Array = NDArray[np.float64]
FRONT = np.array([[2.0, 0.5], [1.0, 1.5], [0.2, 2.5], [-1.0, 3.0], [9.0, -1.0]])
WORST = np.array([-0.5, 0.0])


def known_front(known: tuple[float, ...] = (1.8,), front: Array = FRONT) -> KnownFrontEI:
    worst = np.concatenate([WORST, np.zeros(front.shape[1] - 2)])
    return KnownFrontEI(Pieces.of_front(front, worst), torch.tensor([known], dtype=torch.float64))


class TestKnownFront(AcquisitionContract):
    @pytest.fixture(params=[(1.8,), (0.1,), (7.0,)])
    def make(self, request: pytest.FixtureRequest) -> Callable[[], KnownFrontEI]:
        return lambda: known_front(request.param)


def drawn_improvement(front: Array, worst: Array, rows: Array) -> float:
    """Mean gain in hypervolume by each of some rows alone."""
    before = hypervolume(front, worst)
    return float(np.mean([hypervolume(np.vstack([front, row]), worst) - before for row in rows]))


@pytest.mark.parametrize("known", [0.3, 1.0, 1.5, 2.9, 5.0])
def test_improvement_is_the_mean_of_draws(known: float) -> None:
    mean, sd = 0.6, 1.1
    draws = np.random.default_rng(0).normal(mean, sd, 4000)
    rows = np.column_stack([draws, np.full(len(draws), known)])
    moments = (torch.tensor([mean]).double(), torch.tensor([sd**2]).double())
    found = known_front((known,)).score(*moments).exp().item()
    assert found == pytest.approx(drawn_improvement(FRONT, WORST, rows), rel=0.06)


@pytest.mark.parametrize("known", [(0.3, 2.0), (1.7, 0.6), (4.0, 4.0)])
def test_improvement_beside_two_known_objectives(known: tuple[float, float]) -> None:
    front = np.array([[2.0, 0.5, 1.0], [1.0, 1.5, 0.3], [0.2, 1.0, 2.5], [0.5, 2.0, 1.0]])
    worst = np.array([-0.5, 0.0, 0.0])
    draws = np.random.default_rng(0).normal(0.4, 0.9, 1500)
    rows = np.column_stack([draws, np.tile(known, (len(draws), 1))])
    moments = (torch.tensor([0.4]).double(), torch.tensor([0.81]).double())
    found = known_front(known, front).score(*moments).exp().item()
    assert found == pytest.approx(drawn_improvement(front, worst, rows), rel=0.1)


def test_what_costs_more_than_the_reference_promises_nothing() -> None:
    moments = (torch.tensor([5.0]).double(), torch.tensor([1.0]).double())
    assert known_front((-0.2,)).score(*moments).item() < -60
    assert known_front((0.2,)).score(*moments).item() > -1


def by_size(subspace: Subspace, x: Array) -> Array:
    """A known objective of rows: the mean of their columns."""
    return x.mean(1, keepdims=True)


@pytest.fixture
def space() -> Space:
    return load_space(MIXED)


def several(space: Space, n_trained: int) -> tuple[SeveralSurrogates, Data, LogEHVI]:
    """Fitted surrogates of one or two trained objectives beside a known one."""
    data = sampled(space, 14)
    other = [np.sin(3 * x).mean() for x in data.x]
    known = [by_size(s, x[None])[0, 0] for s, x in zip(data.subspaces, data.x, strict=True)]
    y = np.column_stack([data.scores, *([other] if n_trained == 2 else []), known])
    data = Data(space, data.subspaces, data.x, y, len(y))
    trained = list(range(n_trained))
    surrogate = SeveralSurrogates([StructuredGP(space) for _ in trained], trained)
    surrogate.fit(data)
    acquisition = LogEHVI(y.min(0) - 0.05, trained, [n_trained], by_size)
    return surrogate, data, acquisition.prepare(surrogate, data)


@pytest.mark.parametrize("n_trained", [1, 2])
def test_it_is_the_mean_gain_of_draws_from_the_posterior(space: Space, n_trained: int) -> None:
    surrogate, _, acquisition = several(space, n_trained)
    rng, subspace = np.random.default_rng(3), space.subspace(0)
    x = subspace.sample(3, rng)
    batches = [(subspace, torch.from_numpy(x))]
    with torch.no_grad():
        found = acquisition.under(surrogate)(batches).exp().numpy()
        mean, variance = (one.numpy() for one in surrogate.moments(batches))
    front = acquisition.front(surrogate)
    for row in range(len(x)):
        draws = rng.normal(mean[row], np.sqrt(variance[row]), (1500, n_trained))
        rows = np.column_stack([draws, np.full(len(draws), by_size(subspace, x)[row, 0])])
        expected = drawn_improvement(front, acquisition._lowest, rows)
        assert found[row] == pytest.approx(expected, rel=0.15, abs=2e-3)


@pytest.mark.parametrize("n_trained", [1, 2])
def test_gradient_is_that_of_finite_differences(space: Space, n_trained: int) -> None:
    surrogate, _, acquisition = several(space, n_trained)
    subspace = next(s for s in space.subspaces() if len(s.smooth))
    column = int(subspace.smooth[0])
    score = acquisition.under(surrogate)
    acquisition.known_scores = lambda subspace, x: np.full((len(x), 1), 0.9)  # it has no gradient
    x = torch.from_numpy(subspace.sample(1, np.random.default_rng(1))).requires_grad_()
    (slope,) = torch.autograd.grad(score([(subspace, x)]).sum(), x)
    step = torch.zeros_like(x)
    step[0, column] = 1e-5
    with torch.no_grad():
        ends = [score([(subspace, x + sign * step)]).item() for sign in (1, -1)]
    assert slope[0, column].item() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("n_trained", [1, 2])
def test_pending_configs_are_part_of_the_front(space: Space, n_trained: int) -> None:
    surrogate, _, acquisition = several(space, n_trained)
    rng = np.random.default_rng(5)
    rows = [(s, s.sample(60, rng)) for s in space.subspaces()]
    batches = [(s, torch.from_numpy(x)) for s, x in rows]
    with torch.no_grad():
        before = acquisition.under(surrogate)(batches)
        subspace, x = [(s, row) for s, some in rows for row in some][int(before.argmax())]
        pending = surrogate.with_pending([subspace], [x])
        after = acquisition.under(pending)([(subspace, torch.from_numpy(x[None]))])
    assert surrogate.pending == []
    assert after.item() < before.max().item() - 1.0
    front = acquisition.front(pending)
    assert len(front) >= 1
    own = by_size(subspace, x[None])[0, 0]
    assert (np.abs(front[:, -1] - own) < 1e-12).any()


def test_front_is_of_means_and_not_of_noisy_values(space: Space) -> None:
    """A lucky value of a config that was repeated by others is not believed."""
    surrogate, data, acquisition = several(space, 1)
    means = surrogate.observed_means().numpy()
    scores = np.column_stack([means, data.y[:, 1]])
    expected = scores[on_front(scores)]
    np.testing.assert_allclose(np.sort(acquisition.front(surrogate), 0), np.sort(expected, 0))


@pytest.mark.parametrize("n_trained", [1, 2])
def test_no_config_above_the_reference_point_is_no_error(space: Space, n_trained: int) -> None:
    surrogate, data, acquisition = several(space, n_trained)
    acquisition.worst = data.y.max(0) + 0.5
    acquisition.prepare(surrogate, data)
    x = torch.from_numpy(space.subspace(0).sample(4, np.random.default_rng(0)))
    with torch.no_grad():
        assert torch.isfinite(acquisition.under(surrogate)([(space.subspace(0), x)])).all()
