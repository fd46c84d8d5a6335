"""Pictures as one uint8 tensor and positions come in, normalised float batches come out.

Everything happens for a whole batch at once, with one crop and one flip per picture, drawn from a
generator of its own so that a resumed training draws what the uninterrupted one would have.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

# Channel means and deviations of the 50,000 training pictures, in units of one grey level.
MEAN = (125.307, 122.950, 113.865)
DEVIATION = (62.993, 62.089, 66.705)


class Pictures:
    """A set of pictures in memory, on one device.

    Args:
        images: uint8 `(n, 3, size, size)`.
        labels: integers `(n,)`.
        padding: border of zeros from which crops are cut; 0 means that `batch` cannot shift.
        device: where batches are made.
    """

    def __init__(
        self, images: Tensor, labels: Tensor, padding: int = 0, device: str | torch.device = "cpu"
    ) -> None:
        self.size = images.shape[-1]
        self.padding = padding
        padded = functional.pad(images, (padding,) * 4).to(device)
        # (n, 3, 2 * padding + 1, 2 * padding + 1, size, size): every crop as a view, no copy.
        self._crops = padded.unfold(2, self.size, 1).unfold(3, self.size, 1)
        self.labels = labels.long().to(device)
        deviation = torch.tensor(DEVIATION, device=device)[:, None, None]
        self._scale = 1.0 / deviation
        self._shift = -torch.tensor(MEAN, device=device)[:, None, None] / deviation

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Pictures as they are: `(batch,)` to float `(batch, 3, size, size)`, labels `(batch,)`."""
        positions = positions.to(self.labels.device)
        images = self._crops[positions, :, self.padding, self.padding]
        return self._normalised(images), self.labels[positions]

    def augmented(self, positions: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """As `batch`, each picture shifted by up to `padding` and mirrored with probability 1/2."""
        device = self.labels.device
        shape = (2, len(positions))
        shifts = torch.randint(0, 2 * self.padding + 1, shape, generator=generator).to(device)
        mirrored = torch.randint(0, 2, shape[1:], generator=generator).bool().to(device)
        positions = positions.to(device)
        images = self._crops[positions, :, shifts[0], shifts[1]]
        images = torch.where(mirrored[:, None, None, None], images.flip(3), images)
        return self._normalised(images), self.labels[positions]

    def _normalised(self, images: Tensor) -> Tensor:
        # The layout changes last: arithmetic on three channels is slow in channels_last.
        scaled = images.float().mul_(self._scale).add_(self._shift)
        return scaled.contiguous(memory_format=torch.channels_last)


def shrink(images: Tensor, size: int) -> Tensor:
    """Averages squares of pixels: uint8 `(n, 3, s, s)` to uint8 `(n, 3, size, size)`."""
    side = images.shape[-1]
    if size == side:
        return images
    if not 0 < size < side or side % size:
        raise ValueError(f"image_size must divide {side}, got {size}")
    parts = [functional.avg_pool2d(part.float(), side // size) for part in images.split(4096)]
    return torch.cat(parts).round_().to(torch.uint8)
