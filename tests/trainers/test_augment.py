"""Batches: the right pixels, each picture with its own crop and flip, the same draws again."""

import pytest
import torch

from trainers.augment import DEVIATION, MEAN, Pictures, shrink
from trainers.sources import Arrays


@pytest.fixture(scope="module")
def images(arrays: Arrays) -> torch.Tensor:
    return torch.from_numpy(arrays.train_x[:64].copy())


def _raw(batch: torch.Tensor) -> torch.Tensor:
    """Undoes the normalisation."""
    return (
        batch * torch.tensor(DEVIATION)[:, None, None] + torch.tensor(MEAN)[:, None, None]
    ).round()


def test_a_plain_batch_is_the_pictures(images: torch.Tensor) -> None:
    pictures = Pictures(images, torch.arange(64), padding=4)
    batch, labels = pictures.batch(torch.tensor([5, 2, 63]))
    assert batch.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(_raw(batch), images[[5, 2, 63]].float())
    assert labels.tolist() == [5, 2, 63]


def test_every_augmented_picture_is_one_of_its_crops(images: torch.Tensor) -> None:
    padded = torch.nn.functional.pad(images, (2,) * 4).float()
    pictures = Pictures(images, torch.arange(64), padding=2)
    batch, labels = pictures.augmented(torch.arange(64), torch.Generator().manual_seed(0))
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
    pictures = Pictures(images, torch.zeros(64), padding=4)
    order = torch.arange(64)
    batches = [pictures.augmented(order, torch.Generator().manual_seed(s))[0] for s in (1, 1, 2)]
    assert torch.equal(batches[0], batches[1])
    assert not torch.equal(batches[0], batches[2])


def test_the_set_is_normalised(arrays: Arrays) -> None:
    images = torch.from_numpy(arrays.train_x[:5000].copy())
    batch, _ = Pictures(images, torch.zeros(5000)).batch(torch.arange(5000))
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
