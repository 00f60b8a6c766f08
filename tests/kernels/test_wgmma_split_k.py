"""Split-K by `wgmma` and the TMA: bits as parts are added, counts as predicted, no spills."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.samples.edge_shapes import SCALES
from gemmlab import Gemm, Tiling, device, kernels, predict, run, simulate
from gemmlab.compiled.forecast.rung_listings import compiled_launch
from gemmlab.compiled.forecast.rungs import execute_rung, predict_rung
from gemmlab.compiled.sass.compiling import listing
from gemmlab.compiled.sass.execution.machine import launch
from gemmlab.formats import from_memory
from gemmlab.here.compilers import lacking
from gemmlab.kernels import wgmma_split_k
from gemmlab.kernels.split_k import wgmma_split_k as module
from gemmlab.kernels.split_k.shared.workspace_tiles import WARPS
from gemmlab.kernels.tensor_core.shared.warp_mma import ARITHMETIC
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.simulator import launches
from gemmlab.numerics import fused_dot_add
from gemmlab.problem import LAYOUTS
from gemmlab.simt import HazardError
from tests.support.changed import changed
from tests.support.rungs import predicted

H200 = device("h200")
SMALL, WIDE = Tiling((128, 64, 64), stages=2), Tiling((128, 256, 64), stages=3)
PRODUCTS = (  # with rows that the TMA copies, ends of C inside of tiles, rows that threads carry
    ((128, 64, 256), "nn", 3),  # a split that does not divide the steps
    ((136, 72, 200), "nt", 2),
    ((8, 16, 40), "tn", 5),  # more parts than steps
    ((67, 33, 130), "tt", 3),
    ((2, 67, 70), "nn", 2),
)


def gemm(shape, which=1, **options):
    return Gemm(*shape, **ARITHMETIC[which % len(ARITHMETIC)]._asdict(), **options)


def few(kernel, blocks):
    """The kernel with so many blocks, which take units one after the other."""

    def configure(problem, tiling):
        (units, y), block = kernel.configure(problem, tiling)
        return (min(units, blocks), y), block

    return replace(kernel, configure=configure)


def computed(kernel, problem, tiling, operands):
    """C, and the counters of all launches, which have no hazard."""
    (alpha, beta), c = problem.scalars(), problem.poisoned(operands.c)
    counted = launches(kernel, problem, tiling, (alpha, operands.a, operands.b, beta, c))
    return c, Counter(counted)


def check(kernel, problem, tiling):
    """It is exact on whole numbers and counts as predicted."""
    operands = problem.operands(kind="integers")
    c, counted = computed(kernel, problem, tiling, operands)
    assert np.array_equal(from_memory(c, problem.out_dtype), problem.reference(operands))
    assert predicted(kernel, problem, tiling) == counted


@pytest.mark.parametrize("number", range(len(PRODUCTS)), ids=lambda i: str(PRODUCTS[i]))
def test_any_product_in_any_parts(number):
    (shape, layout, split), (alpha, beta) = PRODUCTS[number], SCALES[number + 1]
    problem = gemm(shape, number, alpha=alpha, beta=beta, layout=layout)
    check(few(wgmma_split_k, 3), problem, replace(SMALL, split=split))


def test_tiles_of_more_columns_than_a_block_adds_up():
    check(wgmma_split_k, gemm((6, 136, 72), layout="tn", beta=1), replace(WIDE, split=2))


def added_up(parts):
    """Parts in the order of the second launch: warps take turns, and the first adds their sums."""
    of_warps = [sum(parts[warp::WARPS]) for warp in range(min(WARPS, len(parts)))]
    return sum(of_warps)


@pytest.mark.parametrize(("dtype", "blocks"), [("float16", 1), ("bfloat16", 5)])
def test_it_rounds_once_a_step_and_adds_parts_in_one_order(dtype, blocks):
    """Eleven parts of 12 steps: the same bits whoever takes them."""
    problem = Gemm(16, 8, 12 * 64, dtype=dtype, out_dtype="float32", layout="nt")
    operands, split = problem.operands(seed=3), 11
    kernel, tiling = few(wgmma_split_k, blocks), replace(SMALL, split=split)
    found, _ = computed(kernel, problem, tiling, operands)
    a, b = (from_memory(x, dtype) for x in operands[:2])
    cuts = [part * 12 // split * 64 for part in range(split + 1)]
    zeros = np.zeros((16, 8), np.float32)
    parts = [
        fused_dot_add(a[:, None, p:q], b[None, :, p:q], zeros, dtype=dtype)
        for p, q in pairwise(cuts)
    ]
    assert np.array_equal(found, added_up(parts))
    assert not np.array_equal(found, sum(parts))


def test_there_are_no_parts_without_a_step():
    problem, tiling = gemm((128, 64, 130)), replace(SMALL, split=7)
    (sums,) = wgmma_split_k.workspace(problem, tiling)
    assert sums.shape == (3, 128, 64)
    assert wgmma_split_k.launch(problem, tiling, H200)[0] == (3, 1)


# ------------------------------------------------------------------------ tilings and predictions


def test_it_suggests_as_many_units_as_there_are_processors():
    for shape in ((512, 512, 16_384), (256, 1024, 32_768), (384, 512, 20_000)):
        problem = gemm(shape)
        chosen = wgmma_split_k.choose(None, problem, "h200")
        (units, _), _ = wgmma_split_k.configure(problem, chosen)
        assert 0.9 * H200.sms <= units <= H200.sms
        split, whole = (predict(problem, H200, wgmma_split_k, t) for t in (chosen, chosen.unsplit))
        assert whole.seconds > 3 * split.seconds
    assert wgmma_split_k.choose(None, gemm((4096, 4096, 4096)), "h200").split == 1


def test_the_processor_with_most_units_decides():
    """Of 8 tiles: 128 units, then 136 for 132 processors, some of which take two."""
    problem, tiling = gemm((512, 512, 17_408)), wgmma_split_k.default
    alone, two = (
        predict(problem, H200, wgmma_split_k, replace(tiling, split=split)).times["math"]
        for split in (16, 17)
    )
    assert two / alone == pytest.approx(2 * 132 / 136)


def test_what_it_refuses():
    for wrong in ((128, 96, 64), (64, 64, 64), (128, 64, 32)):
        with pytest.raises(ValueError, match="which needs blocks of 128×n×64"):
            wgmma_split_k.choose(Tiling(wrong, stages=3))
    with pytest.raises(ValueError, match=r"wgmma_split_k computes float16.*bfloat16"):
        wgmma_split_k.check_problem(Gemm(8, 8, 8))
    assert kernels.get("wgmma_split_k") is wgmma_split_k


NEEDS_PTXAS = pytest.mark.skipif(bool(lacking()), reason=lacking() or "")


@pytest.mark.ptxas
@NEEDS_PTXAS
def test_threads_that_carry_tiles_have_the_registers_for_it():
    problem = gemm((509, 511, 1000), layout="tn", beta=1)
    tiling = wgmma_split_k.tilings[1]  # its addresses are the most
    code = compiled_launch(wgmma_split_k, wgmma_split_k, problem, tiling, (9, 0))
    assert code.local_bytes == 0
    assert sum(i.name == "HGMMA" for i in code.instructions) >= 4


@pytest.mark.ptxas
@NEEDS_PTXAS
@pytest.mark.parametrize("split", [3, 10])
def test_the_compiled_sum_has_the_bits_of_the_simulated_one(split):
    """Of blocks with two rows, the last with one, and of warps with two parts."""
    problem, tiling = gemm((9, 131, 640), 2, alpha=0.5, beta=2), replace(SMALL, split=split)
    (adds,), operands = wgmma_split_k.after, problem.operands(seed=1)
    (room,) = wgmma_split_k.workspace(problem, tiling)
    sums = np.random.default_rng(1).standard_normal(room.shape).astype(room.dtype)
    alpha, beta = problem.scalars()
    (grid, block), found = adds.configure(problem, tiling), []
    for run_it in (simulate, run_compiled):
        c = operands.c.copy()
        arguments = (alpha, operands.a, operands.b, problem.k, beta, c, sums)
        run_it(adds.function(problem, tiling), grid, block, *arguments)
        found.append(c)
    assert np.array_equal(*found)
    assert not np.array_equal(found[0], operands.c)


def run_compiled(function, grid, block, *arguments):
    code = listing(function, arguments, "sm_90", launch_bounds=256)
    assert code.local_bytes == 0
    launch(code, grid, block, *arguments).run()


@pytest.mark.ptxas
@NEEDS_PTXAS
def test_its_code_is_predicted_in_units():
    """160 for 132 SMs; of k two lengths are executed, whose parts differ by whole steps alike."""
    problem, tiling = gemm((512, 2048, 10_240)), replace(wgmma_split_k.default, split=5)
    short, long = execute_rung(problem, H200, wgmma_split_k, tiling)
    assert (long - short) % (5 * 64) == 0
    found = predict_rung(problem, H200, wgmma_split_k, tiling)
    assert found.listing.local_bytes == 0
    assert found.times["sm"] > predict(problem, H200, wgmma_split_k, tiling).times["math"]
    assert len(found.others) == 1


# ----------------------------------------------------------------------------------------- mutants

LEADS, OF_UNIT = "                if leads:\n", "                row, col, part"
EACH = "unit in range(cuda.blockIdx.x, units, "
MUTANTS = {
    "a part loses its first step": ("int32(begin), ", "int32(begin) + BK, "),
    "parts overlap": ("int32(end)\n", "int32(end) + BK\n"),
    "parts in one place": ("int32(part), int32(begin)", "int32(0), int32(begin)"),
    "tiles in one place": ("store(W[part], row + i", "store(W[part], i"),
    "sums go on from unit to unit": ("group, p > begin)", "group, p > 0)"),
    "a unit keeps its last stage": (LEADS, LEADS.replace("leads", "False")),
    "a unit releases a stage of the one before": ("if leads and p > begin:", "if leads:"),
    "the ring begins anew": (OF_UNIT, f"                step = uint32(0)\n{OF_UNIT}"),
    "stages are filled before they are read": ("parity_of(step) ^ uint32(1)", "parity_of(step)"),
    "sums are stored while they are added": ("wgmma_wait(0, acc)", "pass"),
    "what is carried has no fence": ("        fence_proxy_async()\n", ""),
    "one thread carries for all": ("1 if aligned else WARPGROUP", "1"),
    "units of one block alone": (
        f"{EACH}cuda.gridDim.x):\n{OF_UNIT}", f"{EACH}units):\n{OF_UNIT}",
    ),
}  # fmt: skip

OF_SUMS = {  # the same of the launch that adds them up
    "sums of warps are not waited for": ("        cuda.syncthreads()\n", ""),
    "only the first warp's parts": ("range(1, warps)", "range(1, 1)"),
    "rows of a block in one place": ("first = cuda.threadIdx.z * warps", "first = 0"),
    "a part is missed": ("        part = y\n", "        part = y + 1\n"),
    "C as it was is doubled": ("beta * old[1]", "2 * beta * old[1]"),
}


def try_all(kernel):
    """Parts of three steps and four, by two blocks; rows by the TMA and by threads."""
    for shape in ((130, 64, 640), (66, 62, 190)):
        check(kernel, gemm(shape, layout="nt", alpha=2, beta=1), replace(SMALL, split=3))


def test_what_the_mutants_are_made_of_is_right():
    try_all(few(wgmma_split_k, 2))


@pytest.mark.parametrize("wrong", MUTANTS)
def test_mutants_are_found(wrong):
    made = changed("wgmma_split_k", *MUTANTS[wrong])
    with pytest.raises((AssertionError, HazardError)):
        try_all(few(made.wgmma_split_k, 2))


def test_mutants_of_the_sums_are_found(monkeypatch):
    few_rows = gemm((9, 64, 192), layout="nt", alpha=2, beta=1), replace(SMALL, split=3)
    check(wgmma_split_k, *few_rows)
    for wrong in OF_SUMS.values():
        adding = changed("shared.workspace_matrices", *wrong).adding
        monkeypatch.setattr(module.workspace_matrices, "adding", adding)
        with pytest.raises((AssertionError, HazardError)):
            check(wgmma_split_k, *few_rows)


# ------------------------------------------------------------------------------------ on a GPU


def check_bits_of_a_gpu(problem, split):
    """They are those of the simulator."""
    operands, tiling = problem.operands(seed=4), replace(SMALL, split=split)
    runner = gpu.Runner(wgmma_split_k, problem, tiling, gpu.Matrices(problem))
    expected, _ = computed(wgmma_split_k, problem, tiling, operands)
    assert np.array_equal(runner.compute(problem, operands), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("which", [1, 3], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(136, 72, 200), (131, 67, 403)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gpu_has_the_bits_of_the_simulator(layout, shape, which):
    check_bits_of_a_gpu(gemm(shape, which, layout=layout, alpha=2, beta=1), 3)


@pytest.mark.gpu
def test_a_gpu_has_them_where_there_are_more_units_than_processors():
    check_bits_of_a_gpu(gemm((200, 136, 2600)), 40)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(512, 512, 16_384), (250, 300, 5000), (1024, 2048, 4096)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gpu_computes_the_parts(layout, shape):
    problem = gemm(shape, layout=layout, beta=1)
    assert run(wgmma_split_k, problem, backend="gpu", repeats=1).passed
