"""What each number in the sentences of chapter 12's appendix must be."""

from tests.course.ch12_tcec.test_chapter import BENCHMARK, GPU
from tests.course.sentences import Claims


def claims(c: Claims) -> None:
    """The appendix's sentences in their order."""
    c.at("title")
    c.given("three products", "three products")
    c.at("policies-read")
    c.given("three products", "three products")
    c.given("TF32 beside FP16", "half the rate")
    assert GPU.peak_of("tf32") == GPU.peak_of("float16") / 2
    c.at("data-text")
    c.given("the kinds of data", "three lengths", "2^{-40}", "-40 to -26")
    few, many = sorted({row.side for row in BENCHMARK.errors})
    c.at("data-read")
    c.holds("have {} rows", many)
    c.at("data-sides-read")
    c.holds("With {} rows and columns", few)
    c.tested("test_where_few_rows_err_two_to_four_times_as_much", "four times as much")
    c.given("the kernels' intervals", "once in 16 of k", "sums 64 inside, 32 where")
    c.at("ways-read")
    c.given(
        "bits of int8 without its sign",
        "has 7 bits, so that 24 bits take four slices",
        "ten products",
    )
    c.holds("at {} the rate of FP16", 2)
