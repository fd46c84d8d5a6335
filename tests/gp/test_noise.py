"""Noise variances estimated by surrogates, on functions drawn from their own prior."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasbo.gp.rows import as_batches
from nasbo.space import Space, Subspace, load_space
from nasbo.surrogates.base import ExactGP
from nasbo.surrogates.one_hot import OneHotGP
from nasbo.surrogates.structured import StructuredGP

UNIT = {"type": "float", "range": [0, 1]}
SPACES = {
    "line": {"x": UNIT},
    "branches": {
        "top": {
            "type": "choice",
            "range": ["a", "b"],
            "submodule": {"a": {"x": UNIT}, "b": {"y": UNIT}},
        }
    },
}
N_SETS = 10


def draw_scores(
    space: Space, n: int, noise: float, seed: int
) -> tuple[list[Subspace], list[np.ndarray], np.ndarray, float]:
    """Configs, standardised scores of a function drawn from the prior, and the noise variance."""
    rng = np.random.default_rng([seed, n])
    subspaces, x = zip(*(space.encode(space.sample(rng)) for _ in range(n)), strict=True)
    model = StructuredGP(space)
    model.theta = rng.normal(model.priors.means, model.priors.sds)
    model._seen = model.features(as_batches(subspaces, x))
    K = model.covariance(model._seen, model._seen).numpy()
    f = np.linalg.cholesky(K + 1e-10 * np.diag(K).mean() * np.eye(n)) @ rng.standard_normal(n)
    y = f + noise * f.std() * rng.standard_normal(n)
    return list(subspaces), list(x), (y - y.mean()) / y.std(), (noise * f.std() / y.std()) ** 2


def found_noise(model: ExactGP, *data: object) -> float:
    subspaces, x, z = data
    model.learn(subspaces, x, torch.from_numpy(z))  # type: ignore[arg-type]
    return float(model.noise_variance())


@pytest.mark.parametrize("n", [50, 100])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1, 0.5])
@pytest.mark.parametrize("name", SPACES)
def test_noise_and_its_absence_are_found(name: str, noise: float, n: int) -> None:
    space, right = load_space(SPACES[name]), 0
    for seed in range(N_SETS):
        *data, truth = draw_scores(space, n, noise, seed)
        found = found_noise(StructuredGP(space), *data)
        if noise >= 0.1:
            right += truth / 9 < found < 9 * truth  # a factor of 3 in standard deviations
        else:
            right += found < (1e-3 if noise else 1e-5)
    assert right >= 8


def test_a_flat_gp_finds_noise_too() -> None:
    space = load_space(SPACES["line"])
    found = []
    for seed in range(N_SETS):
        *data, truth = draw_scores(space, 50, 0.5, seed)
        found.append(found_noise(OneHotGP(space), *data) / truth)
    assert sum(1 / 9 < ratio < 9 for ratio in found) >= 8
