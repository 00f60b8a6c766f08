"""Every rung on edge shapes: exact on integers, no hazards, counts as predicted; it compiles."""

import math
import re
from dataclasses import replace
from itertools import cycle, islice

import numpy as np
import pytest

from benchmarks.samples.edge_shapes import SCALES, edge_shapes
from benchmarks.samples.small_tilings import SMALL
from gemmlab import device, kernels, simulate
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.simt.shared.tile_copies import aligned_by_fours
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import UnsupportedError
from gemmlab.tiling import Tiling
from tests.support.ptx import ptx, types
from tests.support.rungs import arguments, check, simulated

LADDER = pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
SIMPLE = (kernels.naive, kernels.coalesced, kernels.tiled)
STAGED = (kernels.register_tiled, kernels.vectorised, kernels.warp_tiled, kernels.pipelined)
TURING = (7, 5)  # has no asynchronous copies


@pytest.mark.parametrize(
    ("kernel", "tiling"),
    [(kernel, tiling) for kernel in kernels.LADDER for tiling in SMALL[kernel.name]],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_edge_shapes(kernel, tiling):
    """The scales take turns: only the end of a kernel knows them."""
    turns = zip(edge_shapes(tiling), cycle(SCALES), strict=False)
    for shape, (alpha, beta) in islice(turns, None if tiling == SMALL[kernel.name][0] else 5):
        check(kernel, Gemm(*shape, alpha=alpha, beta=beta), tiling)


@pytest.mark.parametrize("kernel", STAGED, ids=lambda k: k.name)
@pytest.mark.parametrize("shape", [(70, 40, 5), (132, 260, 20), (200, 261, 67)], ids=str)
def test_default_tilings(kernel, shape):
    """Less than a tile; several blocks both ways, aligned; and not, with more steps than stages."""
    check(kernel, Gemm(*shape, beta=1))


@pytest.mark.parametrize(
    ("kernel", "capability"),
    [(kernels.warp_tiled, None), (kernels.pipelined, None), (kernels.pipelined, TURING)],
    ids=["warp_tiled", "pipelined", "pipelined, Turing"],
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_stored_transposed_and_copied_either_way(layout, kernel, capability):
    """Rows of 17, 29 and 33 elements are not aligned, and of those of 36, 44 and 12 all are."""
    one, two, three = SMALL[kernel.name]
    runs = [((70, 33, 17), one), ((36, 44, 12), two)]
    if capability is None:  # on Turing, pipelined copies by the functions of warp_tiled
        runs += [((33, 44, 17), one), ((36, 29, 12), two), ((1, 50, 9), three), ((4, 2, 1), one)]
    for shape, tiling in runs:
        check(kernel, Gemm(*shape, alpha=2, beta=0.5, layout=layout), tiling, capability)


@pytest.mark.parametrize("kernel", STAGED[1:], ids=lambda k: k.name)
def test_builds_that_differ_by_alignment(kernel):
    """What `variant` says is what makes 128-bit accesses safe: the other build would not be."""
    fits, not_ = Gemm(8, 12, 16), Gemm(8, 13, 16)
    assert kernel.variant(fits, None)["aligned"]
    assert not kernel.variant(not_, None)["aligned"]
    tiling = SMALL[kernel.name][0]
    args = arguments(not_, not_.operands())
    launch = kernel.configure(not_, tiling)
    wrong = kernel.build(tiling, **{**kernel.variant(not_, None), "aligned": True})
    shared = kernel.dynamic_shared_bytes(not_, tiling)
    report = simulate(wrong, *launch, *args, shared_bytes=shared, on_hazard="collect")
    assert {"misaligned"} <= {h.kind for h in report.hazards}


@pytest.mark.parametrize("kernel", SIMPLE, ids=lambda k: k.name)
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_formats_stay_within_their_tolerance(kernel, dtype):
    problem = Gemm(33, 18, 40, alpha=0.5, beta=2, dtype=dtype, accumulate="float32")
    operands = problem.operands()
    result, _ = simulated(kernel, problem, operands)
    assert result.dtype == dtype
    assert problem.error(result, operands) <= problem.tolerance


@LADDER
@pytest.mark.parametrize("shape", [(40, 24, 200), (17, 33, 65)])
def test_random_operands_stay_within_the_tolerance(kernel, shape):
    problem = Gemm(*shape, alpha=1.5, beta=-0.25)
    operands = problem.operands(seed=3)
    result, _ = simulated(kernel, problem, operands, SMALL[kernel.name][0])
    assert 0 < problem.error(result, operands) <= problem.tolerance


@LADDER
def test_operands_are_left_as_they_are(kernel):
    problem = Gemm(20, 30, 10)
    operands = problem.operands()
    simulated(kernel, problem, operands)
    assert all(map(np.array_equal, operands, problem.operands()))


@LADDER
def test_launches_cover_c_with_the_threads_of_the_tiling(kernel):
    for shape in ((1, 1, 1), (100, 37, 20)):
        for tiling in (kernel.default, *SMALL[kernel.name]):
            problem = Gemm(*shape)
            grid, block = kernel.configure(problem, tiling)
            assert block[0] * block[1] == tiling.threads
            assert grid[0] * grid[1] == math.prod(tiling.grid(problem))
            bm, bn, _ = tiling.block
            assert sorted(grid) == sorted((-(-problem.m // bm), -(-problem.n // bn)))


@LADDER
def test_tilings_that_are_recorded_or_tested_fit(kernel):
    for tiling in (kernel.default, *kernel.tilings, *SMALL[kernel.name]):
        assert kernel.choose(tiling) is tiling


@LADDER
def test_shared_memory_that_is_stated_is_what_a_block_takes(kernel):
    """A GPU with one byte less refuses the source or the launch; one with as much takes it."""
    for layout in kernel.layouts:
        problem = Gemm(8, 8, 8, layout=layout)
        for tiling in SMALL[kernel.name]:
            stated = kernel.shared_bytes(problem, tiling)
            assert kernel.dynamic_shared_bytes(problem, tiling) in (0, stated)
            simulated(kernel, problem, problem.operands(), tiling, device=holding(stated))
            if stated:
                with pytest.raises(
                    (UnsupportedError, ValueError), match=f"a block may use {stated - 1} B"
                ):
                    simulated(
                        kernel, problem, problem.operands(), tiling, device=holding(stated - 1)
                    )


def holding(shared_bytes):
    """An H200 whose blocks have so much shared memory, stated in the source or by the launch."""
    return replace(
        device("h200"),
        shared_bytes_per_block=shared_bytes,
        shared_bytes_per_block_default=shared_bytes,
    )


WARP = {"warp": (32, 32), "thread": (8, 4), "stages": 2}
MISFITS = {
    "naive": [Tiling(block=(16, 16, 1), thread=(2, 2)), Tiling(block=(16, 16, 1), stages=2)],
    "coalesced": [Tiling(block=(16, 16, 1), thread=(1, 2))],
    "tiled": [
        Tiling(block=(16, 8, 16)),
        Tiling(block=(16, 16, 8)),
        Tiling(block=(16, 16, 16), thread=(2, 1)),
        Tiling(block=(16, 16, 16), stages=2),
    ],
    "register_tiled": [
        Tiling(block=(64, 64, 8), thread=(8, 8), stages=2),
        Tiling(block=(64, 64, 8), thread=(8, 8), warp=(32, 64)),
    ],
    "vectorised": [
        Tiling(block=(64, 64, 8), thread=(8, 8), stages=2),
        Tiling(block=(64, 64, 8), thread=(8, 8), warp=(32, 64)),
        Tiling(block=(64, 64, 8), thread=(2, 8)),
        Tiling(block=(64, 64, 8), thread=(8, 2)),
        Tiling(block=(64, 64, 6), thread=(8, 8)),
    ],
    "warp_tiled": [
        Tiling(block=(64, 64, 8), thread=(8, 4)),
        Tiling(block=(64, 128, 8), warp=(8, 128), thread=(8, 4)),
        Tiling(block=(64, 64, 4), **{**WARP, "stages": 1}),
        Tiling(block=(64, 64, 8), **WARP),
        Tiling(block=(64, 64, 8), warp=(16, 32), thread=(2, 8)),
        Tiling(block=(64, 64, 8), warp=(32, 16), thread=(8, 2)),
        Tiling(block=(32, 96, 8), **{**WARP, "stages": 1}),
        Tiling(block=(96, 32, 8), **{**WARP, "stages": 1}),
    ],
    "pipelined": [
        Tiling(block=(64, 64, 8), thread=(8, 4), stages=2),
        Tiling(block=(64, 128, 8), warp=(8, 128), thread=(8, 4), stages=2),
        Tiling(block=(64, 64, 4), **WARP),
        Tiling(block=(64, 64, 8), **{**WARP, "stages": 1}),
        Tiling(block=(64, 64, 8), warp=(16, 32), thread=(2, 8), stages=2),
        Tiling(block=(64, 64, 8), warp=(32, 16), thread=(8, 2), stages=2),
        Tiling(block=(32, 96, 8), **WARP),
        Tiling(block=(96, 32, 8), **WARP),
    ],
}


@LADDER
def test_tilings_that_do_not_fit(kernel):
    for tiling in MISFITS[kernel.name]:
        with pytest.raises(ValueError) as caught:
            kernel.choose(tiling)
        told = str(caught.value)
        assert f"tiling {tiling} does not fit" in told
        example = eval(told[told.rindex("Tiling") :], {"Tiling": Example()})
        assert kernel.choose(example) is example


@pytest.mark.parametrize(
    ("block", "warp", "thread"),
    [
        ((32, 32, 4), (32, 32), (4, 8)),  # steps along k of half a sector
        ((8, 192, 48), (8, 64), (4, 4)),  # 12 threads copy neighbours along k, and A has 8 rows
        ((48, 96, 64), (16, 96), (4, 12)),  # 96 threads do not share 64 rows
        ((16, 192, 16), (8, 192), (4, 12)),  # nor 48 groups of four in a row
    ],
    ids=str,
)
def test_tiles_that_threads_cannot_copy_without_a_remainder(block, warp, thread):
    for kernel, stages in ((kernels.warp_tiled, 1), (kernels.pipelined, 2)):
        with pytest.raises(ValueError, match="does not fit the .* copy without a remainder"):
            kernel.choose(Tiling(block, thread, stages, warp))


@pytest.mark.parametrize(
    ("layout", "moved_by_fours", "by_cp_async"),
    [("nn", "kn", "n"), ("nt", "kn", "n"), ("tn", "mn", "mn"), ("tt", "mkn", "mn")],
)
def test_which_sizes_decide_whether_rows_are_aligned(layout, moved_by_fours, by_cp_async):
    for size in "mnk":
        problem = Gemm(**{"m": 8, "n": 8, "k": 8, size: 13}, layout=layout)
        assert aligned_by_fours(problem) == (size not in moved_by_fours)
        assert aligned_by_fours(problem, asynchronous=True) == (size not in by_cp_async)


class Example:
    """`Tiling` as the messages write it, with the shorthand of squares."""

    square = staticmethod(Tiling.square)

    def __call__(self, *arguments, **options):
        return Tiling(*arguments, **options)


def test_something_else_than_a_tiling():
    with pytest.raises(TypeError, match="tiling=16 is not a Tiling"):
        kernels.naive.choose(16)


def test_names():
    everything = (*kernels.LADDER, *kernels.TENSOR_CORE, kernels.REFERENCE, *kernels.CPU)
    assert all(isinstance(k, Kernel) for k in everything)
    assert len({k.name for k in everything}) == len(everything)
    assert all(kernels.get(k.name) is k is getattr(kernels, k.name) for k in everything)
    with pytest.raises(ValueError, match="'fast'.*naive.*tiled"):
        kernels.get("fast")


# ------------------------------------------------------------------- the same source, compiled


def rung_ptx(kernel, problem, tiling, capability):
    """What a rung is compiled to for a GPU that need not be here."""
    float32 = types().float32
    matrix = float32[:, ::1]
    function = kernel.function(problem, tiling, capability)
    return ptx(function, (float32, matrix, matrix, float32, matrix), capability)


@pytest.mark.ptxas
@pytest.mark.parametrize("kernel", SIMPLE, ids=lambda k: k.name)
@pytest.mark.parametrize("tile", [8, 16, 32])
def test_the_same_source_compiles(kernel, tile):
    text = rung_ptx(kernel, Gemm(64, 64, 64), Tiling.square(tile), (9, 0))
    assert ".target sm_90" in text
    assert "fma.rn.f32" in text
    assert ".local" not in text
    assert ("bar.sync" in text) == (kernel is kernels.tiled) == (".shared" in text)


@pytest.mark.ptxas
@pytest.mark.parametrize("n", [64, 65])
def test_four_at_a_time_where_rows_are_aligned(n):
    text = rung_ptx(kernels.vectorised, Gemm(n, n, n), SMALL["vectorised"][0], (7, 5))
    assert ("ld.global.v4" in text) == ("st.global.v4" in text) == (n % 4 == 0)
    assert "ld.shared.v4" in text
    assert ".local" not in text


@pytest.mark.parametrize(
    ("capability", "has"), [(TURING, False), ((8, 0), True), ((9, 0), True), (None, True)]
)
def test_which_gpus_copy_asynchronously(capability, has):
    assert kernels.pipelined.variant(Gemm(8, 8, 8), capability)["asynchronous"] == has


@pytest.mark.ptxas
@pytest.mark.parametrize("capability", [TURING, (8, 0)])
def test_asynchronous_copies_where_the_gpu_has_them(capability):
    tiling = SMALL["pipelined"][0]
    text = rung_ptx(kernels.pipelined, Gemm(64, 64, 64), tiling, capability)
    assert ("cp.async" in text) == (capability >= (8, 0))
    assert ".local" not in text


@pytest.mark.ptxas
@pytest.mark.parametrize("tiling", SMALL["pipelined"], ids=str)
def test_a_ring_waits_for_the_oldest_copies_alone(tiling):
    text = rung_ptx(kernels.pipelined, Gemm(64, 64, 64), tiling, (8, 0))
    assert set(re.findall(r"cp\.async\.wait_group (\d+)", text)) == {str(tiling.stages - 2)}
