"""The brightness of an image's points from red, green and blue, three bytes side by side."""

import numpy as np
from numpy import float32, uint8

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

BLOCK = (32, 8)


def grey(image, out):
    j, i = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        red, green, blue = image[i, j, 0], image[i, j, 1], image[i, j, 2]
        of_two = float32(0.299) * float32(red) + float32(0.587) * float32(green)
        out[i, j] = uint8(of_two + float32(0.114) * float32(blue))


def launch(size):
    image = np.random.default_rng(29).integers(0, 256, (size, size, 3), uint8)
    grid = -(-size // BLOCK[0]), -(-size // BLOCK[1])
    return Launch(grid, BLOCK, (image, np.zeros((size, size), uint8)))


def check(image, out):
    """What lies near a whole number may be cut to either side of it."""
    exact = image[..., 0] * float32(0.299) + image[..., 1] * float32(0.587)
    exact += image[..., 2] * float32(0.114)
    below = exact - out
    yield float(below.min() > -1e-3 and below.max() < 1 + 1e-3), 1.0


CASE = Case(grey, launch, check, size=8192, small=45)
