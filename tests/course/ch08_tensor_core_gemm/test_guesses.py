"""The answers of chapter 08, found another way: by kernels that are counted, and recorded lines."""

import json

import numpy as np
import pytest
from numpy import float16, float32, uint32

from gemmlab import Gemm, Tiling, cuda, kernels, run, simulate
from gemmlab.course.ch07_warps_and_fragments import q3_matrix_loads as matrix_loads
from gemmlab.course.ch08_tensor_core_gemm import guesses as answers
from gemmlab.instructions import layout, ldmatrix_x4
from gemmlab.kernels.tensor_core.shared.shared_layouts import PIECE, tile_shapes
from tests.support.record_lines import H200, nanoseconds

element_a = layout("m16n8k16", "A").element
HALVES = {"dtype": "float16", "out_dtype": "float32"}


def test_fed():
    """A wavefront a cycle: those of one `mma` whose operands `ldmatrix` loads."""
    a, b, c = (np.ones(shape, float16) for shape in ((16, 16), (16, 8), (16, 8)))
    report = simulate(matrix_loads.build_matrix_loads(), 1, 32, a, b, c.astype(float32))
    assert report.instructions["inst_mma"] == 1
    assert answers.fed().number == report.counters["shared_load_wavefronts"]


def test_sectors():
    def first_elements(A, held):
        lane = cuda.threadIdx.x
        i, j = element_a(lane, 0)
        held[lane] = A[i, j]

    counters = simulate(
        first_elements, 1, 32, np.zeros((16, 4096), float16), np.zeros(32, float16)
    ).counters
    assert answers.sectors().number == counters["global_load_sectors"]


def test_reused():
    """By mma_swizzled, whose loads have no conflicts."""
    tiling = Tiling(block=(128, 128, 32), warp=(64, 64), thread=(8, 16))
    problem = Gemm(128, 128, 32, **HALVES)
    counters = run(kernels.mma_swizzled, problem, "simulator", tiling=tiling).counters
    assert not counters["shared_bank_conflicts"]
    products = 128 / 16 * 128 / 8 * 32 / 16
    assert answers.reused().number == counters["shared_load_wavefronts"] / products


def test_conflicts():
    def kernel(held):
        As = cuda.shared.array((16, 64), float16, alignment=16)
        lane = cuda.threadIdx.x
        for e in range(lane, 1024, 32):
            As[e // 64, e % 64] = e
        cuda.syncwarp()
        a = ldmatrix_x4(As, lane % 16, 8 * (lane // 16))
        for w in range(4):
            held[lane, w] = a[w]

    counters = simulate(kernel, 1, 32, np.zeros((32, 4), uint32)).counters
    assert answers.conflicts().number == counters["shared_load_wavefronts"]


def median(rung, step=32):
    """Of the line for 4096 in float16, with sums and C in float32 [ns]."""
    lines = map(json.loads, (H200 / f"{rung}.jsonl").read_text("utf-8").splitlines())
    own = {"block": [128, 128, step], "warp": [64, 32], "thread": [8, 8]}
    problem = {"m": 4096, "n": 4096, "k": 4096, **HALVES}
    (line,) = (line for line in lines if line.get("problem") == problem and line["tiling"] == own)
    return nanoseconds(line)


def test_faster():
    assert answers.faster().number == pytest.approx(median("mma_shared") / median("mma_swizzled"))


def test_deeper():
    short, long = (median("mma_swizzled", step) for step in (32, 64))
    assert answers.deeper().number == pytest.approx(short / long)


def global_wavefronts(shape, row):
    """Of the copy of one tile, 128 bytes a cycle: pieces of eight threads in banks of their own."""
    height, length = shape
    pieces = [(i, j) for i in range(height) for j in range(0, length, PIECE)]
    total = 0
    for at in range(0, len(pieces), 8):
        banks = [(i * row + j) * 2 // 16 % 8 for i, j in pieces[at : at + 8]]
        total += max(map(banks.count, banks))
    return total


def test_copies():
    """Of a step: what is counted in shared memory, and the tiles' way through L1; then C."""
    k, tiling = 4096, kernels.mma_swizzled.default
    short, long = (
        run(kernels.mma_swizzled, Gemm(128, 128, n, **HALVES), "simulator").counters
        for n in (32, 64)
    )
    fragments, stores = (
        long[f"shared_{op}_wavefronts"] - short[f"shared_{op}_wavefronts"]
        for op in ("load", "store")
    )
    loads = sum(global_wavefronts(shape, k) for shape in tile_shapes(tiling, "nn"))
    of_c = 128 * 128 * 4 / 128 * 2  # four lanes have half a line: two rows in the same banks
    steps = k / 32
    every = steps * (fragments + stores + loads) + of_c
    share = 100 * (1 - steps * fragments / every)
    assert answers.copies().number == pytest.approx(share, rel=0.02)


def test_coarser():
    """By rounding: the numbers just above 1 that are lost."""
    x = np.float32(1) + np.arange(1, 2**16, dtype=np.float32) * np.float32(2.0**-20)
    lost_in_float16 = np.abs(x.astype(float16).astype(float32) - x).max()
    cut = (x.view(uint32) + 0x7FFF + (x.view(uint32) >> 16 & 1)) & np.uint32(0xFFFF0000)
    lost_in_bfloat16 = np.abs(cut.view(float32) - x).max()
    assert answers.coarser().number == pytest.approx(lost_in_bfloat16 / lost_in_float16)
