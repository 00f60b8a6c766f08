"""`numba.cuda.random`: a xoroshiro128+ generator for each thread, equal to Numba's to the bit.

States are records of two 64-bit words, each 2⁶⁴ steps after the one before. Sources: D. Blackman
and S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47(4), 2021; Numba,
`numba.cuda.random`.
"""

import math
from typing import Any

import numpy as np
from numpy import float32, float64, uint64

from gemmlab.simt.cuda.arrays import DeviceArray, to_device
from gemmlab.simt.cuda.kernels import jit
from gemmlab.simt.numbers.types import NumberType

xoroshiro128p_dtype = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
xoroshiro128p_type = NumberType("xoroshiro128p", xoroshiro128p_dtype)  # for signatures
_JUMP = (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922)  # the polynomial of 2**64 steps

# What a kernel calls: device functions, simulated and compiled like any other.


@jit(device=True)
def xoroshiro128p_next(states, index):
    """The next 64 random bits of `states[index]`, which goes one step on."""
    s0 = states[index]["s0"]
    s1 = states[index]["s1"]
    result = s0 + s1
    s1 ^= s0
    states[index]["s0"] = (s0 << uint64(55) | s0 >> uint64(9)) ^ s1 ^ (s1 << uint64(14))
    states[index]["s1"] = s1 << uint64(36) | s1 >> uint64(28)
    return result


@jit(device=True)
def xoroshiro128p_uniform_float64(states, index):
    """A float64 in [0, 1)."""
    return (xoroshiro128p_next(states, index) >> uint64(11)) * float64(2.0**-53)


@jit(device=True)
def xoroshiro128p_uniform_float32(states, index):
    """A float32 in [0, 1], rounded from the float64 below 1."""
    return float32(xoroshiro128p_uniform_float64(states, index))


@jit(device=True)
def xoroshiro128p_normal_float32(states, index):
    """A float32 of mean 0 and variance 1, by the method of Box and Muller: two steps."""
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(-float32(2) * math.log(u1)) * math.cos(float32(2 * math.pi) * u2)


@jit(device=True)
def xoroshiro128p_normal_float64(states, index):
    """A float64 of mean 0 and variance 1; Numba draws both of its numbers as float32."""
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(-float64(2) * math.log(u1)) * math.cos(float64(2 * math.pi) * u2)


# What the host calls.


def create_xoroshiro128p_states(
    n: int, seed: int, subsequence_start: int = 0, stream: Any = 0
) -> DeviceArray:
    """States of `n` generators, 2⁶⁴ steps apart, from the subsequence `subsequence_start` on."""
    states = np.empty(n, xoroshiro128p_dtype)
    init_xoroshiro128p_states(states, seed, subsequence_start, stream)
    return to_device(states)


def init_xoroshiro128p_states(
    states: np.ndarray, seed: int, subsequence_start: int = 0, stream: Any = 0
) -> None:
    """Set the states of generators, as `create_xoroshiro128p_states` makes them.

    A jump of 2⁶⁴ steps is linear in the bits of a state, so that k states become 2k by one
    product with the matrix of k jumps.
    """
    if not len(states):
        return
    jump = _jumped(np.array([_bit(i) for i in range(128)]))  # where each bit of a state goes
    first = np.full((1, 2), _mixed(seed))
    start, power = int(subsequence_start), jump
    while start:
        if start & 1:
            first = _moved(first, power)
        start, power = start >> 1, _moved(power, power)
    found = first
    while len(found) < len(states):
        found = np.concatenate([found, _moved(found, jump)])
        jump = _moved(jump, jump)
    words = found[: len(states)]
    states["s0"], states["s1"] = words[:, 0], words[:, 1]


def _mixed(seed: int) -> np.uint64:
    """Return the first output of the generator SplitMix64."""
    mask = 2**64 - 1
    z = (int(seed) + 0x9E3779B97F4A7C15) & mask
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return np.uint64(z ^ (z >> 31))


def _bit(i: int) -> list[np.uint64]:
    """Return the state whose only bit is the i-th."""
    return [np.uint64(1 << i if i < 64 else 0), np.uint64(1 << (i - 64) if i >= 64 else 0)]


def _jumped(states: np.ndarray) -> np.ndarray:
    """States, (n, 2), after 2⁶⁴ steps."""
    s0, s1 = states.T.copy()
    total = np.zeros_like(states)
    for word in _JUMP:
        for bit in range(64):
            if word >> bit & 1:
                total[:, 0] ^= s0
                total[:, 1] ^= s1
            s1 ^= s0
            s0 = _rotated(s0, 55) ^ s1 ^ (s1 << np.uint64(14))
            s1 = _rotated(s1, 36)
    return total


def _rotated(x: np.ndarray, by: int) -> np.ndarray:
    return x << np.uint64(by) | x >> np.uint64(64 - by)


def _moved(states: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return each state, (n, 2), times a matrix of bits: the sum of what its bits become."""
    total = np.zeros_like(states)
    for i, column in enumerate(matrix):
        bit = states[:, i // 64] >> np.uint64(i % 64) & np.uint64(1)
        total ^= bit[:, None] * column
    return total
