"""Kernels that together use every statement and expression of the language."""

import math

import numpy as np
from numpy import float32, int32

from gemmlab import cuda


def integers(shape, seed=0):
    """Small whole numbers in float32, whose sums are exact."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


SCALE = 3
TABLE = (2, 7, 1)
WEIGHTS = np.array([1.0, -2.0, 4.0], np.float32)


def clamp(v, low, high):
    if v < low:
        return low
    if v > high:
        return high
    return v


def sum_and_sign(v, count):
    total = float32(0)
    for i in range(count):
        if i == 5:
            return total, -1
        total += v
    return total, 1


@cuda.jit(device=True)
def first_multiple(v, limit):
    for i in range(1, limit):
        if (v + i) % 5 == 0:
            return i
    return limit


def put(array, index, value):
    array[index] = value


def if_elif_else(x, out):
    i = cuda.grid(1)
    if i < x.size:
        if x[i] > 5:
            out[i] = 1
        elif x[i] > 0:
            if i % 2 == 0:
                out[i] = 2
            else:
                out[i] = 3
        else:
            out[i] = 4


def early_return(x, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    if x[i] < 0:
        out[i] = -1
        return
    out[i] = 1


def uniform_loop(x, out):
    i = cuda.grid(1)
    if i < x.size:
        total = float32(0)
        for j in range(2, 11, 3):
            total += x[i] * j
        for j in range(5, 0, -2):
            total -= j
        for j in range(0):  # noqa: B007
            total = float32(-100)
        out[i] = total


def per_thread_loop(x, out):
    i = cuda.grid(1)
    if i < x.size:
        total = float32(0)
        for j in range(i % 7):
            for m in range(j, i % 5, 1):
                total += x[j] + m
        for j in range(i % 4, -1, -1):
            total += 10 * j
        out[i] = total


def while_break_continue(x, out):
    i = cuda.grid(1)
    if i < x.size:
        n, steps = i, 0
        while n != 1:
            steps += 1
            if steps > 20:
                break
            if n % 2 == 0:
                n = n // 2
                continue
            n = 3 * n + 1
        for j in range(10):
            if j == i % 3:
                continue
            if j > i % 8:
                break
            steps += 100
        out[i] = steps


def return_in_a_loop(x, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    for j in range(x.size):
        while True:
            if x[j] > 0:
                break
            if j >= i:
                out[i] = -1
                return
            j += 1
        if j >= i:
            out[i] = j
            return
    out[i] = -2


def ternaries(x, out):
    i = cuda.grid(1)
    v = x[i] if i < x.size else float32(0)
    w = 1 if v > 2 else (2 if v > -2 else 3)
    if i < x.size:
        out[i] = v * w if w != 2 else -v


def comparisons(x, out):
    i = cuda.grid(1)
    if 0 <= i < x.size:
        out[i] = 0
        if -2 < x[i] <= 3:
            out[i] += 1
        if not x[i] == 3:  # noqa: SIM201
            out[i] += 2
        if i != 2 != x[i] >= -5:
            out[i] += 4


def short_circuit(x, out):
    i = cuda.grid(1)
    if i < x.size and x[i] > 0 and x[i - 1] != 0:
        out[i] = 1
    if i >= x.size or x[i] < -5 or (i > 0 and x[i - 1] > 5):  # noqa: SIM102
        if i < out.size:
            out[i] = 2


def values_of_and_and_or(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = (x[i] and 5) + (x[i] or 7) + (i and x[i] and 2) + (i % 2 or x[i] or i)


def augmented(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = i
        v += 3
        v *= 2
        v -= 1
        v //= 2
        v %= 11
        v <<= 2
        v >>= 1
        v |= 8
        v &= 29
        v ^= 3
        out[i] = v
        out[i] -= 1
        out[i] *= x[i]
        out[i] /= 2


def tuples(x, out):
    i = cuda.grid(1)
    a, b = 1, 2
    a, b = b, a + b
    c = d = a * b
    pair = (i, a)
    if i % 2 == 0:
        pair = (b, i)
    (n,) = x.shape
    if i < n:
        out[i] = 100 * a + 10 * b + c + d + pair[0] - pair[1]
        for v in TABLE:
            out[i] += v * TABLE[1] + len(TABLE)


def calls(x, out):
    i = cuda.grid(1)
    if i < x.size:
        low = clamp(x[i], -2, 3)
        total, sign = sum_and_sign(x[i], i % 9)
        out[i] = low + total * sign + first_multiple(i, clamp(i, 2, 4))
        put(out, i, out[i] + clamp(v=i, low=3, high=6) if i > 2 else out[i])


def scopes(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = SCALE * x[i] + WEIGHTS[i % 3] + TABLE[1] + math.floor(math.pi) + WEIGHTS.size


def negative_indices(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[-1 - i] = x[-1] + x[i - x.size]


def views(x, out):
    i = cuda.grid(1)
    if i < x.size:
        tail = x[i:]
        head = x[: i + 1]
        middle = x[2:-3]
        last = x[-4:]
        out[i] = tail[0] + head[-1] + middle[i % middle.size] + last[i % 4] + tail.size
        out[i] += len(x[-4:2]) + x[90:200].size + x[:1000].shape[0] + middle[1:][0]


def local_arrays(x, out):
    i = cuda.grid(1)
    best = cuda.local.array(4, float32)
    grid = cuda.local.array((2, 3), int32)
    for j in range(4):
        best[j] = j
    for j in range(2):
        for m in range(3):
            grid[j, m] = j * m
    if i < x.size:
        best[i % 4] = x[i]
        best[0] += best[i % 3]
        grid[i % 2, 2] += i
        out[i] = best[0] + best[1] + best[2] + best[3] + grid[1, 2] + grid[0, 2]


def shared_arrays(x, out):
    a, b = cuda.shared.array(64, float32), cuda.shared.array(64, float32)
    c = cuda.shared.array(shape=(2, 32), dtype=float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    a[t] = t
    b[t] = 2 * t
    c[t % 2, t // 2] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    t = cuda.blockDim.x - 1 - t
    if i < x.size:
        out[i] = a[t] + b[t] + c[t % 2, t // 2]


def casts_and_functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = float32(i) / 4
        out[i] = int32(v) + int(x[i]) + max(i, 3, 5) + min(x[i], v) + abs(x[i]) + int(-2.7)
        out[i] += math.sqrt(float32(16)) + math.ceil(v) + np.float64(i) + bool(i) + float(i)


def arithmetic(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = i - 50
        out[i] = v // 7 + v % 7 + (v / 4) + 2**3 + (-v) + (~v) + (+v) + (v & 12) + (v | 1)


def odd_names(x, out):
    """Names that a rewriter may want for itself."""
    for _i in range(2):
        for _ in range(2):
            _t, _v, _m, m, _c0 = cuda.grid(1), _i, 1, 2, 3
            if _t < x.size and _i == 1:
                out[_t] = _t + _v + _m + m + _c0 + _


def make_closure(factor):
    offset = factor + 1

    def closure(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = factor * x[i] + offset

    return closure


def annotated(x, out):
    i: int = cuda.grid(1)
    total: float
    if i < x.size:
        pass
        total = x[i]
        out[i] = total


def strided(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = x[i] + i % cuda.warpsize


LANGUAGE = [
    if_elif_else, early_return, uniform_loop, per_thread_loop, while_break_continue,
    return_in_a_loop, ternaries, comparisons, short_circuit, values_of_and_and_or, augmented,
    tuples, calls, scopes, negative_indices, views, local_arrays, shared_arrays,
    casts_and_functions, arithmetic, odd_names, make_closure(3), annotated, strided,
]  # fmt: skip
LAUNCHES = [(100, 1), (1, 1), (2, 33), (3, 40), (4, 32), (2, 64)]


def reduction(x, out):
    part = cuda.shared.array(64, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = 2 * x[i]


def copy(x, out, stride, offset):
    i = cuda.grid(1)
    out[i] = x[i * stride + offset]
