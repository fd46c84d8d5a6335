"""Kernels of single and shared units, against their formulas, and their derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nasbo.gp import shared_units
from nasbo.gp.kernel_sum import KernelSum
from nasbo.gp.kernels import Matern
from nasbo.gp.priors import Priors
from nasbo.gp.rows import Rows
from nasbo.gp.shared_units import SharedUnits, squared_distances
from nasbo.gp.units import Layout
from nasbo.space import load_space
from nasbo.surrogates.structured import StructuredGP

SPACES = ["simulation", "svm", "cash", "nas_cifar10", "nas_cifar10_conditional"]


def random_rows(name: str, n: int, seed: int = 0) -> tuple[StructuredGP, Rows]:
    space, rng = load_space(name), np.random.default_rng(seed)
    subspaces = [space.random_subspace(rng) for _ in range(n)]
    model = StructuredGP(space)
    batches = [(subspace, torch.from_numpy(subspace.sample(1, rng))) for subspace in subspaces]
    return model, model.features(batches)


def moved(rows: Rows, by: np.ndarray) -> Rows:
    return Rows(rows.features + torch.from_numpy(by), rows.active)


def covariances(model: StructuredGP, rows: Rows) -> np.ndarray:
    return KernelSum(model.kernels, model.theta, rows).cross(rows)


@pytest.mark.parametrize("name", SPACES)
def test_kernel_is_symmetric_and_positive(name: str) -> None:
    K = covariances(*random_rows(name, 40))
    assert np.allclose(K, K.T, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-9


@pytest.mark.parametrize("name", SPACES)
def test_diagonals_agree_with_the_matrix(name: str) -> None:
    model, rows = random_rows(name, 12)
    for kernel in model.kernels:
        fixed = kernel.against(model.theta, rows)
        assert np.allclose(fixed.diagonal(rows)[0], fixed.gram(rows)[0].diagonal(), atol=1e-12)


@pytest.mark.parametrize("max_pairs", [shared_units.MAX_PAIRS, 50])
@pytest.mark.parametrize("name", SPACES)
def test_ways_back_are_the_derivatives(
    name: str, max_pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_units, "MAX_PAIRS", max_pairs)
    model, rows = random_rows(name, 6)
    rng = np.random.default_rng(1)
    rows = moved(rows, 0.1 * rng.random(rows.features.shape))
    for kernel in model.kernels:
        fixed = kernel.against(model.theta, rows)
        K, pull = fixed.gram(rows)
        variances, pull_diagonal = fixed.diagonal(rows)
        by_gram, by_diagonal = rng.random(K.shape), rng.random(len(variances))
        slopes = np.zeros(rows.features.shape)
        pull(by_gram, slopes)
        pull_diagonal(by_diagonal, slopes)
        for column in rng.permutation(rows.features.shape[1])[:6]:
            ends = []
            for step in (1e-6, -1e-6):
                away = np.zeros(rows.features.shape)
                away[2, column] = step
                here = moved(rows, away)
                loss = (fixed.gram(here)[0] * by_gram).sum()
                ends.append(loss + fixed.diagonal(here)[0] @ by_diagonal)
            slope = (ends[0] - ends[1]) / 2e-6
            is_smooth = not hasattr(kernel, "units") or all(u.is_smooth for u in kernel.units)
            if is_smooth or slope == 0.0:
                assert slopes[2, column] == pytest.approx(slope, abs=1e-7)


def test_shared_units_follow_their_formula() -> None:
    _, rows = random_rows("nas_cifar10", 2, seed=3)
    layout, priors = Layout(load_space("nas_cifar10")), Priors()
    units = max(layout.types, key=len)
    kernel = SharedUnits(layout, units, priors, [(None, -1.0)])
    rng = np.random.default_rng(0)
    theta = np.array(priors.means) + 0.3 * rng.standard_normal(len(priors.means))
    *log_scales, log_weight, logit, log_reach = theta.tolist()
    rho, reach = 1 / (1 + math.exp(-logit)), math.exp(log_reach)

    def unit(row: int, number: int) -> np.ndarray:
        values, start = [], 0
        for column, scale in zip(layout.units[number].columns, log_scales, strict=True):
            width = layout.columns[column].width
            features = layout.unit_features(number)[start : start + width]
            values.append(rows.values[row, features] * math.exp(-scale))
            start += width
        return np.concatenate(values)[None]

    expected = 0.0
    for u in units:
        for v in units:
            if rows.active[0, layout.unit_gate(u)] and rows.active[1, layout.unit_gate(v)]:
                gap = abs(layout.units[u].index - layout.units[v].index)
                relation = (1 - rho) * (u == v) + rho * math.exp(-gap / reach)
                correlation = Matern.of(squared_distances(unit(0, u), unit(1, v))).values.item()
                expected += math.exp(log_weight) * relation * correlation
    assert kernel.against(theta, rows).gram(rows)[0][0, 1] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["nas_cifar10", "nas_cifar10_conditional"])
def test_counting_equal_units_once_and_in_parts_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows = random_rows(name, 60)
    whole = covariances(model, rows)
    monkeypatch.setattr(shared_units, "MIN_REPEATED", 10**9)
    assert np.allclose(covariances(model, rows), whole, atol=1e-12)
    monkeypatch.setattr(shared_units, "MAX_PAIRS", 5000)
    assert np.allclose(covariances(model, rows), whole, atol=1e-12)


@pytest.mark.parametrize(("name", "n"), [("nas_cifar10", 6), ("nas_cifar10_conditional", 5)])
def test_counting_states_of_single_columns_changes_nothing(
    name: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows = random_rows(name, 30)
    evidence = model.evidence(rows, np.linspace(-1.0, 1.0, 30))
    monkeypatch.setattr(Layout, "has_few_values", lambda self, unit, only: False)
    pairs, _ = random_rows(name, 30)
    theta = model.theta + 0.3 * np.random.default_rng(1).standard_normal(len(model.theta))
    model.theta = pairs.theta = theta
    assert np.allclose(covariances(model, rows), covariances(pairs, rows), atol=1e-12)
    value, gradient = evidence(theta)
    expected, slopes = pairs.evidence(rows, np.linspace(-1.0, 1.0, 30))(theta)
    assert value == pytest.approx(expected, rel=1e-10)
    assert np.allclose(gradient, slopes, atol=1e-8)
    assert (len(model.kernels[1]._counted), len(pairs.kernels[1]._counted)) == (n, 0)
