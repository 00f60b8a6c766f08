"""Stores of boxes by the TMA: what is right stays silent, each wrong twin is found at its line."""

import numpy as np
import pytest

from gemmlab import simulate
from gemmlab.here.compilers import assemble
from gemmlab.instructions import tensor_map
from tests.instructions.test_asynchronous import COPIED, PIPELINE, STORED, launched
from tests.support.asynchronous import made
from tests.support.ptx import compiled

# A warp that doubles a matrix: boxes of 8×32 come and leave by the TMA, through two places in turn.
DOUBLED = """
def kernel(A, D, C):
    s = shared_view((2, 8, 32), float32, 0)
    bar = shared_view((1,), uint64, 2 * 8 * 128)
    t = cuda.threadIdx.x
    if t == 0:
        fence_tensor_map(A)
        fence_tensor_map(D)
        mbarrier_init(bar, 0, 1)
        fence_mbarrier_init()
    cuda.syncwarp()
    for i in range(4):
        if t == 0:
            tma_wait_read(1)
            mbarrier_arrive_expect(bar, 0, 8 * 128)
            tma_load(s, i % 2, 0, 0, A, 8 * i, 0, bar, 0)
        mbarrier_wait(bar, 0, i % 2)
        cuda.syncwarp()
        for r in range(8):
            s[i % 2, r, t ^ r % 8 * 4] *= 2
        fence_proxy_async()
        cuda.syncwarp()
        if t == 0:
            tma_store(D, 8 * i, 0, s, i % 2, 0, 0)
            tma_commit()
    tma_wait_read(0)
"""


def doubled(source, name, shape=(32, 32), on_hazard="collect"):
    a = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    c = np.full(shape, np.nan, np.float32)
    maps = tensor_map(a, 8), tensor_map(c, 8)
    kernel = made(source, name)
    report = simulate(kernel, 1, 32, *maps, c, shared_bytes=2 * 8 * 128 + 8, on_hazard=on_hazard)
    return report, a, c


@pytest.mark.parametrize("shape", [(32, 32), (27, 20)], ids=str)
def test_boxes_come_and_leave_by_the_tma(shape):
    """Of a box that reaches beyond the matrix, nothing is stored there."""
    report, a, c = doubled(DOUBLED, f"doubled {shape}", shape)
    assert report.hazards == []
    assert np.array_equal(c, 2 * a)
    assert report.instructions["inst_tensor_store"] == 4
    assert report.counters["tensor_store_bytes"] == 4 * 8 * 128


# As in WRONG, of DOUBLED.
WRONG_STORES = {
    "a place is filled before its store has read it": (
        "tma_wait_read(1)", "tma_wait_read(2)",
        "shared-race", "tma_load(s", "which the tma_store of line",
    ),
    "stores are no group": (
        "tma_commit()", "pass",
        "shared-race", "tma_load(s", "which the tma_store of line",
    ),
    "another thread waits": (
        "    tma_wait_read(1)",
        "    pass\n        if t == 1:\n            tma_wait_read(1)\n        if t == 0:",
        "shared-race", "tma_load(s", "which the tma_store of line",
    ),
    "what was stored is not fenced": (
        "fence_proxy_async()", "",
        "missing-fence", "tma_store(D", "fence_proxy_async() has to follow",
    ),
    "the fence behind the warp's meeting": (
        "fence_proxy_async()\n        cuda.syncwarp()",
        "cuda.syncwarp()\n        fence_proxy_async()",
        "missing-fence", "tma_store(D", "has to follow there, before the barrier",
    ),
    "the block ends before its last stores have been read": (
        "    tma_wait_read(0)", "",
        "async-not-waited", "tma_store(D", "the block ends while the copy of thread (0) may still",
    ),
    "the map is not fenced": (
        "fence_tensor_map(D)", "",
        "missing-fence", "tma_store(D", "fence_tensor_map(map) has to come first",
    ),
    "the warp does not meet before the store": (
        "fence_proxy_async()\n        cuda.syncwarp()", "fence_proxy_async()",
        "shared-race", "tma_store(D", "s[",
    ),
    "the box does not fit": (
        "s, i % 2, 0, 0)\n            tma_commit", "s, i % 2, 4, 0)\n            tma_commit",
        "misaligned", "tma_store(D", "copies from byte 512 of s",
    ),
    "a copy begins between pieces of 16 bytes": (
        "A, 8 * i, 0, bar", "A, 8 * i, 2, bar",
        "misaligned", "tma_load(s", "copies from column 2 of A; the TMA begins at multiples of 16",
    ),
    "so does one beyond the matrix": (
        "A, 8 * i, 0, bar", "A, 8 * i, 33, bar",
        "misaligned", "tma_load(s", "copies from column 33 of A",
    ),
    "so does a store": (
        "tma_store(D, 8 * i, 0", "tma_store(D, 8 * i, 1",
        "misaligned", "tma_store(D", "copies to column 1 of D",
    ),
    "a copy that may not have come is stored": (
        "mbarrier_wait(bar, 0, i % 2)", "",
        "async-not-waited", "s[i % 2, r", "which the copy of line",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_STORES)
def test_a_wrong_store_is_found_at_its_line(name):
    text, instead, kind, place, words = WRONG_STORES[name]
    assert text in DOUBLED
    report, *_ = doubled(DOUBLED.replace(text, instead, 1), name)
    found = [h for h in report.hazards if h.kind == kind and place in h.code]
    assert found, report.hazards
    assert words in found[0].message, found[0].message


def test_blocks_that_store_the_same_box_are_a_race():
    a, c = np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32)
    kernel, maps = made(DOUBLED, "two blocks"), (tensor_map(a, 8), tensor_map(c, 8))
    report = simulate(kernel, 2, 32, *maps, c, shared_bytes=2056, on_hazard="collect")
    assert {h.kind for h in report.hazards} == {"global-race"}


@pytest.mark.ptxas
def test_it_compiles_to_the_instructions_that_are_declared():
    maps = ("uint8", 1)
    text = compiled(made(DOUBLED, "compiled"), maps, maps, ("float32", 2), cc=(9, 0))
    assert "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group" in text
    assert "cp.async.bulk.wait_group.read 1" in text
    _, taken = assemble(text, "sm_90")
    assert taken.local_bytes == 0


# A warp loads two boxes in turn from one place, which a thread of another warp fills.
LOADED = """
def kernel(A, C):
    boxes = shared_view((1, 8, 64), float16, 0)
    s = shared_view((512,), float16, 0)
    full = shared_view((1,), uint64, 1024)
    empty = shared_view((1,), uint64, 1032)
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier_init(full, 0, 1)
        mbarrier_init(empty, 0, 32)
        fence_mbarrier_init()
    cuda.syncthreads()
    if t == 32:
        fence_tensor_map(A)
        for i in range(3):
            mbarrier_wait(empty, 0, i & 1 ^ 1)
            mbarrier_arrive_expect(full, 0, 1024)
            tma_load(boxes, 0, 0, 0, A, 8 * i, 0, full, 0)
    if t < 32:
        held = cuda.local.array(4, uint32)
        for i in range(3):
            mbarrier_wait(full, 0, i & 1)
            held[0], held[1], held[2], held[3] = ldmatrix_x4(s, t * 8)
            C[i, t] = held[0] ^ held[3]
            mbarrier_arrive(empty, 0)
"""
USE = "            C[i, t] = held[0] ^ held[3]\n"
ARRIVE = "            mbarrier_arrive(empty, 0)\n"
FENCE = "            fence_proxy_async()\n"
BEFORE_USE = {  # whether an arrival may overtake the load
    "used first": (USE + ARRIVE, False),
    "arrival first": (ARRIVE + USE, True),
    "a fence before the arrival": (FENCE + ARRIVE + USE, False),
    "never used": (ARRIVE, False),
    "used when another is loaded": (ARRIVE + USE.replace("held[0]", "held[2]"), True),
}


@pytest.mark.parametrize("name", BEFORE_USE)
def test_an_arrival_overtakes_a_load_whose_value_nothing_has_used(name):
    lines, overtakes = BEFORE_USE[name]
    kernel = made(LOADED.replace(USE + ARRIVE, lines), name)
    a, c = np.arange(24 * 64, dtype=np.float16).reshape(24, 64), np.zeros((3, 32), np.uint32)
    report = simulate(kernel, 1, 64, tensor_map(a, 8), c, shared_bytes=1040, on_hazard="collect")
    assert [h.kind for h in report.hazards] == ["shared-race"] * overtakes
    for hazard in report.hazards:
        assert "ldmatrix_x4(s" in hazard.code
        assert hazard.ops == ("read", "copy")
        assert "an arrival at an mbarrier overtakes a load" in hazard.message


# Of the kernels of `test_asynchronous`

BEHIND = (
    "fence_proxy_async()\n    cuda.syncthreads()",
    "cuda.syncthreads()\n    fence_proxy_async()",
)


@pytest.mark.parametrize("source", [STORED, COPIED], ids=["stored", "cp.async"])
def test_a_fence_behind_the_barrier_comes_too_late_even_with_one_warpgroup(source):
    assert BEHIND[0] in source
    report, *_ = launched(source.replace(*BEHIND), 64, "fence behind")
    hazard = report.hazards[0]
    assert (hazard.kind, "wgmma(acc, As, 0, 0," in hazard.code) == ("missing-fence", True)
    assert "fence_proxy_async() has to follow there, before the barrier" in hazard.message
    # another barrier tells of the fences
    told = source.replace(BEHIND[0], BEHIND[1] + "\n    cuda.syncthreads()")
    assert launched(told, 64, "fence told")[0].hazards == []


def test_a_block_must_not_end_while_a_copy_fills_its_shared_memory():
    more = PIPELINE.replace("for i in range(steps):", "for i in range(steps + 1):", 1)
    report, *_ = launched(more, 320, "one copy more")
    assert {h.kind for h in report.hazards} == {"async-not-waited"}
    hazard = report.hazards[0]
    assert "tma_load(As" in hazard.code
    assert "the block ends while the copy of thread (128) may still fill As" in hazard.message
    assert hazard.ops == ("copy",)
