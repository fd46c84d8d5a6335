"""Size and cost of networks without building them, and the canonical hash."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from nasbo.space import load_space
from trainers.blocks import build, rows
from trainers.cost import FEATURES, fingerprint, summary
from trainers.tabulate import sizes_of

Make = Callable[..., dict[str, Any]]


def test_flops_and_parameters_of_a_small_network_counted_by_hand(uniform_config: Make) -> None:
    # Two 3x3 convolutions, 32 -> 16 at 16x16 after a stride of 2 and 16 -> 24 at 8x8, on 32 pixels.
    config = uniform_config(
        0,
        nums_block=2,
        conv_op=[0, 0],
        expand_ratio=[None, None],
        seratio=[0, 0],
        kernel_size=[3, 3],
        nums_layer=[0, 0],
        nums_channel=[1, 1],
        stride_layer=0b11,
    )
    stem = 27 * 32 * 32 * 32
    first = 9 * 32 * 16 * 16 * 16
    second = 9 * 16 * 24 * 8 * 8
    head = 24 * 10
    found = summary(config)
    assert found["flops"] == 2 * (stem + first + second + head)
    weights = 27 * 32 + 9 * 32 * 16 + 9 * 16 * 24
    assert found["params"] == weights + 2 * (32 + 16 + 24) + 24 * 10 + 10


@pytest.mark.parametrize("seed", range(12))
def test_closed_form_agrees_with_the_built_network(sample_config: Make, seed: int) -> None:
    config = sample_config(seed)
    width, size = [(1.0, 32), (0.5, 16), (0.25, 8)][seed % 3]
    with torch.device("meta"):
        network = build(config, width, image_size=size).eval()
        with FlopCounterMode(display=False) as counter:
            network(torch.empty(1, 3, size, size))
    found = summary(config, width, image_size=size)
    assert found["params"] == sum(weight.numel() for weight in network.parameters())
    assert found["flops"] == counter.get_total_flops()


def test_rows_can_be_drawn_and_add_up(sample_config: Make) -> None:
    found = summary(sample_config(1))
    assert json.loads(json.dumps(found)) == found
    assert [row["op"] for row in found["rows"]][:: len(found["rows"]) - 1] == ["stem", "head"]
    assert sum(row["flops"] for row in found["rows"]) == found["flops"]


@pytest.mark.parametrize(
    "changes",
    [
        {"expand_ratio": [6, None, 5, 6]},
        {"nums_channel": [1.3, 1, 1, 1.3]},
        {"seratio": [16, 0, 0, 0]},
        {"nums_channel": [1.25, 1.0, 1.0, 1.25]},
    ],
)
def test_values_that_change_nothing_do_not_change_the_fingerprint(
    uniform_config: Make, changes: dict[str, Any]
) -> None:
    base = uniform_config(0, nums_channel=[1.25, 1, 1, 1.25], seratio=[8, 0, 0, 0])
    assert fingerprint({**base, **changes}) == fingerprint(base)


@pytest.mark.parametrize(
    "changes",
    [
        {"learning_rate": 0.1000001},
        {"step_size": 81},
        {"batch_size": 64},
        {"expand_ratio": [6, 5, 5, 5]},
        {"nums_channel": [1, 1, 1.25, 1]},
        {"seratio": [8, 0, 0, 0]},
        {"stride_layer": 44},
        {"kernel_size": [3, 3, 5, 3]},
        {"nums_layer": [0, 0, 1, 0]},
        {"conv_op": [2, 2, 2, 3]},
    ],
)
def test_values_that_change_training_change_the_fingerprint(
    uniform_config: Make, changes: dict[str, Any]
) -> None:
    base = uniform_config(2)
    assert fingerprint({**base, **changes}) != fingerprint(base)


def test_networks_that_differ_only_on_large_pictures_have_different_fingerprints(
    uniform_config: Make,
) -> None:
    six = {name: value * 3 for name, value in uniform_config(0).items() if isinstance(value, list)}
    base = uniform_config(0, nums_block=6, **{name: value[:6] for name, value in six.items()})
    one, other = ({**base, "stride_layer": bits} for bits in (0b111110, 0b111111))
    assert rows(one) == rows(other)
    assert rows(one, image_size=128) != rows(other, image_size=128)
    assert fingerprint(one) != fingerprint(other)


def test_equal_fingerprints_are_equal_networks_at_every_width(uniform_config: Make) -> None:
    base = uniform_config(0, nums_channel=[1.25] * 4, seratio=[8] * 4)
    twin = {**base, "nums_channel": [1.3, 1.3, 1.25, 1.3], "seratio": [16, 16, 8, 8]}
    assert fingerprint(base) == fingerprint(twin)
    for width in (0.1, 0.25, 0.3, 0.5, 0.6, 0.77, 1.0):
        shapes = [[w.shape for w in build(c, width).parameters()] for c in (base, twin)]
        assert shapes[0] == shapes[1]


def test_the_fingerprint_is_the_same_in_another_process(sample_config: Make) -> None:
    config = sample_config(5)
    code = (
        "import sys, json; from trainers.cost import fingerprint;"
        "print(fingerprint(json.load(sys.stdin)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(config),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == fingerprint(config)


@pytest.mark.parametrize("name", ["nas_cifar10", "nas_cifar10_conditional"])
@pytest.mark.parametrize(("width", "size"), [(1.0, 32), (0.5, 16)])
def test_tables_agree_with_the_summary(name: str, width: float, size: int) -> None:
    space, rng = load_space(name), np.random.default_rng(0)
    for index in rng.integers(space.n_subspaces, size=6):
        subspace = space.subspace(int(index))
        x = subspace.sample(25, rng)
        found = sizes_of(subspace.table(x), width, 10, size)
        known = [summary(subspace.decode(row), width, 10, size) for row in x]
        for number in FEATURES:
            assert found[number].tolist() == [one[number] for one in known]


def test_depth_and_receptive_field_counted_by_hand(uniform_config: Make) -> None:
    config = uniform_config(
        2,
        nums_block=2,
        conv_op=[2, 3],
        expand_ratio=[6, None],
        seratio=[0, 0],
        kernel_size=[5, 3],
        nums_layer=[1, 0],
        nums_channel=[1, 1],
        stride_layer=0b11,
    )
    found = summary(config)
    assert found["layers"] == 1 + 2 * 3 + 2
    # The stem sees 3; a 5x5 kernel adds 4 pixels, behind the stride 8; then 3x3 at 2 and at 4.
    assert found["receptive_field"] == 3 + 4 + 8 + 4 + 8
