"""Batches: correct pixels, a crop and flip per image, and reproducible draws."""

import pytest
import torch

from trainers.augment import Augmentation, Pictures, mixed, shrink
from trainers.dataset import CIFAR10_SCALE
from trainers.sources import Arrays


@pytest.fixture(scope="module")
def images(arrays: Arrays) -> torch.Tensor:
    return torch.from_numpy(arrays.train_x[:64].copy())


def _raw(batch: torch.Tensor) -> torch.Tensor:
    """Undo the normalisation."""
    mean, deviation = (torch.tensor(part)[:, None, None] for part in CIFAR10_SCALE)
    return (batch * deviation + mean).round()


def _pictures(images: torch.Tensor, augmentation: Augmentation | None = None) -> Pictures:
    return Pictures(images, torch.arange(len(images)), CIFAR10_SCALE, augmentation)


def _augmented(pictures: Pictures, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    plan = pictures.plan(len(pictures), torch.Generator().manual_seed(seed))
    return pictures.augmented(plan.batch(0, len(pictures))[0])


def test_a_plain_batch_is_the_pictures(images: torch.Tensor) -> None:
    pictures = _pictures(images, Augmentation(padding=4))
    batch, labels = pictures.batch(torch.tensor([5, 2, 63]))
    assert batch.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(_raw(batch), images[[5, 2, 63]].float())
    assert labels.tolist() == [5, 2, 63]


def test_every_augmented_picture_is_one_of_its_crops(images: torch.Tensor) -> None:
    padded = torch.nn.functional.pad(images, (2,) * 4).float()
    batch, labels = _augmented(_pictures(images, Augmentation(padding=2)), 0)
    assert sorted(labels.tolist()) == list(range(64))
    found = set()
    for picture, label in zip(_raw(batch), labels.tolist(), strict=True):
        matches = [
            (top, left, is_flipped)
            for top in range(5)
            for left in range(5)
            for is_flipped in (False, True)
            if torch.equal(picture, _cut(padded[label], top, left, is_flipped))
        ]
        assert matches, label
        found.update(matches)
    assert len(found) > 20


def test_the_same_generator_state_gives_the_same_batch(images: torch.Tensor) -> None:
    pictures = _pictures(images, Augmentation(4, 16, 0.2))
    batches = [_augmented(pictures, seed)[0] for seed in (1, 1, 2)]
    assert torch.equal(batches[0], batches[1])
    assert not torch.equal(batches[0], batches[2])


def test_each_picture_has_one_square_hole(images: torch.Tensor) -> None:
    bright = images.clamp(min=200)  # so that nothing but a hole is at the mean
    batch, _ = _augmented(_pictures(bright, Augmentation(hole=8)), 0)
    holes = (batch == 0).all(1)
    sizes = set()
    for hole in holes:
        rows, columns = hole.any(1).sum().item(), hole.any(0).sum().item()
        assert hole.sum() == rows * columns, "a hole is a rectangle"
        assert 4 <= rows <= 8
        sizes.add((rows, columns))
    assert (8, 8) in sizes, "whole where the border does not cut it"
    assert len(sizes) > 1


def test_parts_of_a_plan_make_the_whole_batch(images: torch.Tensor) -> None:
    pictures = _pictures(images, Augmentation(4, 8))
    draws, _ = pictures.plan(32, torch.Generator().manual_seed(0)).batch(1, 32)
    whole, labels = pictures.augmented(draws)
    halves = [pictures.augmented(draws.part(start, start + 16)) for start in (0, 16)]
    assert torch.equal(whole, torch.cat([half for half, _ in halves]))
    assert torch.equal(labels, torch.cat([half for _, half in halves]))


def test_mixing_keeps_the_larger_share(images: torch.Tensor) -> None:
    plan = _pictures(images, Augmentation(mixup=0.4)).plan(2, torch.Generator().manual_seed(0))
    assert all(0.5 <= mix <= 1.0 for mix in plan.mixes)
    assert len(set(plan.mixes)) == 32
    x, labels = torch.arange(4.0).reshape(4, 1, 1, 1), torch.arange(4)
    found, others = mixed(x, labels, 0.75)
    assert found.flatten().tolist() == [0.75, 0.75, 1.75, 2.75]
    assert others.tolist() == [3, 0, 1, 2]


def test_the_set_is_normalised(arrays: Arrays) -> None:
    images = torch.from_numpy(arrays.train_x[:5000].copy())
    batch, _ = _pictures(images).batch(torch.arange(5000))
    assert batch.mean((0, 2, 3)).abs().max() < 0.03
    assert (batch.std((0, 2, 3)) - 1).abs().max() < 0.03


def test_shrinking_averages_squares(images: torch.Tensor) -> None:
    small = shrink(images, 16)
    assert small.shape == (64, 3, 16, 16)
    assert small[7, 1, 3, 5] == images[7, 1, 6:8, 10:12].float().mean().round()
    assert shrink(images, 32) is images
    with pytest.raises(ValueError, match="image_size must divide 32, got 12"):
        shrink(images, 12)


def _cut(picture: torch.Tensor, top: int, left: int, is_flipped: bool) -> torch.Tensor:
    crop = picture[:, top : top + 32, left : left + 32]
    return crop.flip(2) if is_flipped else crop
