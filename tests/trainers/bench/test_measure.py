"""Benchmark of the trainer: both sides train the same network on the same images."""

from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from nasbo.cli import cli
from trainers.bench.measure import compare
from trainers.bench.networks import Measured, networks
from trainers.bench.plain import PlainTraining
from trainers.blocks import build
from trainers.cost import check, summary
from trainers.recipe import load_recipe

pytestmark = pytest.mark.usefixtures("cache")


def test_the_networks_are_of_the_space_and_in_order() -> None:
    found = networks(32)
    for network in found:
        check(network.config)
    paper = {network.name: network for network in found if network.recipe == "paper"}
    flops = [summary(paper[name].config)["flops"] for name in ("smallest", "median", "large")]
    assert flops == sorted(flops)
    assert set(paper["all convolutions"].config["conv_op"]) == {0}
    assert set(paper["all residual blocks"].config["conv_op"]) == {3}
    assert [n.label for n in networks(32)] == [n.label for n in found]


def test_the_plain_network_computes_the_same_with_layers_of_torch() -> None:
    config = networks(16)[1].config
    recipe = load_recipe({"recipe": "tiny"})
    plain = PlainTraining(config, recipe)
    torch.manual_seed(0)
    own = build(config, recipe.width, image_size=recipe.image_size)
    images, labels = plain.next_batch()
    assert images.shape == (16, 3, 8, 8)
    assert labels.shape == (16,)
    assert {type(m).__module__.split(".")[0] for m in plain.network.modules()} == {
        "torch",
        "trainers",
    }
    convolutions = [m for m in plain.network.modules() if isinstance(m, torch.nn.Conv2d)]
    assert {type(m) for m in convolutions} == {torch.nn.Conv2d}
    plain.network.train()
    assert torch.allclose(plain.network(images), own.train()(images), atol=1e-4)
    plain.train_on(images, labels)
    assert plain.loss > 0


@pytest.mark.slow
def test_both_sides_are_measured(uniform_config: Any) -> None:
    network = Measured("tiny", uniform_config(0, batch_size=32), "tiny")
    found = compare(network, n_rounds=2)
    assert found.ours > 0
    assert found.plain > 0
    assert 0 < found.input_share < 1
    assert 0 < found.plain_input_share < 1
    assert 0 < found.peak_share < 1
    assert "conv_op 0000" in found.network.label


def test_the_command_explains_itself() -> None:
    shown = CliRunner().invoke(cli, ["bench", "trainer", "--help"])
    assert shown.exit_code == 0
    assert "plain torchvision" in shown.output


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--rounds", "0"], "0 is not in the range x>=1"),
        (["--batch", "0"], "0 is not in the range x>=2"),
        (["--batch", "5000"], "batch_size must be at most n_train = 4000, got 5000"),
        (["--network", "foo"], "network must be one of all convolutions, all residual blocks, "),
        (
            ["--recipe", "proxy", "--network", "all convolutions"],
            "one of large, median, smallest with --recipe proxy, got 'all convolutions'",
        ),
    ],
)
def test_what_cannot_be_measured_is_said_before_the_table(words: list[str], rule: str) -> None:
    shown = CliRunner().invoke(cli, ["bench", "trainer", *words])
    assert shown.exit_code == 2
    assert rule in shown.output
    assert "img/s" not in shown.output


def test_missing_data_are_said_before_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    shown = CliRunner().invoke(cli, ["bench", "trainer", "--network", "median"])
    assert shown.exit_code == 2
    assert "CIFAR-10 has not been prepared here" in shown.output
    assert "img/s" not in shown.output
