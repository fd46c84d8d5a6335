"""Add-Tree covariance: definition 4, its block form, its vertices, and rows that share none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasbo.gp.kernels import KernelName
from nasbo.history.data import Data
from nasbo.space import Config, Space, load_space
from nasbo.surrogates.add_tree import AddTreeGP
from nasbo.surrogates.base import Batches

from .conftest import Observe

UNIT = {"type": "float", "range": [0, 1]}
FIGURE_1 = {
    "a": UNIT,
    "b": UNIT,
    "t": {
        "type": "choice",
        "range": [1, 2],
        "submodule": {1: {"c": UNIT, "d": UNIT}, 2: {"e": UNIT, "f": UNIT, "g": UNIT}},
    },
}
"""The tree of figure 1 of the paper: two variables at the root, two and three at the leaves."""


def sum_of_squares(config: Config) -> float:
    return float(sum(v**2 for v in config.values() if isinstance(v, float)))


@pytest.fixture
def space() -> Space:
    return load_space(FIGURE_1)


def kernel(x: np.ndarray, scale: np.ndarray, weight: float, name: KernelName) -> np.ndarray:
    """The kernel of a vertex by its formula."""
    d2 = (((x[:, None] - x[None]) / scale) ** 2).sum(-1)
    if name == "se":
        return weight * np.exp(-d2 / 2)
    r = np.sqrt(5 * d2)
    return weight * (1 + r + r**2 / 3) * np.exp(-r)


@pytest.mark.parametrize("name", ["se", "matern"])
def test_gram_is_the_block_form_of_equation_9(space: Space, name: KernelName) -> None:
    model = AddTreeGP(space, name)
    rng = np.random.default_rng(0)
    theta = torch.from_numpy(rng.normal(size=len(model.priors.means)))
    x1, x2 = rng.random((3, 4)), rng.random((2, 5))
    left, right = space.subspace(0), space.subspace(1)
    rows = model.features([(left, torch.from_numpy(x1)), (right, torch.from_numpy(x2))])
    K = model.gram(theta, rows, rows).numpy()

    # After the noise come the root (2 lengthscales, weight), p1 (2, 1), p2 (3, 1).
    e = np.exp(theta.numpy())
    K_r = kernel(np.concatenate([x1[:, :2], x2[:, :2]]), e[1:3], e[3], name)
    K_1 = kernel(x1[:, 2:], e[4:6], e[6], name)
    K_2 = kernel(x2[:, 2:], e[7:10], e[10], name)
    expected = K_r.copy()
    expected[:3, :3] += K_1
    expected[3:, 3:] += K_2
    assert np.allclose(K, expected)
    assert np.allclose(model.diagonal(theta, rows).numpy(), expected.diagonal())


def test_gram_is_positive_semi_definite(any_space: Space) -> None:
    model = AddTreeGP(any_space)
    rng = np.random.default_rng(0)
    picked = [any_space.random_subspace(rng) for _ in range(30)]
    batches = [(s, torch.from_numpy(s.sample(1, rng))) for s in picked]
    theta = torch.tensor(model.priors.means, dtype=torch.float64)
    rows = model.features(batches)
    K = model.gram(theta, rows, rows)
    assert torch.allclose(K, K.T, rtol=0, atol=1e-12)
    assert torch.linalg.eigvalsh(K).min() > -1e-9


def test_means_of_the_vertices_sum_up(space: Space, observe: Observe) -> None:
    model = AddTreeGP(space)
    model.fit(observe(space, sum_of_squares, n=16))
    subspace = space.subspace(1)
    x = torch.from_numpy(np.random.default_rng(1).random((6, subspace.n_free)))
    parts = [
        model.vertex_posterior(key, x[:, list(columns)]) for key, columns in subspace.path.items()
    ]
    mean, variance = model.posterior(subspace, x)
    assert len(parts) == 2
    assert torch.allclose(sum(part[0] for part in parts), mean)
    sds = sum(part[1].sqrt() for part in parts)
    assert (sds >= variance.sqrt() - 1e-9).all()


def means_after(model: AddTreeGP, seen: Data, rows: list[int], batches: Batches) -> torch.Tensor:
    """Posterior means of the model, with unchanged hyperparameters, after some rows."""
    z = torch.from_numpy((seen.scores - seen.scores.mean()) / seen.scores.std())
    some = seen.take(rows)
    model.condition(list(some.subspaces), list(some.x), z[rows])
    return model.posteriors(batches)[0]


def test_rows_that_share_no_vertex_change_nothing(observe: Observe) -> None:
    """X' of section 4.1: the halves of the simulation tree share no vertex."""
    space = load_space("simulation")
    model = AddTreeGP(space)
    seen = observe(space, lambda c: float(sum(c.values())), n=20)
    model.fit(seen)
    related = [at for at, s in enumerate(seen.subspaces) if s.index in (0, 1)]
    assert 2 <= len(related) < len(seen)
    batches = [(space.subspace(at), torch.rand(3, 2, dtype=torch.float64)) for at in (0, 1)]
    whole = means_after(model, seen, list(range(len(seen))), batches)
    assert torch.allclose(whole, means_after(model, seen, related, batches), atol=1e-8)


def test_rows_tied_through_others_matter_in_a_forest() -> None:
    """Two trees: a row that shares no vertex can matter through a row that
    shares vertices with both.
    """
    two = {
        name: {"type": "choice", "range": [0, 1], "submodule": {0: {f"{name}0": UNIT}}}
        for name in "pq"
    }
    space = load_space(two)
    model = AddTreeGP(space)
    # The last row has p = 1 and q = 0: it is correlated with subspace (0, 1) through the first
    # ones.
    homes = [space.subspace(at) for at in (0, 0, 2)]
    x = [s.sample(1, np.random.default_rng(at))[0] for at, s in enumerate(homes)]
    seen = Data(space, homes, x, np.array([1.0, 2.0, 0.5]))
    model.fit(seen)
    batches = [(space.subspace(1), torch.tensor([[0.3]], dtype=torch.float64))]
    whole, without = (means_after(model, seen, rows, batches) for rows in ([0, 1, 2], [0, 1]))
    assert abs(float(whole - without)) > 1e-3


def test_leaf_tied_by_a_constant_alone_has_a_gradient() -> None:
    """It is constant where only a vertex without parameters has results, but differentiable."""
    leaves = {0: {"a": UNIT}, 1: {"b": UNIT}}
    inner = {"k": {"type": "choice", "range": [0, 1], "submodule": leaves}}
    space = load_space({"t": {"type": "choice", "range": ["u"], "submodule": {"u": inner}}})
    model = AddTreeGP(space)
    x = [np.array([v]) for v in (0.1, 0.4, 0.6)]
    model.fit(Data(space, [space.subspace(0)] * 3, x, np.array([1.0, 2.0, 0.5])))
    other = torch.rand(2, 1, dtype=torch.float64, requires_grad=True)
    mean, variance = model.posterior(space.subspace(1), other)
    (slope,) = torch.autograd.grad((mean + variance).sum(), other)
    assert torch.equal(slope, torch.zeros(2, 1, dtype=torch.float64))


def test_config_without_vertices_has_a_score_of_its_own(observe: Observe) -> None:
    """An empty list below a root without parameters: uncorrelated with
    other rows, but predicted.
    """
    space = load_space({"n": {"type": "int", "range": [0, 3], "submodule": {"u": UNIT}}})
    empty = space.subspace_of({"n": 0, "u": []})
    model = AddTreeGP(space)
    nothing = torch.zeros(1, 0, dtype=torch.float64)
    seen = observe(space, lambda c: 3.0 if c["n"] == 0 else -sum(c["u"]), n=12)
    rows = [at for at, s in enumerate(seen.subspaces) if s.index != empty.index]
    others = Data(
        space, [seen.subspaces[r] for r in rows], [seen.x[r] for r in rows], seen.scores[rows]
    )
    model.fit(others)
    mean, variance = model.posterior(empty, nothing)
    assert mean == 0.0
    assert variance > 0.1
    model.fit(seen)
    mean, _ = model.posterior(empty, nothing)
    assert mean > 1.0
    assert float(model.observed_means().max()) == pytest.approx(float(mean))


def test_it_learns_from_other_leaves(space: Space, observe: Observe) -> None:
    """The root's effect is learned in leaf 1 and used in leaf 2."""
    seen = observe(space, lambda c: -4.0 * (c["a"] - 0.3) ** 2, n=24)
    rows = [at for at, s in enumerate(seen.subspaces) if s.index == 0]
    rows += [at for at, s in enumerate(seen.subspaces) if s.index == 1][:2]
    few = Data(
        space, [seen.subspaces[r] for r in rows], [seen.x[r] for r in rows], seen.scores[rows]
    )
    model = AddTreeGP(space)
    model.fit(few)
    grid = torch.rand(100, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean, _ = model.posterior(space.subspace(1), grid)
    truth = -4.0 * (grid[:, 0] - 0.3) ** 2
    assert np.corrcoef(mean.numpy(), truth.numpy())[0, 1] > 0.9
