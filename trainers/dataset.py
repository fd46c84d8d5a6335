"""Data set of a recipe: images to train on, to validate on and to test on, with hashes.

CIFAR-10 and a user's folder of images give the same `Dataset`. The split is stratified and depends
on `split_seed` only; the test set is opened only if the recipe asks for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.augment import Augmentation, Pictures, shrink
from trainers.data import Indices, open_cifar10, stratified_split, stratified_subset
from trainers.folder import open_folder
from trainers.recipe import InvalidOption, Recipe
from trainers.sources import BIN_MD5, Arrays, DataError
from trainers.torchvision_sets import is_named, open_torchvision

Scale = tuple[tuple[float, ...], tuple[float, ...]]

CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
# Channel means and standard deviations of the 50,000 training images, from 0 to 255.
CIFAR10_SCALE: Scale = ((125.307, 122.950, 113.865), (62.993, 62.089, 66.705))


@dataclass(frozen=True)
class Collection:
    """All images at one size: `arrays` uint8 `(n, 3, s, s)`; `data_hash` is of the originals."""

    arrays: Arrays
    classes: tuple[str, ...]
    scale: Scale
    data_hash: str


@dataclass(frozen=True)
class Dataset:
    """The data of one trial.

    Attributes:
        train: images to train on.
        validation: held-out images; None if they are trained on.
        test: images of the test set; None if the recipe does not ask for them.
        score_order: indices `(n_validation,)`, those used in early epochs first.
        n_early: how many of them are used in all epochs but the last.
        facts: names and hashes for the results.
    """

    train: Pictures
    validation: Pictures | None
    test: Pictures | None
    score_order: Tensor
    n_early: int
    classes: tuple[str, ...]
    scale: Scale
    facts: dict[str, Any]


def is_cifar10(data: str | None) -> bool:
    """Whether `data` names a folder for CIFAR-10 rather than a user's folder of images."""
    if data is None:
        return True
    if is_named(data):
        return False
    folder = Path(data).expanduser()
    return (folder / "cifar10").is_dir() and not (folder / "train").is_dir()


def open_collection(data: str | None, image_size: int) -> Collection:
    """CIFAR-10, a data set of torchvision or an own folder, whichever `data` is.

    Raises:
        DataError: the data is missing or damaged.
        InvalidOption: CIFAR-10 has no such size.
    """
    if is_cifar10(data):
        _check_image_size(image_size)
        digest = hashlib.sha256(" ".join(BIN_MD5.values()).encode()).hexdigest()
        return Collection(open_cifar10(data), CIFAR10_CLASSES, CIFAR10_SCALE, digest[:32])
    arrays, classes = _open_own(str(data), image_size)
    digest = content_hash(arrays.train_x, arrays.train_y, arrays.test_x, arrays.test_y)
    return Collection(arrays, classes, _scale(arrays.train_x), digest)


def _open_own(data: str, image_size: int) -> tuple[Arrays, tuple[str, ...]]:
    if is_named(data):
        return open_torchvision(data, image_size)
    folder = Path(data).expanduser()
    if not folder.is_dir():
        raise DataError(f"{folder}: must be a folder of pictures or of data sets")
    return open_folder(folder, image_size)


def has_test(data: str | None) -> bool:
    """Whether there are pictures to test on."""
    return is_cifar10(data) or is_named(data) or (Path(str(data)).expanduser() / "test").is_dir()


def open_dataset(recipe: Recipe, device: str | torch.device = "cpu") -> Dataset:
    """Open and split the images of a recipe, and move them to a device."""
    whole = open_collection(recipe.data, recipe.image_size)
    train, validation = split(whole.arrays.train_y, recipe)
    is_all = recipe.train_on == "train+validation"
    trained = np.sort(np.concatenate([train, validation])) if is_all else train
    x, y = whole.arrays.train_x, whole.arrays.train_y
    n_early = check_sizes(recipe, len(y))[2]
    place = _Place(whole.scale, recipe, device)
    return Dataset(
        train=place.pictures(x[trained], y[trained], _drawn(recipe)),
        validation=None if is_all else place.pictures(x[validation], y[validation]),
        test=_test(whole, recipe, place) if recipe.has_test else None,
        score_order=_score_order(y[validation], n_early, recipe.split_seed),
        n_early=n_early,
        classes=whole.classes,
        scale=whole.scale,
        facts={
            "data_hash": whole.data_hash,
            "split_hash": content_hash(train, validation),
            "n_train": len(trained),
            "n_validation": 0 if is_all else len(validation),
        },
    )


def check_sizes(recipe: Recipe, n_pictures: int) -> tuple[int, int, int]:
    """Number of images to train on, to hold out, and to score in early epochs, of `n_pictures`.

    Raises:
        InvalidOption: there are not so many.
    """
    n = recipe.n_validation
    n_validation = int(n) if n >= 1 else round(n * n_pictures)
    n_train = recipe.n_train or n_pictures - n_validation
    if n_train < 2 or n_train + n_validation > n_pictures:
        raise InvalidOption(
            f"n_train + n_validation must be at most the {n_pictures} pictures there are and "
            f"n_train at least 2, got {n_train} + {n_validation}"
        )
    n_early = recipe.n_validation_early or n_validation
    if n_early > n_validation:
        raise InvalidOption(
            f"n_validation_early must be at most n_validation = {n_validation}, got {n_early}"
        )
    return n_train, n_validation, n_early


def n_trained(recipe: Recipe, n_pictures: int) -> int:
    """How many of `n_pictures` are trained on, including those for validation if
    these are trained on too.
    """
    n_train, n_validation, _ = check_sizes(recipe, n_pictures)
    return n_train + (n_validation if recipe.train_on == "train+validation" else 0)


def check_recipe(recipe: Recipe) -> None:
    """Refuse a recipe that no trial could be trained with; the data need not be on this machine.

    Raises:
        InvalidOption: the data have too few images or not this size, or nothing would be scored.
        DataError: a user's folder is on this machine and cannot be opened.
    """
    if recipe.train_on == "train+validation" and not recipe.has_test:
        raise InvalidOption(
            "train_on must be train where the test set is not scored, got train+validation: "
            "nothing would be left to score"
        )
    if is_cifar10(recipe.data):
        _check_image_size(recipe.image_size)
        check_sizes(recipe, 50_000)
    elif Path(str(recipe.data)).expanduser().is_dir():  # else it may be on the workers only
        whole = open_collection(recipe.data, recipe.image_size)
        check_sizes(recipe, len(whole.arrays.train_y))
        if recipe.has_test:
            _check_test(whole, recipe)


def split(labels: NDArray[np.integer], recipe: Recipe) -> tuple[Indices, Indices]:
    """Indices to train on and to hold out; the same for every trial of a sweep."""
    n_train, n_validation, _ = check_sizes(recipe, len(labels))
    rest, validation = stratified_split(labels, n_validation, recipe.split_seed)
    return rest[stratified_subset(labels[rest], n_train, recipe.split_seed)], validation


def _check_image_size(image_size: int) -> None:
    if image_size not in (8, 16, 32):
        raise InvalidOption(f"image_size must be 8, 16 or 32, got {image_size}")


def _score_order(labels: NDArray[np.integer], n_early: int, seed: int) -> Tensor:
    later, early = stratified_split(labels, n_early, seed)
    return torch.cat([torch.from_numpy(early), torch.from_numpy(later)])


@dataclass(frozen=True)
class _Place:
    """Size, scale and device of the images."""

    scale: Scale
    recipe: Recipe
    device: str | torch.device

    def pictures(
        self,
        images: NDArray[np.uint8],
        labels: NDArray[np.integer],
        drawn: Augmentation | None = None,
    ) -> Pictures:
        small = shrink(torch.from_numpy(np.ascontiguousarray(images)), self.recipe.image_size)
        return Pictures(small, torch.from_numpy(labels.copy()), self.scale, drawn, self.device)


def _drawn(recipe: Recipe) -> Augmentation:
    factor = recipe.image_size / 32
    padding, hole = round(recipe.crop_padding * factor), round(recipe.cutout * factor)
    return Augmentation(padding, hole, recipe.mixup)


def _test(whole: Collection, recipe: Recipe, place: _Place) -> Pictures:
    _check_test(whole, recipe)
    arrays = whole.arrays
    # A copy: torch warns of tensors on read-only memory.
    return place.pictures(np.array(arrays.test_x), arrays.test_y)


def _check_test(whole: Collection, recipe: Recipe) -> None:
    if len(whole.arrays.test_y) == 0:
        raise DataError(f"{recipe.data}: evaluate_test needs pictures in test/CLASS/*")


def _scale(images: NDArray[np.uint8]) -> Scale:
    values = images.transpose(1, 0, 2, 3).reshape(3, -1)
    means = tuple(float(channel.mean()) for channel in values)
    return means, tuple(max(1.0, float(channel.std())) for channel in values)


def content_hash(*arrays: NDArray[Any]) -> str:
    """A hash of the contents of some arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]
