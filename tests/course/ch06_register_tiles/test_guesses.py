"""The answers of chapter 06, found another way: by runs of the rungs, and by lines of records."""

import itertools

import numpy as np
import pytest
from numpy import float32

from gemmlab import Gemm, Tiling, cuda, device, kernels, run, simulate
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.course.ch06_register_tiles import guesses as answers
from gemmlab.model import occupancy
from tests.support.bank_words import passes
from tests.support.record_lines import lines, nanoseconds, time

GPU = device("h200")
WARP = 32
FMAS_A_CYCLE = round(GPU.peak_of("float32") / (2 * WARP * GPU.sms * GPU.clock))  # of warps, an SM


def counted(kernel, problem, tiling=None):
    return run(kernel, problem, backend="simulator", tiling=tiling).counters


def loads_per_fma(kernel, m, n, k, tiling=None):
    found = counted(kernel, Gemm(m, n, k), tiling)["shared_load_wavefronts"]
    return found / (m * n * k / WARP)


def of_tile(tm, tn):
    """Of one block of *register_tiled* with tm×tn elements a thread."""
    tiling = Tiling((16 * tm, 16 * tn, 8), (tm, tn))
    return loads_per_fma(kernels.register_tiled, *tiling.block, tiling)


def test_share():
    loads = loads_per_fma(kernels.tiled, 32, 32, 32)
    assert answers.share().number == 100 / loads / FMAS_A_CYCLE


def test_limit():
    for rows in (2, 8):
        assert (of_tile(rows, 1) - answers.limit().number) * rows == pytest.approx(1)


def test_side():
    fed = (t for t in itertools.count(1) if FMAS_A_CYCLE * of_tile(t, t) <= 1)
    assert answers.side().number == next(fed)


def test_integers():
    """By opcodes: the loop over steps once, the loop over p inside of it once for each p."""
    code = rung_listing(kernels.register_tiled, Gemm(4096, 4096, 4096)).instructions
    ends = [(int(i.operands[-1], 16), i.address) for i in code if i.name == "BRA"]
    outer, inner = sorted((x for x in ends if x[0] < x[1]), key=lambda x: x[0] - x[1])[:2]
    names = {"IMAD", "IADD3", "ISETP", "LEA", "LOP3", "SHF", "SEL", "MOV", "PLOP3", "PRMT", "CS2R"}
    counts = np.zeros(2)
    for i in code:
        often = 8 * (inner[0] <= i.address <= inner[1]) or int(outer[0] <= i.address <= outer[1])
        uniform = i.name.startswith("U") and i.name != "ULDC"
        counts += often * np.array([i.name in names or uniform, i.name == "FFMA"])
    assert answers.integers().number == pytest.approx(100 * counts[0] / counts[1], rel=0.03)


def test_warps():
    timed = [line for rung in kernels.LADDER for line in lines(rung.name, 4096)]
    kept = min(timed, key=nanoseconds)["resources"]
    shared = kept["static_shared_bytes"] + kept["dynamic_shared_bytes"]
    blocks = occupancy.resident_blocks(GPU, kept["threads"], shared, kept["registers"])
    assert answers.warps().number == blocks * kept["threads"] / WARP


def test_wide():
    problem = Gemm(128, 128, 8)
    after, before = (
        counted(kernel, problem)["shared_load_wavefronts"]
        for kernel in (kernels.vectorised, kernels.register_tiled)
    )
    assert answers.wide().number == after / before


def test_padding():
    def transposed(A):
        As = cuda.shared.array((8, 128), float32)
        lane = cuda.threadIdx.x
        row, column = lane // 2, lane % 2 * 4
        As[column, row] = A[row, column]

    report = simulate(transposed, 1, WARP, np.ones((16, 8), float32))
    assert answers.padding().number == report.counters["shared_store_wavefronts"]


def test_warp():
    strip, compact = (
        loads_per_fma(kernel, 128, 128, 16) for kernel in (kernels.vectorised, kernels.warp_tiled)
    )
    assert answers.warp().number == compact / strip


def test_gap():
    """Words of each quarter of a warp for the loads, the simulator's counts for the rest."""
    (m, n, step), k = kernels.warp_tiled.default.block, 4096
    tile_of_a = [k * (e // step) + e % step for e in range(m * step)]
    tile_of_b = [k * (e // n) + e % n for e in range(step * n)]
    quarters = [
        tile[at : at + 32] for tile in (tile_of_a, tile_of_b) for at in range(0, m * step, 32)
    ]
    short, long = (counted(kernels.warp_tiled, Gemm(m, n, k)) for k in (step, 2 * step))
    stores, loads = (
        long[f"shared_{op}_wavefronts"] - short[f"shared_{op}_wavefronts"]
        for op in ("store", "load")
    )
    multiply = max(m * n * step / WARP / FMAS_A_CYCLE, loads)
    idle = sum(map(passes, quarters)) + GPU.dram_latency * GPU.clock + stores
    assert answers.gap().number == round(100 * idle / (idle + multiply))


def test_small():
    tiled = time("tiled", 512, (16, 16, 16))
    (pipelined,) = (
        nanoseconds(line)
        for line in lines("pipelined", 512)
        if line["tiling"]["block"] == [128, 256, 16]
    )
    assert answers.small().number == round(tiled / pipelined, 2)
