"""What chapter 12 says of sums, kernels and the paper, against emulator, records and sources."""

import inspect
import json
import re
from fractions import Fraction

import numpy as np
import pytest

from gemmlab import Gemm, device, kernels, numerics, predict, records
from gemmlab.compiled.sm.facts import facts
from gemmlab.explorers import tcec
from gemmlab.kernels.tcec import tcec_registers
from gemmlab.kernels.tcec.policies import BY_NAME
from gemmlab.kernels.tcec.shared import policy_products as products, warpgroup_tiles
from gemmlab.measure.benchmarks import matmul_times, tcec_errors
from gemmlab.model.literature import published
from gemmlab.model.register_blocking import split_in_memory, split_in_registers, warp_product
from gemmlab.numerics import POLICIES, TENSOR_CORES, Policy, emulated_matmul
from gemmlab.plots.alignment import rows
from tests.course.ch12_tcec import answers_q3 as answers
from tests.support.paths import ROOT

GPU, A100 = device("h200"), device("a100_40gb")
SINGLE, LARGE = Gemm(4096, 4096, 4096), Gemm(8192, 8192, 8192)
CELLS, APPENDIX = (
    {
        one["id"]: "".join(one["source"])
        for one in json.loads((ROOT / f"notebooks/{name}.ipynb").read_text("utf-8"))["cells"]
    }
    for name in ("12_tcec", "12_tcec_appendix")
)


def error(policy, k, values="either sign", size=0):
    """As the chapter's function of that name."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, k)), rng.standard_normal((k, 8))
    if values == "positive":
        a, b = np.abs(a), np.abs(b)
    a, b = ((x * 2.0**size).astype(np.float32) for x in (a, b))
    with np.errstate(all="ignore"):
        return numerics.forward_error(emulated_matmul(a, b, policy), a.astype(float) @ b)


# ------------------------------------------------------------------------------- sections 1 to 3


def test_the_hook():
    library, ours = (records.find(k, SINGLE) for k in (kernels.cublas, kernels.tcec_split))
    assert 3.8 < library.seconds / ours.seconds < 4.6
    assert 0.15 < ours.error / library.error < 0.25


def test_the_two_parts_of_a_number():
    assert numerics.FORMATS["tf32"].precision == numerics.FORMATS["float16"].precision == 11
    x = np.random.default_rng(3).uniform(1, 2, 1000).astype(np.float32)
    high, low, _ = numerics.split(x, scale=1.0)
    assert np.array_equal(high.astype(float) + (x - high), x)
    assert np.abs(low).max() <= 2.0**-11
    assert np.abs(high.astype(float) + low - x).max() <= 2.0**-22
    assert numerics.FORMATS["float16"].smallest_normal == 2.0**-14


def test_the_picture_of_one_instruction_loses_bits_of_products_and_sum():
    a, b = np.float16([0.7, 1.7, 0.3, 0.9]), np.float16([0.6, 0.4, 1.1, 0.7])
    assert all(f"{x}" in CELLS["inside-figure"] for x in (0.7, 1.7, 611.3))
    found, _ = rows(a.tolist(), b.tolist(), float(np.float32(611.3)), "sm_90")
    cut = [row.name for row in found if (row.value / Fraction(2) ** row.last).denominator > 1]
    assert cut == ["a0·b0", "a1·b1", "a2·b2", "a3·b3", "sum"]


def test_the_steps_from_the_naive_split():
    naive, outside, scaled, three, units = (
        (error(p, 1024, "positive"), error(p, 1024, size=-8))
        for p in (
            POLICIES["markidis"], Policy(products=4, scale=1.0), Policy(products=4), Policy(),
            POLICIES["simt"],
        )
    )  # fmt: skip
    assert outside[0] < naive[0] / 20  # the step that helps positive numbers …
    assert outside[1] > naive[1] / 2
    assert scaled[1] < outside[1] / 20  # … and the one that helps small ones
    assert scaled[0] > outside[0] / 2
    assert all(x < 1.2 * y for x, y in zip(three, scaled, strict=True))
    assert all(0.25 < x / y < 0.4 for x, y in zip(three, units, strict=True))  # a third


def test_how_errors_grow_with_k():
    units, naive = POLICIES["simt"], POLICIES["markidis"]
    for policy, least, most in ((Policy(), 2, 10), (units, 2, 10), (naive, 60, 300)):
        grown = error(policy, 4096, "positive") / error(policy, 64, "positive")
        assert least < grown < most, policy


def test_at_32_either_sign_is_better_and_positive_is_not():
    units = {
        values: error(POLICIES["simt"], 4096, values) for values in ("either sign", "positive")
    }
    seen = {values: error(Policy(every=32), 4096, values) for values in units}
    assert seen["either sign"] < units["either sign"]
    assert seen["positive"] > units["positive"]


# ------------------------------------------------------------------------------- sections 4 and 5


def test_the_bounds_of_the_paper():
    for way, bound in ((split_in_memory, 52.0), (split_in_registers, 104.0)):
        assert way(32, 32, 32).bound(A100) / 1e12 == pytest.approx(bound, abs=0.05)
    batched = published()["tcec_float16_batched"].value
    assert batched > split_in_memory(32, 32, 32).bound(A100)
    assert split_in_registers(64, 64, 64).registers == 512 > A100.registers_per_thread
    assert split_in_memory(32, 32, 32).bound(A100) < split_in_memory(32, 32, 32).peak(A100)


def test_by_the_map_a_step_takes_48_wavefronts():
    from gemmlab import exercises

    verdict = exercises.get("12.3").check(*answers.WRONG["by the map"].answers)
    assert verdict.details["wavefronts"] == 48
    assert TENSOR_CORES["sm_90"].block["float16"] == 16


def changed(name):
    """The lines of a diff: (those taken away, those added)."""
    (text,) = re.findall(r"```diff\n(.*?)```", CELLS[name], re.DOTALL)
    lines = text.splitlines()
    assert sum(line[:1] in "+-" for line in lines) <= 12
    return tuple([line[1:].strip() for line in lines if line[:1] == sign] for sign in "-+")


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("ex3-read", kernels.tcec_stored.build, inspect.getmodule(kernels.tcec_registers.build)),
        ("wgmma", kernels.warp_specialised.build, warpgroup_tiles.multiplying_tiles),
    ],
)
def test_diffs_are_of_sources_that_run(name, before, after):
    taken, added = changed(name)
    assert [line for line in taken if line not in inspect.getsource(before)] == []
    assert [line for line in added if line not in inspect.getsource(after)] == []


def test_what_two_kernels_split_and_how_often():
    bm, bn, _ = tcec_registers.DEFAULT.block
    wm, wn = tcec_registers.DEFAULT.warp
    assert (bn // wn, bm // wm) == (4, 2)  # warps that load an element of A, and of B
    assert "part(" in inspect.getsource(products.loading)
    assert "split_two" in inspect.getsource(products.parting)


def test_the_kernels_beat_the_peak_of_the_units_for_fp32():
    stored, registers = (
        records.find(k, SINGLE) for k in (kernels.tcec_stored, kernels.tcec_registers)
    )
    assert stored.flops_per_second > GPU.peak_of("float32")
    assert 1 < registers.flops_per_second / stored.flops_per_second < 1.2


def test_a_stage_is_four_instructions():
    assert kernels.tcec_split.default.block[2] == 64 == 4 * 16


def through_shared_memory(kernel, problem=LARGE):
    """How long the bytes take that pass through shared memory [s]."""
    counted = kernel.work(problem, kernel.default).counters
    passing = counted["shared_load_wavefronts"] + counted["shared_store_wavefronts"]
    return passing * 128 / GPU.shared_bandwidth


def test_the_roofline_of_shared_memory():
    """Both kernels pass as many bytes, hold tiles as small, and are far from their roof."""
    problem, bounds, tiles = LARGE, [], []
    for kernel in (kernels.tcec_stored, kernels.tcec_registers):
        bounds.append(problem.flops / through_shared_memory(kernel))
        tiles.append(kernel.shared_bytes(problem, kernel.default) / kernel.default.stages)
        assert records.find(kernel, problem).flops_per_second < bounds[-1] / 2
    assert bounds[0] == pytest.approx(bounds[1], rel=0.01)
    assert tiles[0] == tiles[1]
    assert split_in_memory(64, 32, 32).bound(GPU) < bounds[0] / 2
    assert kernels.tcec_stored.default.warp == (64, 32)


# ------------------------------------------------------------------- what the benchmark recorded

BENCHMARK = tcec_errors()
LARGEST = max(row.n for row in BENCHMARK.ways)
ON_CLOCK = {row.way: row for row in BENCHMARK.ways if row.n == LARGEST}
BY_DATA = {(r.way, r.data, r.side, r.k): r.by_norm for r in BENCHMARK.errors}
IN_RANGE = "uniform", "normal", "hilbert", "cancelling", "wide"


def test_a_gpu_has_the_bits_of_the_emulator_at_every_interval():
    assert all(row.same_bits and row.measured == row.predicted for row in BENCHMARK.flush)


def test_from_a_stage_on_longer_intervals_gain_nothing():
    whole = [row for row in BENCHMARK.flush if row.interval >= 64]
    assert [row.measured for row in whole] == sorted(row.measured for row in whole)
    slowest = max(row.seconds for row in whole)
    assert slowest < 1.05 * min(row.seconds for row in whole)
    shorter = [row for row in BENCHMARK.flush if row.interval < 64]
    assert min(row.seconds for row in shorter) > 1.1 * slowest
    least = min(BENCHMARK.flush, key=lambda row: row.measured)
    assert least in shorter
    stage = next(row for row in BENCHMARK.flush if row.interval == 64)
    assert stage.measured < 1.3 * least.measured  # "close to the least"


def test_errors_by_data():
    sgemm = {case: e for (way, *case), e in BY_DATA.items() if way == "cublas_sgemm"
             for case in [tuple(case)]}  # fmt: skip
    few, many = sorted({side for _, side, _ in sgemm})
    chain = error(POLICIES["simt"], 4096, "positive")
    assert sgemm["uniform", few, 4096] < chain / 3  # so cuBLAS does not add one after the other
    assert sgemm["uniform", many, 4096] > 2 * sgemm["uniform", few, 4096]
    for way in ("tcec_split", "tcec_registers"):
        ours = {case: BY_DATA[way, *case] for case in sgemm}
        for (data, side, k), error_of_sgemm in sgemm.items():
            if data in IN_RANGE and side == many:
                assert ours[data, side, k] < error_of_sgemm, (way, data, k)
            if data == "small":
                assert ours[data, side, k] > 0.1 > 1e4 * BY_DATA["policy_tcec_tf32", data, side, k]
        assert any(ours[case] > sgemm[case] for case in sgemm if case[1] == few)


def test_what_the_fused_kernel_asks_of_shared_memory():
    sm, products, tile = facts("h200"), 2 * 4 * 3, 128 * 64 * 4 / 128
    read, cores = products * 128 / sm.wgmma_reads, products * 128 / sm.wgmma_columns
    assert (round(read + 3 * tile), round(cores)) == (1932, 1536)
    assert "1,932 cycles, the Tensor Cores only 1,536" in CELLS["fused-read"]
    assert 0.2 < 1 - read / cores < 0.25  # "no more than a quarter of its time left"


def test_every_rung_of_a_picture_is_named_before_it():
    names = list(CELLS)
    before = " ".join(CELLS[name] for name in names[: names.index("all-clock")])
    assert all(f"*{kernel.name}*" in before for kernel in kernels.TCEC)


def test_other_ways():
    library, split = ON_CLOCK["cublas_sgemm"], ON_CLOCK["tcec_split"]
    assert split.seconds < library.seconds / 4
    assert split.by_norm < library.by_norm
    emulating = ON_CLOCK["cublas_bf16x9"]
    assert (emulating.by_norm, emulating.largest) == (library.by_norm, library.largest)
    assert emulating.seconds == pytest.approx(library.seconds, rel=0.1)


def test_what_each_decision_costs():
    """As far as policies are recorded: what section 7's table will say of them."""
    assert len(kernels.POLICIES) == 8
    if "policy_tcec_tf32" not in ON_CLOCK:
        pytest.skip("no policy is recorded yet")
    ours, library = ON_CLOCK["tcec_registers"], ON_CLOCK["cublas_sgemm"]
    inside, plain = ON_CLOCK["policy_tcec_fp16_inside"], ON_CLOCK["policy_fp16"]
    assert ours.seconds < 1.1 * inside.seconds
    assert ours.by_norm < inside.by_norm / 5
    assert 1.5 < ours.seconds / plain.seconds < 2.7
    assert ours.by_norm < plain.by_norm / 300
    bound = predict(Gemm(LARGEST, LARGEST, LARGEST), GPU, kernels.get("policy_fp16"))
    assert bound.limiter == "shared memory"
    assert 0.85 < bound.seconds / plain.seconds < 1.05
    tf32 = ON_CLOCK["policy_tcec_tf32"]
    assert 1.6 < tf32.seconds / ours.seconds < 2.4
    assert 0.8 < tf32.seconds / library.seconds < 1.25


def test_a_sum_outside_is_worth_nothing_without_corrections():
    plain, corrected, outside, both = (
        error(BY_NAME[name], 8192)
        for name in ("fp16", "tcec_fp16_inside", "fp16_outside", "tcec_fp16")
    )
    assert plain / outside == pytest.approx(1, abs=0.05)
    assert 30 < plain / corrected < 40  # "bring back most of the accuracy"
    assert both < corrected / 10


def test_where_few_rows_err_two_to_four_times_as_much():
    """What the appendix and the claims say of a long k, where cuBLAS divides it."""
    few, many = sorted({side for _, _, side, _ in BY_DATA})
    depths = sorted({k for *_, k in BY_DATA})
    worst = {
        (way, side, k): max(
            BY_DATA[way, data, side, k] / BY_DATA["cublas_sgemm", data, side, k]
            for data in IN_RANGE
        )
        for way in ("tcec_split", "tcec_registers")
        for side in (few, many)
        for k in depths
    }
    long = [ratio for (_, side, k), ratio in worst.items() if side == few and k > depths[0]]
    assert 2 < min(long) <= max(long) < 4
    assert all(ratio < 1 for (_, side, _), ratio in worst.items() if side == many)
    assert f"With {few} rows and columns" in APPENDIX["data-sides-read"]
    assert "errs two to four times as much" in " ".join(CELLS["claims-read"].split())
    above = {data for way, data, side, k in BY_DATA if way == "tcec_split" and side == many
             and BY_DATA[way, data, side, k] > BY_DATA["cublas_sgemm", data, side, k]}  # fmt: skip
    assert above == {"small"}  # "the only kind in which a triangle lies above its square"


def test_one_recorded_bar_passes_its_frame_by_one_per_cent():
    cube = Gemm(LARGEST, LARGEST, LARGEST)
    ways = [w for w in ON_CLOCK if w.startswith("policy_") or w == "tcec_registers"]
    passed = {w: predict(cube, GPU, kernels.get(w)).seconds / ON_CLOCK[w].seconds for w in ways}
    beyond = [f"{share - 1:.0%}" for share in passed.values() if share > 1]
    assert beyond == ["1%"]


def test_the_batched_experiment():
    products = [p for p in matmul_times().products if p.batch > 1]
    assert {(p.batch, p.m, p.n, p.kernel) for p in products} == {(256, 1024, 1024, "tcec_batched")}
    beats = {p.k: p.flops / p.gpu > GPU.peak_of("float32") for p in products}
    assert beats == {64: False, 256: True, 1024: True, 4096: True}
    errors = [p.error for p in sorted(products, key=lambda p: p.k)]
    assert errors == sorted(errors, reverse=True)  # "falls with k"
    library = [p.cublas_error for p in products]
    assert max(library) < 1.3 * min(library)  # "stays"
    batched = published()["tcec_float16_batched"].value
    assert f"{batched / A100.peak_of('float32'):.2f}" == "2.78"


def test_what_a_byte_of_shared_memory_has_to_serve():
    ridges = [d.peak_of("float16") / d.shared_bandwidth for d in (device("v100"), A100, GPU)]
    assert [round(r) for r in ridges[:2]] == [8, 16]
    assert ridges[2] > ridges[1]
    plain = warp_product(64, 64, 64)
    assert plain.registers == 64**2 / 16
    assert plain.intensity == pytest.approx(64 / 6)
    assert warp_product(64, 64, 64, through="BCD").intensity == pytest.approx(64 / 5)


def test_no_loop_with_fp16_has_another_bound():
    """Three products pass no more bytes through shared memory than one; TF32 has half the rate."""
    problem = Gemm(LARGEST, LARGEST, LARGEST)
    bounds = [
        predict(problem, GPU, kernel)
        for kernel in (kernels.tcec_registers, *kernels.POLICIES)
        if "fp16" in kernel.name or kernel.name in ("policy_markidis", "tcec_registers")
    ]
    assert len(bounds) == 5
    assert {bound.limiter for bound in bounds} == {"shared memory"}
    assert {bound.seconds for bound in bounds} == {bounds[0].seconds}
    assert ON_CLOCK["tcec_registers"].seconds > 2 * bounds[0].seconds


# ------------------------------------------------------------------------------- sections 6 and 8


def test_the_ends_of_the_range():
    assert numerics.split_range("float16", 2.0**11) == (2.0**-14, 65504.0)
    assert numerics.split_range("float16", 2.0**12)[1] == 65504.0 / 2
    assert numerics.split_range("float16", 2.0**16)[0] == 2.0**-14
    assert GPU.peak_of("tf32") == GPU.peak_of("float16") / 2
    assert {"tcec_float16", "tcec_tf32"} <= published().keys()
    assert error(POLICIES["tcec_tf32"], 64, size=-40) < 2 * error(POLICIES["simt"], 64, size=-40)
    assert error(Policy(), 64, size=-24) > 0.01
    assert not np.isfinite(error(Policy(), 64, size=16))


def test_what_to_find_in_the_explorer():
    def seen(every):
        return tcec.emulated(Policy(outside=every > 0, every=max(1, every)), 128, 0, "positive")

    units = tcec.emulated(POLICIES["simt"], 128, 0, "positive")
    assert 1.4 < seen(0) / units < 1.6
    assert seen(4) < units
    assert seen(2) < units
    one = Policy(products=1)
    assert tcec.emulated(one, 512, 0, "either sign") < tcec.emulated(one, 16, 0, "either sign") / 3


def test_the_claims():
    library, ours, registers = (
        records.find(k, SINGLE)
        for k in (kernels.cublas, kernels.tcec_split, kernels.tcec_registers)
    )
    batched = published()["tcec_float16_batched"].value
    margins = [m.flops_per_second / GPU.peak_of("float32") for m in (registers, ours)]
    by_tma = records.find(kernels.get("tcec_mma_tma"), SINGLE)
    text = " ".join(CELLS["claims-read"].split())
    assert f"{margins[0]:.2f} for *tcec_registers*" in text
    assert f"and {by_tma.flops_per_second / GPU.peak_of('float32'):.2f} where the TMA" in text
    assert 1 < margins[0] < batched / A100.peak_of("float32") < margins[1]
    assert max(ours.error, registers.error) < library.error / 3
    ratios = [d.peak_of("float16") / d.peak_of("float32") for d in (A100, GPU)]
    assert ratios[1] < ratios[0]


def test_whole_numbers_have_no_low_part_up_to_2048():
    assert not numerics.split(np.arange(2049, dtype=np.float32)).low.any()
    assert numerics.split(np.float32(2049)).low != 0
