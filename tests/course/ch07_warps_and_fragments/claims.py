"""What each number in chapter 07's sentences must be."""

import numpy as np

from gemmlab.course.ch07_warps_and_fragments import guesses, q3_matrix_loads as matrix_loads
from gemmlab.instructions import layout, mma_m16n8k16_f32_f16
from gemmlab.kernels.fragments import WHERE
from gemmlab.model import transactions
from gemmlab.numerics import FORMATS
from tests.course.ch07_warps_and_fragments import test_chapter as chapter
from tests.course.sentences import Claims, over

A, B, C = (layout("m16n8k16", operand) for operand in "ABC")


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere(
        "a warp has 32 lanes", "32 lanes", "32 threads", "groups of four lanes", "four lanes"
    )
    c.anywhere("the instruction's shape: mma.sync.m16n8k16", "16×16", "16×8")
    c.anywhere("a lane, a register or an element that the text points at",
               "does lane 0 hold", "those of lane 0 come", "x1 of lane 0:",
               "From lane 0 to lane 1,",
               "from lane 0 to lane 4?", "is it lane 0 again", "lane 0 comes", "lane 5", "Lane 5",
               "x0 and x1", "x0, x1", "register 0", "column 0 of B", "(9, 2)",
               "lane 13")  # fmt: skip
    c.at("title")
    sums = chapter.use("prefix sum", 16384)
    c.holds("the same {} matrices", sums.batch)
    c.given("a wide store: 16 bytes", "eight elements at a time")
    c.given("the kernels of the figure", "Three kernels multiply")
    c.at("question")
    registers, _, one_by_one = (sums.seconds[where][1] for where in WHERE)
    c.holds("more than {} as fast as the first", over(one_by_one / registers))
    c.at("warp")
    c.given("registers of a GPU", "32-bit registers")
    c.at("registers-read")
    counts = [operand.count for operand in mma_m16n8k16_f32_f16.operands]
    assert counts == [4, 2, 4]
    c.holds("B takes {} registers and C four, so an `mma` reads {} registers of each lane where "
            "a warp's ordinary FMA reads three, and it does {} times", counts[1], sum(counts),
            guesses.fmas().number / 32)  # fmt: skip
    c.at("find")
    c.holds("up to {} exactly", 2 ** FORMATS["float16"].precision)
    c.holds("{} = 16·2 + 5 came from row 2, column 5", 16 * 2 + 5)
    c.given("float16", "share 32 bits")
    c.holds("receives {} different elements of the {}", A.registers, 16 * 16)
    c.at("probe-read")
    c.given("columns of A", "number by 16")
    c.given("a pair", "two elements")
    c.holds("has {} registers for {} elements", 2 * A.registers, A.registers)
    c.at("rule-picture")
    places = A.table[5]
    rows = sorted({int(i) for i, _ in places})
    c.holds("marked: two rows, eight apart, and {} pairs in each", len(places) / 2 / len(rows))
    assert rows[1] - rows[0] == 8
    c.at("portable-read")
    c.holds("fails for all {} lanes", 32 - guesses.v100().number)
    c.tested("test_each_element_of_wmma_is_held_twice", "there twice")
    c.at("mma")
    c.given("a pair", "two elements")
    c.at("three-maps-look")
    c.given("A, B and C", "three matrices")
    c.at("three-maps-read")
    c.tested(
        "test_the_formulas_of_the_three_maps", "mod 4", "g + 8 · \\text{bit}", "+ 8 · \\text{bit}"
    )
    c.given("a part", "left half", "which half of which 32-bit register")
    c.at("explorer-answers")
    assert A.map(9, 2) == ((5,), (2,))
    c.asserted("element register 2: the low half of 32-bit register 1")
    lanes = [B.map(i, 0)[0][0] for i in range(16)]
    c.holds("After {} rows, since", lanes.index(1))
    c.holds("After {} rows lane 0", next(i for i in range(1, 16) if lanes[i] == 0 != lanes[i - 1]))
    c.tested(
        "test_each_element_of_wmma_is_held_twice",
        "in two lanes, later in one lane with two registers",
    )
    c.at("gemm")
    c.given("the instruction's shape", "16×k and B of k×8 in steps of 16")
    c.at("ex2-text")
    c.given("a register", "the 32 bits")
    c.at("gemm-predict")
    c.given("the question's case", "k = 256")
    c.holds("the {} elements of C", 16 * 8)
    c.at("gemm-read")
    c.given("float16", "two bytes")
    c.at("ldmatrix-how")
    c.given("PTX ISA, ldmatrix", "four 8×8 matrices", "16 bytes", "matrix 0")
    c.at("wavefronts-predict")
    c.holds("has {} banks of 4 bytes, so one wavefront delivers {} bytes at best: one 8×8 matrix",
            transactions.BANKS, 4 * transactions.BANKS)  # fmt: skip
    c.holds("after row, {} bytes each", 2 * 16)
    c.at("banks-read")
    c.given("a matrix of ldmatrix", "eight rows of an 8×8 matrix")
    c.at("ex3-text")
    c.given("a row of a matrix of ldmatrix", "16 bytes")
    c.at("stages-look")
    c.given("the table below", "three stages")
    c.at("stages-read")
    by_elements = guesses.requests().number + B.registers
    c.holds("requests to {}, and", 2 / by_elements)
    c.holds("each of the {} 8×8 matrices", matrix_loads.WAVEFRONTS)
    c.at("uses-look")
    c.given("the kernels of the figure", "three kernels")
    c.at("gain-predict")
    c.holds("about {} matrices", sums.batch)
    c.holds("For {} matrices", max(use.batch for use in chapter.USES))
    c.at("uses-picture")
    c.given("Householder and Givens", "Two more matrices", "two columns", "four elements")
    c.at("uses-read")
    c.given("the article's year", "(2023)")
    c.at("check")
    c.given("a register", "32 bits")
    c.at("exercises")
    c.given("Givens", "four single elements")
    c.at("summary")
    c.given("a matrix of ldmatrix", "eight rows")
    assert np.array_equal(A.table[:, :4], C.table)
