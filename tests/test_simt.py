"""The simulated GPU: what the language means, what it refuses, what it counts and what it finds."""

import inspect
import itertools
import linecache
import math
import re
import textwrap
import threading
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import float32, int32

import gemmlab
from gemmlab import cuda, simulate
from gemmlab.simt import HazardError, UnsupportedError
from gemmlab.simt.cuda.stand_in import stand_in
from gemmlab.simt.numbers.arithmetic import fma
from gemmlab.simt.races.global_shadow import GlobalShadow
from gemmlab.simt.races.hazards import KINDS
from gemmlab.simt.races.shadow import Shadow

# ------------------------------------------------------------------ a second, obvious interpreter


class _Thread:
    """`cuda` as one thread of a real launch sees it."""

    def __init__(self, position, block_position, block, grid, shared, barrier):
        self.threadIdx, self.blockIdx, self.blockDim, self.gridDim = (
            types.SimpleNamespace(**dict(zip("xyz", v, strict=True)))
            for v in (position, block_position, block, grid)
        )
        self.warpsize = 32
        linear = position[0] + block[0] * (position[1] + block[1] * position[2])
        self.laneid = linear % 32
        self._position = [
            b * d + t for b, d, t in zip(block_position, block, position, strict=True)
        ]
        self._extent = [b * d for b, d in zip(block, grid, strict=True)]
        self.syncthreads = barrier.wait
        self._shared, self._count = shared, itertools.count()
        self.shared = types.SimpleNamespace(array=self._shared_array)
        self.local = types.SimpleNamespace(array=lambda shape, dtype: np.zeros(shape, dtype))

    def grid(self, ndim):
        return self._position[0] if ndim == 1 else tuple(self._position[:ndim])

    def gridsize(self, ndim):
        return self._extent[0] if ndim == 1 else tuple(self._extent[:ndim])

    def _shared_array(self, shape, dtype):
        # Threads allocate in one and the same order.
        return self._shared.setdefault(next(self._count), np.zeros(shape, dtype))


def _three(sizes):
    return (*(sizes if isinstance(sizes, (tuple, list)) else (sizes,)), 1, 1)[:3]


def _positions(sizes):
    return [p[::-1] for p in itertools.product(*(range(s) for s in sizes[::-1]))]


def _as_seen_by(function, view):
    """`function`, and the device functions that it calls, with `cuda` replaced."""
    function = getattr(function, "py_func", function)
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = getattr(scope.get(name), "py_func", scope.get(name))
        if isinstance(value, types.FunctionType) and value.__module__ == __name__:
            scope[name] = _as_seen_by(value, view)
    scope["cuda"] = view
    return types.FunctionType(
        function.__code__, scope, function.__name__, None, function.__closure__
    )


def one_by_one(kernel, grid, block, *args):
    """Run `kernel` as CUDA defines it: one Python thread for each thread of a block."""
    grid, block = _three(grid), _three(block)
    positions = _positions(block)
    for block_position in _positions(grid):
        shared, barrier = {}, threading.Barrier(len(positions))
        runs = [
            _as_seen_by(kernel, _Thread(p, block_position, block, grid, shared, barrier))
            for p in positions
        ]
        if "syncthreads" not in inspect.getsource(getattr(kernel, "py_func", kernel)):
            for run in runs:
                run(*args)
            continue
        threads = [threading.Thread(target=run, args=args) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


# ------------------------------------------------------------------------------- the language

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


def integers(shape, seed=0):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


@pytest.mark.parametrize("kernel", LANGUAGE, ids=lambda k: k.__name__)
@pytest.mark.parametrize(("grid", "block"), LAUNCHES)
def test_language(kernel, grid, block):
    x = integers(100)
    expected, out = np.full((2, 100), -77, np.float32)
    one_by_one(kernel, grid, block, x, expected)
    report = simulate(kernel, grid, block, x, out)
    np.testing.assert_array_equal(out, expected)
    assert report.hazards == []
    assert np.array_equal(x, integers(100))


def compiled(kernel, cuda):
    """`kernel` and the device functions that it calls, compiled for the GPU."""
    scope = dict(kernel.__globals__)
    for name in kernel.__code__.co_names:
        if isinstance(scope.get(name), types.FunctionType):
            scope[name] = cuda.jit(device=True)(scope[name])
    return cuda.jit(
        types.FunctionType(kernel.__code__, scope, kernel.__name__, None, kernel.__closure__)
    )


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", LANGUAGE, ids=lambda k: k.__name__)
def test_language_on_a_gpu(kernel):
    """The simulator gives to every construct the meaning that it has on a GPU."""
    from numba import cuda

    on_gpu = compiled(kernel, cuda)
    for grid, block in LAUNCHES:
        x = integers(100)
        expected, out = np.full((2, 100), -77, np.float32)
        simulate(kernel, grid, block, x, expected)
        on_gpu[grid, block](x, out)
        np.testing.assert_array_equal(out, expected)


def positions(out):
    x, y, z = cuda.grid(3)
    width, height, depth = cuda.gridsize(3)
    if x < out.shape[2] and y < out.shape[1] and z < out.shape[0]:
        first = cuda.threadIdx.x + 10 * cuda.threadIdx.y + 100 * cuda.threadIdx.z
        second = cuda.blockIdx.x + 10 * cuda.blockIdx.y + 100 * cuda.blockIdx.z
        third = cuda.blockDim.x + 10 * cuda.blockDim.y + cuda.gridDim.z + cuda.laneid
        out[z, y, x] = first + 1000 * second + third + width + height + depth


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        (4, 40),
        ((2, 3), (5, 7)),
        ((2, 2, 2), (3, 4, 5)),
        ((1, 1, 3), (1, 1, 2)),
        ((3, 1), (32, 2)),
        ([2, 2], [4, 4]),
    ],
)
def test_positions_in_one_to_three_dimensions(grid, block):
    expected, out = np.full((2, 6, 14, 160), -1, np.int64)
    one_by_one(positions, grid, block, expected)
    simulate(positions, grid, block, out)
    np.testing.assert_array_equal(out, expected)


def rows(a, out):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        row = a[i]
        column = a[:, j]
        part = a[i, 1:-1]
        out[i, j] = row[j] + column[i] + part[0] + part.size + a[1:, :][0, j] + a.ndim
        for v in column:
            out[i, j] += v


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_views_of_two_dimensional_arrays(order):
    a = integers((6, 9))
    a = (
        np.asfortranarray(a)
        if order == "F"
        else integers((12, 27))[::2, ::3]
        if order != "C"
        else a
    )
    expected, out = np.zeros((2, 6, 9), np.float32)
    one_by_one(rows, (2, 2), (4, 5), a, expected)
    assert simulate(rows, (2, 2), (4, 5), a, out).hazards == []
    np.testing.assert_array_equal(out, expected)


def transpose(a, out):
    tile = cuda.shared.array((8, 9), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 8 + tx
    y = cuda.blockIdx.x * 8 + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty]


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


def stencil(x, out):
    tile = cuda.shared.array(34, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    tile[t + 1] = x[i] if i < x.size else float32(0)
    if t == 0:
        tile[0] = x[i - 1] if 0 < i <= x.size else float32(0)
    if t == 31:
        tile[33] = x[i + 1] if i + 1 < x.size else float32(0)
    for _ in range(3):
        cuda.syncthreads()
        v = tile[t] + tile[t + 1] + tile[t + 2]
        cuda.syncthreads()
        tile[t + 1] = v
    if i < x.size:
        out[i] = tile[t + 1]


def test_right_kernels_with_barriers_are_found_right():
    a, out = integers((21, 13)), np.zeros((13, 21), np.float32)
    assert simulate(transpose, (2, 3), (8, 8), a, out).hazards == []
    np.testing.assert_array_equal(out, a.T)
    x, sums = integers(150), np.zeros(3, np.float32)
    assert simulate(reduction, 3, 64, x, sums).hazards == []
    np.testing.assert_array_equal(sums, [x[:64].sum(), x[64:128].sum(), x[128:].sum()])
    expected, out = np.zeros((2, 70), np.float32)
    one_by_one(stencil, 3, 32, x[:70], expected)
    assert simulate(stencil, 3, 32, x[:70], out).hazards == []
    np.testing.assert_array_equal(out, expected)


def halves(x, out):
    memory = cuda.shared.array(0, float32)
    count = memory.size // 2
    first, second = memory[:count], memory[count:]
    t = cuda.threadIdx.x
    first[t] = x[t]
    second[t] = 2 * x[t]
    cuda.syncthreads()
    out[t] = first[count - 1 - t] + second[t]


def test_dynamic_shared_memory():
    x, out = integers(16), np.zeros(16, np.float32)
    assert simulate(halves, 1, 16, x, out, shared_bytes=2 * 16 * 4).hazards == []
    np.testing.assert_array_equal(out, x[::-1] + 2 * x)
    with pytest.raises(HazardError, match=r"out-of-bounds: "):
        simulate(halves, 1, 16, x, out, shared_bytes=16 * 4)


def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = 2 * x[i]


def test_a_kernel_of_any_jit_is_simulated():
    for jit in (lambda f: f, cuda.jit, stand_in.jit, stand_in.jit(), stand_in.jit("void(f4[:])")):
        x = integers(50)
        report = simulate(jit(double), 2, 32, x)
        np.testing.assert_array_equal(x, 2 * integers(50))
        assert report.counters["global_store_bytes"] == 200


def test_the_stand_in_launches_on_the_simulator():
    x = integers(50)
    kernel = stand_in.jit(double)
    assert kernel[2, 32](x).hazards == []
    kernel[(2,), (32, 1), 0, 128](x)
    np.testing.assert_array_equal(x, 4 * integers(50))
    with pytest.raises(TypeError, match=r"double\[grid, block\]"):
        kernel(x)
    assert stand_in.jit(device=True)(clamp)(9, 1, 5) == 5
    for misuse in (lambda: stand_in.grid(1), lambda: stand_in.threadIdx.x):
        with pytest.raises(RuntimeError, match=r"only inside a kernel.*gemmlab\.simulate"):
            misuse()


def test_kernels_written_with_the_stand_in_mean_the_same():
    scope = {"cuda": stand_in, "float32": float32}
    for kernel in (shared_arrays, strided):
        copy = types.FunctionType(kernel.__code__, scope, kernel.__name__)
        out, expected = np.zeros((2, 100), np.float32)
        simulate(kernel, 2, 64, integers(100), expected)
        simulate(copy, 2, 64, integers(100), out)
        np.testing.assert_array_equal(out, expected)


def test_kernels_of_notebook_cells():
    """IPython puts a cell's text where `linecache` finds it."""
    text = "def cell(x):\n    i = cuda.grid(1)\n    x[i] = i\n    x[i + 1] = 0\n"
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
    scope = {"cuda": cuda}
    exec(compile(text, "<cell 1>", "exec"), scope)
    with pytest.raises(HazardError) as caught:
        simulate(scope["cell"], 1, 4, np.zeros(4))
    assert (caught.value.hazard.line, caught.value.hazard.code) == (4, "x[i + 1] = 0")
    exec("def lost(x):\n    x[0] = 1", scope)
    with pytest.raises(UnsupportedError, match="source of .*lost.* cannot be read.*notebook cell"):
        simulate(scope["lost"], 1, 1, np.zeros(1))


def test_comments_may_stand_further_left_than_their_kernel():
    text = "def make():\n    def kernel(x):\n        x[0] = 1\n# here\n        x[1] = 2\n"
    text += "    return kernel\n"
    linecache.cache["<left>"] = (len(text), None, text.splitlines(True), "<left>")
    scope = {}
    exec(compile(text, "<left>", "exec"), scope)
    x = np.zeros(2)
    report = simulate(scope["make"](), 1, 1, x)
    assert x.tolist() == [1, 2]
    assert sorted(report.by_line) == [3, 5]


def test_numba_types_are_casts():
    numba = pytest.importorskip("numba")
    n32, n64, u64 = numba.float32, numba.int64, numba.uint64

    def kernel(x, out):
        s = cuda.shared.array(32, n32)
        t = cuda.threadIdx.x
        s[t] = n32(x[t]) / n32(4)
        out[u64(t)] = n64(s[t]) + u64(t)

    x, out = integers(32), np.zeros(32, np.float32)
    simulate(kernel, 1, 32, x, out)
    np.testing.assert_array_equal(out, np.trunc(x / 4) + np.arange(32))


def precision(out):
    a = float32(1) / float32(3)
    out[0] = a
    out[1] = a * float32(3) - 1
    out[2] = a + 0.1
    out[3] = float32(2**24) + float32(1)
    out[4] = float32(2**24) + 1
    out[5] = np.float16(0.1)


def test_arithmetic_has_the_types_of_numba():
    """float32 with float32 stays float32; with a 64-bit integer or a Python float it is float64."""
    out = np.zeros(6)
    simulate(precision, 1, 1, out)
    third = np.float32(1) / np.float32(3)
    expected = [third, np.float64(third * np.float32(3)) - 1, float(third) + 0.1, 2**24, 2**24 + 1]
    assert out.tolist() == [*map(float, expected), float(np.float16(0.1))]


# --------------------------------------------------------------------------------- refusals


def _refused(statements, before=""):
    """A kernel around some statements, and the line of the one marked `# here`."""
    text = f"{before}\ndef kernel(x, out):\n    i = cuda.grid(1)\n"
    text += textwrap.indent(textwrap.dedent(statements).strip(), "    ") + "\n"
    file = f"<refused {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"cuda": cuda, "np": np, "math": math, "float32": float32, "W": 8}
    exec(compile(text, file, "exec"), scope)
    line = next((n for n, t in enumerate(text.splitlines(), 1) if "# here" in t), None)
    return scope["kernel"], line


REFUSED = {
    "try:  # here\n    x[0] = 1\nfinally:\n    pass": "check beforehand with if",
    "with x:  # here\n    pass": "write its effect out",
    "v = [j for j in range(3)]  # here": r"cuda\.local\.array in a loop",
    "v = sum(j for j in range(3))  # here": "write a loop",
    "v = lambda a: a  # here": "device function with def outside",
    "def f(): # here\n    pass": "define it outside",
    "import math  # here": "import outside",
    "from math import sqrt  # here": "import outside",
    "raise ValueError  # here": "error code",
    "assert i < 5  # here": "error code",
    "v = {}  # here": "use arrays",
    "v = [1, 2]  # here": r"tuple or cuda\.local\.array",
    "v = f'{i}'  # here": "format text outside",
    "v = (w := 3)  # here": "line of its own",
    "del i  # here": "leave it out",
    "global g  # here\ng = 1": "pass an array",
    "print(i, sep=', ')  # here": "print values alone",
    "v = 'text'  # here": "use numbers",
    "kernel[1, 8](x, out)  # here": "launch it from the host",
    "return x[0]  # here": "write it to an array",
    "np.sin(x)  # here": r"write a loop with numpy\.sin\(x\[i\]\)",
    "cuda.shared.array((8, W + 1), float32)  # here": r"compute W \+ 1 outside of the kernel",
    "cuda.shared.array(shape=2 * W, dtype=float32)  # here": r"compute 2 \* W outside",
    "cuda.local.array(x.size, float32)  # here": r"compute x\.size outside",
    "n = W + 1\ncuda.shared.array(n, float32)  # here": "compute n outside",
    "n = 8\nif i > 2:\n    n = 9\ncuda.shared.array(n, float32)  # here": "compute n outside",
    "n = 8\nn += 1\ncuda.shared.array(n, float32)  # here": "compute n outside",
    "cuda.shared.array(int(W), float32)  # here": r"compute int\(W\) outside",
    "cuda.shared.array(8, float)  # here": "a type with a size, such as float32",
    "v = x[::2]  # here": "index element by element",
    "v = x @ x  # here": "loop over elements",
    "x @= x  # here": "loop over elements",
    "v = i in (1, 2)  # here": "compare with each",
    "v = i is None  # here": "use ==",
    "v = x.T  # here": r"\.shape, \.size, \.ndim and \.dtype",
    "v = x.sum()  # here": r"arrays have \.shape",
    "v = max(*x)  # here": "write the values out",
    "v = max(**x)  # here": "write the arguments out",
    "cuda.nosuch(i)  # here": "no such name",
    "v = np.zeros(3)  # here": "kernels can use",
    "x.size = 3  # here": "assign to a name or an element",
    "x.size += 3  # here": "assign to a name or an element",
    "a, *b = 1, 2  # here": "assign to a name or an element",
    "v = x[...]  # here": "kernels can use",
    "yield i  # here": "another way",
    "v = cuda  # here": r"cuda\.grid",
}


@pytest.mark.parametrize("statements", REFUSED)
def test_refused(statements):
    kernel, line = _refused(statements)
    x = np.zeros(8, np.float32)
    with pytest.raises(UnsupportedError) as caught:
        simulate(kernel, 1, 8, x, x)
    message = str(caught.value)
    assert f"line {line}: " in message
    assert "# here" in message
    assert re.search(REFUSED[statements], message), message


def test_refused_functions():
    x = np.zeros(8)
    with pytest.raises(UnsupportedError, match="is not defined with def"):
        simulate(lambda x: None, 1, 8, x)
    with pytest.raises(UnsupportedError, match=r"source of .* cannot be read"):
        simulate(np.add, 1, 8, x)
    for parameters in ("*x", "*, x", "x, /", "**x"):
        text = f"def kernel({parameters}):\n    pass\n"
        file = f"<parameters {parameters}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope = {}
        exec(compile(text, file, "exec"), scope)
        with pytest.raises(UnsupportedError, match="use plain names"):
            simulate(scope["kernel"], 1, 8, x)


@pytest.mark.parametrize(
    ("statements", "error", "text"),
    [
        ("out[i] = later\nlater = 1", NameError, "'later' is read before"),
        ("if later > 0:\n    out[i] = 1\nlater = 1", NameError, "'later' is read before"),
        ("out[later] = 1\nlater = 1", NameError, "'later' is read before"),
        ("if i < 3:\n    v = nothing", NameError, "'nothing' is not defined.*line 5"),
        ("out[i] = x[0, 0]", IndexError, "line 4: x has 1 dimensions, not 2"),
        ("out[i] = x[i / 2]", TypeError, "line 4: x is indexed with float64"),
        ("out[:3] = x[0]", TypeError, "line 4: assign to single elements of out"),
        ("out[i] = None", TypeError, "line 4: None is not a number"),
        ("v = (1, 2)[2]", IndexError, "line 4: there is no item 2 in a tuple of 2"),
        ("v = (1, 2)[i - 3]", IndexError, "line 4: there is no item -3 in a tuple of 2"),
        ("v = (1, 2.0)[i % 2]", TypeError, "line 4: lanes pick from a tuple whose items differ"),
        ("a, b = x.shape", ValueError, "line 4: cannot unpack .* into 2 names"),
        ("v = cuda.grid(4)", ValueError, "line 4: 4 dimensions; use 1, 2 or 3"),
        ("for j in range(0, 8, 0):\n    pass", ValueError, "line 4: the step of range is 0"),
        ("for j in i:\n    pass", TypeError, "line 4: cannot iterate"),
        ("v = i\nif i < 3:\n    v = (1, 2)", TypeError, "line 6: 'v' changes its type"),
        ("v = (1, 2)\nif i < 3:\n    v = (1, 2, 3)", TypeError, "line 6: 'v' changes its length"),
        ("v = x\nif i < 3:\n    v = out\nv[i] = 1", TypeError, "line 6: 'v' is one array in some"),
    ],
)
def test_mistakes_that_python_would_find_too(statements, error, text):
    kernel, _ = _refused(statements)
    x, out = np.zeros((2, 8), np.float32)
    with pytest.raises(error) as caught:
        simulate(kernel, 1, 8, x, out)
    assert re.search(text, str(caught.value), re.DOTALL)
    assert not out.any()


def pick(out):
    i = cuda.threadIdx.x
    four = (i, 2 * i, 3 * i, 4 * i)
    if i < 12:
        out[i] = 100 * four[i // 4] + 10 * four[-1] + four[i % 4 - 4]


def test_lanes_pick_from_a_tuple():
    out = np.zeros(16, np.int64)
    simulate(pick, 1, 16, out)
    i = np.arange(12)
    assert out[:12].tolist() == (100 * i * (i // 4 + 1) + 40 * i + i * (i % 4 + 1)).tolist()
    assert not out[12:].any()


@pytest.mark.parametrize(
    ("grid", "block", "error", "text"),
    [
        (0, 32, ValueError, r"grid\[0\]=0"),
        (1, -1, ValueError, r"block\[0\]=-1"),
        (1, 1.5, TypeError, r"block\[0\]=1\.5"),
        ((1, 2, 3, 4), 1, ValueError, r"grid=\(1, 2, 3, 4\) has 4 dimensions"),
        (1, (), ValueError, r"block=\(\) has 0 dimensions"),
        (1, 1025, ValueError, "1025 threads is too large; use at most 1024"),
        (1, (33, 32), ValueError, "1056 threads"),
        (1, (1, 1, 65), ValueError, r"block=\(1, 1, 65\) is too deep; use at most 64"),
        ("1", 32, TypeError, r"grid\[0\]='1'"),
    ],
)
def test_launches_that_no_gpu_takes(grid, block, error, text):
    with pytest.raises(error, match=text):
        simulate(double, grid, block, np.zeros(4))


def too_large(out):
    first = cuda.shared.array((64, 64), float32)
    second = cuda.shared.array((64, 129), float32)
    first[0, 0] = second[0, 0] = out[0] = 1


def test_shared_arrays_that_no_gpu_takes():
    with pytest.raises(ValueError, match="of 49408 B a block are too large; use at most 49152 B"):
        simulate(too_large, 1, 1, np.zeros(1))


def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


def recursive(out):
    out[0] = factorial(4)


def test_recursion_is_refused():
    with pytest.raises(
        UnsupportedError,
        match=r"factorial, which calls itself.*write a loop[\s\S]*factorial\(n - 1\)",
    ):
        simulate(recursive, 1, 1, np.zeros(1))


def test_arguments_that_no_kernel_takes():
    with pytest.raises(TypeError, match=r"double takes 1 arguments \(x\), not 2"):
        simulate(double, 1, 1, np.zeros(1), 2)
    with pytest.raises(TypeError, match=r"argument x=\[1, 2\] is a list"):
        simulate(double, 1, 1, [1, 2])
    with pytest.raises(ValueError, match="x has dtype complex128"):
        simulate(double, 1, 1, np.zeros(3, complex))
    with pytest.raises(ValueError, match="x has strides"):
        simulate(double, 1, 1, np.zeros(3)[::-1])
    with pytest.raises(ValueError, match="on_hazard='ignore'.*raise.*collect"):
        simulate(double, 1, 1, np.zeros(3), on_hazard="ignore")


# --------------------------------------------------------------------------------- counters


def copy(x, out, stride, offset):
    i = cuda.grid(1)
    out[i] = x[i * stride + offset]


@pytest.mark.parametrize(
    ("stride", "offset", "sectors"),
    [(1, 0, 4), (1, 1, 5), (1, 8, 4), (2, 0, 8), (8, 0, 32), (0, 0, 1)],
)
def test_counters_of_a_copy(stride, offset, sectors):
    """Three warps, 32 lanes each: the strides and offsets of a copy, sector by sector."""
    out = np.zeros(96, np.float32)
    counters = simulate(copy, 3, 32, integers(2000), out, stride, offset).counters
    assert counters == {
        "global_load_requests": 3,
        "global_load_sectors": 3 * sectors,
        "global_load_bytes": 384,
        "global_store_requests": 3,
        "global_store_sectors": 12,
        "global_store_bytes": 384,
    }


def test_masked_warps_make_no_request():
    x = integers(40)
    counters = simulate(double, 2, 64, x).counters
    assert counters["global_load_requests"] == counters["global_store_requests"] == 2
    assert counters["global_load_sectors"] == 5
    assert counters["global_load_bytes"] == 160


def column(out):
    tile = cuda.shared.array((32, 32), float32)
    padded = cuda.shared.array((32, 33), float32)
    t = cuda.threadIdx.x
    tile[t, 0] = 1
    padded[t, 0] = 1
    out[t] = tile[t, 0] + padded[t, 0]


def test_counters_of_shared_memory_and_line_by_line():
    report = simulate(column, 1, 32, np.zeros(32, np.float32))
    assert report.counters["shared_store_requests"] == 2
    assert report.counters["shared_store_wavefronts"] == 33
    assert report.counters["shared_load_wavefronts"] == 33
    assert report.counters["shared_bank_conflicts"] == 2 * 31
    lines = {report.source.code(line): counts for line, counts in report.by_line.items()}
    assert lines["tile[t, 0] = 1"]["shared_store_wavefronts"] == 32
    assert lines["padded[t, 0] = 1"]["shared_store_wavefronts"] == 1
    assert report.counters["barriers"] == 0


def evaluated_once(x, out):
    i = cuda.grid(1)
    if 0 <= x[i] < 5:
        out[i] = 1
    if 100 < x[i] < x[i + 1000]:
        out[i] = 2
    out[int(x[i])] += 1


def test_each_operand_is_loaded_once():
    """Chained comparisons and augmented assignments load what they name once."""
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    report = simulate(evaluated_once, 1, 32, x, out)
    lines = {report.source.code(line): counts for line, counts in report.by_line.items()}
    assert lines["if 0 <= x[i] < 5:"]["global_load_requests"] == 1
    assert lines["if 100 < x[i] < x[i + 1000]:"]["global_load_requests"] == 1
    assert lines["out[int(x[i])] += 1"]["global_load_requests"] == 2


def test_barriers_are_counted_for_each_block():
    assert simulate(reduction, 3, 64, integers(150), np.zeros(3)).counters["barriers"] == 3 * 7


@pytest.mark.parametrize("kernel", [strided, shared_arrays, per_thread_loop, short_circuit])
def test_batches_make_no_difference(kernel, monkeypatch):
    """Grids larger than what is simulated at once: the same values and the same counts."""
    results = []
    for lanes in (1 << 16, 256, 64, 1):
        monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
        out = np.zeros(1000, np.float32)
        report = simulate(kernel, 16, 64, integers(1000), out)
        results.append((out.tolist(), report.counters, report.by_line))
    assert all(result == results[0] for result in results)


def test_a_grid_larger_than_a_batch():
    x = integers(100_000)
    report = simulate(double, 3125, 32, x)
    np.testing.assert_array_equal(x, 2 * integers(100_000))
    assert report.counters["global_load_requests"] == 3125


def test_one_array_passed_twice_is_one_array():
    x = integers(64)
    assert simulate(copy, 2, 32, x, x, 1, 0).hazards == []
    np.testing.assert_array_equal(x, integers(64))
    with pytest.raises(HazardError, match="global-race"):
        simulate(copy, 2, 32, x, x, 0, 0)


def test_arrays_that_are_only_read_may_be_read_only():
    x, out = integers(100), np.zeros(100, np.float32)
    x.flags.writeable = False
    simulate(calls, 4, 32, x, out)
    assert out.any()


def stored_by_keyword(x, out):
    i = cuda.grid(1)
    put(index=i, value=x[i], array=out)


def test_arrays_stored_to_by_a_device_function():
    x, out = integers(32), np.zeros(32, np.float32)
    simulate(stored_by_keyword, 1, 32, x, out)
    np.testing.assert_array_equal(out, x)


# ---------------------------------------------------------------------------------- hazards


def line_of(kernel, text):
    lines, first = inspect.getsourcelines(kernel)
    return first + next(i for i, line in enumerate(lines) if text in line)


def past_the_end(x):
    i = cuda.grid(1)
    x[i] = x[i + 1]  # fault


def neighbours(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    x[t] = s[63 - t]  # fault


def same_element(x):
    x[cuda.grid(1) // 2] = 1  # fault


def half_a_barrier(x):
    if cuda.threadIdx.x < 40:
        cuda.syncthreads()  # fault


def nobody_wrote(x):
    s = cuda.shared.array(64, float32)
    x[cuda.threadIdx.x] = s[cuda.threadIdx.x]  # fault


def never_set(x):
    v = cuda.local.array(4, float32)
    if cuda.threadIdx.x != 5:
        v[2] = 1
    x[cuda.threadIdx.x] = v[2]  # fault


def forever(x):
    while True:  # fault
        x[cuda.threadIdx.x] += 1


@pytest.mark.parametrize(
    ("kernel", "kind", "threads", "text"),
    [
        (past_the_end, "out-of-bounds", (63,), r"x\[64\] is outside, its dimension 0 has 64"),
        (neighbours, "shared-race", (0, 63), r"reads what thread \(63\) wrote, s\[63\]"),
        (same_element, "global-race", None, r"same element as thread .* x\[0\]"),
        (half_a_barrier, "divergent-barrier", (0, 40), r"thread \(0\) waits .* thread \(40\) does"),
        (nobody_wrote, "uninitialised-read", (0,), r"thread \(0\) reads s\[0\]"),
        (never_set, "uninitialised-read", (5,), r"thread \(5\) reads v\[2\]"),
        (forever, "step-limit", None, "more than max_steps=500 loop iterations"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_each_hazard_is_found(kernel, kind, threads, text):
    x = integers(64)
    report = simulate(kernel, 1, 64, x.copy(), on_hazard="collect", max_steps=500)
    hazard = report.hazards[0]
    assert hazard.kind == kind in KINDS
    assert hazard.line == line_of(kernel, "# fault")
    assert "# fault" in hazard.code
    assert hazard.block == (0, 0, 0)
    assert re.search(text, hazard.message), hazard.message
    if threads is not None:
        assert hazard.threads == tuple((t, 0, 0) for t in threads)
    with pytest.raises(HazardError) as caught:
        simulate(kernel, 1, 64, x, max_steps=500)
    assert caught.value.hazard == hazard
    assert f"line {hazard.line}" in str(caught.value)
    np.testing.assert_array_equal(x, integers(64))  # left as it was


def several(x):
    s = cuda.shared.array((4, 4), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x[ty, tx] = s[ty, tx]
    s[ty, 0] = 1
    x[ty + 1, tx] = 1


def test_collect_gathers_each_kind_once_a_line():
    report = simulate(several, (1, 2), (4, 4), np.zeros((4, 4)), on_hazard="collect")
    kinds = [(h.kind, h.code) for h in report.hazards]
    assert kinds == [
        ("uninitialised-read", "x[ty, tx] = s[ty, tx]"),
        ("global-race", "x[ty, tx] = s[ty, tx]"),
        ("shared-race", "s[ty, 0] = 1"),
        ("out-of-bounds", "x[ty + 1, tx] = 1"),
        ("global-race", "x[ty + 1, tx] = 1"),
    ]
    outside = report.hazards[3]
    assert outside.threads == ((0, 3, 0),)
    assert "x[4, 0] is outside" in outside.message
    assert "thread (0, 3)" in outside.message


def in_place(x):
    i = cuda.grid(1)
    left = x[i - 1] if i > 0 else float32(0)
    x[i] = left + x[i]  # fault


def in_place_own_first(x):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    v = s[t]
    if t > 0:
        v += s[t - 1]
    v += s[t]
    s[t] = v  # fault
    x[t] = v


def other_block(x):
    i = cuda.grid(1)
    v = x[(i + 32) % 64]
    cuda.syncthreads()
    x[i] = v  # fault


def read_back(x):
    i = cuda.grid(1)
    x[i] = 1
    cuda.syncthreads()
    x[i] += x[(i + 1) % 64]  # fault


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "kind"),
    [
        (in_place, 1, 32, "global-race"),
        (in_place, 2, 32, "global-race"),
        (in_place_own_first, 1, 32, "shared-race"),
        (in_place_own_first, 3, 32, "shared-race"),
        (other_block, 2, 32, "global-race"),
        (read_back, 2, 32, "global-race"),
    ],
)
@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_races_that_another_reader_could_hide(kernel, grid, block, kind, lanes, monkeypatch):
    """A thread that reads an element last, and writes it, does not undo that others read it."""
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    x = np.ones(64, np.float32)
    found = simulate(kernel, grid, block, x, on_hazard="collect").hazards
    assert (kind, line_of(kernel, "# fault")) in [(h.kind, h.line) for h in found]


accesses = st.lists(
    st.one_of(
        st.none(),  # a barrier of every block
        st.tuples(
            st.sampled_from(["read", "write"]),
            st.lists(st.integers(-1, 2), min_size=4, max_size=4),  # each lane's element, -1: none
        ),
    ),
    max_size=8,
)


def raced(steps, threads):
    """Whether two lanes clash, by comparing all pairs of accesses."""
    seen, epoch = [], 0
    for step in steps:
        if step is None:
            epoch += 1
            continue
        seen += [(step[0], e, lane, epoch) for lane, e in enumerate(step[1]) if e >= 0]
    return any(
        e == f and i != j and "write" in (a, b) and (s == t or i // threads != j // threads)
        for (a, e, i, s), (b, f, j, t) in itertools.combinations(seen, 2)
    )


@given(accesses, st.sampled_from([2, 4]))
@settings(deadline=None, max_examples=300)
def test_races_are_found_if_and_only_if_there_are_any(steps, threads):
    """In global memory, by four lanes in blocks of 2 or of 4; in shared memory, by one block."""
    everywhere, in_block = GlobalShadow(3), Shadow(3)
    found, found_in_block, epoch = [], [], 0
    for step in steps:
        if step is None:
            epoch += 1
            continue
        elements = np.array(step[1])
        lanes = np.flatnonzero(elements >= 0)
        at, epochs = elements[lanes], np.full(len(lanes), epoch)
        found.append(getattr(everywhere, step[0])(at, lanes, threads, epochs))
        found_in_block.append(getattr(in_block, step[0])((np.zeros_like(at), at), lanes, epochs))
    assert any(clash is not None for clash in found) == raced(steps, threads)
    assert any(clash is not None for clash in found_in_block) == raced(steps, 4)


def ordered(x):
    t = cuda.threadIdx.x
    for step in range(3):
        v = x[(t + 1) % 64]
        cuda.syncthreads()
        x[t] = v + step
        cuda.syncthreads()


def test_barriers_order_global_memory_within_a_block():
    x = np.arange(64, dtype=np.float32)
    assert simulate(ordered, 1, 64, x).hazards == []
    np.testing.assert_array_equal(x, np.roll(np.arange(64), -3) + 3)


def out_of_line(x):
    put(x, cuda.grid(1) + 1, 0)


def test_a_hazard_in_a_device_function_is_at_its_line():
    with pytest.raises(HazardError) as caught:
        simulate(out_of_line, 1, 8, np.zeros(8))
    hazard = caught.value.hazard
    assert hazard.line == line_of(put, "array[index] = value")
    assert hazard.code == "array[index] = value"


def test_hazards_name_the_block_of_any_batch(monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", 32)
    with pytest.raises(HazardError) as caught:
        simulate(copy, (2, 3), 32, np.zeros(96), np.zeros(64), 1, 5)
    assert caught.value.hazard.kind == "global-race"  # blocks of one column write the same
    assert caught.value.hazard.block == (0, 1, 0)
    with pytest.raises(HazardError) as caught:
        simulate(copy, 3, 32, np.zeros(95), np.zeros(96), 1, 0)
    assert (caught.value.hazard.block, caught.value.hazard.threads) == ((2, 0, 0), ((31, 0, 0),))
    assert "[block (2), thread (31)]" in caught.value.hazard.message


def test_the_step_limit_counts_a_thread_not_the_grid():
    x = np.zeros(100_000, np.float32)
    assert simulate(double, 3125, 32, x, max_steps=1).hazards == []
    simulate(uniform_loop, 4, 32, integers(100), np.zeros(100), max_steps=8)
    with pytest.raises(HazardError, match="more than max_steps=5 loop iterations"):
        simulate(uniform_loop, 4, 32, integers(100), np.zeros(100), max_steps=5)


def test_an_interrupt_leaves_the_arrays_as_they_were(monkeypatch):
    from gemmlab.simt.memory.memory import Memory

    calls = itertools.count()
    store = Memory.store

    def interrupted(*args):
        if next(calls) == 3:
            raise KeyboardInterrupt
        store(*args)

    monkeypatch.setattr(Memory, "store", interrupted)
    monkeypatch.setattr("gemmlab.simt.launch.LANES", 32)
    x = integers(320)
    with pytest.raises(KeyboardInterrupt):
        simulate(double, 10, 32, x)
    np.testing.assert_array_equal(x, integers(320))
    monkeypatch.undo()
    simulate(double, 10, 32, x)
    np.testing.assert_array_equal(x, 2 * integers(320))


def test_public_names():
    assert gemmlab.simulate is simulate
    assert gemmlab.cuda is cuda


def test_fma_of_subnormal_numbers_rounds_once():
    """Just below halfway between two subnormal numbers, by less than float64 shows."""
    a, b = np.float32((1 + 2**-20) * 2**-75), np.float32((1 - 2**-20) * 2**-75)
    c = np.float32(2**-127 + 2**-149)
    assert fma(np.array([a]), np.array([b]), np.array([c]))[0] == c
    assert np.float32(np.float64(a) * np.float64(b) + np.float64(c)) != c
