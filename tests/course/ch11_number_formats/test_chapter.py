"""What the prose of chapter 11 says of formats, sums and Tensor Cores."""

import math

import numpy as np
import pytest

from benchmarks import clusters, fp8
from benchmarks.hardware import store
from gemmlab import numerics
from gemmlab.course.ch11_number_formats import guesses as number_formats
from gemmlab.explorers import dot_error
from gemmlab.numerics import FORMATS, TENSOR_CORES

U = FORMATS["float32"].unit_roundoff
EIGHT = "float8_e4m3fn"


def block(a, b, c):
    return float(numerics.fused_dot_add(np.float16(a), np.float16(b), np.float32(c)))


def test_the_first_page():
    ones = np.ones(4096, np.float16)
    assert np.float16(2048) + np.float16(1) == 2048
    assert np.cumsum(ones, dtype=np.float16)[-1] == 2048
    assert np.sum(ones) == 4096
    assert float(np.sum(np.float16([2048, 1, 1]))) == 2050  # the running sum is a float32
    a, b, c = np.float16([1.5 * 2**-12]), np.float16([2**-12]), np.float32(1)
    assert float(numerics.fma_chain(a, b, c)) > 1
    assert float(numerics.fused_dot_add(a, b, c)) == 1


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_where_whole_numbers_begin_to_be_missing(name):
    last = 2 ** FORMATS[name].precision
    upto = np.arange(last + 1)
    assert np.array_equal(numerics.round_to(upto, name), upto)
    assert float(numerics.round_to(last + 1, name)) == last


def test_flat_parts_of_the_figure():
    wide = {name: form.emax - form.emin + 1 for name, form in FORMATS.items()}
    assert wide["float16"] == 30
    assert all(wide[name] > 250 for name in ("bfloat16", "tf32", "float32"))


def test_means_of_the_three_roundings():
    x = np.random.default_rng(0).uniform(1, 2, 10**6)
    gap = numerics.ulp(1.0, "bfloat16")
    for rounding, mean in (("RN", 0), ("RZ", -0.5), ("RNA", 0)):
        errors = (numerics.round_to(x, "bfloat16", rounding) - x) / gap
        assert abs(errors.mean() - mean) < 0.002
        assert np.abs(errors).max() <= (1 if rounding == "RZ" else 0.5)


def test_what_to_find_in_the_rounding_explorer():
    one, three = 1 + 2.0**-8, 1 + 3 * 2.0**-8
    rounded = {r: [float(numerics.round_to(x, "bfloat16", r)) for x in (one, three)]
               for r in ("RN", "RZ", "RNA")}  # fmt: skip
    assert rounded["RN"][0] == rounded["RZ"][0] == 1 < rounded["RNA"][0]
    assert rounded["RN"][1] == rounded["RNA"][1] > rounded["RZ"][1]
    word = int(np.float32(0.1).view(np.uint32))
    assert word >> 14 & 3 == 3  # cut off: 11…
    small = abs(float(numerics.round_to(1e-7, "float16")) / 1e-7 - 1)
    assert small > 100 * FORMATS["float16"].unit_roundoff
    assert FORMATS["float16"].smallest <= 1e-7 < 1e-5 < FORMATS["float16"].smallest_normal


def test_what_to_find_in_the_explorers_of_bytes():
    name = "float8_e4m3fn"
    made = {how: float(numerics.round_to(500, name, how)) for how in ("RN", "RNA", "RZ")}
    assert np.isnan([made["RN"], made["RNA"]]).all()
    assert made["RZ"] == FORMATS[name].largest
    errors = {way: dot_error.errors(way, name, "sm_90", "positive") for way in dot_error.ways(name)}
    largest = {way: np.abs(of_way).max(axis=1) for way, of_way in errors.items()}
    falls = [way for way, over_k in largest.items() if over_k[-1] < over_k[0]]
    assert falls == ["outside"]
    means = np.abs(errors["outside"]).mean(axis=1)
    ratio = largest["outside"] / means
    assert ratio[0] > 2 > 1.2 > ratio[-1]
    assert dot_error.DOTS == 64


@pytest.mark.parametrize("name", ["float16", "bfloat16", "tf32"])
def test_products_are_exact_in_float32(name):
    rng = np.random.default_rng(1)
    a, b = (numerics.round_to(rng.standard_normal(10**4), name) for _ in range(2))
    assert (a.astype(np.float32) * b.astype(np.float32) == a.astype(float) * b.astype(float)).all()


def test_2048_and_two_halves_of_a_gap():
    a, b, c = np.float16([1, 1]), np.float16([2**-13, 2**-13]), np.float32(2048)
    over = {arch: (float(numerics.fused_dot_add(a, b, c, arch=arch)) - 2048) * 2**12
            for arch in TENSOR_CORES}  # fmt: skip
    assert (over["sm_70"], over["sm_90"]) == (0, 1)
    assert 11 - TENSOR_CORES["sm_70"].fraction_bits == -12
    assert 11 - TENSOR_CORES["sm_90"].fraction_bits == -14


def test_a_block_has_one_length_for_16_bits():
    for core in TENSOR_CORES.values():
        assert core.block.get("bfloat16", core.block["float16"]) == core.block["float16"]


def test_what_cutting_does():
    x, y = 3 * 2.0**-9, 2.0**-8
    assert x * y == 0.75 * 2.0 ** (10 - 25)  # three quarters of the unit below 1024
    assert block([x] * 16, [y] * 16, 1024) == 1024
    assert block([1, -(2.0**-13)], [1, 2.0**-13], 0) == 1  # too large


def test_the_lower_bound_belongs_to_the_larger_error():
    cuda, core = (numerics.accumulation(way) for way in ("cuda", "inside"))
    assert 0.6 < core.bound(4096) / cuda.bound(4096) < 0.7
    assert number_formats.growth().number > 5


def test_errors_stay_within_their_bounds_and_grow_as_told():
    a, b = number_formats._positive()
    exact = np.cumsum(a.astype(np.float64) * b, axis=1)
    lengths = [64, 256, 1024, 4096]
    worst = {}
    for way in ("cuda", "inside", "outside"):
        sums = numerics.running_sums(a, b, lengths, way)
        worst[way] = [
            np.abs(s / exact[:, k - 1] - 1).max() for s, k in zip(sums, lengths, strict=True)
        ]
        bounds = map(numerics.accumulation(way).bound, lengths)
        assert all(error <= bound for error, bound in zip(worst[way], bounds, strict=True))
    assert worst["outside"][-1] < worst["cuda"][-1]
    assert worst["inside"][-1] / worst["inside"][1] > 12  # like k: 16 times as long
    assert worst["cuda"][-1] / worst["cuda"][1] < 8  # like the root of k


def test_the_predicted_bias_is_slightly_too_large():
    a, b = number_formats._positive()
    exact = np.cumsum(a.astype(np.float64) * b, axis=1)
    total, gap = exact[:, -1], numerics.ulp(exact[:, 15::16], "float32")
    unit = gap / 4
    predicted = (8 * unit[:, :-1].sum(axis=1) + ((gap - unit) / 2).sum(axis=1)) / total
    emulated = 1 - numerics.running_sums(a, b, [4096], "inside")[0] / total
    assert 0.9 < emulated.mean() / predicted.mean() < 1
    assert 100 < emulated.mean() / U < 1000
    assert FORMATS["float16"].unit_roundoff / U == 8192


def test_the_ends_of_the_range():
    results = number_formats._at_the_ends()
    assert list(results.values()) == [math.inf, 60000**2, math.inf, 0, 0, math.inf]
    assert numerics.round_to(number_formats.overflow().number, "float16") == math.inf
    below = np.nextafter(number_formats.overflow().number, 0)
    assert numerics.round_to(below, "float16") == FORMATS["float16"].largest
    assert numerics.round_to(2.0**-25, "float16") == 0
    assert numerics.round_to(1.01 * 2.0**-25, "float16") > 0


def test_what_was_compared_of_bytes():
    """Elements of whole tiles, without the sample that is compared again."""
    results = store.recorded("h100_sxm", "warpgroup_products")
    assert sum(r.compared - len(r.measured["d"]) for r in results.values()) == 6_815_744
    assert all(r.differing == 0 for r in results.values())


def test_times_of_bytes_are_those_recorded():
    """Of one scale for a matrix, alone, and of halves in the same layout of the board's kind."""
    size = "8192×8192×8192"
    ours = [one for one in fp8.cases() if str(one.case).startswith(f"{size} {EIGHT} to bfloat16")]
    of_bytes = {one.case.fast: one.ours[0] for one in ours if not one.case.lines}
    halves = {one.problem: one.alone[0] for one in clusters.products()[0]}
    times = of_bytes[False], of_bytes[True], halves[f"{size} float16"]
    assert [f"{1e3 * seconds:.2f}" for seconds in times] == ["0.81", "0.76", "1.45"]
