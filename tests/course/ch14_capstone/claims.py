"""What each number in chapter 14's sentences must be."""

from gemmlab import device, kernels, worklog
from tests.course.computed import seconds
from tests.course.sentences import Claims

GPU = device("h200")
SKINNY = worklog.SHAPES["skinny"].problem


def problem(shape):
    return worklog.SHAPES[shape].problem


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("shapes and tiles that are named", "8192×128×8192", "4096×4096×4096", "256×256×64",
               "16×16 tile", "β = 0", "β ≠ 0")  # fmt: skip
    c.at("title")
    naive, pipelined, warps, library = (
        1e3 * seconds(kernel, SKINNY)
        for kernel in (kernels.naive, kernels.pipelined, kernels.warp_tiled, kernels.cublas)
    )
    c.holds("takes {} ms with chapter", naive)
    c.holds("takes {} ms here", pipelined)
    c.holds("is faster: {} ms", warps)
    c.holds("takes {} ms.", library)
    c.at("aims")
    c.given("as long as it takes on two cores", "and half a minute")
    c.at("shapes")
    c.given("a shape", "sees 128 tokens", "128 products of")
    c.at("ladder-read")
    c.holds("a peak of {} TFLOP/s", GPU.peak_of("float32") / 1e12)
    c.holds("moves {} TB/s", GPU.dram_bandwidth / 1e12)
    c.given("a rule of thumb", "less than 5 %")
    c.at("busy-text")
    c.given("the question", "8192×128 elements", "tiles of 128×128")
    c.at("first")
    tiles = [s.m // 128 * (s.n // 128) for s in map(problem, ("square", "batched"))]
    c.holds("there are {} and", tiles[0])
    c.holds("and {} such tiles", tiles[1])
    c.holds("{} rows of C", 64 * 16)  # of the grid in the next cell, by its tile
    c.at("next")
    # 81.6 and 41.1 ms predicted, 99.9 and 43.8 measured on an NVIDIA H100, 2026-11-26, in one run.
    c.given("an example", "nine slots in ten", "a wait of 1 %")
    c.given("timed once", "takes twice as long on")
    c.at("line")
    c.given("the kernel above", "Two lines of", "two loads and their")
    c.at("open")
    c.given("a pattern's name", "Sparsity 2:4")
    c.at("recap")
    blocks = SKINNY.m // 128 * (SKINNY.n // 128)
    c.holds("leave {} of the SMs idle", 1 - blocks / GPU.sms)
    c.given("the question", "at twice its bound", "is twice as fast as")
