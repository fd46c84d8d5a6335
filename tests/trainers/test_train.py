"""Training on real images: reports, exact resume, divergence, errors."""

import json
import math
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from trainers import cifar10, cost
from trainers.architecture import InvalidArchitecture
from trainers.checkpoint import CheckpointError
from trainers.recipe import InvalidOption
from trainers.session import LocalSession
from trainers.sources import DataError
from trainers.train import CHECKPOINT, Diverged, Training, train

pytestmark = pytest.mark.usefixtures("cache")
Make = Callable[..., dict[str, Any]]
TINY = {"recipe": "tiny", "is_tensorboard": False}
RICH = {**TINY, "cutout": 8, "mixup": 0.4, "ema_decay": 0.95, "label_smoothing": 0.1}
KILLED = """
import json, os, signal, sys
from trainers.session import LocalSession
from trainers.training import Training
job = json.load(sys.stdin)
training = Training(job["config"], LocalSession(job["folder"], 3, job["options"]))
assert training.step < job["step"], training.step
run_step = training.run_step
def run_and_die():
    run_step()
    if training.step == job["step"]:
        os.kill(os.getpid(), signal.SIGKILL)
training.run_step = run_and_die
while True:
    training.run_epoch()
"""


def _state(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(folder / CHECKPOINT, weights_only=True)
    return state


def _assert_same_weights(one: Path, other: Path) -> None:
    first, second = _state(one), _state(other)
    assert first["plain"]["step"] == second["plain"]["step"]
    assert first["network"].keys() == second["network"].keys()
    for name, weight in first["network"].items():
        assert torch.equal(weight, second["network"][name]), name
    for key, values in first["optimiser"]["state"].items():
        other_values = second["optimiser"]["state"][key]
        assert torch.equal(values["momentum_buffer"], other_values["momentum_buffer"])
    assert torch.equal(first["generator"], second["generator"])
    if first["average"] is not None:
        for name, weight in first["average"].items():
            assert torch.equal(weight, second["average"][name]), name


def test_one_report_per_epoch_with_all_metrics(tmp_path: Path, uniform_config: Make) -> None:
    session = LocalSession(tmp_path, 0, {"recipe": "tiny"})
    config = uniform_config(3)
    train(config, session)
    assert [report["epoch"] for report in session.reports] == [1, 2]
    last = session.reports[-1]
    full, small = cost.summary(config), cost.summary(config, 0.25, image_size=8)
    assert (last["params"], last["flops"], last["epochs"]) == (full["params"], full["flops"], 2)
    assert (last["trial_params"], last["trial_flops"]) == (small["params"], small["flops"])
    told = cifar10.summary(config, options=session.options)
    names = ("params", "flops", "trial_params", "trial_flops")
    assert [told[name] for name in names] == [last[name] for name in names]
    assert 0 <= last["val_accuracy"] <= 1
    assert last["images_per_second"] > 0
    assert last["seconds"] > 0
    assert math.isfinite(last["val_loss"] + last["train_loss"])
    events = EventAccumulator(str(tmp_path)).Reload()
    written = [event.value for event in events.Scalars("val_accuracy")]
    assert written == pytest.approx([report["val_accuracy"] for report in session.reports])


def test_the_network_learns(tmp_path: Path, uniform_config: Make) -> None:
    options = {**TINY, "n_train": 1000, "epochs": 4, "image_size": 16, "width": 0.5}
    session = LocalSession(tmp_path, 0, options)
    train(uniform_config(3), session)
    assert session.reports[-1]["train_loss"] < session.reports[0]["train_loss"]
    assert session.reports[-1]["val_accuracy"] > 0.2


@pytest.mark.parametrize("options", [TINY, RICH])
def test_resume_is_bit_identical(
    tmp_path: Path, sample_config: Make, options: dict[str, Any]
) -> None:
    config = {**sample_config(4), "batch_size": 32}
    whole = LocalSession(tmp_path / "whole", 3, options)
    train(config, whole)
    steps = sorted(random.Random(0).sample(range(1, 24), 5))
    parts = LocalSession(tmp_path / "parts", 3, options)
    for n_steps in steps:
        stopped = Training(config, parts)
        while stopped.step < n_steps:
            stopped.run_step() if stopped.epoch == stopped.n_scored else stopped.run_epoch()
        stopped.save()
        torch.rand(5)
    train(config, parts)
    _assert_same_weights(whole.folder, parts.folder)
    for name in ("val_accuracy", "val_loss", "train_loss", "train_accuracy", "lr"):
        assert whole.reports[-1][name] == parts.reports[-1][name]


@pytest.mark.parametrize("every", [1, 2])
def test_pauses_change_nothing(tmp_path: Path, sample_config: Make, every: int) -> None:
    config, n_epochs = {**sample_config(4), "batch_size": 32}, 4
    options = {**RICH, "epochs": n_epochs, "n_train": 160, "checkpoint_every_epochs": every}
    whole = LocalSession(tmp_path / "whole", 3, options)
    train(config, whole)
    reports = []
    for until in (1, 3, None):
        part = LocalSession(tmp_path / "parts", 3, options, until)
        train(config, part)
        assert part.step == (until or n_epochs)
        reports += part.reports
        torch.rand(5)
    assert [report["epoch"] for report in reports] == [1, 2, 3, 4], "no epoch is trained twice"
    _assert_same_weights(whole.folder, tmp_path / "parts")
    for one, other in zip(whole.reports, reports, strict=True):
        for name in ("val_accuracy", "val_loss", "train_loss", "train_accuracy", "lr"):
            assert one[name] == other[name]


@pytest.mark.slow
def test_killed_at_five_random_steps_and_still_the_same(
    tmp_path: Path, sample_config: Make
) -> None:
    config = {**sample_config(4), "batch_size": 32}
    options = {**RICH, "n_train": 1600, "checkpoint_every_s": 0.3}
    train(config, LocalSession(tmp_path / "whole", 3, options))
    folder = str(tmp_path / "killed")
    for step in sorted(random.Random(1).sample(range(5, 95), 5)):
        job = {"config": config, "folder": folder, "options": options, "step": step}
        ended = subprocess.run(
            [sys.executable, "-c", KILLED], input=json.dumps(job), text=True, check=False
        )
        assert ended.returncode == -signal.SIGKILL
    train(config, LocalSession(folder, 3, options))
    _assert_same_weights(tmp_path / "whole", tmp_path / "killed")


def test_checkpoints_are_written_only_when_due(tmp_path: Path, uniform_config: Make) -> None:
    options = {**TINY, "epochs": 3, "checkpoint_every_epochs": 2}
    training = Training(uniform_config(0), LocalSession(tmp_path, 0, options))
    written = []
    for _ in range(3):
        training.run_epoch()
        written.append(_step(tmp_path) // training.n_batches)
    assert written == [0, 2, 3], "the second epoch is due, and the last is always kept"
    n_weights = sum(value.numel() for value in training.network.state_dict().values())
    assert (tmp_path / CHECKPOINT).stat().st_size < 2 * 4 * n_weights + 60_000


def test_a_killed_process_is_continued_exactly(tmp_path: Path, sample_config: Make) -> None:
    config = {**sample_config(4), "batch_size": 32}
    options = {**TINY, "checkpoint_every_s": 0}
    job = json.dumps({"config": config, "folder": str(tmp_path / "killed"), "options": options})
    code = (
        "import json, sys; from trainers.cifar10 import train;"
        "from trainers.session import LocalSession; job = json.load(sys.stdin);"
        "train(job['config'], LocalSession(job['folder'], 0, job['options']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        process.stdin.write(job)
        process.stdin.close()
        while process.poll() is None and _step(tmp_path / "killed") < 5:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert 5 <= _step(tmp_path / "killed") < 24
    train(config, LocalSession(tmp_path / "killed", 0, options))
    train(config, LocalSession(tmp_path / "whole", 0, options))
    _assert_same_weights(tmp_path / "whole", tmp_path / "killed")


def test_a_finished_trial_reports_its_last_metrics_again(
    tmp_path: Path, uniform_config: Make
) -> None:
    first = LocalSession(tmp_path, 0, TINY)
    train(uniform_config(1), first)
    again = LocalSession(tmp_path, 0, {**TINY, "threads": 1, "checkpoint_every_s": 5})
    train(uniform_config(1), again)
    assert again.reports == first.reports[-1:]


def test_seeds_differ_and_repeat(tmp_path: Path, uniform_config: Make) -> None:
    losses = []
    for index, seed in enumerate((0, 0, 1)):
        session = LocalSession(tmp_path / str(index), seed, {**TINY, "epochs": 1})
        train(uniform_config(0), session)
        losses.append(session.reports[-1]["train_loss"])
    assert losses[0] == losses[1] != losses[2]


def test_equal_fingerprints_train_equally(tmp_path: Path, uniform_config: Make) -> None:
    base = uniform_config(0, nums_channel=[1.25] * 4)
    twin = {**base, "nums_channel": [1.3, 1.3, 1.25, 1.3], "expand_ratio": [6] * 4}
    assert cifar10.fingerprint(base) == cifar10.fingerprint(twin)
    for name, config in (("base", base), ("twin", twin)):
        train(config, LocalSession(tmp_path / name, 0, {**TINY, "epochs": 1}))
    _assert_same_weights(tmp_path / "base", tmp_path / "twin")


def test_the_learning_rate_rises_then_falls_once(tmp_path: Path, uniform_config: Make) -> None:
    options = {**TINY, "epochs": 10, "warmup_share": 0.1}
    training = Training(uniform_config(0, step_size=70), LocalSession(tmp_path, 0, options))
    rates = []
    for step in range(120):
        training.step = step
        rates.append(training.learning_rate())
    assert rates[0] == pytest.approx(0.1 / 12)
    assert rates[11:84] == [0.1] * 73
    assert rates[84:] == pytest.approx([0.01] * 36)


def test_biases_and_normalisation_do_not_decay(tmp_path: Path, uniform_config: Make) -> None:
    training = Training(uniform_config(2, seratio=[8] * 4), LocalSession(tmp_path, 0, TINY))
    decaying, others = training.optimiser.param_groups
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.0005, 0.0)
    assert {weight.ndim for weight in decaying["params"]} == {2, 4}
    assert {weight.ndim for weight in others["params"]} == {1}


def test_early_epochs_are_scored_on_fewer_pictures(tmp_path: Path, uniform_config: Make) -> None:
    options = {**TINY, "n_validation_early": 50}
    training = Training(uniform_config(0), LocalSession(tmp_path, 0, options))
    assert training.data.validation is not None
    assert sorted(training.data.score_order.tolist()) == list(range(200))
    early = training.data.validation.labels[training.data.score_order[:50]]
    assert torch.bincount(early).tolist() == [5] * 10
    training.run_epoch()
    assert (training.metrics["val_accuracy"] * 50) % 1 == pytest.approx(0, abs=1e-6)


def test_divergence_is_raised_and_leaves_no_lost_checkpoint(
    tmp_path: Path, uniform_config: Make
) -> None:
    session = LocalSession(tmp_path, 0, {**TINY, "checkpoint_every_s": 0, "warmup_share": 0.0})
    training = Training(uniform_config(0), session)
    training.run_step()
    training.save()
    with torch.no_grad():
        next(training.network.parameters()).fill_(float("nan"))
    with pytest.raises(Diverged, match="the training loss must be finite, got nan at step 2"):
        training.run_epoch()
    assert _step(tmp_path) == 1
    assert session.reports == []


def test_a_lost_validation_loss_is_divergence(tmp_path: Path, uniform_config: Make) -> None:
    training = Training(uniform_config(0), LocalSession(tmp_path, 0, {**TINY, "epochs": 1}))
    for module in training.network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.fill_(float("nan"))  # type: ignore[union-attr]
    with pytest.raises(Diverged, match="the validation loss must be finite"):
        training.run_epoch()


def test_a_checkpoint_of_another_trial_is_refused(tmp_path: Path, uniform_config: Make) -> None:
    train(uniform_config(0), LocalSession(tmp_path, 0, {**TINY, "epochs": 1}))
    with pytest.raises(CheckpointError, match="another configuration, recipe or seed"):
        train(uniform_config(0), LocalSession(tmp_path, 1, {**TINY, "epochs": 1}))


def test_a_checkpoint_without_a_scaler_goes_on_in_float16(
    tmp_path: Path, uniform_config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Training(uniform_config(0), LocalSession(tmp_path, 0, TINY))
    before.run_epoch()
    assert _state(tmp_path)["scaler"] == {}
    # There is no GPU here; what `auto` would say on one without bfloat16 is.
    monkeypatch.setattr("trainers.training.pick_precision", lambda recipe, device: torch.float16)
    after = Training(uniform_config(0), LocalSession(tmp_path, 0, TINY))
    assert after.step == before.step
    assert after.scaler.is_enabled()


def test_a_damaged_checkpoint_is_named(tmp_path: Path, uniform_config: Make) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match=r"checkpoint.pt: must be a readable checkpoint"):
        train(uniform_config(0), LocalSession(tmp_path, 0, TINY))


def test_a_batch_larger_than_the_set_is_refused(tmp_path: Path, uniform_config: Make) -> None:
    options = {**TINY, "n_train": 100}
    with pytest.raises(
        InvalidArchitecture, match="batch_size must be at most n_train = 100, got 128"
    ):
        train(uniform_config(0, batch_size=128), LocalSession(tmp_path, 0, options))


def test_the_face_has_what_a_sweep_asks_for(uniform_config: Make) -> None:
    assert (cifar10.METRIC, cifar10.MODE) == ("val_accuracy", "max")
    cifar10.check(uniform_config(0))


def _step(folder: Path) -> int:
    path = folder / CHECKPOINT
    return int(_state(folder)["plain"]["step"]) if path.exists() else 0


def test_everything_is_trained_on_and_the_test_set_is_looked_at_once(
    tmp_path: Path, uniform_config: Make
) -> None:
    options = {**RICH, "train_on": "train+validation", "evaluate_test": True, "save": "w/final.pt"}
    session = LocalSession(tmp_path, 0, options)
    train(uniform_config(0), session)
    assert [("test_accuracy" in report) for report in session.reports] == [False, True]
    assert not any("val_accuracy" in report for report in session.reports)
    last = session.reports[-1]
    assert (last["n_train"], last["train_on"]) == (600, "train+validation")
    saved = torch.load(tmp_path / "w/final.pt", weights_only=True)
    assert saved["metrics"]["test_accuracy"] == last["test_accuracy"]
    average = _state(tmp_path)["average"]
    assert all(torch.equal(value, average[name]) for name, value in saved["weights"].items())
    again = LocalSession(tmp_path, 0, options)
    (tmp_path / "w/final.pt").unlink()
    train(uniform_config(0), again)
    assert again.reports == [last]
    assert (tmp_path / "w/final.pt").exists()


def test_the_test_set_as_objective_is_labelled(tmp_path: Path, uniform_config: Make) -> None:
    session = LocalSession(tmp_path, 0, {**TINY, "objective": "test"})
    train(uniform_config(0), session)
    assert all("test_accuracy" in report for report in session.reports)
    assert session.reports[-1]["objective"] == "test"
    plain = LocalSession(tmp_path / "plain", 0, {**TINY, "epochs": 1})
    train(uniform_config(0), plain)
    assert plain.reports[-1]["objective"] == "validation"
    assert "test_accuracy" not in plain.reports[-1]


def test_a_seed_given_as_an_option_changes_all_trials_and_keeps_them_apart(
    tmp_path: Path, uniform_config: Make
) -> None:
    seeds = []
    for name, seed, option in (("a", 1, 7), ("b", 1, 7), ("c", 2, 7), ("d", 1, 8), ("e", 1, None)):
        options = {**TINY, "epochs": 1, "seed": option}
        session = LocalSession(tmp_path / name, seed, options)
        train(uniform_config(0), session)
        seeds.append(session.reports[-1]["trial_seed"])
    _assert_same_weights(tmp_path / "a", tmp_path / "b")
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 4
    assert seeds[-1] == 1


def test_the_averaged_network_is_what_is_scored(tmp_path: Path, uniform_config: Make) -> None:
    training = Training(uniform_config(0), LocalSession(tmp_path, 0, RICH))
    training.run_epoch()
    assert training.data.validation is not None
    scored = training.evaluate(training.data.validation, training.data.score_order)
    assert scored == (training.metrics["val_accuracy"], training.metrics["val_loss"])
    own = dict(training.network.named_parameters())
    averaged = dict(training.final_network.named_parameters())
    assert all(not torch.equal(own[name], averaged[name]) for name in own)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"epochs": 0}, "epochs must be of type int in 1..100000, got 0"),
        ({"recipe": "fast"}, "recipe must be one of paper, proxy, quick, strong, tiny, got 'fast'"),
        ({"ranks": 0}, "ranks must be of type int in 1..1024, got 0"),
        ({"n_train": 49_900}, "at most the 50000 pictures there are"),
    ],
)
def test_options_that_no_trial_can_use_are_refused_before_anything_is_written(
    tmp_path: Path, uniform_config: Make, options: dict[str, Any], rule: str
) -> None:
    with pytest.raises(InvalidOption, match=rule):
        train(uniform_config(0), LocalSession(tmp_path, 0, {**TINY, **options}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"learning_rate": float("nan")}, "learning_rate must be a number in .0, 100., got nan"),
        ({"conv_op": [0, 0, 0, 9]}, r"conv_op\[3\] must be an integer in 0..3, got 9"),
        ({"batch_size": 1024}, "batch_size must be at most n_train = 400, got 1024"),
    ],
)
def test_configurations_outside_the_space_are_refused_before_anything_is_written(
    tmp_path: Path, uniform_config: Make, change: dict[str, Any], rule: str
) -> None:
    with pytest.raises(InvalidArchitecture, match=rule) as caught:
        train(uniform_config(0, **change), LocalSession(tmp_path, 0, TINY))
    assert caught.value.cause == "invalid"
    assert list(tmp_path.iterdir()) == []


def test_missing_data_is_named_with_what_to_do(tmp_path: Path, uniform_config: Make) -> None:
    (tmp_path / "data/cifar10").mkdir(parents=True)
    session = LocalSession(tmp_path / "trial", 0, {**TINY, "data": str(tmp_path / "data")})
    with pytest.raises(DataError, match=r"has not been prepared here; run 'nasbo data cifar10'"):
        train(uniform_config(0), session)
