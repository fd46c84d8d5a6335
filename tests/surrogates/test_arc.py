"""Arc kernel: distances on the cylinder, active and inactive."""

from __future__ import annotations

import math

import pytest
import torch

from nasbo.space import load_space
from nasbo.surrogates.arc import ArcGP

UNIT = {"type": "float", "range": [0, 1]}
SPACE = {
    "always": UNIT,
    "t": {"type": "choice", "range": ["on", "off"], "submodule": {"on": {"v": UNIT}}},
}


def squared(model: ArcGP, left: list, right: list) -> float:
    """Squared distance of two configs in the embedding at unit lengthscales, rho = 1/2."""
    theta = torch.zeros(len(model.priors.means), dtype=torch.float64)
    places = [
        model.embed(theta, model.features([(s, torch.tensor([x], dtype=torch.float64))]))
        for s, x in (left, right)
    ]
    return float(((places[0] - places[1]) ** 2).sum())


def test_distances_are_those_of_the_paper() -> None:
    space = load_space(SPACE)
    on, off = space.subspaces()
    model = ArcGP(space)
    chord = 2 - 2 * math.cos(math.pi * 0.5 * 0.6)
    # Both active: the chord over the angle pi rho |v - v'|.
    assert squared(model, [on, [0.5, 0.2]], [on, [0.5, 0.8]]) == pytest.approx(chord)
    # One active: 1 for the number whatever its value, 2 for the two different choices.
    for v in (0.0, 0.3, 0.5, 1.0):
        assert squared(model, [on, [0.5, v]], [off, [0.5]]) == pytest.approx(1.0 + 2.0)
    # Both inactive: nothing.
    assert squared(model, [off, [0.5]], [off, [0.5]]) == pytest.approx(0.0)
    assert squared(model, [off, [0.2]], [off, [0.8]]) == pytest.approx(chord)


def test_same_name_in_two_branches_is_one_parameter() -> None:
    space = load_space(
        {"t": {"type": "choice", "range": [0, 1], "submodule": {0: {"v": UNIT}, 1: {"v": UNIT}}}}
    )
    zero, one = space.subspaces()
    model = ArcGP(space)
    assert squared(model, [zero, [0.4]], [one, [0.4]]) == pytest.approx(2.0)
