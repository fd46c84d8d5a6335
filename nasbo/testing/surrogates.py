"""Contract of surrogates: properties that methods and acquisitions rely on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nasbo.history.data import Data
from nasbo.space import Config, Space, load_space
from nasbo.surrogates.base import Batches, FitError, Surrogate, as_batches, batches_of
from nasbo.testing.process import end_other_process, in_another_process
from nasbo.testing.spaces import SPACES, OnSpaces, jenatton

Array = NDArray[np.float64]
Make = Callable[[Space], Surrogate]


@dataclass(frozen=True)
class SurrogateCase:
    """A surrogate under test.

    Attributes:
        make: its class, which takes a space, or another picklable callable with a space as its
            argument: a ``functools.partial`` of the class, or a function at the top of a module.
        max_error: of the posterior mean at the data, in standard deviations of the scores, which
            are those of a smooth function without noise.
        max_variance: of the posterior at the data, where scores have variance 1.
        min_contrast: ratio of the average variance elsewhere to that at the data.
        max_pending: fraction of the variance at configs that is left when they are pending.
        precision: absolute tolerance for numbers that must be equal.
        step: of finite differences, in the unit cube.
        has_correlations: whether ``correlations`` returns its prior correlations.
    """

    make: Make
    max_error: float = 0.2
    max_variance: float = 0.1
    min_contrast: float = 3.0
    max_pending: float = 0.5
    precision: float = 1e-8
    step: float = 1e-4
    has_correlations: bool = True

    def fit(self, data: Data) -> Surrogate:
        """The fitted surrogate."""
        model = self.make(data.space)
        model.fit(data)
        return model


class SurrogateContract(OnSpaces):
    """Tests that a surrogate must pass.

    A subclass sets ``surrogate``, or has a fixture ``case`` of its own, e.g. with parameters. Means
    and variances are compared with standardised scores, without another transform.

    Attributes:
        surrogate: as ``SurrogateCase.make``.
        spaces: as in ``OnSpaces``; most tests have their own.
    """

    surrogate: ClassVar[Make]

    @pytest.fixture
    def case(self) -> SurrogateCase:
        """The surrogate under test."""
        return SurrogateCase(type(self).surrogate)  # of the class: a function is not bound

    @pytest.fixture
    def seen(self) -> Data:
        """Configs of four subspaces with two parameters each, and scores of a smooth function."""
        return observed(load_space("simulation"), jenatton, 24)

    @pytest.fixture
    def model(self, case: SurrogateCase, seen: Data) -> Surrogate:
        """The surrogate, fitted to the data."""
        return case.fit(seen)

    @classmethod
    def teardown_class(cls) -> None:
        """End the other process."""
        end_other_process()

    def test_it_comes_close_to_what_it_has_seen(
        self, case: SurrogateCase, model: Surrogate, seen: Data
    ) -> None:
        mean, variance = numbers(model, batches_of(seen))
        z = (seen.scores - seen.scores.mean()) / seen.scores.std()
        assert np.abs(mean - z).max() < case.max_error
        assert variance.max() < case.max_variance
        best = float(model.observed_means().max())
        assert best == pytest.approx(mean.max())
        error = 0.5 * case.max_error
        assert model.scale.to_score(best) == pytest.approx(seen.scores.max(), abs=error)

    def test_it_is_unsure_elsewhere(
        self, case: SurrogateCase, model: Surrogate, seen: Data
    ) -> None:
        _, here = numbers(model, batches_of(seen))
        _, there = numbers(model, batches_of(observed(seen.space, jenatton, 20, seed=1)))
        assert there.mean() > case.min_contrast * here.mean()

    def test_gradient_is_the_derivative(
        self, case: SurrogateCase, model: Surrogate, seen: Data
    ) -> None:
        x = torch.tensor([[0.0, 0.37]], dtype=torch.float64, requires_grad=True)
        mean, variance = model.posterior(seen.subspaces[0], x)
        (gradient,) = torch.autograd.grad(mean.sum() + variance.sum(), x)
        step = torch.tensor([[0.0, case.step]], dtype=torch.float64)
        ends = [[(seen.subspaces[0], x.detach() + way * step)] for way in (1, -1)]
        up, down = (float(np.sum(numbers(model, end))) for end in ends)
        slope = (up - down) / (2 * case.step)
        assert gradient[0, 1].item() == pytest.approx(slope, rel=0.02, abs=1e-3)

    def test_joint_posterior_agrees_with_the_marginals(
        self, case: SurrogateCase, model: Surrogate, seen: Data
    ) -> None:
        generator = torch.Generator().manual_seed(0)
        batches = [
            (s, torch.rand(2, s.n_free, generator=generator, dtype=torch.float64))
            for s in (*seen.subspaces[:4], seen.subspaces[0])
        ]
        mean, covariance = (part.detach().numpy() for part in model.joint_posterior(batches))
        marginal, variance = numbers(model, batches)
        assert mean == pytest.approx(marginal, abs=case.precision)
        assert covariance.diagonal() == pytest.approx(variance, abs=10 * case.precision)
        assert covariance == pytest.approx(covariance.T, abs=0.1 * case.precision)
        assert np.linalg.eigvalsh(covariance).min() > -case.precision

    def test_a_batch_is_as_its_rows_one_by_one(
        self, case: SurrogateCase, model: Surrogate, seen: Data
    ) -> None:
        rows = rows_of(seen)
        together = numbers(model, rows)
        alone = [numbers(model, [row]) for row in rows]
        for at in (0, 1):
            each = np.concatenate([pair[at] for pair in alone])
            assert together[at] == pytest.approx(each, abs=case.precision)

    def test_order_of_rows_does_not_matter(
        self, case: SurrogateCase, model: Surrogate, seen: Data
    ) -> None:
        rows = rows_of(seen)
        for forward, backward in zip(numbers(model, rows), numbers(model, rows[::-1]), strict=True):
            assert forward == pytest.approx(backward[::-1], abs=case.precision)

    def test_correlations_are_those_of_the_prior(
        self, case: SurrogateCase, model: Surrogate, seen: Data
    ) -> None:
        rows = rows_of(seen)
        found, turned = (model.correlations(*rows[at], rows) for at in (5, 7))
        assert (found is not None) == (turned is not None) == case.has_correlations
        if found is not None and turned is not None:
            assert found.shape == (24,)
            assert found[5].item() == pytest.approx(1.0)
            assert found.abs().max() <= 1.0 + case.precision
            assert int(found.argmax()) == 5
            assert turned[5].item() == pytest.approx(found[7].item(), abs=case.precision)

    def test_pending_configs_keep_the_mean_and_cut_the_variance(
        self, case: SurrogateCase, model: Surrogate, seen: Data
    ) -> None:
        pending = [np.array([0.0, 0.93]), np.array([1.0, 0.07])]
        rows = as_batches(seen.subspaces[:2], pending)
        before = numbers(model, rows)
        extended = model.with_pending(seen.subspaces[:2], pending)
        after = numbers(extended, rows)
        assert after[0] == pytest.approx(before[0], abs=10 * case.precision)
        assert (after[1] < before[1]).all()
        assert after[1].max() < case.max_pending * before[1].max()
        assert (numbers(model, rows)[1] == before[1]).all(), "the model itself has changed"
        assert float(extended.observed_means().max()) == float(model.observed_means().max())
        assert model.with_pending([], []) is model

    def test_pending_configs_of_subspaces_never_seen(self, case: SurrogateCase) -> None:
        space = load_space(SPACES["thousands"])
        model = case.fit(observed(space, lambda config: float(config["x"]), 12))
        other = space.subspace(space.n_subspaces - 1)
        x = np.full(other.n_free, 0.0)
        rows = as_batches([other], [x])
        _, before = numbers(model, rows)
        _, after = numbers(model.with_pending([other], [x]), rows)
        assert after < 0.9 * before
        mean, covariance = model.joint_posterior([*rows, *rows])
        assert mean.shape == (2,)
        assert float(covariance[0, 1]) == pytest.approx(float(covariance[0, 0]))

    def test_spaces_of_every_shape(self, case: SurrogateCase, shape: str) -> None:
        seen = observed(load_space(self.spaces[shape]), shape_score, 12)
        mean, variance = numbers(case.fit(seen), batches_of(seen))
        assert mean.shape == variance.shape == (12,)
        assert mean.dtype == variance.dtype == np.float64
        assert np.isfinite(mean).all()
        assert (variance > 0).all()

    @pytest.mark.parametrize("scores", [[1.0, np.nan, 2.0, 3.0], [np.inf, 1.0], [1.0]])
    def test_unusable_scores_are_a_fit_error(
        self, case: SurrogateCase, seen: Data, scores: list[float]
    ) -> None:
        n = len(scores)
        bad = Data(seen.space, seen.subspaces[:n], seen.x[:n], np.array(scores))
        with pytest.raises(FitError):
            case.make(seen.space).fit(bad)

    def test_constant_scores_and_repeated_rows_are_no_trouble(
        self, case: SurrogateCase, seen: Data
    ) -> None:
        once = seen.take(range(10))
        twice = Data(seen.space, [*once.subspaces] * 2, [*once.x] * 2, np.full(20, 3.0), 10)
        model = case.fit(twice)
        mean, variance = numbers(model, batches_of(once))
        assert mean == pytest.approx(np.zeros(10), abs=1e-6)
        assert np.isfinite(variance).all()
        assert float(model.observed_means().max()) == pytest.approx(0.0, abs=1e-9)

    def test_another_process_fits_the_same(self, case: SurrogateCase) -> None:
        here, there = refitted(case), in_another_process(refitted, case)
        assert (here[0] == there[0]).all()
        assert (here[1] == there[1]).all()

    def test_global_state_is_of_no_account_and_stays(
        self, case: SurrogateCase, model: Surrogate, seen: Data
    ) -> None:
        torch.rand(1)
        before, dtype = torch.random.get_rng_state(), torch.get_default_dtype()
        again = case.fit(seen)
        assert torch.equal(torch.random.get_rng_state(), before)
        assert torch.get_default_dtype() == dtype
        assert (numbers(again, batches_of(seen))[0] == numbers(model, batches_of(seen))[0]).all()


def observed(space: Space, function: Callable[[Config], float], n: int = 20, seed: int = 0) -> Data:
    """Uniform configs of a space, taking its subspaces in turn, with the scores of a function."""
    rng = np.random.default_rng(seed)
    n_subspaces = min(space.n_subspaces, n)
    subspaces = [space.subspace(at % n_subspaces) for at in range(n)]
    x = [subspace.sample(1, rng)[0] for subspace in subspaces]
    y = [function(s.decode(row)) for s, row in zip(subspaces, x, strict=True)]
    return Data(space, subspaces, x, np.array(y), n_design=min(n, 2 * n_subspaces))


def numbers(model: Surrogate, batches: Batches) -> tuple[Array, Array]:
    """Posterior means and variances of rows in numpy, shape (n,) each."""
    mean, variance = model.posteriors(batches)
    return mean.detach().numpy(), variance.detach().numpy()


def rows_of(data: Data) -> Batches:
    """Each row as a batch of its own."""
    return [(s, torch.from_numpy(x[None])) for s, x in zip(data.subspaces, data.x, strict=True)]


def shape_score(config: Config) -> float:
    """A score for configs of any space."""
    return float(len(str(config)) % 7)


def refitted(case: SurrogateCase) -> tuple[Array, Array]:
    """The posterior at the data after a fit to random scores, shape (n,) each."""
    space = load_space(SPACES["nested"])
    noise = np.random.default_rng(0)
    seen = observed(space, lambda config: float(noise.standard_normal()), 18)
    return numbers(case.fit(seen), batches_of(seen))
