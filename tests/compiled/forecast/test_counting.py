"""Bounds counted in compiled code: by hand, below the simulated SM, below what an H200 took."""

import math

import pytest

from gemmlab import Gemm, Tiling, kernels, predict, records
from gemmlab.compiled.forecast.kernel import forecast, known_device
from gemmlab.compiled.forecast.rungs import count_rung, cycles, execute_rung, of_warp, port_reads
from gemmlab.compiled.sm.facts import facts
from gemmlab.compiled.sm.program import program
from gemmlab.compiled.sm.streams import stream
from tests.support.listings import listing

H200 = facts("h200")
BIG = Gemm(4096, 4096, 4096)
NOISE = 0.02  # of a measurement


def coded(text):
    code = listing(text)
    return program(code, H200), list(range(len(code.instructions)))


def test_parts_are_counted_by_hand():
    code, order = coded(
        """
        ------ W- R- - S01  FFMA R0, R1, R2, R3
        ------ W- R- - S01  FFMA R4, R5, R6, R7
        ------ W- R- - S01  IMAD R8, R9, R10, R11
        ------ W- R- - S01  IADD3 R12, R13, R14, R15
        ------ W0 R- - S01  LDS.128 R16, [R20]
        ------ W1 R- - S01  LDG.E R24, desc[UR4][R2.64]
        ------ W- R- - S01  STS [R20], R24
        ------ W- R- - S05  BAR.SYNC.DEFER_BLOCKING 0x0
        ------ W0 R- - S01  S2R R26, SR_TID.X
        """
    )
    asked = stream(order, [0, 0, 0, 0, 4, 2, 1, 0, 0], [0, 0, 0, 0, 0, 7, 0, 0, 0])
    found = of_warp(asked, code, H200)
    assert {name: 4 * found[name] for name in ("issue", "fma", "alu", "way")} == {
        "issue": 9,
        "fma": 3 * 2 / 2,  # on two halves; one IMAD does not fill its own
        "alu": 2,
        "way": 2 * 4 + 2 * 2 + 2 * 2,
    }
    assert (found["l1"], found["of_all"], found["barrier"]) == (7, 2, 2)
    assert found["l2"] == 32 * 7 / H200.l2_bytes_per_cycle


def test_products_of_integers_have_one_half_of_the_pipe():
    code, order = coded("\n".join(["------ W- R- - S01  IMAD R0, R1, R2, R3"] * 8))
    assert 4 * of_warp(stream(order), code, H200)["fma"] == 8 * 2


@pytest.mark.parametrize(
    ("lines", "reads"),
    [
        (("FFMA R0, R1, R3, R5",), (0, 3)),
        (("FFMA R0, R1, R2, R0", "FFMA R4, R1, R6, R4"), (4, 2)),
        (("FFMA R0, R1.reuse, R2, R0", "FFMA R4, R1, R6, R4"), (4, 1)),
        (("FFMA R0, R1.reuse, R2, R0", "FFMA R4, R6, R1, R4"), (4, 2)),  # another place
        (("FFMA R0, R1.reuse, R2, R0", "FFMA R4, R2, R6, R4", "FFMA R4, R1, R6, R4"), (7, 1)),
        (("FFMA R0, R1.reuse, R2, R0", "FFMA R4, R3, R6, R4", "FFMA R4, R1, R6, R4"), (6, 3)),
        (("DFMA R0, R2, R4, R6",), (3, 3)),  # pairs: both banks
        (("LDS R0, [R2]",), (0, 0)),
    ],
)
def test_ports_read_what_the_cache_of_operands_lacks(lines, reads):
    code, order = coded("\n".join(f"------ W- R- - S01  {line}" for line in lines))
    assert port_reads(order, code) == reads


def test_with_the_best_registers_ports_are_no_bound():
    """Two rows at a time: both of their operands stay, and one of each column serves twice.

    Hence no tiling alone tells that ports bound a kernel.
    """
    lines = [
        f"------ W- R- - S01  FFMA R{20 + 2 * n + row}, R{row}.reuse, R{4 + n}.reuse, "
        f"R{20 + 2 * n + row}"
        for n in range(8)
        for row in (0, 1)
    ]
    code, order = coded("\n".join(lines))
    assert sum(port_reads(order, code)) == 16 + 8 + 2  # sums, columns, rows
    assert max(port_reads(order, code)) < len(lines)


@pytest.mark.ptxas
@pytest.mark.parametrize("kernel", [kernels.coalesced, kernels.tiled, kernels.vectorised])
def test_the_simulated_sm_takes_longer_than_each_part(kernel):
    """The simulation has these facts and rules, and what waits for what besides."""
    target, problem = known_device("h200"), Gemm(512, 512, 64)
    for executed in execute_rung(problem, target, kernel).values():
        counted = cycles(executed)
        result = forecast(executed, cold=False).result
        blocks = len(result.block_ends)  # those that were executed, again and again
        assert counted["issue"] * blocks * 4 == pytest.approx(result.issued.sum())
        slowest = max(counted, key=counted.get)
        assert counted[slowest] * blocks < result.cycles, slowest


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", [kernels.register_tiled, kernels.vectorised, kernels.warp_tiled, kernels.pipelined]
)
def test_a_rung_is_bounded_more_closely_than_by_its_tiling(kernel):
    measured = records.find(kernel, BIG).seconds
    counted, plain = count_rung(BIG, "h200", kernel), predict(BIG, "h200", kernel)
    assert plain.seconds < max(counted.values()) < (1 + NOISE) * measured
    assert counted["dram"] == pytest.approx(BIG.bytes / known_device("h200").dram_copy_bandwidth)


@pytest.mark.ptxas
def test_loads_that_the_compiler_merges_are_counted_as_they_are():
    """The bound of the source is above what was measured here, the code's is not."""
    tiling = Tiling(block=(32, 32, 8), thread=(2, 2))
    measured = records.find(kernels.register_tiled, BIG, tiling).seconds
    assert predict(BIG, "h200", kernels.register_tiled, tiling).seconds > 1.05 * measured
    counted = count_rung(BIG, "h200", kernels.register_tiled, tiling)
    assert max(counted, key=counted.get) == "l1"
    assert counted["l1"] < measured


@pytest.mark.ptxas
def test_blocks_come_whole():
    """133 blocks on 132 SMs take twice as long as 132."""
    tiling = Tiling.square(16)
    once, twice = (
        count_rung(Gemm(16, 16 * n, 64), "h200", kernels.tiled, tiling)["issue"] for n in (132, 133)
    )
    assert math.isclose(twice, 2 * once, rel_tol=0.02)
