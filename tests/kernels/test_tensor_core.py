"""The ladder on Tensor Cores: exact on edge shapes, in all layouts and formats, to the bit."""

import math
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

from benchmarks.samples.edge_shapes import SCALES, edge_shapes
from gemmlab import Gemm, Tiling, kernels, predict, simulate
from gemmlab.compiled.forecast.rung_listings import compiled_rung, rung_listing
from gemmlab.compiled.sass.execution.machine import launch
from gemmlab.here.compilers import lacking
from gemmlab.kernels.tensor_core.shared.shared_layouts import (
    PIECE,
    are_aligned,
    copyable,
    in_rows,
    swizzled,
)
from gemmlab.kernels.tensor_core.shared.warp_mma import ARITHMETIC
from gemmlab.numerics.tensor_cores import mma
from gemmlab.problem import LAYOUTS
from tests.support.rungs import arguments, check, simulated

RUNGS = pytest.mark.parametrize("kernel", kernels.TENSOR_CORE, ids=lambda k: k.name)
STAGED = kernels.TENSOR_CORE[1:]


def tile(block, warp, stages=1):
    return Tiling(block, (warp[0] // 8, warp[1] // 4), stages, warp)


# Rows of 32, 64 and 128 elements are swizzled in ways of their own; warps side by side and below.
# A warp of few tiles has few lines to simulate, and more warps cost nothing.
LEAST, WIDE = ((32, 32, 32), (16, 16)), ((32, 128, 64), (16, 64))
SMALL = {
    "mma_direct": (tile((32, 32, 16), (16, 16)), tile((32, 64, 16), (32, 32))),
    "mma_shared": (tile(*LEAST), tile(*WIDE)),
    "mma_swizzled": (tile(*LEAST), tile(*WIDE)),
    "mma_pipelined": (*(tile(*LEAST, stages) for stages in (1, 2, 3)), tile(*WIDE, 5)),
    "mma_tuned": (tile(*LEAST, 2), tile(*WIDE, 3)),
}


def gemm(shape, which=0, **options):
    """A problem in one of the formats that these kernels take."""
    return Gemm(*shape, **ARITHMETIC[which % len(ARITHMETIC)]._asdict(), **options)


@RUNGS
def test_edge_shapes(kernel):
    """Scales, layouts and formats take turns. Sums of small integers are exact in FP32."""
    turns = zip(cycle(SCALES), cycle(LAYOUTS), cycle((0, 1, 2, 3, 1)), strict=False)
    for tiling, most in zip(SMALL[kernel.name], (None, 3), strict=False):
        shapes = list(edge_shapes(tiling))[:most]
        for shape, ((alpha, beta), layout, which) in zip(shapes, turns, strict=False):
            problem = gemm(shape, which, alpha=alpha, beta=beta, layout=layout)
            if problem.out_dtype == "float32":
                check(kernel, problem, tiling)
            else:  # C is rounded
                operands = problem.operands()
                result, _ = simulated(kernel, problem, operands, tiling)
                assert problem.error(result, operands) <= problem.tolerance


@RUNGS
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_aligned_and_not(kernel, layout):
    """Each layout of an operand has both kinds of rows in both tilings."""
    tilings = SMALL[kernel.name][:2][:: 1 if layout in ("nn", "tt") else -1]
    for shape, tiling in zip(((72, 136, 40), (67, 130, 45)), tilings, strict=True):
        check(kernel, gemm(shape, 1, beta=1, layout=layout), tiling)


@pytest.mark.parametrize("tiling", SMALL["mma_pipelined"], ids=str)
def test_rings_of_all_sizes(tiling):
    """With fewer tiles than stages, as many, and more."""
    for k in (16, 32 * tiling.stages, 32 * tiling.stages + 72):
        check(kernels.mma_pipelined, gemm((40, 64, k), 1), tiling)


def test_blocks_go_through_all_of_c_in_groups():
    """Nine rows of blocks are a whole group and one row more."""
    check(kernels.mma_tuned, gemm((9 * 32 - 5, 2 * 32 + 8, 32), 1), SMALL["mma_tuned"][0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_rung_adds_up_as_the_tensor_core_does_in_steps_of_16(dtype):
    """The same bits from each of them: chunk by chunk along k, whatever is copied how."""
    problem = Gemm(128, 128, 128, dtype=dtype, out_dtype="float32")
    operands = problem.operands(seed=7)
    a, b, _ = (x.astype(np.float32) for x in problem.values(operands))
    tiles_a = a.reshape(8, 16, 8, 16).transpose(0, 2, 1, 3)[:, None]
    tiles_b = b.reshape(8, 16, 16, 8).transpose(2, 0, 1, 3)[None]
    name = f"m16n8k16.f32.{'f16' if dtype == 'float16' else 'bf16'}"
    total = np.zeros((8, 16, 16, 8), np.float32)
    for step in range(8):
        total = mma(
            np.broadcast_to(tiles_a[:, :, step], (8, 16, 16, 16)),
            np.broadcast_to(tiles_b[:, :, step], (8, 16, 16, 8)),
            total, instruction=name, arch="sm_90",
        )  # fmt: skip
    expected = total.transpose(0, 2, 1, 3).reshape(128, 128)
    for kernel in kernels.TENSOR_CORE:
        result, _ = simulated(kernel, problem, operands, SMALL[kernel.name][0])
        assert np.array_equal(result.view(np.uint32), expected.view(np.uint32)), kernel.name


@pytest.mark.parametrize("kernel", STAGED, ids=lambda k: k.name)
def test_builds_that_differ_by_alignment(kernel):
    fits, not_ = gemm((16, 16, 16)), gemm((16, 20, 16))
    assert are_aligned(fits)
    assert not are_aligned(not_)
    assert are_aligned(replace(not_, layout="nt"))
    tiling, args = SMALL[kernel.name][0], arguments(not_, not_.operands())
    options = {**kernel.variant(not_, None), "aligned": True}
    shared = kernel.dynamic_shared_bytes(not_, tiling)
    grid_block = kernel.configure(not_, tiling)
    report = simulate(
        kernel.build(tiling, **options),
        *grid_block,
        *args,
        shared_bytes=shared,
        on_hazard="collect",
    )
    assert {"misaligned"} <= {h.kind for h in report.hazards}


def test_swizzled_pieces_meet_in_no_bank_and_others_do():
    for layout in LAYOUTS:
        problem = gemm((64, 128, 64), 1, layout=layout)
        conflicts = [
            simulated(kernel, problem, problem.operands(), SMALL[kernel.name][1])[1][
                "shared_bank_conflicts"
            ]
            for kernel in (kernels.mma_shared, kernels.mma_swizzled)
        ]
        assert conflicts[0] > conflicts[1] == 0, layout


@pytest.mark.parametrize("length", [16, 32, 64, 128, 256])
def test_swizzled_pieces_stay_in_their_rows_and_have_places_of_their_own(length):
    row, piece = np.arange(64)[:, None], np.arange(length // 8)
    plain, moved = in_rows(length)(row, piece), swizzled(length)(row, piece)
    assert np.array_equal(np.sort(moved, axis=1), plain)
    for first in range(0, 64, 8):  # eight below each other lie in all eight columns of 16 bytes
        columns = moved[first : first + 8] // 8 % 8
        assert all(len(set(column)) == 8 for column in columns.T)


def misfits(kernel):
    """Tilings that a rung refuses: no warps, a side that is no power of two, short steps, too few
    threads for the swizzle, and stages or steps that are not its own.
    """
    stages = 2 if kernel.dynamic else 1
    yield Tiling((64, 64, 32), (8, 8), stages)
    yield Tiling((64, 64, 32), (4, 8), stages, (16, 64))
    yield tile((96, 64, 32), (96, 32), stages)
    yield tile((64, 64, 8), (32, 32), stages)
    yield tile((64, 32, 32), (64, 32), stages)
    if kernel is not kernels.mma_pipelined:
        yield tile((64, 64, 32), (32, 32), 3 - stages)
    if kernel is kernels.mma_tuned:
        yield tile((64, 64, 48), (32, 32), stages)


@RUNGS
def test_tilings_that_do_not_fit(kernel):
    for tiling in misfits(kernel):
        with pytest.raises(ValueError, match="does not fit") as caught:
            kernel.choose(tiling)
        told = str(caught.value)
        example = eval(told[told.rindex("Tiling(") :], {"Tiling": Tiling})
        assert kernel.choose(example) is example


@RUNGS
def test_tilings_that_are_recorded_or_tested_fit(kernel):
    for tiling in (kernel.default, *kernel.tilings, *SMALL[kernel.name]):
        assert kernel.choose(tiling) is tiling
        grid, block = kernel.configure(gemm((100, 37, 20)), tiling)
        assert math.prod(block) == tiling.threads
        assert grid == tiling.grid(gemm((100, 37, 20)))


@RUNGS
def test_formats_that_are_not_taken_are_refused(kernel):
    for wrong in ({}, {"dtype": "float16", "accumulate": "float16"}, {"dtype": "tf32"}):
        with pytest.raises(ValueError, match=f"{kernel.name} computes float16.*bfloat16"):
            kernel.check_problem(Gemm(16, 16, 16, **wrong))


def test_each_idea_is_predicted_to_pay():
    """Global loads limit the first rung, bank conflicts the second, shared memory all others."""
    problem = gemm((4096, 4096, 4096), 1)
    found = {k.name: predict(problem, "h200", k) for k in kernels.TENSOR_CORE}
    rates = [p.flops_per_second for p in found.values()]
    direct, shared, swizzled_, pipelined, tuned = rates
    assert direct < shared / 2 < swizzled_ / 4
    assert pipelined == pytest.approx(swizzled_, rel=0.02)  # latency is no part of a bandwidth
    assert swizzled_ < tuned < predict(problem, "h200").flops_per_second
    limiters = [p.limiter for p in found.values()]
    assert limiters == ["L1", *["shared memory"] * 4]


SIDES = (16, 32, 64, 128, 256)


@pytest.mark.parametrize(
    "tiling",
    [tile((m, n, k), (16, 16)) for m in SIDES[:3] for n in SIDES[:3] for k in SIDES],
    ids=str,
)
def test_a_tiling_is_taken_if_all_pieces_of_a_thread_change_places_alike(tiling):
    """The thread's first place is found once: in rows of 128 elements, eight rows swizzle apart."""
    alike = True
    for shape in ((tiling.block[0], tiling.block[2]), (tiling.block[2], tiling.block[1])):
        for height, length in (shape, shape[::-1]):
            place, across = swizzled(length), length // PIECE
            down = tiling.threads // across
            fits = tiling.threads % across == 0 and down > 0 and height % down == 0
            thread, turn = np.mgrid[: tiling.threads, : height // down] if fits else (0, 0)
            first, row = place(thread // max(1, across), thread % across), turn * down
            alike &= fits and np.array_equal(
                first + row * length, place(thread // across + row, thread % across)
            )
    assert copyable(tiling) == alike


def test_thin_tiles_in_rows_of_128_elements_need_four_warps():
    for kernel in (kernels.mma_pipelined, kernels.mma_split_k):
        with pytest.raises(ValueError, match="does not fit"):
            kernel.check(tile((32, 16, 128), (16, 16), 6))
    thin, problem = tile((32, 16, 64), (16, 16), 3), gemm((40, 16, 200), 0)
    check(kernels.mma_pipelined, problem, thin)


# ------------------------------------------------------------------- the same source, compiled


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@RUNGS
def test_every_rung_lives_in_registers(kernel):
    code = rung_listing(kernel, gemm((64, 64, 64), 1))
    assert code.registers <= 255
    assert code.local_bytes == 0
    names = [i.name for i in code.instructions]
    per_step = math.prod(kernel.default.warp) // (16 * 8)
    assert names.count("HMMA") % per_step == 0
    assert ("LDSM" in names) == (kernel is not kernels.mma_direct)
    assert ("LDGSTS" in names) == kernel.dynamic


@pytest.mark.ptxas
@pytest.mark.measuring
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize("kernel", [kernels.mma_pipelined, kernels.mma_tuned], ids=lambda k: k.name)
def test_rows_that_are_not_aligned_pass_through_registers(kernel):
    """The tuned rung has few left for that."""
    code = rung_listing(kernel, gemm((63, 63, 63), 1))
    assert code.registers <= 255
    assert code.local_bytes == 0 or kernel is kernels.mma_tuned


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize(
    ("kernel", "shape", "which", "layout"),
    [
        (kernel, *case)
        for kernel, case in zip(
            kernels.TENSOR_CORE,
            cycle((((72, 136, 40), 1, "nn"), ((67, 66, 45), 2, "tt"))),
            strict=False,
        )
    ],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_compiled_code_gives_the_bits_of_the_simulator(kernel, shape, which, layout):
    """What ptxas makes of the source is executed: its LDSM, LDGSTS and HMMA, and every address."""
    problem = gemm(shape, which, alpha=0.5, beta=2, layout=layout)
    tiling, operands = SMALL[kernel.name][0], problem.operands(seed=1)
    expected, _ = simulated(kernel, problem, operands, tiling)
    args = arguments(problem, operands)
    code = compiled_rung(kernel, problem, tiling, (9, 0))
    shared = kernel.dynamic_shared_bytes(problem, tiling)
    launch(code, *kernel.configure(problem, tiling), *args, shared_bytes=shared).run()
    assert np.array_equal(args[-1].view(np.uint8), expected.view(np.uint8))
