"""Handwritten digits: 1,797 images of 8×8 pixels, and what each of them shows.

`digits.npz` holds them as they were published: E. Alpaydin and C. Kaynak, "Optical Recognition of
Handwritten Digits", UCI Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49, under
CC BY 4.0; the part that is called its test set, in its order, as scikit-learn ships it, too. A
pixel is the number of dark points of 4×4, from 0 to 16.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("digits.npz")
SIDE, CLASSES = 8, 10  # pixels of an image along each side; what it may show: 0 … 9
DARKEST = 16
TAUGHT = 1437  # images to learn from; the last 360 are kept for the test


@dataclass(frozen=True)
class Digits:
    """Images, one in each column of `pixels`, and their labels.

    pixels : (64, images) float32, from 0 to 1; labels : (images,) int64, from 0 to 9
    """

    pixels: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return self.labels.size

    @property
    def targets(self) -> np.ndarray:
        """What a perfect network would say, (10, images) float32: 1 for the label, else 0."""
        return (self.labels == np.arange(CLASSES)[:, None]).astype(np.float32)

    def some(self, which: np.ndarray | slice) -> "Digits":
        """Return the images with these numbers."""
        return Digits(np.ascontiguousarray(self.pixels[:, which]), self.labels[which])


@cache
def load() -> tuple[Digits, Digits]:
    """Give the digits to learn from, and those of the test.

    >>> taught, test = load()
    >>> taught.pixels.shape, len(test)
    ((64, 1437), 360)
    """
    with np.load(FILE) as file:
        pixels, labels = file["images"].T / np.float32(DARKEST), file["labels"].astype(np.int64)
    every = Digits(pixels, labels)
    return every.some(slice(None, TAUGHT)), every.some(slice(TAUGHT, None))
