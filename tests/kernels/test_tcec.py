"""FP32 from Tensor Cores for FP16: the emulator's bits, errors no larger than SGEMM's, counts."""

import math
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from numpy import uint32

from benchmarks.samples.edge_shapes import SCALES, edge_shapes
from gemmlab import Gemm, Tiling, device, kernels, predict, run, simulate
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.here.compilers import lacking
from gemmlab.instructions import (
    cvt_rn_f16x2_f32,
    cvt_rz_f16x2_f32,
    mma_m16n8k16_f32_f16,
    unpack_f16x2,
)
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tcec import tcec_fused as fused, tcec_registers as rung
from gemmlab.kernels.tcec.shared import policy_products as products, split_operands as halves
from gemmlab.kernels.tcec.shared.splitting import SCALE
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.simulator import launches
from gemmlab.numerics import (
    POLICIES,
    Policy,
    backward_error,
    emulated_matmul,
    forward_error,
    split,
    split_range,
)
from gemmlab.problem import LAYOUTS, Operands
from gemmlab.simt import HazardError
from tests.support.changed import put
from tests.support.releases import under_way_at_the_release
from tests.support.rungs import predicted as predicted_counters

STORED, REGISTERS, MMA_TMA, SPLIT, FUSED = kernels.TCEC
BY_WGMMA = SPLIT, FUSED
RUNGS = pytest.mark.parametrize("kernel", kernels.TCEC, ids=lambda k: k.name)
SMALL = {
    STORED: (
        Tiling((32, 32, 32), (2, 4), 2, (16, 16)),
        Tiling((32, 64, 64), (2, 8), 2, (16, 32)),
    ),
    REGISTERS: (
        Tiling((32, 32, 32), (2, 4), 3, (16, 16)),
        Tiling((64, 64, 32), (4, 8), 2, (32, 32)),
    ),
    MMA_TMA: (
        Tiling((64, 64, 64), (2, 8), 3, (16, 32)),
        Tiling((128, 64, 64), (4, 8), 2, (32, 32)),
    ),
    SPLIT: (
        Tiling((128, 64, 64), stages=2),
        Tiling((128, 128, 128), stages=3),
    ),
    FUSED: (
        Tiling((128, 64, 64), stages=3),
        Tiling((128, 128, 128), stages=3),
    ),
}


def simulated(kernel, problem, operands, tiling):
    """C and the counters of all launches on the simulated GPU."""
    (alpha, beta), c = problem.scalars(), problem.poisoned(operands.c)
    counters = launches(
        kernel, problem, tiling, (alpha, operands.a.copy(), operands.b.copy(), beta, c)
    )
    return c, counters


def check(kernel, problem, tiling):
    """It is exact on integers, and counts as predicted."""
    operands = problem.operands(kind="integers")
    c, counters = simulated(kernel, problem, operands, tiling)
    told = f"{kernel.name} {problem} {tiling}"
    assert np.array_equal(c, problem.reference(operands)), told
    counted = {name: n for name, n in counters.items() if n}
    predicted = {name: n for name, n in predicted_counters(kernel, problem, tiling).items() if n}
    assert counted == predicted, told


def bits(x):
    return x.view(np.uint32)


def wide(rng, shape):
    """Numbers of all magnitudes of which products of a sum stay in the range of the split."""
    low, high = np.log2(split_range()[0]), 7
    sizes = 2.0 ** rng.uniform(low, high, shape)
    return (sizes * rng.choice([-1, 1], shape)).astype(np.float32)


DATA = {
    "normal": lambda rng, shape: rng.standard_normal(shape).astype(np.float32),
    "uniform": lambda rng, shape: rng.uniform(0, 1, shape).astype(np.float32),
    "wide": wide,
}


def product(kind, m, n, k, layout="nn"):
    """A problem, operands drawn as `kind` says, and A and B as they are multiplied."""
    rng, problem = np.random.default_rng(k), Gemm(m, n, k, layout=layout)
    a, b = (DATA[kind](rng, shape) for shape in problem.shapes[:2])
    operands = Operands(a, b, np.zeros(problem.shapes[2], np.float32))
    left, right, _ = problem.values(operands)
    return problem, operands, left.astype(np.float32), right.astype(np.float32)


# ------------------------------------------------------------------------------------------ values


@RUNGS
def test_edge_shapes(kernel):
    """Scales and layouts take turns. Sums of small integers are exact."""
    turns = zip(cycle(SCALES), cycle(LAYOUTS), strict=False)
    tiling = SMALL[kernel][0]
    if kernel in (MMA_TMA, *BY_WGMMA):
        shapes = [(129, 5, 63), (1, 1, 200), (128, 64, 1), (127, 65, 64), (3, 130, 129)]
        shapes = shapes[: None if kernel is SPLIT else 3]  # the others take long
    else:
        shapes = edge_shapes(tiling)
    for shape, ((alpha, beta), layout) in zip(shapes, turns, strict=False):
        check(kernel, Gemm(*shape, alpha=alpha, beta=beta, layout=layout), tiling)


@RUNGS
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_aligned_and_not(kernel, layout):
    """Operands that are split beforehand have aligned parts: for these, each layout is enough."""
    shapes = ((72, 40, 40), (67, 45, 45))
    if kernel in (MMA_TMA, SPLIT):
        shapes = shapes[LAYOUTS.index(layout) % 2 :][:1]
    for shape, tiling in zip(shapes, SMALL[kernel], strict=False):
        check(kernel, Gemm(*shape, beta=1, layout=layout), tiling)


@RUNGS
@pytest.mark.parametrize(("kind", "layout"), [("normal", "nn"), ("wide", "tt")])
def test_the_bits_of_the_emulator(kernel, kind, layout):
    """In steps of 16 along k: low·high, high·low, and the main product, which is added outside.

    Rungs with the same bits have the same errors.
    """
    k = 128 if kernel in (MMA_TMA, *BY_WGMMA) else 64  # two tiles along k, or one of the largest
    problem, operands, a, b = product(kind, 128, 64, k, layout)
    for tiling in SMALL[kernel]:
        every = tiling.block[2] // STEP if kernel in BY_WGMMA else 1
        c, _ = simulated(kernel, problem, operands, tiling)
        assert np.array_equal(bits(c), bits(emulated_matmul(a, b, Policy(every=every)))), tiling


def test_one_block_takes_tile_after_tile():
    """Through a ring that is full in the middle of one."""
    problem, operands, a, b = product("normal", 64, 192, 129)
    tiling = Tiling((64, 64, 64), (2, 8), 2, (16, 32))
    parts = [np.zeros(w.shape, np.float16) for w in MMA_TMA.workspace(problem, tiling)]
    for x, high, low in zip(operands, parts[::2], parts[1::2], strict=False):
        high[:, : x.shape[1]], low[:, : x.shape[1]] = split(x).high, split(x).low
    _, block = MMA_TMA.configure(problem, tiling)
    simulate(
        MMA_TMA.function(problem, tiling), 1, block,
        np.float32(1), operands.a, operands.b, np.float32(0), operands.c,
        *MMA_TMA.scratch(problem, tiling, *parts),
        shared_bytes=MMA_TMA.shared_bytes(problem, tiling),
    )  # fmt: skip
    assert np.array_equal(bits(operands.c), bits(emulated_matmul(a, b)))


@pytest.mark.parametrize(
    ("kernel", "interval"), [(SPLIT, 64), (SPLIT, 128), (SPLIT, 192), (FUSED, 128)],
    ids=lambda x: getattr(x, "name", x),
)  # fmt: skip
def test_main_products_are_added_in_fp32_every_so_often(kernel, interval):
    problem, operands, a, b = product("uniform", 128, 64, 336)
    found, _ = simulated(kernel, problem, operands, Tiling((128, 64, interval), stages=3))
    expected = emulated_matmul(a, b, Policy(every=interval // STEP))
    assert np.array_equal(bits(found), bits(expected))
    others = [
        emulated_matmul(a, b, Policy(every=n // STEP)) for n in (16, 64, 128, 192) if n != interval
    ]
    assert not any(np.array_equal(found, other) for other in others)


@pytest.mark.parametrize("layout", ["nn", "tt"])
def test_parts_in_memory_are_those_of_the_emulator(layout):
    """And zero beyond the operand, up to a multiple of eight."""
    problem, operands, _, _ = product("wide", 9, 21, 10, layout)
    parts = [np.full(w.shape, np.nan, np.float16) for w in SPLIT.workspace(problem, SPLIT.default)]
    one = SPLIT.before[0]
    maps = [np.zeros(1, np.uint8)] * 4
    simulate(
        one.function(problem, SPLIT.default), *one.configure(problem, SPLIT.default),
        np.float32(1), operands.a, operands.b, np.float32(0), operands.c, *parts, *maps,
    )  # fmt: skip
    for x, high, low in zip(operands, parts[::2], parts[1::2], strict=False):
        expected = split(x)
        for part, wanted in ((high, expected.high), (low, expected.low)):
            assert np.array_equal(part[:, : x.shape[1]], wanted)
            assert part.shape[1] % halves.PIECE == 0
            assert not part[:, x.shape[1] :].any()


@on_device
def no_fence():
    pass


@pytest.mark.parametrize("fence", ["fence_proxy_async", "wgmma_fence"])
def test_what_wgmma_takes_is_fenced(monkeypatch, fence):
    """Halves that threads have stored, and fragments and accumulators that they have set."""
    problem, operands, _, _ = product("normal", 64, 64, 64)
    simulated(FUSED, problem, operands, SMALL[FUSED][0])
    monkeypatch.setattr(fused, fence, no_fence)
    with pytest.raises(HazardError, match="missing-fence"):
        simulated(FUSED, problem, operands, SMALL[FUSED][0])


def test_fused_stores_nothing_but_c():
    """And reads A and B as often as *tcec_split* reads their parts, which are as large."""
    problem = Gemm(512, 384, 320)
    split, whole = (kernel.work(problem, kernel.default) for kernel in BY_WGMMA)
    assert FUSED.workspace(problem, FUSED.default) == ()
    assert whole.counters["global_store_bytes"] == problem.array_bytes[2]
    assert split.counters["global_store_bytes"] == sum(problem.array_bytes)
    assert whole.counters["tensor_copy_bytes"] == split.counters["tensor_copy_bytes"]
    assert whole.counters["shared_bank_conflicts"] == 0


# ---------------------------------------------------------------------------------------- accuracy


def errors(found, a, b):
    """The relative error in the Frobenius norm, and the largest one, relative to |A||B|."""
    right = a.astype(np.float64) @ b.astype(np.float64)
    return np.array([forward_error(found, right), backward_error(found, right, a, b)])


def sgemm(a, b):
    """As FP32 units do it: one FMA after the other."""
    return emulated_matmul(a, b, POLICIES["simt"])


@pytest.mark.parametrize("kernel", [REGISTERS, SPLIT], ids=lambda k: k.name)
@pytest.mark.parametrize("kind", DATA)
def test_errors_are_no_larger_than_those_of_sgemm(kernel, kind):
    problem, operands, a, b = product(kind, 64, 64, 512)
    found, _ = simulated(kernel, problem, operands, SMALL[kernel][0])
    assert (errors(found, a, b) <= errors(sgemm(a, b), a, b)).all()


@on_device
def low_parts_dropped(x, y):
    high = cvt_rn_f16x2_f32(x, y)
    return high, high & uint32(0)


@on_device
def scaling_forgotten(x, y):
    high = cvt_rn_f16x2_f32(x, y)
    a, b = unpack_f16x2(high)
    return high, cvt_rn_f16x2_f32(x - a, y - b)


@on_device
def rounded_toward_zero(x, y):
    high = cvt_rz_f16x2_f32(x, y)
    a, b = unpack_f16x2(high)
    return high, cvt_rz_f16x2_f32((x - a) * SCALE, (y - b) * SCALE)


def summed_inside(tiling, policy):
    """`multiplying`, with main products that Tensor Cores add up."""
    COLUMNS = tiling.warp[1] // 8

    @on_device
    def add(a, b, x, acc):
        for y in range(COLUMNS):
            acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3] = mma_m16n8k16_f32_f16(
                (a[0], a[1], a[2], a[3]),
                (b[y // 2, y % 2 * 2], b[y // 2, y % 2 * 2 + 1]),
                (acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3]),
            )

    @on_device
    def multiply_row(a_high, a_low, b_high, b_low, x, main, cross):
        add(a_low, b_high, x, cross)
        add(a_high, b_low, x, cross)
        add(a_high, b_high, x, main)

    return multiply_row


def scaling_kept(tiling, policy):
    """`joining`, of corrections as they are."""
    return products.joining(tiling, replace(policy, scale=1.0))


# What is wrong -> where, by what it is replaced, and how many times SGEMM's error it has at least.
# Both parts toward zero lose one bit of 22, which is not seen in a sum.
MUTANTS = {
    "low parts dropped": (products, "split_two", low_parts_dropped, 10),
    "scaling forgotten": (products, "split_two", scaling_forgotten, 10),
    "corrections 2048 times as large": (rung, "joining", scaling_kept, 10),
    "summed toward zero": (rung, "multiplying", summed_inside, 2),
    "split toward zero": (products, "split_two", rounded_toward_zero, 0),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_what_is_wrong_is_seen(monkeypatch, mutant):
    """Other bits than the emulator's, and an error above that of SGEMM wherever it has one."""
    module, name, wrong, times = MUTANTS[mutant]
    put(monkeypatch, module, name, wrong)
    problem, operands, a, b = product("uniform", 64, 64, 512 if name == "multiplying" else 96)
    found, _ = simulated(REGISTERS, problem, operands, SMALL[REGISTERS][0])
    assert not np.array_equal(found, emulated_matmul(a, b))
    if times:
        assert (errors(found, a, b) > times * errors(sgemm(a, b), a, b)).all()


def test_beyond_the_range_nothing_is_finite():
    """Where a high part is infinite the product is NaN: an error that is seen."""
    problem, operands, _, _ = product("normal", 64, 64, 32)
    operands.a[3, 5] = np.float32(7e4)
    found, _ = simulated(REGISTERS, problem, operands, SMALL[REGISTERS][0])
    assert np.isnan(found[3]).all()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()


# ---------------------------------------------------------------------------- tilings, predictions


def misfits(kernel):
    """Warps that are missing, no power of two, too few stages, and widths that are not there."""
    if kernel in BY_WGMMA:
        yield Tiling((128, 256, 64), stages=2)
        yield Tiling((64, 128, 64), stages=2)
        yield Tiling((128, 128, 48), stages=2)
        yield Tiling((128, 128, 64), stages=1)
        return
    if kernel is MMA_TMA:
        yield Tiling((128, 128, 64), (8, 8), 3)
        yield Tiling((128, 128, 64), (8, 16), 3, (64, 64))
        yield Tiling((128, 128, 32), (8, 8), 3, (64, 32))
        yield Tiling((128, 128, 64), (8, 8), 1, (64, 32))
        return
    yield Tiling((64, 64, 32), (8, 8), 2)
    yield Tiling((96, 64, 32), (12, 8), 2, (96, 32))
    yield Tiling((64, 64, 8), (8, 8), 2, (64, 32))
    yield Tiling((64, 64, 32), (8, 8), 1, (64, 32))


@RUNGS
def test_tilings_that_fit_and_do_not(kernel):
    for tiling in (kernel.default, *kernel.tilings, *SMALL[kernel]):
        assert kernel.choose(tiling) is tiling
    for tiling in misfits(kernel):
        with pytest.raises(ValueError, match="does not fit") as caught:
            kernel.choose(tiling)
        told = str(caught.value)
        example = eval(told[told.rindex("Tiling(") :], {"Tiling": Tiling})
        assert kernel.choose(example) is example


@RUNGS
def test_other_formats_are_refused(kernel):
    with pytest.raises(ValueError, match="computes float32, not float16"):
        kernel.check_problem(Gemm(16, 16, 16, dtype="float16"))
    assert kernels.get(kernel.name) is kernel


@RUNGS
def test_three_products_are_predicted(kernel):
    """Faster than FP32 units can be, and no faster than a third of Tensor Cores, but for tiles."""
    problem = Gemm(8192, 8192, 8192)
    found = predict(problem, "h200", kernel)
    assert found.times["math"] == pytest.approx(
        3 * problem.flops / device("h200").peak["float16"], rel=0.05
    )
    assert found.seconds < predict(problem, "h200").seconds


def test_quads_meet_in_no_bank_and_copies_do_not():
    for layout in LAYOUTS:
        for tiling in (*SMALL[REGISTERS], REGISTERS.default):
            work = REGISTERS.work(Gemm(128, 128, 64, layout=layout), tiling)
            assert work.counters["shared_bank_conflicts"] == 0, (layout, tiling)


# --------------------------------------------------------------------------- compiled, and on a GPU


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize(
    ("kernel", "n", "layout"),
    [
        (STORED, 64, "nn"),
        (REGISTERS, 64, "nn"),
        *(
            pytest.param(kernel, 63, "nt", marks=pytest.mark.measuring)
            for kernel in (STORED, REGISTERS)
        ),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_rungs_by_mma_live_in_registers(kernel, n, layout):
    code = rung_listing(kernel, Gemm(n, n, n, layout=layout))
    assert code.local_bytes == 0 or n == 63  # rows that are not aligned pass through registers
    names = [i.name for i in code.instructions]
    assert names.count("HMMA") % (3 * math.prod(kernel.default.warp) // (STEP * 8)) == 0


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize("layout", ["nn", pytest.param("tn", marks=pytest.mark.measuring)])
def test_no_stage_is_released_before_it_is_read(layout):
    code = rung_listing(MMA_TMA, Gemm(64, 64, 64, layout=layout))
    assert code.local_bytes == 0
    assert not under_way_at_the_release(code)


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize(
    "tiling",
    [SPLIT.default, pytest.param(SMALL[SPLIT][1], marks=pytest.mark.measuring)],
    ids=str,
)
def test_three_accumulators_live_in_registers(tiling):
    """And no `wgmma` waits for the one before, which ptxas would say by more waits than there are
    in the source.
    """
    code = rung_listing(SPLIT, Gemm(4096, 4096, 4096), tiling)
    assert code.local_bytes == 0
    opcodes = [i.opcode for i in code.instructions]
    assert sum(o.startswith("HGMMA") for o in opcodes) == 3 * 4
    assert sum(o.startswith("WARPGROUP.DEPBAR") for o in opcodes) == 2


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
def test_fragments_live_in_registers_beside_three_accumulators():
    """Nothing is put aside, and products wait only where the source says so."""
    code = rung_listing(FUSED, Gemm(1024, 1024, 1024))
    assert code.local_bytes == 0
    opcodes = [i.opcode for i in code.instructions]
    products = [i for i, o in enumerate(opcodes) if o.startswith("HGMMA")]
    assert len(products) == 3 * 4
    multiplying = opcodes[products[0] : products[-1]]
    assert sum(o.startswith("LDS") for o in multiplying) >= 3 * 4
    assert sum(o.startswith("WARPGROUP.DEPBAR") for o in opcodes) == 4 + 1


@pytest.mark.gpu
@RUNGS
@pytest.mark.parametrize("kind", DATA)
def test_a_gpu_has_the_bits_of_the_emulator(kernel, kind):
    problem, operands, a, b = product(kind, 128, 128, 128)
    runner = gpu.Runner(kernel, problem, kernel.default, gpu.Matrices(problem))
    found = runner.compute(problem, operands)
    every = kernel.default.block[2] // STEP if kernel in BY_WGMMA else 1
    assert np.array_equal(bits(found), bits(emulated_matmul(a, b, Policy(every=every))))


@pytest.mark.gpu
@RUNGS
@pytest.mark.parametrize("shape", [(261, 133, 203), (136, 264, 72)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gpu_has_them_at_the_ends_of_c(layout, shape, kernel):
    """Rows begin anywhere, or C ends inside of a tile."""
    problem, operands, a, b = product("normal", *shape, layout=layout)
    runner = gpu.Runner(kernel, problem, kernel.default, gpu.Matrices(problem))
    found = runner.compute(problem, operands)
    every = kernel.default.block[2] // STEP if kernel in BY_WGMMA else 1
    assert np.array_equal(bits(found), bits(emulated_matmul(a, b, Policy(every=every))))


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gpu_computes_each_of_many_tiles(layout):
    """A stage that is overwritten too early spoils few elements, and only of large products."""
    problem = Gemm(8192, 8192, 8192, layout=layout)
    assert run(MMA_TMA, problem, backend="gpu", repeats=1).passed
