"""Lengthscales by parameter, for models that have them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasbo.space import load_space
from nasbo.surrogates.add_tree import AddTreeGP
from nasbo.surrogates.arc import ArcGP
from nasbo.surrogates.lengthscales import shortest
from nasbo.surrogates.one_hot import OneHotGP
from nasbo.surrogates.structured import StructuredGP
from nasbo.testing import SPACES
from nasbo.testing.surrogates import shape_score

from .conftest import Observe

MODELS = {"add_tree": AddTreeGP, "arc": ArcGP, "one_hot": OneHotGP, "structured": StructuredGP}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_lengthscales_by_name(name: str, observe: Observe) -> None:
    """The score oscillates along the first number and does not depend on the second."""
    kinds = {"type": "choice", "range": ["a", "b", "c"]}
    unit = {"type": "float", "range": [0, 1]}
    space = load_space({"wave": unit, "idle": unit, "kind": kinds})
    model = MODELS[name](space)
    model.fit(observe(space, lambda config: float(np.sin(9.0 * config["wave"])), n=40))
    lengths = model.lengthscales()
    assert set(lengths) == {"wave", "idle", "kind"}
    assert 0.05 < lengths["wave"] < 1.0 < lengths["idle"]
    assert lengths["kind"] > lengths["wave"]


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("shape", sorted(SPACES))
def test_every_parameter_with_a_lengthscale_has_its_label(
    name: str, shape: str, observe: Observe
) -> None:
    space = load_space(SPACES[shape])
    model = MODELS[name](space)
    model.fit(observe(space, shape_score, n=12))
    labels = {
        one.label
        for number in range(min(space.n_subspaces, 200))
        for one in space.subspace(number).coordinates
        if one.parameter.n_levels != 1 and not (one.is_fixed and name == "add_tree")
    }
    lengths = model.lengthscales()
    assert labels <= set(lengths)
    assert all(length > 0 for length in lengths.values())


def test_the_arc_has_the_lengthscale_of_small_steps() -> None:
    """A step of 0.001 has the length in the embedding that it has in units of the lengthscale."""
    space = load_space(
        {"x": {"type": "float", "range": [0, 1]}, "c": {"type": "choice", "range": [1, 2]}}
    )
    model = ArcGP(space)
    model.theta = torch.linspace(-1.0, 1.0, len(model.priors.means), dtype=torch.float64)
    rows = torch.tensor([[0.4, 0.0], [0.401, 0.0], [0.4, 1.0]], dtype=torch.float64)
    points = model.embed(model.theta, model.features([(space.subspace(0), rows)]))
    lengths = model.lengthscales()
    assert float((points[0] - points[1]).norm()) == pytest.approx(0.001 / lengths["x"], rel=1e-3)
    assert float((points[0] - points[2]).norm()) == pytest.approx(1.0 / lengths["c"])


def test_a_sum_of_kernels_has_the_lengthscale_of_the_one_that_counts(observe: Observe) -> None:
    """S and the only unit both depend on the number: the one with a tiny weight is ignored."""
    space = load_space({"x": {"type": "float", "range": [0, 1]}})
    model = StructuredGP(space)
    model.fit(observe(space, lambda config: config["x"], n=4))
    scales, weights = [0, 2], [1, 3]  # of S and of the unit, as the priors were added
    for strong in (0, 1):
        model.theta[weights] = [-20.0, -20.0]
        model.theta[weights[strong]] = 0.0
        model.theta[scales] = np.log([0.3, 4.0])
        assert model.lengthscales()["x"] == pytest.approx([0.3, 4.0][strong], rel=1e-3)
    model.theta[weights] = [0.0, 0.0]
    assert 0.3 < model.lengthscales()["x"] < 0.6


def test_the_shortest_lengthscale_of_a_name_counts() -> None:
    assert shortest([("a", 2.0), ("b", 3.0), ("a", 1.0), ("a", 4.0)]) == {"a": 1.0, "b": 3.0}
