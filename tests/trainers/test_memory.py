"""Predicted memory, against what autograd keeps; a trial that does not fit is not started."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainers import forecast, memory, train, training
from trainers.blocks import build
from trainers.cost import summary
from trainers.memory import PredictedOutOfMemory, memory_of
from trainers.recipe import Recipe, load_recipe
from trainers.session import LocalSession

Make = Callable[..., dict[str, Any]]
TINY = {"recipe": "tiny", "is_tensorboard": False}


def _kept_bytes(network: torch.nn.Module, images: torch.Tensor) -> int:
    """Bytes of all tensors that autograd keeps, without the weights."""
    weights = {weight.untyped_storage().data_ptr() for weight in network.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = network(images)
    assert result.requires_grad
    return sum(kept.values())


def predicted_bytes(config: dict[str, Any], recipe: Recipe, batch: int, kind: torch.dtype) -> int:
    """What is predicted for a block network."""
    found = summary(config, recipe.width, image_size=recipe.image_size)
    return memory_of(found, recipe, batch, kind)


@pytest.mark.parametrize("seed", range(6))
def test_the_predicted_activations_are_those_that_are_kept(sample_config: Make, seed: int) -> None:
    config = sample_config(seed)
    network = build(config, 0.5).to(memory_format=torch.channels_last)
    images = torch.randn(4, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    predicted = 4 * 4 * summary(config, 0.5)["activations"]
    assert predicted == pytest.approx(_kept_bytes(network, images), rel=0.03)


@pytest.mark.parametrize("seed", [0, 2])
def test_reduced_precision_keeps_half_and_a_copy_of_the_weights(
    sample_config: Make, seed: int
) -> None:
    config = sample_config(seed)
    network = build(config, 0.5).to(memory_format=torch.channels_last)
    images = torch.randn(8, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    with torch.autocast("cpu", torch.bfloat16):
        kept = _kept_bytes(network, images)
    recipe = load_recipe({"width": 0.5})
    whole = predicted_bytes(config, recipe, 8, torch.bfloat16)
    own = 4 * 3 * summary(config, 0.5)["params"]
    assert whole - own == pytest.approx(kept, rel=0.03)


def test_batch_weights_and_averaging_add_up(uniform_config: Make) -> None:
    config = uniform_config(0)
    found = summary(config, 0.25, image_size=8)
    plain = predicted_bytes(config, load_recipe(TINY), 10, torch.float32)
    assert plain == 4 * (3 * found["params"] + 10 * found["activations"])
    averaged = predicted_bytes(config, load_recipe({**TINY, "ema_decay": 0.9}), 10, torch.float32)
    assert averaged - plain == 4 * found["params"]
    assert predicted_bytes(config, load_recipe(TINY), 10, torch.float64) == 2 * plain


def test_the_forecast_knows_precision_and_ranks(uniform_config: Make) -> None:
    config = uniform_config(0, batch_size=32)
    found = summary(config, 0.25, image_size=8)
    for options, each, kept in (
        ({}, 4 * 3, 4 * 32),
        ({"ranks": 2}, 4 * 3, 4 * 16),
        ({"precision": "bfloat16"}, 4 * 3 + 2, 2 * 32),
        ({"precision": "float64"}, 8 * 3, 8 * 32),
    ):
        told = forecast.summary(config, {**TINY, **options})["memory_bytes"]
        if not torch.cuda.is_available() or options.get("precision"):
            assert told == each * found["params"] + kept * found["activations"]


@pytest.mark.usefixtures("cache")
def test_a_training_predicts_its_own_precision(tmp_path: Path, uniform_config: Make) -> None:
    config = uniform_config(0)
    found = summary(config, 0.25, image_size=8)
    session = LocalSession(tmp_path, 0, {**TINY, "precision": "float64"})
    wanted = 8 * (3 * found["params"] + 32 * found["activations"])
    assert training.Training(config, session).memory == wanted


@pytest.mark.usefixtures("cache")
def test_what_does_not_fit_is_not_launched(
    tmp_path: Path, uniform_config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = uniform_config(2, batch_size=128)
    needed = predicted_bytes(config, load_recipe(TINY), 128, torch.float32)
    monkeypatch.setattr(memory, "free_memory", lambda device: needed - 1)
    session = LocalSession(tmp_path, 0, TINY)
    with pytest.raises(PredictedOutOfMemory, match="step of 128 pictures needs about") as caught:
        train.train(config, session)
    assert caught.value.cause == "oom"
    assert not (tmp_path / train.CHECKPOINT).exists()
    session.n_out_of_memory = 1  # as the sweep sets it for a retry, which splits batches in halves
    train.train(config, session)
    assert session.reports[-1]["batch_norm"] == "each of 2 parts of a batch by itself"


@pytest.mark.usefixtures("cache")
def test_a_failed_trial_lets_go_before_its_memory_is_given_back(
    tmp_path: Path, uniform_config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[weakref.ref[training.Training]] = []
    is_gone: list[bool] = []

    class Failing(training.Training):
        def run_epoch(self) -> None:
            left.append(weakref.ref(self))
            raise training.Diverged("the loss must be finite")

    def released(device: torch.device) -> None:
        gc.collect()
        is_gone.append(left[0]() is None)

    monkeypatch.setattr(train, "Training", Failing)
    monkeypatch.setattr(train, "release", released)
    with pytest.raises(training.Diverged, match="the loss must be finite"):
        train.train(uniform_config(0), LocalSession(tmp_path, 0, TINY))
    assert is_gone == [True]


@pytest.mark.usefixtures("cache")
def test_an_ended_trial_leaves_nothing_behind(
    tmp_path: Path, uniform_config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[weakref.ref[training.Training]] = []

    class Watched(training.Training):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            left.append(weakref.ref(self))

    monkeypatch.setattr(train, "Training", Watched)
    gc.disable()
    try:
        for number in range(2):
            session = LocalSession(tmp_path / str(number), 0, {**TINY, "epochs": 1})
            train.train(uniform_config(0), session)
            assert left[number]() is None
    finally:
        gc.enable()
