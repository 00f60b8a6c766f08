"""What the language means: kernels on the simulator and in plain Python."""

import linecache
import types

import numpy as np
import pytest
from numpy import float32

import gemmlab
from benchmarks.samples.language_kernels import (
    LANGUAGE,
    LAUNCHES,
    clamp,
    double,
    integers,
    reduction,
    shared_arrays,
    strided,
)
from gemmlab import cuda, last_report, simulate
from gemmlab.simt import HazardError, UnsupportedError, cuda as stand_in
from gemmlab.simt.syntax.names import INTRINSICS
from tests.support.one_thread import one_by_one


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


def test_a_kernel_of_any_jit_is_simulated():
    for jit in (lambda f: f, cuda.jit, stand_in.jit, stand_in.jit(), stand_in.jit("void(f4[:])")):
        x = integers(50)
        report = simulate(jit(double), 2, 32, x)
        np.testing.assert_array_equal(x, 2 * integers(50))
        assert report.counters["global_store_bytes"] == 200


def test_the_stand_in_launches_on_the_simulator():
    x = integers(50)
    kernel = stand_in.jit(double)
    assert kernel[2, 32](x) is None
    assert last_report().hazards == []
    kernel[(2,), (32, 1), 0, 128](x)
    np.testing.assert_array_equal(x, 4 * integers(50))
    with pytest.raises(ValueError, match=r"double\[grid, block\]"):
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


def test_the_stand_in_has_every_name():
    for path in INTRINSICS:
        found = stand_in
        for part in path.split("."):
            found = getattr(found, part)
        assert repr(found) == f"cuda.{path}"


def test_public_names():
    assert gemmlab.simulate is simulate
    assert gemmlab.cuda is cuda
