"""Mixed kernel of CASMOPOLITAN, against its formula for each pair of configs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nasbo.space import Space, load_space
from nasbo.surrogates.mixed import MixedGP

UNIT = {"type": "float", "range": [0, 1]}
ABC = {"type": "choice", "range": ["a", "b", "c"]}
SPACE = {
    "h": ABC,
    "x": UNIT,
    "t": {"type": "choice", "range": [0, 1], "submodule": {1: {"g": ABC, "y": UNIT}}},
}


def gram(model: MixedGP, theta: torch.Tensor, configs: list[dict]) -> np.ndarray:
    places = [model.space.subspace_of(config) for config in configs]
    batches = [
        (s, torch.from_numpy(s.encode(c)[None])) for s, c in zip(places, configs, strict=True)
    ]
    rows = model.features(batches)
    K = model.gram(theta, rows, rows)
    assert torch.allclose(K.diagonal(), model.diagonal(theta, rows))
    return K.numpy()


def matern(d2: float) -> float:
    r = math.sqrt(5 * d2)
    return (1 + r + r * r / 3) * math.exp(-r)


def test_gram_is_the_formula() -> None:
    space = load_space(SPACE)
    model = MixedGP(space)
    rng = np.random.default_rng(3)
    theta = torch.from_numpy(rng.normal(size=len(model.priors.means)))
    configs = [space.sample(rng) for _ in range(12)]
    K = gram(model, theta, configs)
    assert (model.n_numbers, model.n_choices) == (2, 3)

    # Order of the hyperparameters: noise, 2 lengthscales, 3 overlaps, mix, weight.
    e = np.exp(theta.numpy())
    lam = 1 / (1 + math.exp(-float(theta[6])))
    for i, one in enumerate(configs):
        for j, two in enumerate(configs):
            unit = [[c["x"], c.get("y", 0.5)] for c in (one, two)]
            d2 = sum(((a - b) / s) ** 2 for a, b, s in zip(*unit, e[1:3], strict=True))
            same = [one.get(n) == two.get(n) for n in ("h", "t", "g")]
            k_h = math.exp(
                -sum(w for w, is_same in zip(e[3:6], same, strict=True) if not is_same) / 3
            )
            k_x = matern(d2)
            expected = e[7] * (lam * k_x * k_h + (1 - lam) * (k_h + k_x))
            assert K[i, j] == pytest.approx(expected)
    assert np.linalg.eigvalsh(K).min() > -1e-9


@pytest.mark.parametrize("space", [{"x": UNIT, "y": UNIT}, {"g": ABC, "h": ABC}])
def test_one_kind_of_parameters_alone(space: dict) -> None:
    model = MixedGP(load_space(space))
    theta = torch.zeros(len(model.priors.means), dtype=torch.float64)
    first, second = (dict.fromkeys(space, v) for v in ((0.1, 0.7) if "x" in space else "ab"))
    K = gram(model, theta, [first, second])
    expected = matern(2 * 0.6**2) if "x" in space else math.exp(-1.0)
    assert K[0, 1] == pytest.approx(expected)


def test_box_is_longer_where_the_score_changes_slowly(flat_space: Space) -> None:
    model = MixedGP(load_space(SPACE))
    model.theta = torch.tensor(model.priors.means, dtype=torch.float64)
    model.theta[1:3] = torch.tensor([math.log(4.0), math.log(1.0)])
    subspace = model.space.subspace(1)
    weights = dict(
        zip((s.name for s in subspace.free), model.box_weights(subspace).tolist(), strict=True)
    )
    assert weights == pytest.approx({"h": 1.0, "x": 2.0, "g": 1.0, "y": 0.5})
