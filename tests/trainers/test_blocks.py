"""Networks: interpretation of the space, all operations, and invalid configurations."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from trainers.blocks import InvalidArchitecture, build, rows
from trainers.cost import check

Make = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("op", [0, 1, 2, 3])
@pytest.mark.parametrize("seratio", [0, 8])
@pytest.mark.parametrize("kernel", [3, 5])
def test_every_operation_gives_logits_and_gradients_everywhere(
    uniform_config: Make, op: int, seratio: int, kernel: int
) -> None:
    changes = {"seratio": [seratio] * 4, "kernel_size": [kernel] * 4, "nums_layer": [1] * 4}
    torch.manual_seed(1)
    network = build(uniform_config(op, **changes), width=0.25, image_size=16)
    logits = network(torch.randn(16, 3, 16, 16).contiguous(memory_format=torch.channels_last))
    assert logits.shape == (16, 10)
    logits.square().sum().backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None, name
        assert bool(weight.grad.abs().sum() > 0), name


def test_channels_last_gives_the_same_answer(sample_config: Make) -> None:
    network = build(sample_config(3), width=0.25, image_size=16).eval()
    x = torch.randn(4, 3, 16, 16)
    expected = network(x)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    found = network(x.contiguous(memory_format=torch.channels_last))
    assert torch.allclose(expected, found, atol=1e-4)


@pytest.mark.parametrize(
    ("n", "bits", "strides"),
    [
        (4, 43, "2122"),
        (4, 44, "2211"),
        (5, 43, "12122"),
        (5, 44, "12211"),
        (6, 43, "212122"),
        (6, 44, "212211"),
        (7, 43, "1212122"),
        (7, 44, "1212211"),
    ],
)
def test_strides_are_the_low_bits(uniform_config: Make, n: int, bits: int, strides: str) -> None:
    assert "".join(str(row.stride) for row in rows(_long(uniform_config, n, bits))) == strides


def test_a_stride_below_a_map_of_two_is_left_out(uniform_config: Make) -> None:
    table = rows(_long(uniform_config, 6, 43), image_size=16)
    assert [row.image_size for row in table] == [16, 8, 8, 4, 4, 2]
    assert table[-1].out_size == 2


def test_channels_are_rounded_to_eight_and_scaled_by_width(uniform_config: Make) -> None:
    config = _long(uniform_config, 7, 43, nums_channel=[1.3] * 7)
    assert [row.out_channels for row in rows(config)] == [24, 32, 56, 104, 128, 248, 416]
    assert [row.out_channels for row in rows(config, 0.5)] == [16, 16, 32, 56, 64, 128, 208]


def test_layers_are_extra_and_expansion_is_for_the_inverted_residual_only(
    uniform_config: Make,
) -> None:
    config = uniform_config(
        0, conv_op=[0, 1, 2, 3], expand_ratio=[6, 6, 6, 6], nums_layer=[0, 1, 2, 0]
    )
    assert [row.layers for row in rows(config)] == [1, 2, 3, 1]
    assert [row.expansion for row in rows(config)] == [1, 1, 6, 1]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"nums_block": 8}, "nums_block must be an integer in 1..7"),
        ({"nums_block": 5}, "conv_op must be a list of nums_block = 5 entries"),
        ({"conv_op": [0, 1, 3, 4]}, r"conv_op\[3\] must be an integer in 0..3, got 4"),
        ({"conv_op": [0, 0, 0, True]}, r"conv_op\[3\] must be an integer"),
        ({"conv_op": [0, 2, 0, 0]}, r"expand_ratio\[1\] must be an integer in 1..32, got None"),
        ({"kernel_size": [3, 4, 3, 3]}, r"kernel_size\[1\] must be odd, got 4"),
        ({"kernel_size": "3333"}, "kernel_size must be a list"),
        ({"nums_channel": [1, 1, 1, 0]}, r"nums_channel\[3\] must be a number in \(0, 16\]"),
        ({"nums_layer": [0, 0, 0, 99]}, r"nums_layer\[3\]"),
        ({"seratio": [0, 0, -1, 0]}, r"seratio\[2\]"),
        ({"stride_layer": None}, "stride_layer must be an integer"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number"),
        ({"learning_rate": 0.0}, "learning_rate must be a number"),
        ({"step_size": 0}, "step_size must be an integer in 1..100"),
        ({"batch_size": 1}, "batch_size must be an integer in 2"),
        ({"dropout": 0.1}, r"unknown: \['dropout'\]"),
    ],
)
def test_what_cannot_be_built_is_named(
    uniform_config: Make, change: dict[str, Any], rule: str
) -> None:
    with pytest.raises(InvalidArchitecture, match=rule):
        check(uniform_config(0, **change))


def test_a_missing_parameter_and_a_wrong_type_are_named(uniform_config: Make) -> None:
    config = uniform_config(0)
    del config["batch_size"]
    with pytest.raises(InvalidArchitecture, match=r"missing: \['batch_size'\]"):
        build(config)
    with pytest.raises(InvalidArchitecture, match="must be a mapping, got list"):
        check([1, 2])  # type: ignore[arg-type]


def test_expand_ratio_may_be_absent_without_inverted_residuals(uniform_config: Make) -> None:
    config = uniform_config(3)
    del config["expand_ratio"]
    assert len(rows(config)) == 4


def test_width_above_one_is_refused(uniform_config: Make) -> None:
    with pytest.raises(InvalidArchitecture, match=r"width must be in \(0, 1\], got 2"):
        build(uniform_config(0), width=2.0)


def _long(uniform_config: Make, n: int, bits: int, **changes: Any) -> dict[str, Any]:
    lists = {
        "conv_op": [0] * n,
        "expand_ratio": [None] * n,
        "seratio": [0] * n,
        "kernel_size": [3] * n,
        "nums_layer": [0] * n,
        "nums_channel": [1] * n,
    }
    return uniform_config(0, nums_block=n, stride_layer=bits, **{**lists, **changes})
