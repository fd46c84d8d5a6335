"""Sizes and canonical hash of MnasNet's networks, without building them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from trainers.architecture import LARGEST_IMAGE, Config
from trainers.cost import describe, sizes_by
from trainers.mnasnet import (
    EXPANDING,
    LARGE_STRIDES,
    OPERATIONS,
    STRIDES,
    WIDTHS,
    MnasRow,
    rows,
    stem_of,
    strides_of,
)
from trainers.tabulate import CODES as ROW_CODES
from trainers.tabulate import BlockColumns, Numbers, Stem, add_up, round_to_8


def summary(
    config: Config, width: float = 1.0, n_classes: int = 10, image_size: int = 32
) -> dict[str, Any]:
    """Size and cost of a network; what it returns is said at `trainers.cost.summary`."""
    stem, table = stem_of(width, image_size), rows(config, width, image_size)
    found = describe(stem, table, n_classes)
    kept = sum(_kept_sum(row, layer) for row in table for layer in range(row.layers))
    return {**found, "activations": found["activations"] + kept}


def _kept_sum(row: MnasRow, layer: int) -> int:
    """Numbers that a layer keeps because of its skip.

    The next convolution keeps the sum as its input. The activation function keeps its own result,
    which would be that input otherwise; gates and linear projections keep nothing of the kind.
    """
    is_active = row.op != "inverted" and row.squeeze_channels(layer) == 0
    if row.skip_of(layer) == "none" or not is_active:
        return 0
    return row.out_channels * row.out_size**2


def sizes(config: Config, width: float, n_classes: int, image_size: int) -> dict[str, int]:
    """Parameters and FLOPs of the full architecture, and of the network that is trained."""
    return sizes_by(summary, config, width, n_classes, image_size)


def fingerprint(config: Config) -> str:
    """Canonical hash, equal only for configurations whose training is the same computation.

    As in `trainers.cost.fingerprint`, under every recipe. A skip by pooling is one by identity
    where a block has the same shape in and out, whatever the width and the size of the images.
    """
    table = rows(config, image_size=LARGEST_IMAGE)
    architecture = [
        [row.op, row.kernel, row.out_channels, row.layers, row.expansion, row.se_ratio]
        for row in table
    ]
    skips = [_canonical_skip(row, index) for index, row in enumerate(table)]
    training = [float(config["learning_rate"]).hex(), int(config["step_size"])]
    content = json.dumps(["mnasnet", architecture, skips, training, int(config["batch_size"])])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _canonical_skip(row: MnasRow, index: int) -> str:
    is_never_halved = STRIDES[index] == LARGE_STRIDES[index] == 1
    is_same = row.skip == "pool" and row.keeps_shape and is_never_halved
    return "identity" if is_same else row.skip


def sizes_of(
    values: Mapping[str, Any], width: float, n_classes: int, image_size: int
) -> dict[str, Numbers]:
    """`params`, `flops`, `layers` and `receptive_field` of many networks, shape (n,) each.

    Args:
        values: of MnasNet's space, by parameter, shape (n,), or (n, 7) for those of a block.
        width: factor on all channels.
        n_classes: of the data.
        image_size: side of the picture.
    """
    n, n_blocks = np.asarray(values["operation"]).shape
    row, strides = stem_of(width, image_size), strides_of(image_size)
    blocks = [partial(_columns, values, at, strides[at], width) for at in range(n_blocks)]
    return add_up(Stem(row.out_channels, row.stride, image_size), blocks, n, n_classes)


def _columns(
    values: Mapping[str, Any], index: int, stride: int, width: float, inputs: Numbers,
    before: Numbers,
) -> BlockColumns:  # fmt: skip
    """A block of all networks, from the channels and the map that come in."""

    def own(name: str) -> Any:
        return np.asarray(np.asarray(values[name])[:, index], dtype=np.float64)

    operations = np.asarray(values["operation"])[:, index]
    full = round_to_8(WIDTHS[index] * own("width"))
    ratio, expansion = own("se_ratio"), np.ones(len(inputs))
    if values.get("expansion") is not None:
        expansion = np.where(operations == EXPANDING, np.nan_to_num(own("expansion"), nan=1.0), 1.0)
    return BlockColumns(
        op=np.array([ROW_CODES[OPERATIONS[operation]] for operation in operations]),
        kernel=own("kernel").astype(np.int64),
        stride=np.full(len(inputs), stride),
        inputs=inputs,
        outputs=round_to_8(full * width),
        layers=own("layers").astype(np.int64),
        expansion=expansion.astype(np.int64),
        squeeze=np.where(ratio > 0, np.round(1 / np.where(ratio > 0, ratio, 1.0)), 0).astype(int),
        before=before,
        size=-(-before // stride),
    )
