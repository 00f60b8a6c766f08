"""Simulated instructions do what they say; hardware does it too: `tests/benchmarks/hardware`."""

import re

import numpy as np
import pytest

from benchmarks.hardware.probes.instructions import INSTRUCTIONS, KINDS, probe
from gemmlab import cuda, device, instructions, simulate
from gemmlab.device import architecture
from gemmlab.instructions import (
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    cvt_rn_f16x2_f32,
    fragments,
    ldmatrix_x2,
    ldmatrix_x4,
    mma_m16n8k16_f32_f16,
    shared_view,
)
from gemmlab.instructions.instruction import Registers
from gemmlab.simt import UnsupportedError
from tests.support.ptx import compiled

every_instruction = pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda x: x.name)


def views(A):
    first = shared_view((4, 32), np.float32, 0)
    second = shared_view((2, 32), np.int32, 512)
    t = cuda.threadIdx.x
    first[3, t] = A[t]
    second[1, t] = t
    cuda.syncthreads()
    A[t] = first[3, 31 - t] + second[1, t]


@every_instruction
def test_a_lesser_gpu_is_refused_in_the_simulator(instruction):
    least = architecture(instruction.requires).capability
    lesser = [n for n in ("v100", "t4", "a100_80gb") if device(n).compute_capability < least]
    one = probe(instruction)
    for gpu in lesser:
        with pytest.raises(UnsupportedError, match=f"{instruction.name} needs compute capability"):
            simulate(one.kernel, 1, 32, *one.arguments(1, "normal"), device=gpu)
    simulate(one.kernel, 1, 32, *one.arguments(1, "normal"), device="h200")


def test_a_view_is_simulated():
    A = np.arange(32, dtype=np.float32)
    simulate(views, 1, 32, A, shared_bytes=512 + 256)
    assert (A == 31).all()
    with pytest.raises(ValueError, match="bytes 512 to 768 does not fit into shared_bytes=600"):
        simulate(views, 1, 32, A, shared_bytes=600)
    with pytest.raises(ValueError, match="does not fit into shared_bytes=767"):
        simulate(views, 1, 32, A, shared_bytes=767)


@every_instruction
def test_every_probe_runs_without_a_hazard(instruction):
    one = probe(instruction)
    for kind in KINDS:
        report = simulate(one.kernel, 3, 32, *one.arguments(3, kind))
        assert report.hazards == []
        assert report.instructions["inst_executed"] > 0


@every_instruction
def test_every_probe_is_given_what_its_operands_hold(instruction):
    """No conversion comes between: one of a negative float32 to uint32 has no meaning."""
    one = probe(instruction)
    declared = [x for x in instruction.operands if isinstance(x, Registers)]
    by_name = {i.name: i for i in one.inputs}
    for operand in declared:
        assert by_name[operand.name].dtype == (operand.carrier or one.output[0])
    for kind in KINDS:
        *inputs, _ = one.arguments(2, kind)
        assert [a.dtype for a in inputs] == [i.dtype for i in one.inputs]
        assert [a.shape for a in inputs] == [(2, *i.shape) for i in one.inputs]


def test_extreme_operands_are_extreme():
    x = probe(instructions.cvt_rna_tf32_f32).arguments(500, "edges")[0].ravel()
    fraction, dropped = x.view(np.uint32) & 0x7FFFFF, x.view(np.uint32) & 0x1FFF
    for some in (
        np.isnan(x),
        np.isinf(x),
        np.isnan(x) & (fraction == dropped),
        x == 0,
        (x != 0) & (abs(x) < np.finfo(np.float32).tiny),
        dropped == 0x1000,
        dropped == 0x1FFF,
    ):
        assert 20 < some.sum() < len(x) / 2


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", "_trans"])
def test_matrices_go_to_registers_and_back_as_the_manual_says(count, trans):
    load = probe(getattr(instructions, f"ldmatrix_x{count}{trans}"))
    rows, at = np.arange(256, dtype=np.uint16).reshape(1, 32, 8), np.arange(31, -1, -1)
    words = np.zeros((1, 32, count), np.uint32)
    arguments = {"rows": rows, "at": at.astype(np.int32).reshape(1, 32)}
    simulate(load.kernel, 1, 32, *(arguments[i.name] for i in load.inputs), words)
    for lane in range(32):
        for m in range(count):
            matrix = rows[0, at[8 * m : 8 * m + 8]]
            if trans:
                matrix = matrix.T
            low, high = matrix[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2].tolist()
            assert words[0, lane, m] == low | high << 16

    store = probe(getattr(instructions, f"stmatrix_x{count}{trans}"))
    back = np.zeros((1, 32, 8), np.uint16)
    arguments["values"] = words
    simulate(store.kernel, 1, 32, *(arguments[i.name] for i in store.inputs), back)
    used = at[: 8 * count]
    assert np.array_equal(back[0, used], rows[0, used])


def test_the_first_of_a_pair_is_the_low_half():
    for name in ("pack_f16x2", "unpack_f16x2"):  # PTX: the first of a vector is the low half
        text = getattr(instructions, name).ptx
        assert re.search(r"mov\.b32 (\{d\}, \{\{low, high\}\}|\{\{low, high\}\}, \{word\});", text)
    for name in ("unpack_f16x2", "unpack_bf16x2"):
        text = getattr(instructions, name).ptx
        assert re.search(r" \{d0\}, low; .* \{d1\}, high;", text)
    assert "shl.b32 low, {word}, 16; and.b32 high, {word}, 0xffff0000;" in text
    for x in (instructions.cvt_rn_f16x2_f32, instructions.cvt_rz_bf16x2_f32):
        assert x.ptx.endswith("{d}, {high}, {low}")  # in PTX the first source is the upper half
        assert [o.name for o in x.operands] == ["low", "high"]


@pytest.mark.parametrize(
    ("given", "rna", "others"),
    [
        (0x7FC00000, 0x7FC00000, 0x7FFFE000),
        (0xFFBD5555, 0xFFBD4000, 0x7FFFE000),
        (0x7F800001, 0x7F800000, 0x7FFFE000),
        (0xFFFFFFFF, 0xFFFFE000, 0x7FFFE000),
        (0x7F7FF000, 0x7F800000, None),
        (0xFF800000, 0xFF800000, 0xFF800000),
    ],
)
def test_what_becomes_of_nan_and_infinity_in_tf32(given, rna, others):
    """RNA adds half a unit to what is finite and cuts; the others have a NaN of their own."""
    x = np.full((1, 32, 1), given, np.uint32).view(np.float32)
    for rounding, expected in (("rna", rna), ("rn", others), ("rz", others)):
        if expected is not None:
            one = probe(getattr(instructions, f"cvt_{rounding}_tf32_f32"))
            out = np.zeros((1, 32, 1), np.float32)
            simulate(one.kernel, 1, 32, x, out)
            assert (out.view(np.uint32) == expected).all()


@pytest.mark.parametrize("name", ["wmma_mma_row_col_f32", "wmma_mma_col_row_f16"])
def test_wmma_reads_the_lower_half_of_its_registers_alone(name):
    one = probe(getattr(instructions, name))
    a, b, c, d = one.arguments(2, "normal")
    simulate(one.kernel, 2, 32, a, b, c, d, device="h200")
    expected = d.copy()
    a[..., 4:], b[..., 4:] = 0x7FFF7FFF, 0
    simulate(one.kernel, 2, 32, a, b, c, d, device="h200")
    assert np.array_equal(d.view(np.uint32), expected.view(np.uint32))


def test_conversions_round_as_numpy_does():
    x = np.float32([1 + 2**-11, 1 + 3 * 2**-11, 65519.9, 65520, 2**-25, -0.1, np.inf, -0.0])

    def convert(x, out):
        t = cuda.threadIdx.x
        out[t] = cvt_rn_f16x2_f32(x[t], x[t] * np.float32(2))

    out = np.zeros(len(x), np.uint32)
    simulate(convert, 1, len(x), x, out)
    with np.errstate(over="ignore"):
        once, twice = x.astype(np.float16), (2 * x).astype(np.float16)
    assert np.array_equal((out & 0xFFFF).astype(np.uint16).view(np.float16), once)
    assert np.array_equal((out >> 16).astype(np.uint16).view(np.float16), twice)


element_of_c = fragments.layout("m16n8k16", "C").element


def warp_gemm(A, B, C):
    """C (16×8) = A (16×k) · Bᵀ (8×k): one warp, `ldmatrix` and `mma`."""
    lane = cuda.threadIdx.x
    a = cuda.shared.array((16, 72), np.float16, alignment=16)  # rows 9·16 bytes apart: no conflicts
    b = cuda.shared.array((8, 72), np.float16, alignment=16)
    d = (np.float32(0), np.float32(0), np.float32(0), np.float32(0))
    for start in range(0, A.shape[1], 64):
        for v in range(lane, 16 * 8, 32):
            cp_async_16(a, v // 8, v % 8 * 8, A, v // 8, start + v % 8 * 8)
        for v in range(lane, 8 * 8, 32):
            cp_async_16(b, v // 8, v % 8 * 8, B, v // 8, start + v % 8 * 8)
        cp_async_commit()
        cp_async_wait(0)
        cuda.syncthreads()
        for k in range(0, 64, 16):
            fa = ldmatrix_x4(a, lane % 16, k + lane // 16 * 8)
            fb = ldmatrix_x2(b, lane % 8, k + lane // 8 % 2 * 8)
            d = mma_m16n8k16_f32_f16(fa, fb, d)
        cuda.syncthreads()
    for x in range(4):
        i, j = element_of_c(lane, x)
        C[i, j] = d[x]


def test_gemm_of_one_warp():
    rng = np.random.default_rng(0)
    A = rng.integers(-8, 8, (16, 256)).astype(np.float16)
    B = rng.integers(-8, 8, (8, 256)).astype(np.float16)
    C = np.full((16, 8), np.nan, np.float32)
    report = simulate(warp_gemm, 1, 32, A, B, C)
    assert np.array_equal(C, A.astype(np.float32) @ B.T.astype(np.float32))
    assert report.instructions["inst_mma"] == 256 // 16
    assert report.instructions["inst_ldmatrix"] == 2 * 256 // 16
    assert report.instructions["inst_async_copy"] == 6 * 256 // 64
    # ldmatrix takes a wavefront for each 8×8 matrix: four of A and two of B.
    assert report.counters["shared_load_wavefronts"] == 6 * 256 // 16
    assert report.counters["shared_bank_conflicts"] == 0
    assert report.counters["global_load_sectors"] == (A.nbytes + B.nbytes) // 32


@pytest.mark.ptxas
def test_it_compiles():
    matrix = ("float16", 2)
    ptx = compiled(warp_gemm, matrix, matrix, ("float32", 2))
    assert ".local" not in ptx
    assert "call" not in ptx
