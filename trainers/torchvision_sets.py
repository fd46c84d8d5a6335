"""Data sets of torchvision as uint8 arrays: read once, then memory-mapped.

A set is named `torchvision:NAME`, or `torchvision:NAME:FOLDER` where it does not lie in the data
folder of this machine. It must have a part to train on and one to test on, and pictures of classes.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from trainers.data import data_folder
from trainers.folder import Pixels, pixels_of, stored
from trainers.sources import Arrays, DataError

PREFIX = "torchvision:"
PARTS = ("train", "test")


def is_named(data: str | None) -> bool:
    """Whether `data` names a data set of torchvision."""
    return data is not None and data.startswith(PREFIX)


def open_torchvision(
    data: str, image_size: int, download: bool = False
) -> tuple[Arrays, tuple[str, ...]]:
    """The pictures of a data set, their shorter side scaled to `image_size`, the middle cut out.

    Args:
        data: `torchvision:NAME` or `torchvision:NAME:FOLDER`.
        image_size: side of the pictures.
        download: whether torchvision may fetch what is missing, if it can.

    Returns:
        The arrays and the names of the classes.

    Raises:
        DataError: there is no such set, it is not here, or it is none of pictures and classes.
    """
    name, _, place = data.removeprefix(PREFIX).partition(":")
    root = Path(place).expanduser() if place else data_folder() / "torchvision"
    sets = {part: _open(name, root, part, download) for part in PARTS}
    sizes = {part: len(found) for part, found in sets.items()}
    text = json.dumps(
        [name, str(root.resolve()), sizes, image_size, metadata.version("torchvision")]
    )
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]

    def pictures(part: str) -> Iterator[tuple[Pixels, int]]:
        for index in range(sizes[part]):
            yield _pair(sets[part][index], name, image_size)

    arrays = stored(data_folder() / "torchvision-arrays" / digest, sizes, pictures, image_size)
    n_classes = int(max(arrays.train_y.max(), arrays.test_y.max())) + 1
    words = getattr(sets["train"], "classes", None) or range(n_classes)
    return arrays, tuple(map(str, words))


def _open(name: str, root: Path, part: str, download: bool) -> Any:
    from torchvision import datasets

    made: Any = getattr(datasets, name, None)
    known = inspect.signature(made).parameters if inspect.isclass(made) else {}
    named: dict[str, Any] = {"split": part} if "split" in known else {"train": part == "train"}
    if not set(named) <= set(known):
        raise DataError(
            f"{PREFIX}{name}: must be a data set of torchvision.datasets with parts train and test"
        )
    if download and "download" in known:
        named["download"] = True
    try:
        root.mkdir(parents=True, exist_ok=True)
        return made(str(root), **named)
    except Exception as error:  # each set has its own
        raise DataError(f"{PREFIX}{name} cannot be opened in {root}: {error}") from error


def _pair(item: Any, name: str, image_size: int) -> tuple[Pixels, int]:
    """A picture's pixels and the number of its class."""
    try:
        picture, label = item
        return pixels_of(picture.convert("RGB"), image_size), int(label)
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{PREFIX}{name}: must hold pictures and classes: {error}") from error
