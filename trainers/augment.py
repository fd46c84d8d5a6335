"""Images in memory as one uint8 tensor, and their augmentation in whole batches.

Each image of a batch has its own crop, flip and hole. All random numbers of an epoch are drawn
before it, on the CPU: a resumed training draws what the uninterrupted one would have drawn, ranks
that share a batch draw the same, and a GPU never waits for a random number.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Augmentation:
    """Settings: largest shift and side of the hole in pixels, and the parameter of mixup."""

    padding: int = 0
    hole: int = 0
    mixup: float = 0.0


class Draws(NamedTuple):
    """Random draws for `n` images; `shifts` and `centres` have shape
    `(2, n)`, the others `(n,)`.
    """

    positions: Tensor
    shifts: Tensor
    mirrored: Tensor
    centres: Tensor | None

    def part(self, start: int, stop: int) -> Draws:
        """The draws of the images from `start` to `stop`."""
        centres = None if self.centres is None else self.centres[:, start:stop]
        part = slice(start, stop)
        return Draws(self.positions[part], self.shifts[:, part], self.mirrored[part], centres)


@dataclass(frozen=True)
class EpochPlan:
    """Order and random draws of an epoch, and the mixup weight of each batch.

    Attributes:
        draws: of all images of the epoch, on the device of the images.
        mixes: weight in [0.5, 1] of the first image, one per batch; 1 means that nothing is mixed.
    """

    draws: Draws
    mixes: tuple[float, ...]

    def batch(self, index: int, size: int) -> tuple[Draws, float]:
        """The draws and the mixup weight of one batch."""
        return self.draws.part(index * size, (index + 1) * size), self.mixes[index]


class Pictures:
    """A set of images in memory, on one device.

    Args:
        images: uint8 `(n, 3, size, size)`.
        labels: integers `(n,)`.
        scale: mean and standard deviation of each channel, in pixel values from 0 to 255.
        augmentation: what `plan` draws; images are padded with zeros before they are cropped.
        device: where batches are made.
    """

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        scale: tuple[tuple[float, ...], tuple[float, ...]],
        augmentation: Augmentation | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.size = images.shape[-1]
        self.augmentation = augmentation or Augmentation()
        padded = functional.pad(images, (self.augmentation.padding,) * 4).to(device)
        # (n, 3, 2 * padding + 1, 2 * padding + 1, size, size): every crop as a view, without a
        # copy.
        self._crops = padded.unfold(2, self.size, 1).unfold(3, self.size, 1)
        self.labels = labels.long().to(device)
        mean, deviation = (torch.tensor(part, device=device)[:, None, None] for part in scale)
        self._scale, self._shift = 1.0 / deviation, -mean / deviation
        self._pixels = torch.arange(self.size, device=device)

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Images without augmentation: `(batch,)` to float `(batch, 3, size,
        size)`, labels `(batch,)`.
        """
        positions = positions.to(self.labels.device)
        padding = self.augmentation.padding
        images = self._normalised(self._crops[positions, :, padding, padding])
        return images.contiguous(memory_format=torch.channels_last), self.labels[positions]

    def plan(self, batch_size: int, generator: torch.Generator) -> EpochPlan:
        """Draw a whole epoch; images that do not fill a batch are left out."""
        n, device, drawn = len(self), self.labels.device, self.augmentation
        order = torch.randperm(n, generator=generator)
        shifts = torch.randint(0, 2 * drawn.padding + 1, (2, n), generator=generator)
        mirrored = torch.randint(0, 2, (n,), generator=generator).bool()
        centres = None
        if drawn.hole:
            centres = torch.randint(0, self.size, (2, n), generator=generator).to(device)
        mixes = tuple(_mix(drawn.mixup, generator) for _ in range(n // batch_size))
        plan = Draws(order.to(device), shifts.to(device), mirrored.to(device), centres)
        return EpochPlan(plan, mixes)

    def augmented(self, draws: Draws) -> tuple[Tensor, Tensor]:
        """Like `batch`, with each image shifted, mirrored and with a hole, as drawn."""
        images = self._crops[draws.positions, :, draws.shifts[0], draws.shifts[1]]
        images = torch.where(draws.mirrored[:, None, None, None], images.flip(3), images)
        scaled = self._normalised(images)
        if draws.centres is not None:
            scaled = scaled.masked_fill_(self._holes(draws.centres), 0.0)
        # The memory format changes last: arithmetic on three channels is slow in channels_last.
        batch = scaled.contiguous(memory_format=torch.channels_last)
        return batch, self.labels[draws.positions]

    def _holes(self, centres: Tensor) -> Tensor:
        """Mask of the holes: centres `(2, n)` to bool `(n, 1, size, size)`."""
        start = self._pixels - centres[:, :, None] + self.augmentation.hole // 2
        rows, columns = (start >= 0) & (start < self.augmentation.hole)
        return (rows[:, :, None] & columns[:, None, :])[:, None]

    def _normalised(self, images: Tensor) -> Tensor:
        return images.float().mul_(self._scale).add_(self._shift)


def mixed(images: Tensor, labels: Tensor, mix: float) -> tuple[Tensor, Tensor]:
    """Mixup of each image with its neighbour in the batch: the mixed
    images, the neighbours' labels.
    """
    return torch.lerp(images.roll(1, 0), images, mix), labels.roll(1, 0)


def shrink(images: Tensor, size: int) -> Tensor:
    """Average pooling of squares of pixels: uint8 `(n, 3, s, s)` to uint8 `(n, 3, size, size)`."""
    side = images.shape[-1]
    if size == side:
        return images
    if not 0 < size < side or side % size:
        raise ValueError(f"image_size must divide {side}, got {size}")
    parts = [functional.avg_pool2d(part.float(), side // size) for part in images.split(4096)]
    return torch.cat(parts).round_().to(torch.uint8)


def _mix(alpha: float, generator: torch.Generator) -> float:
    """The larger of the two mixup weights; torch draws no Beta numbers from a given generator."""
    if alpha == 0:
        return 1.0
    seed = int(torch.randint(0, 2**62, (), generator=generator))
    share = random.Random(seed).betavariate(alpha, alpha)
    return max(share, 1.0 - share)
