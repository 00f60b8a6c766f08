"""What follows a layer's product, done to the sums of a thread while they are in registers.

A function of (x, c) says what is stored: x is α times a sum, c is β times what is in C, or 0. Names
are PyTorch's. `gelu` is the form with a hyperbolic tangent, for which the GPU has an instruction.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy import float32, int32, uint32

from gemmlab.instructions import load_v2, unpack_bf16x2
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tensor_core.shared.warp_mma import two_of
from gemmlab.simt import cuda

HALF = float32(0.5)
# Source: D. Hendrycks, K. Gimpel, Gaussian Error Linear Units, arXiv:1606.08415, section 2.
ROOT, CUBIC = math.sqrt(2 / math.pi), 0.044715
SLOPE, BEND = float32(ROOT), float32(ROOT * CUBIC)
# Of `tanh.approx.f32`, relative. Source: PTX ISA 9.0, "tanh".
TANH_ERROR = 2**-10.987


@on_device
def linear(x, c):
    """Store the sum."""
    return x + c


@on_device
def relu(x, c):
    """Store 0 for what is negative; a NaN stays one."""
    y = x + c
    return float32(0) if y < 0 else y


@cuda.jit(device=True, forceinline=True, fastmath=True)  # which makes tanh one instruction
def gelu(x, c):
    """Store what a normal number is below with the probability Φ(y), of y times that: yΦ(y)."""
    y = x + c
    half = HALF * y
    return half + half * math.tanh(y * (SLOPE + BEND * (y * y)))


@on_device
def relu_gradient(x, c):
    """Store a gradient where the layer gave c > 0, else 0."""
    return x if c > 0 else float32(0)


ACTIVATIONS = "linear", "relu", "gelu", "relu_gradient"


def exact(activation: str, x: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return what an activation makes of x and c in float64.

    >>> exact("relu", np.array([1.0, -3.0]), 2.0).tolist()
    [3.0, 0.0]
    """
    y = np.add(x, c)
    match activation:
        case "linear":
            return y
        case "relu":
            return np.where(y < 0, 0, y)
        case "gelu":
            return y / 2 * (1 + np.tanh(ROOT * (y + CUBIC * y**3)))
        case "relu_gradient":
            return np.where(np.greater(c, 0), x, 0)
    raise ValueError(f"activation={activation!r} is not known; use one of {', '.join(ACTIVATIONS)}")


def finishing(columns: int, dtype: str, activation: str, bias: bool) -> Callable:
    """Return the device function (C, row, col, alpha, acc, beta) that finishes a thread's sums.

    acc, of which acc[0] belongs to C[row, col], is then what is to be stored. C, in 16 bits, is not
    read where β = 0. Only at the ends of C it is asked which elements there are: without a branch
    around each, loads begin before those ahead of them have come.

    bias : all rows of C are its first one, which is read for two rows at once; β is not 0
    """
    known = {"linear": linear, "relu": relu, "gelu": gelu, "relu_gradient": relu_gradient}
    finish, (at_end, _) = known[activation], two_of(dtype, True)
    FLOAT16 = dtype == "float16"
    LAST = columns - 7  # of a thread's columns, from its first one on

    @on_device
    def pair(C, row, col):
        two = load_v2(C, row, col)
        if FLOAT16:
            return float32(two[0]), float32(two[1])
        return unpack_bf16x2(uint32(two[0]) | uint32(two[1]) << uint32(16))

    @on_device
    def of_row(C, row, col):
        two = pair(C, int32(0), min(col, int32(C.shape[1]) - 2))  # what is outside nobody stores
        return two[0], two[1], two[0], two[1]

    @on_device
    def within(C, row, col):
        above, below = pair(C, row, col), pair(C, row + 8, col)
        return above[0], above[1], below[0], below[1]

    @on_device
    def across_end(C, row, col):
        above, below = at_end(C, row, col), at_end(C, row + 8, col)
        return above[0], above[1], below[0], below[1]

    def finishes(group, fetch):
        """Finish from a group of eight columns on; written out, so that acc stays in registers."""
        others = finishes(group + 1, fetch) if group + 1 < columns // 8 else nothing
        i, j = 4 * group, 8 * group

        @on_device
        def finish_group(C, row, col, alpha, acc, beta):
            c = fetch(C, row, col + j)
            for e in range(4):
                acc[i + e] = finish(alpha * acc[i + e], beta * c[e])
            others(C, row, col, alpha, acc, beta)

        return finish_group

    if bias:
        return finishes(0, of_row)
    alone, whole, part = (finishes(0, fetch) for fetch in (zeros, within, across_end))

    @on_device
    def finish_all(C, row, col, alpha, acc, beta):
        if beta == 0:
            alone(C, row, col, alpha, acc, beta)
        elif row + 8 < C.shape[0] and col + LAST < C.shape[1]:
            whole(C, row, col, alpha, acc, beta)
        else:
            part(C, row, col, alpha, acc, beta)

    return finish_all


@on_device
def zeros(C, row, col):
    """Fetch nothing."""
    return float32(0), float32(0), float32(0), float32(0)


@on_device
def nothing(C, row, col, alpha, acc, beta):
    """Have no further group."""
