"""Shared memory: views of several types, what a block may have, and hazards across types."""

from dataclasses import replace

import numpy as np
import pytest
from numpy import float32, float64, int16, int32, uint8, uint32

from benchmarks.samples.language_kernels import integers
from gemmlab import cuda, device, simulate
from gemmlab.device import names
from gemmlab.simt import HazardError
from gemmlab.simt.races.memories import SharedShadow
from gemmlab.simt.races.visits import Now
from tests.support.launches import hazards, line_of


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


# ---------------------------------------------------------- dynamic shared memory, of several types


def two_types(x, out):
    words = cuda.shared.array(0, float32)
    halves = cuda.shared.array(0, int16)
    t = cuda.threadIdx.x
    halves[2 * t] = 2 * t
    halves[2 * t + 1] = 2 * t + 1
    cuda.syncthreads()
    out[t] = words[31 - t]
    cuda.syncthreads()
    words[t] = x[t]
    cuda.syncthreads()
    out[t] = halves[t]


def eight_after_four(x, out):
    words = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    words[t] = x[t]
    cuda.syncthreads()
    doubles = cuda.shared.array(0, float64)
    if t < 16:
        out[t] = doubles[t]
        doubles[t] = 1
    cuda.syncthreads()
    out[t] = words[t]


def test_views_of_several_types_share_one_memory():
    x, out = np.zeros((2, 32), np.float32)
    assert hazards(two_types, 1, 32, x, out, shared_bytes=128) == []
    assert hazards(eight_after_four, 1, 32, x, out, shared_bytes=128) == []


def half_written(x, out):
    words = cuda.shared.array(0, float32)
    halves = cuda.shared.array(0, int16)
    t = cuda.threadIdx.x
    halves[2 * t] = 1
    cuda.syncthreads()
    out[t] = words[t]  # fault


def raced_across_types(x, out):
    words = cuda.shared.array(0, float32)
    halves = cuda.shared.array(0, int16)
    t = cuda.threadIdx.x
    words[t] = x[t]
    out[t] = halves[2 * (31 - t) + 1]  # fault


def raced_over_two_halves(x, out):
    words = cuda.shared.array(0, float32)
    halves = cuda.shared.array(0, int16)
    t = cuda.threadIdx.x
    halves[2 * t] = 1
    halves[2 * t + 1] = 2
    out[t] = words[31 - t]  # fault


def updated_half(x, out):
    words = cuda.shared.array(0, int32)
    bytes_ = cuda.shared.array(0, uint8)
    t = cuda.threadIdx.x
    if t > 2:
        bytes_[4 * t + 3] = 1
    cuda.syncthreads()
    cuda.atomic.add(words, t, 1)  # fault


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize(
    ("kernel", "kind", "text"),
    [
        (half_written, "uninitialised-read", "thread (0) reads words[0], which nobody"),
        (raced_across_types, "shared-race", "thread (0) reads what thread (31) wrote, halves[63]"),
        (
            raced_over_two_halves,
            "shared-race",
            "thread (0) reads what thread (31) wrote, words[31]",
        ),
        (updated_half, "uninitialised-read", "thread (0) updates words[0], which nobody"),
    ],
)
def test_hazards_across_types(kernel, kind, text, blocks):
    x, out = np.zeros((2, 32), np.float32)
    found = hazards(kernel, blocks, 32, x, out, shared_bytes=128)[0]
    assert (found.kind, found.line) == (kind, line_of(kernel, "# fault"))
    assert text in found.message
    assert found.count == 32 * blocks


def test_a_shadow_that_is_refined_keeps_what_it_knows():
    shadow = SharedShadow(4, 64)
    shadow.unit = 8
    shadow.write(np.array([1]), np.array([5]), Now(0))
    shadow.atomic(np.array([3]), np.array([5]), Now(0))
    shadow.refine(2)
    shadow.refine(4)
    assert shadow.unit == 2
    assert shadow.initialised.nonzero()[0].tolist() == [4, 5, 6, 7]
    [clash] = shadow.read(np.array([6]), np.array([40]), Now(0))
    assert clash.other == 5
    [clash] = shadow.write(np.array([15]), np.array([40]), Now(0))
    assert clash.other == 5
    assert shadow.write(np.array([11]), np.array([40]), Now(0)) == ()


# ------------------------------------------------------------------------------------------- limits


def static_bytes(count):
    def kernel(x):
        s = cuda.shared.array(count, float32)
        s[cuda.threadIdx.x] = 1
        x[cuda.threadIdx.x] = s[cuda.threadIdx.x]

    return kernel


def test_static_arrays_have_48_kilobytes_on_every_gpu():
    """As ptxas: 12,288 words assemble, 12,289 are too much shared data."""
    x = np.zeros(32, np.float32)
    for gpu in (None, "h200", "rtx2060"):
        simulate(static_bytes(12288), 1, 32, x, device=gpu)
        with pytest.raises(ValueError, match="of 49156 B a block are too large; use at most 49152"):
            simulate(static_bytes(12289), 1, 32, x, device=gpu)


def test_dynamic_shared_memory_has_the_limit_of_the_largest_gpu():
    x, most = np.zeros(32, np.float32), 227 * 1024
    assert most == max(device(name).shared_bytes_per_block for name in names())
    kernel = static_bytes(32)
    simulate(kernel, 1, 32, x, shared_bytes=most - 128)
    with pytest.raises(ValueError, match=f"shared_bytes={most + 1} are too much for any GPU; a bl"):
        simulate(kernel, 1, 32, x, shared_bytes=most + 1)
    with pytest.raises(ValueError) as caught:
        simulate(kernel, 1, 32, x, shared_bytes=most - 127)
    line = line_of(static_bytes, "cuda.shared.array")
    assert str(caught.value) == (
        f"128 B of shared arrays and shared_bytes={most - 127} are too much for any GPU; a block "
        f"may use {most} B\n  {__file__}, line {line}: s = cuda.shared.array(count, float32)"
    )


def test_the_block_that_is_too_large_for_a_device_names_it():
    few = replace(device("h200"), threads_per_block=64)
    with pytest.raises(ValueError, match="use at most 64 on NVIDIA H200"):
        simulate(static_bytes(1), 1, 96, np.zeros(96), device=few)
    with pytest.raises(ValueError, match="use at most 1024$"):
        simulate(static_bytes(1), 1, 1056, np.zeros(96))


TABLE = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def ints_and_floats(x, out):
    whole = cuda.shared.array(0, int32)
    parts = cuda.shared.array(0, float64)
    t = cuda.threadIdx.x
    whole[t] = t
    parts[4 + t] = x[t]
    cuda.syncthreads()
    table = cuda.const.array_like(TABLE)
    out[t] = whole[7 - t] + parts[4 + t] + table[1, 0]


def same_bytes(out):
    parts = cuda.shared.array(0, float32)
    words = cuda.shared.array(0, uint32)
    parts[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = words[cuda.threadIdx.x]


def test_dynamic_arrays_of_two_types_are_the_same_memory():
    x, out = np.arange(8.0), np.zeros(8)
    assert simulate(ints_and_floats, 1, 8, x, out, shared_bytes=96).hazards == []
    np.testing.assert_array_equal(out, np.arange(7, -1, -1) + x + 3)
    simulate(same_bytes, 1, 8, out, shared_bytes=32)
    assert (out == 0x3F800000).all()


def rows_and_columns(x, out, columns, down, along, start):
    s = cuda.shared.array(1200, float32)
    t = cuda.threadIdx.x
    for i in range(t, 1200, cuda.blockDim.x):
        s[i] = x[i] + cuda.blockIdx.x
    cuda.syncthreads()
    out[cuda.grid(1)] = s[start + t // columns * down + t % columns * along]


@pytest.mark.parametrize("columns", [1, 3, 8, 16, 32, 64])
@pytest.mark.parametrize(("down", "along"), [(0, 1), (1, 0), (16, 1), (1, 17), (0, 0), (2, 3)])
def test_lanes_load_what_stands_in_a_row_or_a_column(columns, down, along):
    """Where the elements of lanes have one distance, a view finds them, and not their indices."""
    x, out = integers(1200), np.zeros(3 * 64, np.float32)
    simulate(rows_and_columns, 3, 64, x, out, columns, down, along, 5)
    t = np.arange(64)
    expected = x[5 + t // columns * down + t % columns * along]
    assert np.array_equal(out.reshape(3, 64), expected + np.arange(3).reshape(3, 1))


def test_lanes_load_in_descending_order():
    x, out = integers(1200), np.zeros(64, np.float32)
    simulate(rows_and_columns, 1, 64, x, out, 64, 0, -1, 100)
    assert np.array_equal(out, x[100 - np.arange(64)])
