"""Kernels that divide k on Tensor Cores: any formats and layouts, counts as predicted, mutants."""

import math
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

from benchmarks.samples.edge_shapes import SCALES
from gemmlab import Gemm, Tiling, device, kernels, predict, records, run
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.compiled.sass.compiling import listing
from gemmlab.compiled.sass.execution.machine import launch
from gemmlab.here.compilers import lacking
from gemmlab.kernels import mma_split_k, mma_split_k_atomics, mma_stream_k
from gemmlab.kernels.kernel import Workspace
from gemmlab.kernels.tensor_core.shared.warp_mma import ARITHMETIC
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.checking import workspace
from gemmlab.problem import LAYOUTS
from gemmlab.simt import HazardError
from tests.support.changed import changed
from tests.support.rungs import arguments, check, simulated

H200 = device("h200")
KERNELS = pytest.mark.parametrize("kernel", kernels.TENSOR_CORE_SPLIT_K, ids=lambda k: k.name)
ORDERED = (mma_split_k, mma_stream_k)  # their sums are added in one order


def tile(block, warp, stages):
    return Tiling(block, (warp[0] // 8, warp[1] // 4), stages, warp)


SMALL, WIDE = tile((64, 64, 32), (32, 32), 2), tile((64, 256, 32), (32, 64), 3)
SHAPES = ((64, 64, 256), (72, 66, 203), (5, 9, 40), (130, 70, 72), (64, 128, 96))
SPLITS = (3, 5, 2, 9, 4)  # that divide the steps, do not, and are more than there are


def gemm(shape, which=1, **options):
    return Gemm(*shape, **ARITHMETIC[which % len(ARITHMETIC)]._asdict(), **options)


@KERNELS
@pytest.mark.parametrize(
    ("tiling", "shapes"), [(SMALL, SHAPES), (WIDE, ((40, 300, 70),))], ids=("small", "wide")
)
def test_any_product_in_any_parts(kernel, tiling, shapes):
    turns = zip(shapes, SPLITS, cycle(SCALES), cycle(LAYOUTS), range(9), strict=False)
    for shape, split, (alpha, beta), layout, which in turns:
        formats = kernel.arithmetic[(which + 1) % len(kernel.arithmetic)]._asdict()
        problem = Gemm(*shape, alpha=alpha, beta=beta, layout=layout, **formats)
        parts = replace(tiling, split=split)
        found = run(kernel, problem, backend="simulator", tiling=parts)
        assert found.passed
        assert kernel.work(problem, parts).counters == Counter(found.counters)


@KERNELS
def test_one_part_has_the_bits_of_the_unsplit_kernel(kernel):
    problem = gemm((64, 72, 136))
    operands = problem.operands(seed=5)
    whole, _ = simulated(kernels.mma_pipelined, problem, operands, SMALL)
    one, _ = simulated(kernel, problem, operands, SMALL)
    three, _ = simulated(kernel, problem, operands, replace(SMALL, split=3))
    assert np.array_equal(one, whole)
    assert not np.array_equal(three, whole)


def test_shares_of_one_tile_have_the_bits_of_its_parts():
    for which, split in ((1, 3), (2, 5)):
        problem = gemm((64, 60, 40 * split), which, alpha=0.5, beta=2)
        operands, tiling = problem.operands(seed=4), replace(SMALL, split=split)
        parts, shares = (simulated(k, problem, operands, tiling)[0] for k in ORDERED)
        assert np.array_equal(parts.view(np.uint8), shares.view(np.uint8))


def test_atomics_add_one_part_after_the_other_to_c():
    """On the simulator, in the order of the blocks: each addition is rounded, and α is in it."""
    problem, step = gemm((40, 40, 96), alpha=0.3, beta=0.7), SMALL.block[2]
    operands = problem.operands(seed=6)
    found, _ = simulated(mma_split_k_atomics, problem, operands, replace(SMALL, split=3))
    (alpha, beta), expected = problem.scalars(), operands.c
    expected = beta * expected
    for k in range(0, problem.k, step):
        part = replace(problem, k=step, alpha=1, beta=0)
        a, b = np.ascontiguousarray(operands.a[:, k : k + step]), operands.b[k : k + step]
        held = operands._replace(a=a, b=b)
        expected += alpha * simulated(kernels.mma_pipelined, part, held, SMALL)[0]
    assert np.array_equal(found, expected)


def test_a_large_c_needs_few_sums():
    """A tile in one share needs none, and no block of the fix-up looks at it but at its first."""
    problem, tiling = (
        gemm((4096, 4096, 64)),
        mma_stream_k.choose(None, gemm((4096, 4096, 64)), H200),
    )
    assert tiling.split == H200.sms
    (looked_at, rows), _ = mma_stream_k.after[0].configure(problem, tiling)
    assert (looked_at, rows) == (H200.sms, tiling.block[0])
    assert mma_stream_k.workspace(problem, tiling) == (
        Workspace((2 * H200.sms * tiling.block[0], tiling.block[1]), "float32"),
    )
    few = replace(tiling, split=9999)  # shares of one step, and none without
    assert mma_stream_k.configure(gemm((128, 256, 640)), few)[0] == (2 * 10, 1)
    assert mma_stream_k.after[0].configure(gemm((128, 256, 640)), few)[0][0] == 2


@KERNELS
def test_it_suggests_as_many_blocks_as_there_is_room_for(kernel):
    for shape in ((512, 512, 16384), (256, 256, 65536), (384, 512, 20000)):
        problem = gemm(shape)
        chosen = kernel.choose(None, problem, "h200")
        assert H200.sms / 2 <= math.prod(kernel.configure(problem, chosen)[0]) <= 2 * H200.sms
        whole = replace(chosen, split=1)
        split, whole = (predict(problem, H200, kernel, t) for t in (chosen, whole))
        assert whole.seconds > 3 * split.seconds
    square = gemm((4096, 4096, 4096))
    assert kernel is mma_stream_k or kernel.choose(None, square, "h200").split == 1


def test_what_it_suggests_is_near_the_fastest_that_is_recorded():
    found = defaultdict(dict)
    for m in records.load("h200", kernel="mma_split_k"):
        found[m.problem][m.tiling] = m.seconds
    ratios = []
    for problem, recorded in found.items():
        chosen = mma_split_k.choose(None, problem, "h200")
        if len(recorded) > 2 and chosen in recorded:
            ratios.append(recorded[chosen] / min(recorded.values()))
    assert len(ratios) >= 4
    assert max(ratios) < 1.05


@KERNELS
def test_what_it_refuses(kernel):
    for wrong in (tile((64, 64, 32), (32, 32), 1), tile((64, 64, 24), (32, 32), 2)):
        with pytest.raises(ValueError, match="does not fit kernels that split k on Tensor Cores"):
            kernel.choose(wrong)
    with pytest.raises(ValueError, match=rf"{kernel.name} computes float16.*bfloat16"):
        kernel.check_problem(Gemm(8, 8, 8))
    assert kernels.get(kernel.name) is kernel


def test_atomics_add_to_float32_alone():
    """Others would be rounded once for each part."""
    for formats in ARITHMETIC:
        problem = Gemm(8, 8, 8, **formats._asdict())
        if formats.out_dtype == "float32":
            mma_split_k_atomics.check_problem(problem)
            continue
        with pytest.raises(ValueError, match=f"computes .* to float32, not {formats.dtype}$"):
            mma_split_k_atomics.check_problem(problem)


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize(
    ("kernel", "shape", "which", "layout"),
    [
        (mma_split_k, (67, 66, 145), 2, "tt"),
        (mma_split_k_atomics, (72, 136, 104), 3, "tn"),
        (mma_stream_k, (40, 65, 145), 2, "nt"),
    ],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_compiled_code_gives_the_bits_of_the_simulator(kernel, shape, which, layout):
    problem = gemm(shape, which, alpha=0.5, beta=2, layout=layout)
    tiling, operands = replace(SMALL, split=3), problem.operands(seed=1)
    expected, _ = simulated(kernel, problem, operands, tiling)
    args = (*arguments(problem, operands), *workspace(kernel, problem, tiling))
    for one in kernel.launches:
        grid, block = one.configure(problem, tiling)
        options = {"launch_bounds": math.prod(block), **one.compile(tiling)}
        code = listing(one.function(problem, tiling, (9, 0)), args, "sm_90", **options)
        assert code.local_bytes == 0
        shared = one.dynamic_shared_bytes(problem, tiling)
        launch(code, grid, block, *args, shared_bytes=shared).run()
    assert np.array_equal(args[4].view(np.uint8), expected.view(np.uint8))


@pytest.mark.ptxas
@pytest.mark.measuring
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize("kernel", [mma_split_k_atomics, mma_stream_k], ids=lambda k: k.name)
def test_nothing_is_spilled(kernel):
    """Of rows that are not aligned, B's transposed ones leave fewest registers for the rest."""
    problem = gemm((63, 63, 63), layout="nt")
    code = rung_listing(kernel, problem)
    assert (code.local_bytes, code.registers <= 255) == (0, True)


# ----------------------------------------------------------------------------------------- mutants

MUTANTS = {
    "a part loses its first tile": (
        "mma_split_k_atomics", "part * steps // split * BK, (part",
        "(part * steps // split + 1) * BK, (part",
    ),
    "parts overlap": (
        "mma_split_k_atomics", "(part + 1) * steps // split * BK",
        "((part + 1) * steps // split + 1) * BK",
    ),
    "no alpha": ("mma_split_k_atomics", "alpha * acc[0, y, e])", "acc[0, y, e])"),
    "both of a pair in one place": ("mma_split_k_atomics", "col + y * 8 + e % 2", "col + y * 8"),
    "sums beyond C": ("mma_split_k_atomics", "if inside(C, r, c):", "if r < C.shape[0]:"),
    "C scaled by fours that are none": ("mma_split_k_atomics", "problem.n % FOUR == 0", "True"),
    "C is not scaled": (
        "mma_split_k_atomics",
        "before=(Launch(build_scaling, launch_scaling, variant=by_fours),)", "before=()",
    ),
    "the rings are not empty": (
        "mma_stream_k", "            cuda.syncthreads()  # the rings are empty, and nobody", "#",
    ),
    "copies are not waited for": ("mma_stream_k", "            cp_async_wait(0)\n", ""),
    "a block has one place": ("mma_stream_k", "blocks, total) + block", "blocks, 1) + block"),
    "C at once, whoever shares it": ("mma_stream_k", "if last - step == steps:", "if step == 0:"),
    "a step is of the next block": ("mma_stream_k", "* blocks - 1) // total", "* blocks) // total"),
    "the first sharer is missed": ("mma_stream_k", "tile, 2 * first,", "tile, 2 * first + 1,"),
    "the last sharer is missed": ("mma_stream_k", "first + last + 1,", "first + last,"),
    "whole tiles are added, too": ("mma_stream_k", "if last > first:", "if last >= first:"),
    "only the first tiles are looked at": ("mma_stream_k", " * total // looked_at // steps", ""),
}  # fmt: skip
LONGER = {  # in the loop that they share
    "copies beyond the part": ("int32(p) if p < end else int32(BEYOND)", "int32(p)"),
    "sums that begin anywhere": ("        clear(acc)\n", ""),
    "a tile is not waited for": ("cp_async_wait(PENDING)", "cp_async_wait(AHEAD)"),
    "a tile is overwritten": ("slot - 1 if slot > 0 else AHEAD", "slot"),
    "no barrier": ("            cuda.syncthreads()\n", ""),
}
WRONG = (AssertionError, HazardError)
HALF = tile((32, 32, 32), (32, 16), 2)


def try_all(kernel):
    """More tiles than shares, aligned, and more shares than tiles, not aligned."""
    for shape, split in (((40, 72, 96), 4), ((33, 35, 80), 9)):
        check(kernel, gemm(shape, beta=0.5, alpha=2), replace(HALF, split=split))


@KERNELS
def test_what_the_mutants_are_made_of_is_right(kernel):
    try_all(kernel)


@pytest.mark.parametrize("wrong", MUTANTS)
def test_mutants_are_found(wrong):
    name, old, new = MUTANTS[wrong]
    with pytest.raises(WRONG):
        try_all(getattr(changed(name, old, new), name))


@pytest.mark.parametrize("wrong", LONGER)
def test_mutants_of_the_loop_are_found(wrong, monkeypatch):
    module = sys.modules["gemmlab.kernels.split_k.mma_stream_k"]
    monkeypatch.setattr(module, "summing", changed("shared.mainloop_mma", *LONGER[wrong]).summing)
    with pytest.raises(WRONG):
        try_all(mma_stream_k)


# ---------------------------------------------------------------------------------------- on a GPU


@pytest.mark.gpu
@KERNELS
@pytest.mark.parametrize("shape", [(512, 512, 16_384), (250, 300, 5000), (129, 257, 3333)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gpu_computes_the_parts(layout, shape, kernel):
    problem = gemm(shape, layout=layout, beta=1)
    assert run(kernel, problem, backend="gpu", repeats=1).passed


@pytest.mark.gpu
@KERNELS
def test_a_gpu_has_the_simulators_bits_where_the_order_is_fixed(kernel):
    """Where it is not, C is within what additions in any order may be off."""
    for shape, which in (((256, 384, 1024), 1), ((130, 134, 600), 3), ((129, 133, 333), 1)):
        problem, tiling = gemm(shape, which, beta=1), replace(kernel.default, split=5)
        operands = problem.operands(seed=11)
        runner = gpu.Runner(kernel, problem, tiling, gpu.Matrices(problem))
        found = runner.compute(problem, operands)
        expected, _ = simulated(kernel, problem, operands, tiling)
        if kernel in ORDERED:
            assert np.array_equal(found.view(np.uint8), expected.view(np.uint8))
        assert problem.error(found, operands) <= problem.tolerance
