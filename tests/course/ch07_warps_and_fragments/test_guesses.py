"""The answers of chapter 07, found another way: by kernels that use the instructions."""

import json

import numpy as np
import pytest
from numpy import float16, float32, uint32

from gemmlab import cuda, simulate
from gemmlab.course.ch07_warps_and_fragments import guesses as answers
from gemmlab.instructions import (
    layout,
    ldmatrix_x2_trans,
    ldmatrix_x4,
    mma_m16n8k16_f32_f16,
    pack_f16x2,
    unpack_f16x2,
    wmma_load_a_row,
)
from tests.support.integer_sums import ONE, on_hopper
from tests.support.record_lines import H200

element_a = layout("m16n8k16", "A").element


def test_registers():
    a, _, _ = mma_m16n8k16_f32_f16.operands
    assert answers.registers().number == a.count


def test_fmas():
    """The product of ones is, in all its elements, the number of FMAs."""

    def of_ones(d):
        one = pack_f16x2(float16(1), float16(1))
        zero = float32(0)
        c = mma_m16n8k16_f32_f16((one, one, one, one), (one, one), (zero, zero, zero, zero))
        for x in range(4):
            d[cuda.threadIdx.x, x] = c[x]

    d = np.zeros((32, 4), float32)
    simulate(of_ones, 1, 32, d)
    assert answers.fmas().number == d.sum()


def arrived(gpu):
    """What each lane holds after `wmma.load` of a tile whose elements are their own numbers."""

    def probe(table):
        tile = cuda.shared.array((16, 16), float16, alignment=16)
        lane = cuda.threadIdx.x
        for e in range(lane, 256, 32):
            tile[e // 16, e % 16] = e
        cuda.syncwarp()
        a = wmma_load_a_row(tile, 0, 0)
        for register in range(8):
            table[lane, 2 * register], table[lane, 2 * register + 1] = unpack_f16x2(a[register])

    table = np.full((32, 16), -1, np.int32)
    simulate(probe, 1, 32, table, device=gpu)
    return table


def test_rows():
    assert answers.rows().number == len(set(arrived("h200")[0] // 16))


def test_v100():
    same = (arrived("h200") == arrived("v100")).all(axis=1)
    assert answers.v100().number == same.sum()


def test_pairs():
    """By what `ldmatrix` brings: it is made for B."""

    def probe(table):
        tile = cuda.shared.array((16, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        for e in range(lane, 128, 32):
            tile[e // 8, e % 8] = e
        cuda.syncwarp()
        b = ldmatrix_x2_trans(tile, lane % 16, 0)
        for register in range(2):
            low, high = unpack_f16x2(b[register])
            table[lane, register] = high // 8 - low // 8

    table = np.zeros((32, 2), np.int32)
    simulate(probe, 1, 32, table)
    assert set(table.ravel()) == {answers.pairs().number}


def test_different():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(float16) for shape in ((16, 256), (256, 8)))
    chain, _, _ = on_hopper(*np.broadcast_arrays(a[:, None], b.T))
    exact = (a.astype(float) @ b.astype(float)).astype(float32)
    assert answers.different().number == (chain / ONE != exact).sum()


def of_a_fragment(by_matrix):
    """Counters of a warp that takes A from shared memory, in rows of 32 bytes."""

    def kernel(held):
        As = cuda.shared.array((16, 16), float16, alignment=16)
        lane = cuda.threadIdx.x
        for e in range(lane, 256, 32):
            As[e // 16, e % 16] = e
        cuda.syncwarp()
        if by_matrix:
            a = ldmatrix_x4(As, lane % 16, 8 * (lane // 16))
            for w in range(4):
                held[lane, w] = a[w]
        else:
            for w in range(4):
                i, j = element_a(lane, 2 * w)
                held[lane, w] = pack_f16x2(As[i, j], As[i, j + 1])

    return simulate(kernel, 1, 32, np.zeros((32, 4), uint32)).counters


def test_requests():
    assert answers.requests().number == of_a_fragment(by_matrix=False)["shared_load_requests"]


def test_wavefronts():
    assert answers.wavefronts().number == of_a_fragment(by_matrix=True)["shared_load_wavefronts"]


def test_gain():
    rows = json.loads((H200 / "fragment_uses.json").read_text("utf-8"))["rows"]
    (row,) = (r for r in rows if (r["use"], r["m"], r["batch"]) == ("prefix sum", 16, 262144))
    median = {where: ns[1] for where, ns in row["ns"].items()}
    registers = median.pop("registers")
    assert answers.gain().number == pytest.approx(min(median.values()) / registers)
