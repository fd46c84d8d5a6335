"""Network of a configuration, as rows of a dataclass; needs no torch.

The space is that of appendix C.3 of the paper on attention-based Bayesian optimisation. Where the
paper is silent, this holds: base channels are those of MnasNet; `nums_channel` multiplies a block's
base channels, rounded to a multiple of 8; `nums_layer` counts extra layers; the low `nums_block`
bits of `stride_layer`, most significant first, say which blocks halve the feature map;
squeeze-and-excitation is for every operation; `expand_ratio` is for the inverted residual alone
(for other operations it may be `None`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

Config = Mapping[str, Any]

OPERATIONS = ("conv", "separable", "inverted", "resnet")
BASE_CHANNELS = (16, 24, 40, 80, 96, 192, 320)
STEM_CHANNELS = 32
LARGEST_IMAGE = 512
MINIMUM_MAP = 2
MINIMUM_SQUEEZE = 4
PER_BLOCK = ("conv_op", "expand_ratio", "seratio", "kernel_size", "nums_layer", "nums_channel")
TRAINING = ("learning_rate", "step_size", "batch_size")
KNOWN = ("nums_block", *PER_BLOCK, "stride_layer", *TRAINING)


class InvalidArchitecture(ValueError):  # noqa: N818, the name says what is wrong
    """A configuration that cannot be built or trained; the message has the rule and the value."""

    cause = "invalid"


@dataclass(frozen=True)
class BlockRow:
    """One block: `layers` layers of the same kind, of which only the first
    may halve the feature map.

    `expansion` is 1 where the operation has none; `se_ratio` 0 means no squeeze-and-excitation;
    `image_size` is the side of the input feature map.
    """

    op: str
    kernel: int
    stride: int
    in_channels: int
    out_channels: int
    layers: int
    expansion: int
    se_ratio: int
    image_size: int

    @property
    def out_size(self) -> int:
        """Side of the output feature map."""
        return math.ceil(self.image_size / self.stride)

    def inputs(self, layer: int) -> int:
        """Input channels of one layer of the block."""
        return self.in_channels if layer == 0 else self.out_channels

    def squeeze_channels(self, layer: int) -> int:
        """Hidden width of one layer's squeeze-and-excitation; 0 if it has none."""
        if self.se_ratio == 0:
            return 0
        is_inverted = self.op == "inverted"
        channels = self.inputs(layer) * self.expansion if is_inverted else self.out_channels
        return max(MINIMUM_SQUEEZE, channels // self.se_ratio)


def check(config: Config) -> None:
    """Raise `InvalidArchitecture` if the configuration cannot be built or trained."""
    check_names(config, KNOWN, "expand_ratio")
    n_blocks = as_integer("nums_block", config["nums_block"], 1, len(BASE_CHANNELS))
    for name in PER_BLOCK:
        if name != "expand_ratio" or config.get(name) is not None:
            check_length(name, config[name], "nums_block", n_blocks)
    for index in range(n_blocks):
        _check_block(config, index)
    as_integer("stride_layer", config["stride_layer"], 0, 2**31)
    check_training(config)


def rows(config: Config, width: float = 1.0, image_size: int = 32) -> tuple[BlockRow, ...]:
    """The network block by block.

    Args:
        config: a configuration of the NAS space.
        width: factor in (0, 1] on all channels, which are then rounded to multiples of 8 again, so
            that configurations with the same network at full width have the same network at any
            width.
        image_size: side of the images; a stride that would halve a feature map to less than 2 is
            left out.
    """
    check(config)
    strides = _strides(int(config["stride_layer"]), int(config["nums_block"]), image_size)
    built: list[BlockRow] = []
    channels, size = stem_channels(width), image_size
    for index, stride in enumerate(strides):
        row = _row(config, index, stride, channels, width, size)
        built.append(row)
        channels, size = row.out_channels, row.out_size
    return tuple(built)


def stem_channels(width: float = 1.0) -> int:
    """Channels of the first convolution."""
    if not 0.0 < width <= 1.0:
        raise InvalidArchitecture(f"width must be in (0, 1], got {width}")
    return round_to_8(STEM_CHANNELS * width)


def _row(
    config: Config, index: int, stride: int, channels: int, width: float, size: int
) -> BlockRow:
    op = OPERATIONS[config["conv_op"][index]]
    full = round_to_8(BASE_CHANNELS[index] * float(config["nums_channel"][index]))
    return BlockRow(
        op=op,
        kernel=int(config["kernel_size"][index]),
        stride=stride,
        in_channels=channels,
        out_channels=round_to_8(full * width),
        layers=1 + int(config["nums_layer"][index]),
        expansion=int(config["expand_ratio"][index]) if op == "inverted" else 1,
        se_ratio=int(config["seratio"][index]),
        image_size=size,
    )


def check_batch(config: Config, n_train: int, n_parts: int = 1) -> None:
    """Raise `InvalidArchitecture` if the batch is too large for `n_train` images or
    too small for `n_parts`.
    """
    size = int(config["batch_size"])
    if size > n_train:
        raise InvalidArchitecture(f"batch_size must be at most n_train = {n_train}, got {size}")
    if size < 2 * n_parts:  # a batch of one has no variance
        raise InvalidArchitecture(
            f"batch_size must be at least two pictures for each of {n_parts} parts, got {size}"
        )


def _strides(bits: int, n_blocks: int, image_size: int) -> list[int]:
    wanted = [2 if bits >> position & 1 else 1 for position in reversed(range(n_blocks))]
    return possible_strides(wanted, image_size)


def possible_strides(wanted: Sequence[int], image_size: int) -> list[int]:
    """Strides of 1 and 2, without those that would halve a feature map to less than 2."""
    strides, size = [], image_size
    for stride in wanted:
        strides.append(stride if size // stride >= MINIMUM_MAP else 1)
        size = math.ceil(size / strides[-1])
    return strides


def round_to_8(channels: float) -> int:
    """The nearest multiple of 8, at least 8."""
    return max(8, int(channels + 4) // 8 * 8)


def check_names(config: Config, known: Sequence[str], optional: str) -> None:
    """Raise unless a configuration has exactly the known parameters; one of them may be absent."""
    if not isinstance(config, Mapping):
        raise InvalidArchitecture(f"a configuration must be a mapping, got {type(config).__name__}")
    missing = [name for name in known if name not in config and name != optional]
    unknown = sorted(str(name) for name in config if name not in known)
    if missing or unknown:
        raise InvalidArchitecture(
            f"a configuration must have exactly the parameters {', '.join(known)}; "
            f"missing: {missing}, unknown: {unknown}"
        )


def check_length(name: str, values: object, count: str, n_blocks: int) -> None:
    """Raise unless values are a list with one entry per block."""
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_list or len(values) != n_blocks:  # type: ignore[arg-type]
        raise InvalidArchitecture(
            f"{name} must be a list of {count} = {n_blocks} entries, got {values!r}"
        )


def check_training(config: Config) -> None:
    """Raise for values that no network can be trained with."""
    check_number("learning_rate", config["learning_rate"], 100.0)
    as_integer("step_size", config["step_size"], 1, 100)
    as_integer("batch_size", config["batch_size"], 2, 65536)


def _check_block(config: Config, index: int) -> None:
    op = as_integer(f"conv_op[{index}]", config["conv_op"][index], 0, len(OPERATIONS) - 1)
    kernel = as_integer(f"kernel_size[{index}]", config["kernel_size"][index], 1, 15)
    if kernel % 2 == 0:
        raise InvalidArchitecture(f"kernel_size[{index}] must be odd, got {kernel}")
    as_integer(f"seratio[{index}]", config["seratio"][index], 0, 1024)
    as_integer(f"nums_layer[{index}]", config["nums_layer"][index], 0, 16)
    check_number(f"nums_channel[{index}]", config["nums_channel"][index], 16.0)
    if OPERATIONS[op] == "inverted":
        ratios = config.get("expand_ratio") or [None] * (index + 1)
        as_integer(f"expand_ratio[{index}]", ratios[index], 1, 32)


def as_integer(name: str, value: object, low: int, high: int) -> int:
    """The value, if it is an integer of the range."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or not low <= int(value) <= high:  # type: ignore[call-overload]
        raise InvalidArchitecture(f"{name} must be an integer in {low}..{high}, got {value!r}")
    return int(value)  # type: ignore[call-overload]


def check_number(name: str, value: object, high: float) -> None:
    """Raise unless the value is a number above 0, up to the highest."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(value) <= high:  # type: ignore[arg-type]
        raise InvalidArchitecture(f"{name} must be a number in (0, {high:g}], got {value!r}")
