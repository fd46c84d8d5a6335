"""Draws a few pictures of stripes, so that the sweep runs before your own pictures are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

FOLDER = Path(__file__).with_name("pictures")
CLASSES = ("upright", "rising", "level", "falling")
SIZE = 32


def draw(number: int, rng: np.random.Generator) -> Image.Image:
    """A picture of a class, with much noise."""
    y, x = np.mgrid[:SIZE, :SIZE] / 2
    angle = number * np.pi / len(CLASSES) + rng.normal(0, 0.2)
    stripes = np.sin(x * np.cos(angle) + y * np.sin(angle) + rng.uniform(0, 2 * np.pi))
    pixels = 128 + 35 * stripes[..., None] + rng.normal(0, 60, (SIZE, SIZE, 3))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def main() -> None:
    """Writes pictures/train/CLASS/* and pictures/test/CLASS/*."""
    rng = np.random.default_rng(0)
    for part, n in (("train", 200), ("test", 50)):
        for number, name in enumerate(CLASSES):
            folder = FOLDER / part / name
            folder.mkdir(parents=True, exist_ok=True)
            for index in range(n):
                draw(number, rng).save(folder / f"{index:03d}.png")


if __name__ == "__main__":
    main()
