"""The trainer as a problem, with the recipe that takes seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasbo.bench.problems import make_problem
from nasbo.bench.problems.proxy import (
    CHANCE_ERROR,
    N_SEEDS,
    TRUE_SEEDS,
    Session,
    cifar10,
    train_once,
)
from nasbo.bench.problems.store import Store
from nasbo.errors import NasboError
from nasbo.trainer import Trainer

TINY = {"recipe": "tiny", "is_tensorboard": False}


def _small() -> dict[str, Any]:
    return {
        "nums_block": 4,
        "conv_op": [1] * 4,
        "expand_ratio": [5] * 4,
        "seratio": [0] * 4,
        "kernel_size": [3] * 4,
        "nums_layer": [0] * 4,
        "nums_channel": [1] * 4,
        "stride_layer": 43,
        "learning_rate": 0.1,
        "step_size": 80,
        "batch_size": 64,
    }


def test_a_network_is_trained_once_per_fingerprint_and_seed(tables: Path) -> None:
    from trainers.data import prepare

    prepare()
    problem = cifar10("tiny", TINY)
    first = problem.evaluate(_small(), np.random.default_rng(0))
    assert 0.5 < first < 1
    # A separable block has no expansion: another ratio is the same network.
    twin = {**_small(), "expand_ratio": [6] * 4}
    assert problem.evaluate(twin, np.random.default_rng(0)) == first
    assert len(Store("tiny-1").results()) == 1


def test_the_truth_is_the_mean_of_trainings_that_no_search_has_seen(tables: Path) -> None:
    from trainers.data import prepare

    prepare()
    problem = cifar10("tiny", TINY)
    seen = problem.evaluate(_small(), np.random.default_rng(0))
    truth = problem.score(_small(), seen)
    values = {one.key.rpartition("/")[2]: one.value for one in Store("tiny-1").results()}
    assert len(values) == 1 + len(TRUE_SEEDS)
    assert truth == pytest.approx(np.mean([values[str(seed)] for seed in TRUE_SEEDS]))
    assert not set(TRUE_SEEDS) & set(range(N_SEEDS))


def test_a_network_that_diverges_guesses(tmp_path: Path) -> None:
    def diverge(config: dict[str, Any], session: Session) -> None:
        raise ArithmeticError("not finite")

    trainer = Trainer("own:diverge", diverge, takes_session=True)
    assert train_once(trainer, {}, 0, {}) == CHANCE_ERROR


def test_missing_pictures_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    with pytest.raises(NasboError, match=r"nasbo data cifar10"):
        make_problem("cifar10_proxy")
