"""The output transform: mild, monotone, anchored at the design."""

from __future__ import annotations

import numpy as np
import pytest

from nasbo.gp.transform import (
    cut_depths,
    model_scale,
    skewness,
    standardise,
    straighten,
)


def with_tail(n: int = 16) -> np.ndarray:
    """Scores with a long tail of very bad ones."""
    return -np.exp(np.random.default_rng(0).standard_normal(n) * 2)


def test_scores_without_a_tail_stay() -> None:
    y = np.random.default_rng(0).random(16)
    assert straighten(y, 16)[0] is y


def test_a_tail_of_good_scores_stays() -> None:
    y = -with_tail()
    assert straighten(y, 16)[0] is y


def test_a_tail_of_bad_scores_is_straightened_in_order() -> None:
    y = with_tail()
    transformed, _ = straighten(y, 16)
    assert abs(skewness(transformed)) < abs(skewness(y))
    assert (np.argsort(transformed) == np.argsort(y)).all()


def test_only_the_design_decides() -> None:
    design = np.random.default_rng(0).random(16)
    y = np.concatenate([design, with_tail()])
    assert straighten(y, 16)[0] is y


@pytest.mark.parametrize("is_straightened", [True, False])
def test_one_terrible_score_does_not_set_the_scale(is_straightened: bool) -> None:
    design = np.random.default_rng(0).random(16)
    scales = [
        model_scale(np.append(design, worst), 16, is_straightened)[1].sd for worst in (0.0, -1e9)
    ]
    assert scales[0] < scales[1] < 5 * scales[0]


def test_scores_as_bad_as_the_design_are_not_raised() -> None:
    y = np.concatenate([np.random.default_rng(0).random(16), [-0.5, 1.0, 1.01]])
    assert (cut_depths(y, 16) == y).all()
    assert (cut_depths(np.full(5, 2.0), 4) == 2.0).all()


def test_standardise_takes_constant_scores() -> None:
    z, mean, sd = standardise(np.full(5, 3.0))
    assert z.tolist() == [0.0] * 5
    assert (mean, sd) == (3.0, 1.0)
    z, _, _ = standardise(np.array([1e-9, 2e-9, 3e-9]))
    assert np.isclose(z.std(), 1.0)


def test_the_way_back_gives_the_scores_again() -> None:
    rng = np.random.default_rng(3)
    for y in (rng.normal(size=30), -np.exp(2.0 * rng.normal(size=30))):
        z, scale = model_scale(y, 16)
        assert [scale.to_score(float(one)) for one in z] == pytest.approx(list(y))
    assert model_scale(-np.exp(2.0 * rng.normal(size=30)), 16)[1].shift is not None
    assert model_scale(y, 16, is_straightened=False)[1].shift is None
