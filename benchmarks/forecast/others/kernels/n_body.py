"""Accelerations of bodies that attract each other, all pairs, by tiles of positions."""

import math

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch, compared
from gemmlab import cuda

THREADS = 128
SOFTENING = float32(1e-3)  # of distances, squared
LOOKED_AT = 64  # bodies


def attraction(position, mass, acceleration):
    body = cuda.shared.array((4, THREADS), float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    x, y, z = position[0, i], position[1, i], position[2, i]
    ax = ay = az = float32(0)
    for first in range(0, mass.size, THREADS):
        for axis in range(3):
            body[axis, t] = position[axis, first + t]
        body[3, t] = mass[first + t]
        cuda.syncthreads()
        for j in range(THREADS):
            dx, dy, dz = body[0, j] - x, body[1, j] - y, body[2, j] - z
            inverse = float32(1) / math.sqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
            pull = body[3, j] * inverse * inverse * inverse
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        cuda.syncthreads()
    acceleration[0, i] = ax
    acceleration[1, i] = ay
    acceleration[2, i] = az


def launch(size):
    rng = np.random.default_rng(6)
    position, mass = rng.random((3, size), float32), rng.random(size, float32)
    return Launch(size // THREADS, THREADS, (position, mass, np.zeros_like(position)))


def check(position, mass, acceleration):
    some = np.linspace(0, mass.size - 1, LOOKED_AT).astype(int)
    exact = position.astype(np.float64)
    apart = exact[:, None, :] - exact[:, some, None]
    pulls = mass * apart * ((apart**2).sum(0) + SOFTENING) ** -1.5
    found = acceleration[:, some]
    yield compared(found, pulls.sum(2), np.abs(pulls).sum(2), mass.size)


CASE = Case(attraction, launch, check, size=49_152, small=256, options={"fastmath": True})
