"""Address patterns of one warp's global load, and the kernel that repeats it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gemmlab import cuda

WARPS = 32  # of the block, all with the same addresses, so that the pipe and not latency limits
ROUNDS = 1024  # the same load again and again, so that what surrounds it does not count
SPAN = 1 << 20  # bytes of the array
DTYPES = {1: np.uint8, 2: np.int16, 4: np.float32, 8: np.float64}


@dataclass(frozen=True)
class Pattern:
    """What each of a warp's 32 lanes loads: `elements` of `width` bytes, -1 for a lane that is off.

    A plain array argument, so no equality is defined on it.
    """

    name: str
    width: int
    elements: np.ndarray


def pattern_dtype(width: int) -> type:
    """The dtype whose elements have `width` bytes."""
    return DTYPES[width]


def probe(x, elements, step, rounds, out):
    """Load x[elements[lane]] `rounds` times; `step` is 0, which the compiler cannot know."""
    at = elements[cuda.threadIdx.x % 32]
    if at >= 0:
        total = x[at]
        r = 1
        while r < rounds:
            total += x[at + r * step]
            r += 1
        out[cuda.threadIdx.x] = total


def patterns() -> list[Pattern]:
    """All of them, always the same."""
    lane = np.arange(32)
    found = []

    def add(name, address, width=4, on=None):
        elements = np.where(True if on is None else on, np.asarray(address) // width, -1)
        found.append(Pattern(name, width, elements.astype(np.int64)))

    strides = (0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 80, 88, 96,
               100, 112, 120, 124, 128, 132, 136, 140, 144, 152, 160, 176, 192, 224, 252, 256, 260,
               264, 272, 288, 320, 384, 388, 448, 508, 512, 516, 520, 576, 640, 1000, 1020, 1024,
               1028, 1056, 1152, 2048, 2052, 2080, 4000, 4092, 4096, 4100, 4128, 8192, 8196,
               8224, 16380, 16384, 16388)  # fmt: skip
    for s in strides:
        add(f"stride {s}", lane * s)
        add(f"16 rows, stride {s}", lane % 16 * s)  # as in the naive rung: two lanes each
    for s in (4, 8, 32, 36, 128, 132, 256, 4000, 4096, 4100):
        for o in (4, 16, 32, 64, 124):
            add(f"stride {s} from {o}", lane * s + o)
        add(f"16 lanes, stride {s}", lane * s, on=lane < 16)
        add(f"8 rows, stride {s}", lane % 8 * s)
        add(f"2 rows of 16, stride {s}", lane // 16 * s + lane % 16 * 4)
        add(f"2 rows of 16, from 64, stride {s}", lane // 16 * s + lane % 16 * 4 + 64)
        add(f"4 rows of 8, stride {s}", lane // 8 * s + lane % 8 * 4)
    for w in (1, 2, 8):
        for s in (w, 2 * w, 4 * w, 32, 64, 128, 128 + w, 128 + 4 * max(1, w // 4), 136, 256, 4096,
                  4096 + max(4, w)):  # fmt: skip
            add(f"width {w}, stride {s}", lane * (s // w * w), width=w)
    rng = np.random.default_rng(1)
    for rows in (2, 3, 4, 6, 8, 12, 16, 24, 32):
        for trial in range(5):
            chosen = rng.choice(1024, rows, replace=False)
            address = 128 * chosen[rng.integers(0, rows, 32)] + 4 * rng.integers(0, 32, 32)
            add(f"random, {rows} lines, {trial}", address)
    for trial in range(6):
        add(f"random lines, own banks, {trial}", 128 * rng.integers(0, 1024, 32) + 4 * lane)
        add(f"random lines, permuted banks, {trial}",
            128 * rng.integers(0, 1024, 32) + 4 * rng.permutation(32))  # fmt: skip
        add(f"random float64, {trial}", 8 * rng.integers(0, SPAN // 8, 32), width=8)
        add(f"random float64, own banks, {trial}",
            128 * rng.integers(0, 1024, 32) + 8 * (lane % 16), width=8)  # fmt: skip
    return found
