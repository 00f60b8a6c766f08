"""What chapter 08 says of counts, times and records, and that its diff is of kernels that run."""

import inspect
import json
import re
from fractions import Fraction

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, device, kernels, predict, records, run
from gemmlab.compiled.forecast.rungs import execute_rung
from gemmlab.compiled.forecast.steps import steps
from gemmlab.compiled.sm.facts import facts
from gemmlab.course.ch08_tensor_core_gemm import (
    q2_places_of_pieces as places_of_pieces,
    q4_warp_tile_counts as warp_tile_counts,
)
from gemmlab.device import sources
from gemmlab.explorers.swizzle import LENGTHS, tiling
from gemmlab.kernels.tensor_core.shared.shared_layouts import in_rows, swizzled
from gemmlab.measure import microbenchmarks as results
from gemmlab.numerics import FORMATS
from tests.support.paths import ROOT

GPU = device("h200")
BIG = Gemm(4096, 4096, 4096, dtype="float16", out_dtype="float32")
PRODUCTS = BIG.flops / 4096  # of `mma`
LOOP = results.load("h200").loop("hmma_all_sms", warps=16)
CELLS = json.loads((ROOT / "notebooks/08_tensor_core_gemm.ipynb").read_text("utf-8"))["cells"]
RUNGS = kernels.mma_direct, kernels.mma_shared, kernels.mma_swizzled


def recorded(kernel, problem=BIG):
    return records.find(kernel, problem)


def each(kernel, name, t=None):
    """How many of what a rung counts there are for each `mma`."""
    return kernel.work(BIG, t or kernel.default).counters[name] / PRODUCTS


def pipe(kernel, t=None):
    return kernel.work(BIG, t or kernel.default).l1_wavefronts / PRODUCTS


# ----------------------------------------------------------------------------- title and section 1


def test_the_hook():
    fmas = recorded(kernels.pipelined, Gemm(4096, 4096, 4096)).flops_per_second
    from_registers = LOOP.blocks * 4096 / (LOOP.each / LOOP.warps) * LOOP.clock_hz
    assert 12 < from_registers / fmas < 13
    assert recorded(kernels.mma_direct).flops_per_second < fmas / 2
    assert LOOP.blocks == GPU.sms


def test_mma_has_a_limit_of_its_own():
    cycles = LOOP.each / LOOP.warps
    assert cycles == pytest.approx(1.5, rel=1e-3)  # "two in three cycles"
    share = LOOP.blocks * 4096 / cycles * LOOP.clock_hz / GPU.peak_of("float16")
    assert f"{share:.0%}" == "65%"
    assert f"{LOOP.clock_hz / 1e9:.2f}" == "1.80"


def test_operations_for_each_byte():
    assert [round(GPU.ops_per_byte(name)) for name in ("float32", "float16")] == [14, 206]
    assert BIG.intensity == 1024
    assert predict(BIG, GPU).limiter == "math"


def test_the_pipe_is_the_longest_bar():
    for kernel in RUNGS:
        assert predict(BIG, GPU, kernel).bottleneck == "l1"
    times = predict(BIG, GPU, kernels.mma_direct).times
    assert times["l1"] > 20 * times["math"]
    shared = predict(BIG, GPU, kernels.mma_shared).times
    assert shared["l1"] < times["l1"] / 2  # "less than half as much to do"
    assert sorted(shared.values())[-2] < shared["l1"] / 3  # "by far"


def test_the_peak_is_one_mma_in_a_cycle():
    flop = 2 * 16 * 8 * 16
    assert flop == GPU.flop_per_cycle_per_sm["float16"] == 4096
    assert f"{GPU.clock_of('float16') / 1e9:.2f}" == "1.83"
    assert f"{GPU.peak_of('float16') / 1e12:.0f}" == "989"
    assert GPU.sms * flop * GPU.clock_of("float16") == pytest.approx(GPU.peak_of("float16"), 1e-3)
    assert GPU.shared_bytes_per_cycle_per_sm == 128
    assert "dense" in sources("h200")["peak.float16"].text


def test_wgmma_needs_shared_memory_for_less_time_than_it_computes():
    arithmetic = 2 * 64 * 256 * 16 / GPU.flop_per_cycle_per_sm["float16"]
    assert 2 * 16 * (64 + 256) / GPU.shared_bytes_per_cycle_per_sm < arithmetic


# --------------------------------------------------------------------------------- sections 2 to 5


def test_what_direct_loads_for_each_mma():
    assert kernels.mma_direct.default.warp == (32, 32)
    assert each(kernels.mma_direct, "global_load_sectors") == 24 == (2 * 8 * 8 + 4 * 4 * 4) / 8
    assert 24 <= pipe(kernels.mma_direct) < 24.1
    assert each(kernels.mma_direct, "global_load_bytes") < 24 * 32 / 2
    counted = run(kernels.mma_direct, Gemm(128, 128, 64, **HALVES), "simulator").counters
    assert counted["global_load_sectors"] == 24 * (128 * 128 * 64 // 2048)


HALVES = {"dtype": "float16", "out_dtype": "float32"}


def test_the_nested_figure_is_that_of_a_rung():
    t = kernels.mma_swizzled.default
    assert (t.block, t.warp) == ((128, 128, 32), (64, 32))
    assert kernels.mma_shared.default == t


@pytest.mark.parametrize(("wm", "wn"), [(16, 8), (32, 32), (64, 32), (64, 64), (128, 64)])
def test_the_formula_of_a_warp_tile(wm, wn):
    by_matrices = Fraction(2 * (wm + wn), 8) / Fraction(wm * wn, 128)
    assert by_matrices == 32 * (Fraction(1, wm) + Fraction(1, wn))


def test_sums_that_fit_into_registers():
    assert 64 * 64 // 32 == 128 < GPU.registers_per_thread == 255 < 128 * 64 // 32
    assert 32 / 64 + 32 / 32 == 1.5  # "just as long as the products"
    assert 32 / 128 + 32 / 32 == 1.25


def test_conflicts_of_the_default_tiles():
    assert each(kernels.mma_shared, "shared_load_wavefronts") == 8
    assert each(kernels.mma_shared, "shared_bank_conflicts") == 6.5
    assert (16 * 4 + 8 * 8) / 16 == 8  # matrices of A and of B, by rows that meet
    assert each(kernels.mma_shared, "global_load_sectors") == 2
    assert each(kernels.mma_shared, "global_load_bytes") == 2 * 32  # "to the last byte"
    assert each(kernels.mma_swizzled, "shared_load_wavefronts") == 1.5
    assert each(kernels.mma_swizzled, "shared_bank_conflicts") == 0
    assert 1.5 < 8 / 5  # "less than a fifth"


def test_the_figures_show_the_rule_of_the_exercise():
    rows, pieces = np.arange(16)[:, None], np.arange(8)
    places = swizzled(64)(rows, pieces) // 8 % 8
    assert (places == np.vectorize(places_of_pieces.place_of)(rows, pieces)).all()
    assert (in_rows(64)(rows, pieces) // 8 % 8 == pieces).all()


def test_what_to_find_in_the_explorer():
    def wavefronts(kernel, length):
        problem = Gemm(64, 64, 128, **HALVES)
        counters = predict(problem, GPU, kernel, tiling(length)).counters
        return counters["shared_load_wavefronts"] / (problem.flops / 4096)

    shared = [wavefronts(kernels.mma_shared, n) for n in LENGTHS]
    assert {wavefronts(kernels.mma_swizzled, n) for n in LENGTHS} == {2}
    assert shared[0] == 2 + 8  # A's rows of 16 meet twofold, B's of 64 eightfold
    assert shared[-2] == shared[-1]
    thirty_two = swizzled(32)(np.arange(8), 2) // 8 % 4
    assert (thirty_two[::2] == thirty_two[1::2]).all()  # "only every second time"


# ---------------------------------------------------------------------------------- from section 6


def test_the_clock():
    speeds = [recorded(kernel).flops_per_second for kernel in RUNGS]
    bounds = [predict(BIG, GPU, kernel).flops_per_second for kernel in RUNGS]
    assert speeds == sorted(speeds)
    assert all(speed < bound for speed, bound in zip(speeds, bounds, strict=True))
    ceiling = LOOP.blocks * 4096 / (LOOP.each / LOOP.warps) * LOOP.clock_hz
    assert speeds[-1] < recorded(kernels.mma_tuned).flops_per_second < ceiling
    assert ceiling < recorded(kernels.REFERENCE).flops_per_second  # "faster than any by mma"
    assert 0.45 < speeds[-1] / bounds[-1] < 0.6  # "about half of its bound"


def test_larger_tiles():
    smaller, wider = (
        Tiling(block=(bm, 128, 32), warp=(64, 64), thread=(8, 16)) for bm in (128, 256)
    )
    own = kernels.mma_swizzled.default
    loads = [each(kernels.mma_swizzled, "shared_load_wavefronts", t) for t in (own, smaller, wider)]
    rest = [
        pipe(kernels.mma_swizzled, t) - n for t, n in zip((own, smaller, wider), loads, strict=True)
    ]
    assert loads[0] > loads[1] == loads[2]
    assert rest[0] == rest[1] > rest[2]
    stores, of_c = each(kernels.mma_swizzled, "shared_store_wavefronts"), 1 / 16
    assert [rest[0], stores] == [0.5 + 0.25 + stores + of_c, 0.5]  # A's rows cost as much as B's
    assert predict(BIG, GPU, kernels.mma_swizzled, wider).flops_per_second > 500e12


def test_longer_steps():
    own = kernels.mma_swizzled.default
    longer = Tiling(block=(128, 128, 64), warp=own.warp, thread=own.thread)
    short, long = (records.find(kernels.mma_swizzled, BIG, t) for t in (own, longer))
    kept = [(m.resources["registers"], m.resources["blocks_per_sm"]) for m in (short, long)]
    assert kept[0][0] * 2 * own.threads <= GPU.registers_per_sm < kept[1][0] * 2 * own.threads
    assert [blocks for _, blocks in kept] == [2, 1]
    bounds = [predict(BIG, GPU, kernels.mma_swizzled, t).flops_per_second for t in (own, longer)]
    assert f"{bounds[1] / bounds[0]:.1f}" == "1.1"  # "by a tenth"
    assert long.flops_per_second < 0.6 * short.flops_per_second


def test_bfloat16_has_the_same_speed():
    found = results.load("h200")
    halves, brains = (found.loop(f"hmma_16816_{x}_rate_4_chains", 16) for x in ("f16", "bf16"))
    assert brains.each == pytest.approx(halves.each, rel=1e-3)
    assert kernels.TENSOR_CORE[-1] is kernels.mma_tuned  # "the last rung of the ladder"


def test_what_the_rungs_wait_for():
    """Shares of the issue slots of an SM, as the explorer has them."""
    rungs = *RUNGS[1:], kernels.mma_pipelined
    shared, swizzled, ring = (
        steps(execute_rung(BIG, GPU, kernel), kernel.default.block[2]) for kernel in rungs
    )
    assert 1 / swizzled.used["tensor"] == pytest.approx(18, abs=0.5)
    assert facts("h200").tensor_interval == 6
    assert 6 * swizzled.used["tensor"] == pytest.approx(1 / 3, abs=0.01)
    assert 0.52 < 6 * ring.used["tensor"] < 0.58
    assert next(iter(swizzled.empty)) == "lsu"
    for reason in ("scoreboard", "barrier"):  # a result, or a barrier: "less than a tenth"
        assert swizzled.empty.get(reason, 0) < 0.1
    assert 0.62 < shared.empty["lsu"] < 2 / 3
    assert ring.empty.get("scoreboard", 0) < 0.03  # "hardly one waits for a *result*"

    def copies(found):
        return [cost for cost in found.lines if cost.line.text.startswith("copy")]

    two = copies(swizzled)
    (products,) = set(swizzled.lines[:3]) - set(two)
    assert products.line.text.startswith("multiply")
    assert 0.5 < sum(cost.share for cost in two) < 0.58
    for cost in two:
        assert cost.used["integer"] + cost.empty["lsu"] > cost.share / 2
    spent = [
        sum(c.used.get(kind, 0) for c in copies(s) for kind in ("integer", "uniform"))
        for s in (swizzled, ring)
    ]
    assert [round(100 * x) for x in spent] == [20, 10]
    assert [round(s.cycles) for s in (swizzled, ring)] == [2314, 1474]
    assert spent[1] * ring.cycles == pytest.approx(spent[0] * swizzled.cycles / 3, rel=0.03)


def test_formats():
    errors = {}
    for dtype in ("float16", "bfloat16"):
        for out in ("float32", dtype):
            p = Gemm(128, 128, 64, dtype=dtype, out_dtype=out)
            errors[dtype, out] = run(kernels.mma_swizzled, p, "simulator").error
    assert errors["float16", "float16"] > 1000 * errors["float16", "float32"]
    assert errors["bfloat16", "bfloat16"] > 1000 * errors["bfloat16", "float32"]
    ratio = errors["bfloat16", "bfloat16"] / errors["float16", "float16"]
    assert ratio == pytest.approx(8, rel=0.15)
    assert FORMATS["bfloat16"].largest > 0.99 * FORMATS["float32"].largest


def test_other_tensor_cores():
    a100 = device("a100_80gb")
    assert a100.flop_per_cycle_per_sm["float16"] == 2048
    sides = [warp_tile_counts.least_side(*core) for core in ((4096, 2), (8192, 1), (2048, 2))]
    assert sides == [64, 64, 32]


# ------------------------------------------------------------------------------------------- diffs

DIFFS = [
    (cell["id"], diff)
    for cell in CELLS
    if cell["cell_type"] == "markdown"
    for diff in re.findall(r"```diff\n(.*?)```", "".join(cell["source"]), re.S)
]


def test_the_diff_stands_in_the_kernels():
    ((_, diff),) = DIFFS
    before, after = (
        inspect.getsource(kernel.build) for kernel in (kernels.mma_direct, kernels.mma_shared)
    )
    changed = [line for line in diff.splitlines() if line[:1] in "+-"]
    assert 2 <= len(changed) <= 12
    for line in changed:
        assert line[1:].strip() in (before if line[0] == "-" else after)


def test_the_excerpt_stands_in_the_kernel():
    (text,) = ("".join(c["source"]) for c in CELLS if c["id"] == "direct")
    (excerpt,) = re.findall(r"```python\n(.*?)```", text, re.S)
    assert excerpt in inspect.getsource(kernels.mma_direct.build)


def test_the_rungs_differ_in_their_places_alone():
    before, after = (
        [line for line in inspect.getsource(kernel.build).splitlines() if "place" in line]
        for kernel in (kernels.mma_shared, kernels.mma_swizzled)
    )
    assert [line.replace("in_rows", "swizzled") for line in before] == after
