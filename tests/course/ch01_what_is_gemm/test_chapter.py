"""What the prose of chapter 01 says in numbers, held against records and models."""

from functools import cache

import pytest

from gemmlab import Gemm, device, kernels, predict, records, run
from gemmlab.device import names

V100, H200 = device("v100"), device("h200")
PUZZLE, VECTOR = (64, 64, 8192), (4096, 1, 4096)


@cache
def recorded(m, n, k):
    return run(kernels.cublas, Gemm(m, n, k), backend="recorded")


def reached(*shape):
    """The share of what the rule of thumb allows."""
    x = recorded(*shape)
    return predict(x.problem, H200).seconds / x.seconds


def test_the_hook():
    assert round(recorded(4096, 4096, 4096).flops_per_second / 1e12) == 51
    assert H200.peak_of("float32") == 66.9e12
    assert round(recorded(*PUZZLE).flops_per_second / 1e12, 1) == 4.6
    assert round(recorded(*VECTOR).flops_per_second / 1e12, 1) == 1.0
    assert predict(Gemm(*PUZZLE), H200).limiter == "math"
    assert predict(Gemm(4096, 4096, 4096), H200).limiter == "math"
    assert round(100 * (1 - reached(*PUZZLE))) == 93


def test_the_puzzle_by_the_rule():
    assert round(Gemm(*PUZZLE).intensity, 1) == 15.9
    assert Gemm(*PUZZLE).intensity > H200.ops_per_byte("float32")


def test_the_slow_one_is_nearer_to_its_roof():
    assert reached(*VECTOR) / reached(*PUZZLE) == pytest.approx(6, abs=0.5)
    library = records.load("h200", kernels.cublas)
    least = min(x.seconds for x in library if x.problem.dtype == "float32")
    assert round(least * 1e6, 1) == 10.9
    assert least / predict(Gemm(*PUZZLE), H200).seconds == pytest.approx(10, abs=1)


def test_the_v100():
    assert round(V100.ops_per_byte("float16"), 1) == 138.9
    thin = predict(Gemm(8192, 128, 8192, dtype="float16"), V100)
    assert round(thin.intensity, 1) == 124.1
    assert thin.limiter == "DRAM"
    assert predict(Gemm(8192, 8192, 8192, dtype="float16"), V100).limiter == "math"


def test_no_vector_escapes_from_dram():
    sizes = [2**e for e in range(21)]
    highest = max(Gemm(m, 1, k, dtype="float16").intensity for m in sizes for k in sizes)
    assert highest < 1 < min(device(name).ops_per_byte("float16") for name in names())


def test_a_thread_alone_counts_as_math_limited():
    assert all(device(name).ops_per_byte("float16") < 16_000 / 16 for name in names())


def test_the_answers_to_the_explorer():
    thin = [predict(Gemm(8192, n, 8192, dtype="float16"), V100).limiter for n in (143, 144)]
    assert thin == ["DRAM", "math"]
    assert predict(Gemm(8192, 128, 8192, dtype="float32"), V100).limiter == "math"
    assert V100.peak_of("float32") < V100.peak_of("float16") / 2
    assert H200.ops_per_byte("float16") > V100.ops_per_byte("float16")
    assert H200.dram_bandwidth > 3 * V100.dram_bandwidth


def test_time_goes_in_steps():
    small = [recorded(n, n, n) for n in (1000, 1023, 1024)]
    assert {round(x.seconds * 1e6) for x in small} == {62, 63, 64}
    assert small[2].flops / small[0].flops == pytest.approx(1.07, abs=0.01)
    even, odd = recorded(2048, 2048, 2048), recorded(2049, 2049, 2049)
    assert round(100 * (odd.flops / even.flops - 1), 2) == 0.15
    assert round(100 * (odd.seconds / even.seconds - 1)) == 33


def test_alignment_explains_neither():
    ragged, whole = recorded(1023, 1023, 1023), recorded(1024, 1024, 1024)
    assert round(100 * (ragged.seconds / whole.seconds - 1)) == 1
    whole = recorded(4096, 4096, 4096).seconds
    more = {k: recorded(4096, 4096, k).seconds / whole - 1 for k in (4097, 4098, 4100, 4104)}
    assert {round(100 * x) for x in more.values()} == {5, 6, 7}
    assert max(more, key=more.get) == 4100
    # better aligned is not faster: the order of times is not that of 4, 8, 16 and 32 bytes
    assert more[4097] < more[4098] < more[4100]


def test_each_cube_is_counted_once():
    cubes = [
        x.problem.n
        for x in records.load("h200", kernels.cublas)
        if x.problem == Gemm(x.problem.n, x.problem.n, x.problem.n)
    ]
    assert len(cubes) == len(set(cubes)) > 5


def test_a_tolerance_from_habit_lets_float16_through():
    p = Gemm(100, 70, 300)
    operands = p.operands(seed=1)
    rounded = operands.a.astype("float16").astype("float32") @ operands.b
    assert p.tolerance < p.error(rounded, operands) < 1e-2
    assert p.error(operands.a @ operands.b, operands) <= p.tolerance
