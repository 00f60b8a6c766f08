"""The Mandelbrot set: how many turns a point of the plane takes to leave depends on the point."""

import numpy as np
from numpy import float32, int32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

BLOCK = (16, 16)
MOST = 500  # turns
LEFT, WIDTH, TOP, HEIGHT = -2.1, 2.8, -1.2, 2.4
SHARE = 0.95  # of points near no border, whose turns rounding does not decide


def mandelbrot(left, top, step, turns):
    j, i = cuda.grid(2)
    if i < turns.shape[0] and j < turns.shape[1]:
        x, y = left + step * float32(j), top + step * float32(i)
        re = im = float32(0)
        n = int32(0)
        while n < MOST and re * re + im * im < float32(4):
            re, im = re * re - im * im + x, float32(2) * re * im + y
            n += 1
        turns[i, j] = n


def launch(size):
    step = float32(WIDTH / size)
    turns = np.zeros((int(size * HEIGHT / WIDTH), size), int32)
    grid = tuple(-(-n // b) for n, b in zip(turns.shape[::-1], BLOCK, strict=True))
    return Launch(grid, BLOCK, (float32(LEFT), float32(TOP), step, turns))


def check(left, top, step, turns):
    apart = max(1, turns.shape[1] // 512)
    some = turns[::apart, ::apart]
    i, j = (float32(apart) * np.arange(n, dtype=float32) for n in some.shape)
    c = (left + step * j) + 1j * (top + step * i)[:, None]
    z, expected = np.zeros_like(c), np.zeros_like(some)
    for _ in range(MOST):
        inside = np.abs(z) < 2
        expected += inside
        z = np.where(inside, z * z + c, z)
    yield float((some == expected).mean() >= SHARE), 1.0


CASE = Case(mandelbrot, launch, check, size=8000, small=40)
