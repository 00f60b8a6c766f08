"""Accesses of several elements: what they count, and where they may not be."""

import numpy as np
import pytest

from gemmlab import cuda, simulate
from gemmlab.instructions import (
    ldmatrix_x4,
    load_v2,
    load_v4,
    mma_m16n8k16_f32_f16,
    shared_view,
    store_v4,
    wmma_load_c_f32,
    wmma_store_d_f32,
)
from tests.support.launches import hazards_of_a_block

# ------------------------------------------------------------------------------------------ counted


def strided(A, B, stride, column):
    s = cuda.shared.array((32, 64), np.float32, alignment=16)
    t = cuda.threadIdx.x
    for i in range(32):
        store_v2_of(s, i, t)
    cuda.syncthreads()
    store_v4(B, t, 0, load_v4(A, t * stride, 0))
    load_v4(s, t // 16 * (1 - column) + t * column, t % 16 * 4 * (1 - column))


def store_v2_of(s, i, t):
    s[i, 2 * t] = 1
    s[i, 2 * t + 1] = 1


@pytest.mark.parametrize(("stride", "sectors"), [(1, 16), (2, 32), (8, 32)])
def test_a_wide_access_is_one_request(stride, sectors):
    A, B = np.zeros((256, 4), np.float32), np.zeros((32, 4), np.float32)
    report = simulate(strided, 1, 32, A, B, stride, 0)
    assert report.counters["global_load_requests"] == 1
    assert report.counters["global_load_sectors"] == sectors
    assert report.counters["global_load_bytes"] == 32 * 16
    assert report.counters["global_store_sectors"] == 16
    assert report.instructions["inst_global_load"] == 1


def test_a_wide_shared_access_takes_a_quarter_warp_at_a_time():
    A, B = np.zeros((32, 4), np.float32), np.zeros((32, 4), np.float32)
    rows, column = (simulate(strided, 1, 32, A, B, 1, c).counters for c in (0, 1))
    assert rows["shared_load_requests"] == column["shared_load_requests"] == 1
    assert rows["shared_load_wavefronts"] == 4  # 32 × 16 B, 128 B at a time
    assert column["shared_load_wavefronts"] == 32  # all lanes begin at bank 0


# ------------------------------------------------------------------------------------------ hazards


def placed(A, B, row, column):
    t = cuda.threadIdx.x
    B[t, 0] = load_v4(A, row, column)[0] if t == 5 else np.float32(0)


@pytest.mark.parametrize(
    ("row", "column", "kind", "text"),
    [
        (0, 1, "misaligned", "thread (5) accesses byte 4 of A; load_v4 needs a multiple of 16"),
        (0, 2, "misaligned", "thread (5) accesses byte 8 of A; load_v4 needs a multiple of 16"),
        (0, 8, "out-of-bounds", "A[…, 8…11] is outside, its dimension 1 has 8 elements"),
        (4, 0, "out-of-bounds", "A[4, …] is outside, its dimension 0 has 4 elements"),
        (-1, 0, "out-of-bounds", "A[-1, …] is outside, its dimension 0 has 4 elements"),
    ],
)
def test_wrong_places_name_line_and_thread(row, column, kind, text):
    A, B = np.zeros((4, 8), np.float32), np.zeros((32, 1), np.float32)
    [found] = hazards_of_a_block(placed, A, B, row, column)
    assert found.kind == kind
    assert text in found.message
    assert found.threads == ((5, 0, 0),)
    assert found.code.startswith("B[t, 0] = load_v4(A")


NOTHING = (np.float32(0), np.float32(0), np.float32(0), np.float32(0))


def guarded(A, B):
    t = cuda.threadIdx.x
    store_v4(B, t, 0, load_v4(A, t, 0) if t < A.shape[0] else NOTHING)


def test_a_load_can_be_one_branch_of_a_choice():
    A, B = np.ones((20, 4), np.float32), np.full((32, 4), np.nan, np.float32)
    report = simulate(guarded, 1, 32, A, B)
    assert (B[:20] == 1).all()
    assert (B[20:] == 0).all()
    assert report.counters["global_load_bytes"] == A.nbytes


def careless(B):
    s = cuda.shared.array((32, 4), np.float32)
    s[cuda.threadIdx.x, 0] = 1
    load_v2(s, 0, 0)


def test_a_shared_array_must_be_aligned_on_purpose():
    [found] = hazards_of_a_block(careless, np.zeros(1, np.float32), threads=1)[:1]
    assert found.kind == "misaligned"
    assert "declare it with alignment=8" in found.message


def tile_at(A, B, row, column):
    d = wmma_load_c_f32(A, row, column)
    wmma_store_d_f32(B, 0, 0, d)


@pytest.mark.parametrize(
    ("row", "column", "axis"), [(0, 8, None), (1, 8, 0), (-1, 8, 0), (0, 16, 1), (0, -8, 1)]
)
def test_a_tile_lies_inside_its_array(row, column, axis):
    A, B = np.ones((16, 24), np.float32), np.zeros((16, 16), np.float32)
    report = simulate(tile_at, 1, 32, A, B, row, column, on_hazard="collect")
    if axis is None:
        assert report.hazards == []
        assert report.counters["global_load_bytes"] == B.nbytes
        assert report.counters["global_store_bytes"] == B.nbytes
        return
    assert {h.kind for h in report.hazards} == {"out-of-bounds"}
    text = f"a tile reaches beyond dimension {axis} of A, which has {A.shape[axis]}"
    assert all(text in h.message for h in report.hazards)


def half_a_warp(A, B):
    t = cuda.threadIdx.x
    z = np.float32(0)
    if t < 16:
        d = mma_m16n8k16_f32_f16((A[t], A[t], A[t], A[t]), (A[t], A[t]), (z, z, z, z))
        B[t] = d[0]


def test_a_warp_instruction_needs_the_whole_warp():
    [found] = hazards_of_a_block(half_a_warp, np.zeros(32, np.uint32), np.zeros(32, np.float32))
    assert found.kind == "divergent-barrier"
    assert found.threads == ((0, 0, 0), (16, 0, 0))
    assert "thread (16) does not get here" in found.message


@pytest.mark.parametrize(("load", "passes"), [(load_v4, 2), (ldmatrix_x4, 4)])
def test_a_traced_access_takes_the_wavefronts_that_are_counted(load, passes):
    """Lanes that ask for the same 16 bytes are served together; rows that they point at are not."""

    def kernel(out):
        tile = cuda.shared.array((1, 8), np.float32, alignment=16)
        lane = cuda.threadIdx.x
        if lane < 8:
            tile[0, lane] = lane
        cuda.syncwarp()
        v = load(tile, 0, 0)  # traced
        out[lane] = v[0]

    report = simulate(kernel, 1, 32, np.zeros(32, np.float32), trace="# traced")
    (access,) = (a for a in report.trace if a.space == "shared")
    assert int(access.wavefronts.sum()) == passes == len(access.groups(0))
    assert report.counters["shared_load_wavefronts"] == passes


def test_a_view_is_aligned_as_its_offset_is():
    def at_16(A):
        store_v4(shared_view((32, 4), np.float32, 16), cuda.threadIdx.x, 0, load_v4(A, 0, 0))

    def at_8(A):
        store_v4(shared_view((32, 4), np.float32, 8), cuda.threadIdx.x, 0, load_v4(A, 0, 0))

    def at_2(A):
        shared_view((32, 4), np.float32, 2)[0, 0] = A[0, 0]

    A = np.zeros((1, 4), np.float32)
    assert hazards_of_a_block(at_16, A, shared_bytes=1024) == []
    [found] = hazards_of_a_block(at_8, A, shared_bytes=1024)
    assert found.kind == "misaligned"
    with pytest.raises(ValueError, match="does not begin at an element"):
        simulate(at_2, 1, 32, A, shared_bytes=1024)
