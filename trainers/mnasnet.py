"""Networks of MnasNet's search space, as rows of a dataclass; needs no torch.

The space is the factorised hierarchical one of Tan et al., "MnasNet: platform-aware neural
architecture search for mobile" (2019), section 4.1: seven blocks of equal layers. Blocks have the
widths and strides of MobileNetV2. Where this departs from the paper or the paper is silent:

- A block has 1 to 4 layers; in the paper, 0 or 1 more or less than in MobileNetV2 (1, 2, 3, 4, 3, 3
  and 1 layers).
- An inverted residual expands by 3 or 6, which other operations do not.
- Squeeze-and-excitation takes a quarter of the channels that it scales, under every operation.
- `skip: identity` adds what comes in wherever shapes allow it; `pool` adds it in the first layer,
  too: averaged over the stride, with channels cut off or filled up with zeros.
- Images of less than 128 pixels are halved three times, by blocks 3, 4 and 6. Larger ones are also
  halved by the stem and block 2, as in the paper. A stride that would halve a map to less than 2 is
  left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainers.architecture import (
    BlockRow,
    Config,
    InvalidArchitecture,
    as_integer,
    check_length,
    check_names,
    check_number,
    check_training,
    possible_strides,
    round_to_8,
    stem_channels,
)
from trainers.cost import stem_row

OPERATIONS = {"conv": "conv", "separable": "separable", "mbconv": "inverted"}
"""Operation of a row by that of the space."""
EXPANDING = "mbconv"
WIDTHS = (16, 24, 32, 64, 96, 160, 320)
STRIDES = (1, 1, 2, 2, 1, 2, 1)
LARGE_STRIDES = (1, 2, 2, 2, 1, 2, 1)
LARGE_IMAGE = 128
"""Side from which on images have the paper's strides."""
SKIPS = ("none", "pool", "identity")
MOST_LAYERS = 16
PER_BLOCK = ("operation", "expansion", "kernel", "se_ratio", "skip", "width", "layers")
KNOWN = ("blocks", *PER_BLOCK, "learning_rate", "step_size", "batch_size")
MARK = "skip"
"""The parameter by which a configuration is known to be of this space."""


@dataclass(frozen=True)
class MnasRow(BlockRow):
    """One block, with its skip operation."""

    skip: str

    def skip_of(self, layer: int) -> str:
        """What is added to the output of a layer: `none`, `identity` or `pool`."""
        if self.skip == "none":
            return "none"
        if layer > 0 or self.keeps_shape:
            return "identity"
        return "pool" if self.skip == "pool" else "none"

    @property
    def keeps_shape(self) -> bool:
        """Whether the first layer's output has the shape of its input."""
        return self.stride == 1 and self.in_channels == self.out_channels


def check(config: Config) -> None:
    """Raise `InvalidArchitecture` if the configuration cannot be built or trained."""
    check_names(config, KNOWN, "expansion")
    n_blocks = as_integer("blocks", config["blocks"], len(WIDTHS), len(WIDTHS))
    for name in PER_BLOCK:
        if name != "expansion" or config.get(name) is not None:
            check_length(name, config[name], "blocks", n_blocks)
    for index in range(n_blocks):
        _check_block(config, index)
    check_training(config)


def rows(config: Config, width: float = 1.0, image_size: int = 32) -> tuple[MnasRow, ...]:
    """The network block by block.

    Args:
        config: a configuration of MnasNet's space.
        width: factor in (0, 1] on all channels.
        image_size: side of the images.
    """
    check(config)
    stem = stem_of(width, image_size)
    built: list[MnasRow] = []
    channels, size = stem.out_channels, stem.out_size
    for index, stride in enumerate(strides_of(image_size)):
        row = _row(config, index, stride, channels, width, size)
        built.append(row)
        channels, size = row.out_channels, row.out_size
    return tuple(built)


def stem_of(width: float, image_size: int) -> BlockRow:
    """The first convolution."""
    return stem_row(stem_channels(width), 2 if image_size >= LARGE_IMAGE else 1, image_size)


def strides_of(image_size: int) -> list[int]:
    """The stride of each block."""
    wanted = LARGE_STRIDES if image_size >= LARGE_IMAGE else STRIDES
    return possible_strides(wanted, stem_of(1.0, image_size).out_size)


def _row(
    config: Config, index: int, stride: int, channels: int, width: float, size: int
) -> MnasRow:
    operation = config["operation"][index]
    full = round_to_8(WIDTHS[index] * float(config["width"][index]))
    return MnasRow(
        op=OPERATIONS[operation],
        kernel=int(config["kernel"][index]),
        stride=stride,
        in_channels=channels,
        out_channels=round_to_8(full * width),
        layers=int(config["layers"][index]),
        expansion=int(config["expansion"][index]) if operation == EXPANDING else 1,
        se_ratio=_divisor(config["se_ratio"][index]),
        image_size=size,
        skip=config["skip"][index],
    )


def _divisor(ratio: float) -> int:
    """The ratio of a row, which divides: 4 for a quarter, 0 for none."""
    return round(1 / ratio) if ratio else 0


def _check_block(config: Config, index: int) -> None:
    def own(name: str) -> Any:
        return config[name][index]

    for name, known in (("operation", tuple(OPERATIONS)), ("skip", SKIPS)):
        if own(name) not in known:
            raise InvalidArchitecture(
                f"{name}[{index}] must be one of {', '.join(known)}, got {own(name)!r}"
            )
    if as_integer(f"kernel[{index}]", own("kernel"), 1, 15) % 2 == 0:
        raise InvalidArchitecture(f"kernel[{index}] must be odd, got {own('kernel')}")
    if own("se_ratio") != 0:
        check_number(f"se_ratio[{index}]", own("se_ratio"), 1.0)
    check_number(f"width[{index}]", own("width"), 16.0)
    as_integer(f"layers[{index}]", own("layers"), 1, MOST_LAYERS)
    if own("operation") == EXPANDING:
        ratios = config.get("expansion") or [None] * (index + 1)
        as_integer(f"expansion[{index}]", ratios[index], 1, 32)
