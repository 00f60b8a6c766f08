"""Values that decide what follows are found, and without the others all costs are the same."""

import numpy as np
import pytest

from gemmlab import Gemm, device, kernels
from gemmlab.compiled.forecast.rung_listings import arguments, rung_listing, usual
from gemmlab.compiled.sass.execution.effects import effect
from gemmlab.compiled.sass.execution.machine import launch
from gemmlab.compiled.sass.execution.relevance import relevance
from gemmlab.compiled.sass.execution.visits import steps
from tests.support.listings import listing

H200 = device("h200")


def needed(*lines):
    code = listing("\n".join(f"------ W- R- - S01  {line}" for line in lines))
    return [line for line, of in zip(lines, relevance(code).needed, strict=True) if of]


def test_sums_and_what_is_stored_decide_nothing():
    address, total = "IMAD.WIDE R2, R0, 0x4, R4", "FADD R7, R6, R6"
    load, store = "LDG.E R6, desc[UR4][R2.64]", "STG.E desc[UR4][R2.64], R7"
    assert needed(address, load, total, store, "EXIT") == [address, "EXIT"]
    again = "LDG.E R8, desc[UR4][R6.64]"  # at an address that was loaded
    whole = needed(address, load, total, store, again, "EXIT")
    assert whole == [address, load, total, store, "EXIT"]  # what is stored may be loaded


def test_a_register_that_is_written_under_a_guard_is_another_one_under_it():
    test = "ISETP.GE.AND P0, PT, R0, 0x7, PT"
    sums = "FADD R2, R2, R6"
    at = "@!P0 IMAD.WIDE R2, R0, 0x4, R4"
    assert needed(sums, test, at, "@!P0 STG.E desc[UR4][R2.64], R9", "EXIT") == [test, at, "EXIT"]
    everywhere = needed(sums, test, at, "STG.E desc[UR4][R2.64], R9", "EXIT")
    assert everywhere == [sums, test, at, "EXIT"]


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("DFMA R4, R6, R8, R10", {6, 7, 8, 9, 10, 11}, {4, 5}),
        ("F2F.F32.F64 R19, R18", {18, 19}, {19}),
        ("F2F.F64.F32 R4, R9", {9}, {4, 5}),
        ("IMAD.HI R4, R6, R8, R10", {6, 8, 10, 11}, {4}),
        ("SHF.R.S64 R3, R10, 0x5, R11", {10, 11}, {3}),
        ("LDG.E.128 R4, desc[UR4][R2.64]", set(), {4, 5, 6, 7}),
        ("STS.64 [R2], R4", {4, 5}, set()),
        ("P2R R7, PR, RZ, 0x3", {320, 321}, {7}),
        ("R2P PR, R7, 0x3", {7}, {320, 321}),
        ("SHFL.DOWN PT, R5, R4, 0x10, 0x1f", {4}, {5}),
    ],
)
def test_what_an_instruction_reads_and_writes(line, reads, writes):
    (one,) = listing(f"------ W- R- - S01  {line}").instructions
    found = effect(one)
    assert [{i for i in range(336) if bits >> i & 1} for bits in (found.reads, found.writes)] == [
        reads, writes,
    ]  # fmt: skip


@pytest.mark.parametrize("kernel", [kernels.tiled, kernels.vectorised], ids=lambda k: k.name)
def test_costs_are_the_same_without_values(kernel):
    problem = usual(kernel, Gemm(64, 64, 64))
    tiling = kernel.choose(None, problem)
    code, where = rung_listing(kernel, problem, tiling), kernel.launch(problem, tiling, H200)
    done = [
        launch(
            code, *where, *arguments(kernel, problem, tiling),
            shared_bytes=kernel.dynamic_shared_bytes(problem, tiling), values=values,
        ).run()
        for values in (True, False)
    ]  # fmt: skip
    found = steps(*done)
    assert found is not None
    assert not any(step is not None and np.any(step) for step in found)
