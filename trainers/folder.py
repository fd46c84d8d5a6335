"""A user's folder of images as uint8 arrays: read once, then memory-mapped.

The layout is that of torchvision's `ImageFolder`: `train/CLASS/*` and, if there is one,
`test/CLASS/*`; or `CLASS/*` alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from PIL import Image

from trainers.data import data_folder
from trainers.sources import Arrays, DataError

Pixels = NDArray[np.uint8]
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".gif", ".tif", ".tiff")
NAMES = ("train_x", "train_y", "test_x", "test_y")
LAYOUT = "a folder of pictures must hold train/CLASS/* and perhaps test/CLASS/*, or CLASS/* alone"


def open_folder(folder: Path, image_size: int) -> tuple[Arrays, tuple[str, ...]]:
    """The images of a folder, scaled to `image_size` on the shorter side and cropped at the centre.

    The arrays are stored in the data folder of this machine under a hash of the files' names, sizes
    and times: a folder that changes is read again.

    Returns:
        The arrays, whose test part may be empty, and the names of the classes.

    Raises:
        DataError: the layout is wrong or an image cannot be read; the message names the file.
    """
    parts = {name: list(_listed(folder / name)) for name in ("train", "test")}
    if not (folder / "train").is_dir():
        parts = {"train": list(_listed(folder)), "test": []}
    classes = tuple(sorted({path.parent.name for path in parts["train"]}))
    if len(classes) < 2:
        raise DataError(f"{folder}: {LAYOUT}, with at least two classes; found {list(classes)}")
    strange = sorted({path.parent.name for path in parts["test"]} - set(classes))
    if strange:
        raise DataError(f"{folder}: classes of test must be in train too, got {strange}")
    cache = data_folder() / "folders" / _name(folder, parts, image_size)

    def pictures(part: str) -> Iterator[tuple[Pixels, int]]:
        for path in parts[part]:
            yield read_picture(path, image_size), classes.index(path.parent.name)

    sizes = {name: len(paths) for name, paths in parts.items()}
    return stored(cache, sizes, pictures, image_size), classes


def stored(
    cache: Path,
    sizes: Mapping[str, int],
    pictures: Callable[[str], Iterable[tuple[Pixels, int]]],
    image_size: int,
) -> Arrays:
    """Pictures as memory-mapped arrays, which are made unless a folder has them already.

    Args:
        cache: the folder.
        sizes: how many pictures there are in `train` and in `test`.
        pictures: gives those of a part with the numbers of their classes.
        image_size: side of the pictures.
    """
    cache.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(cache.with_suffix(".lock")):
        if not cache.is_dir():
            _store(cache, sizes, pictures, image_size)
    return Arrays(**{name: np.load(cache / f"{name}.npy", mmap_mode="r") for name in NAMES})


def _listed(folder: Path) -> Iterator[Path]:
    """Images one level below, in a fixed order."""
    for path in sorted(folder.glob("*/*")):
        if path.suffix.lower() in SUFFIXES and path.is_file():
            yield path


def _name(folder: Path, parts: dict[str, list[Path]], image_size: int) -> str:
    content = [
        [name, str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns]
        for name, paths in parts.items()
        for path in paths
    ]
    text = json.dumps([str(folder.resolve()), image_size, content])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _store(
    cache: Path,
    sizes: Mapping[str, int],
    pictures: Callable[[str], Iterable[tuple[Pixels, int]]],
    image_size: int,
) -> None:
    fresh = cache.with_name(f"{cache.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for name, size in sizes.items():
        images, labels = np.zeros((size, 3, image_size, image_size), np.uint8), np.zeros(size, int)
        for index, (picture, label) in enumerate(pictures(name)):
            images[index], labels[index] = picture, label
        np.save(fresh / f"{name}_x.npy", images)
        np.save(fresh / f"{name}_y.npy", labels)
    fresh.rename(cache)


def read_picture(path: Path, image_size: int) -> Pixels:
    """One picture as uint8 `(3, image_size, image_size)`."""
    try:
        with Image.open(path) as image:
            colours = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: must be a readable picture: {error}") from error
    return pixels_of(colours, image_size)


def pixels_of(colours: Image.Image, image_size: int) -> Pixels:
    """A picture as uint8 `(3, image_size, image_size)`: scaled, then its middle."""
    factor = image_size / min(colours.size)
    wide, high = (max(image_size, round(side * factor)) for side in colours.size)
    scaled = colours.resize((wide, high), Image.Resampling.BILINEAR)
    left, top = (wide - image_size) // 2, (high - image_size) // 2
    pixels = np.asarray(scaled, np.uint8)[top : top + image_size, left : left + image_size]
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
