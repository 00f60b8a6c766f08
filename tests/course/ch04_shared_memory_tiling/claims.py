"""What each number in chapter 04's sentences must be."""

import numpy as np

from gemmlab import Gemm, kernels, predict
from gemmlab.course.ch04_shared_memory_tiling import guesses
from gemmlab.model import transactions
from tests.course.ch04_shared_memory_tiling import test_chapter as chapter
from tests.course.computed import (
    GPU,
    PEAK,
    bound,
    counters,
    cube,
    ms,
    per_request,
    seconds,
    square,
    us,
)
from tests.course.sentences import Claims, about, under

COALESCED, TILED, BIG = kernels.coalesced, kernels.tiled, cube(4096)
LANE, ALL = np.arange(32), np.ones(32, bool)


def conflicts(words):
    """Wavefronts of a column of a tile whose rows have so many words, 16 of them wanted."""
    return transactions.wavefronts(4 * words * (LANE % 16), ALL, 4)


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("cases that the chapter's cells compute", "4096×4096", "64×64×64", "24×24",
               "16×16", "32×32", "8×8", "T = 8", "T = 16", "T = 32", "T = 64", "k = 64", "n = 128",
               "n = 127", "tiles of 32")  # fmt: skip
    c.anywhere("acc += As · Bs", "two loads", "two shared loads")
    c.at("title")
    loads = [counters(TILED, BIG, square(side))["global_load_sectors"] for side in (16, 32)]
    c.holds("loads {} as many bytes", loads[1] / loads[0])
    c.holds("Both take {} ms", ms(TILED, BIG, square(16)))
    assert round(ms(TILED, BIG, square(32)), 1) == 17.5
    c.at("formulas")
    c.holds("so {} the side means {} the bytes", 2, loads[1] / loads[0])
    c.at("formulas-read")
    moved = 4 * BIG.flops / 2 * 2 / 32
    assert 0.9 < moved / GPU.l2_bandwidth / (BIG.flops / PEAK) < 1.1
    c.holds("less than {} of the {} ms",
            under(moved / GPU.dram_bandwidth / seconds(TILED, BIG, square(32))),
            ms(TILED, BIG, square(32)))  # fmt: skip
    c.at("one-tile")
    c.given("one of A, one of B", "two elements")
    c.at("ex1-text")
    c.given("the model answer", "nine lines")
    c.at("all-of-k")
    c.holds("16 rows and 4096 columns takes {} KiB", 16 * 4096 * 4 / 1024)
    assert GPU.shared_bytes_per_sm < 16 * 4096 * 4
    c.at("tiled-read")
    small = cube(64)
    many, few = counters(COALESCED, small), counters(TILED, small)
    fell = {x: many[f"global_load_{x}"] / few[f"global_load_{x}"] for x in ("requests", "sectors")}
    c.holds("The requests fell by {}.", fell["requests"])
    c.holds("the sectors fall by {} only", fell["sectors"])
    before, now = per_request(COALESCED, small), per_request(TILED, small)
    c.holds("touches {} sectors on average", before)
    c.holds("touches {} sectors, every byte of which is used: 16 · {}/{} = {}.", now, before, now,
            fell["sectors"])  # fmt: skip
    c.at("guess-spoilt-text")
    c.holds("of the {} elements", 64 * 64)
    c.at("no-second-read")
    c.given("of one step", "two barriers")
    c.at("sectors")
    c.given("of A and of B", "two tiles")
    c.holds("falls to {} %", 100 * (127 / 128) ** 3)
    c.at("smaller-read")
    c.holds("104 is no multiple of 16 either, and loads fewer sectors than 100: its rows of {} "
            "bytes", 4 * 104)  # fmt: skip
    c.at("transposed")
    c.given("the next cell's kernels", "twice", "16 different rows")
    c.at("guess-column-text")
    c.holds("touches {} sectors in each request for `B`, and `along` {}.",
            transactions.sectors(4 * (16 * (LANE % 16) + LANE // 16), ALL),
            transactions.sectors(4 * LANE, ALL))  # fmt: skip
    c.holds("after {} words", transactions.BANKS)
    c.holds("16 lanes wide and {} high", 32 / 16)
    c.given("the question's case", "rows of 16 words")
    c.at("column-map-text")
    c.holds("here {} for each of the block's {} warps", conflicts(16) - 1, 16 * 16 / 32)
    c.given("a mark of the picture", "two lanes (0+: to lanes 0 and 16)")
    c.at("ex4-text")
    c.holds("spend {} wavefronts", guesses.column().number)
    c.at("ex4-read")
    c.given("the question's case", "20 words, of which 16 are used")
    c.at("width-read")
    c.holds("mod {} for", transactions.BANKS)
    c.given("two lanes", "Two lanes", "no two lanes")
    c.holds("a multiple of {}.", transactions.BANKS)
    c.holds("least such d is {},", transactions.BANKS)
    store = 17 * (LANE // 16) + LANE % 16
    c.holds("covers {} rows of the tile, and with rows of 17 words", len(set(LANE // 16)))
    assert transactions.wavefronts(4 * store, ALL, 4) == 2
    c.at("limits")
    rate = GPU.flop_per_cycle_per_sm["float32"] / 2
    c.holds("the {} FMA units of an SM need {} of a cycle", rate, 32 / rate)
    c.given("the case", "for 16 FMAs")
    c.holds("so {} wavefronts", 2 * 16)
    c.holds("with {} wavefronts each, since a warp's two rows", 2)
    c.holds("and {} shared stores with {} each", 2, 1)
    c.holds("Together {} wavefronts", about(16 * chapter.wavefronts(TILED, 16) - 32, 0.01))
    c.holds("copies takes {} wavefront", (32 * chapter.wavefronts(TILED, 32) - 64) / 4)
    c.at("wall")
    c.holds("below {} wavefronts for an FMA that takes {} of a cycle, which would be {} of the "
            "peak", 2, 32 / rate, 32 / rate / 2)  # fmt: skip
    c.given("of the table below", "first two rows")
    c.at("guess-small-text")
    c.holds("serve only 8 FMAs, and a warp covers {} rows", 32 / 8)
    assert chapter.wavefronts(TILED, 8) > chapter.wavefronts(COALESCED)
    c.at("pipe-read")
    late = seconds(COALESCED, BIG) / bound(COALESCED, BIG)
    c.holds("takes nearly {} that time", about(late, 0.15))
    c.holds("almost {} of it", about(1 - 1 / late, 0.2))
    c.holds("The {} warps that an SM holds bring {} · {} = {} cycles", GPU.threads_per_sm / 32, 64,
            chapter.wavefronts(COALESCED), 64 * chapter.wavefronts(COALESCED))  # fmt: skip
    assert "a hit in L2 takes 290" in GPU.sources["dram_latency"].text
    c.holds("290 cycles from L2 and {} from DRAM", GPU.dram_latency * GPU.clock)
    c.at("trips-read")
    c.holds("the missing {}.", about(guesses.saved().number / 100, 0.12))
    c.tested(
        "test_the_compiler_merges_loads_of_as",
        "1.5 wavefronts of shared loads for each FMA where the source has 2, with all three tiles",
    )
    c.given(
        "a load of 128 bits has four words",
        "four neighbouring words",
        "merges four loads into one of 128 bits, which takes two wavefronts where the four",
    )
    c.at("barriers-wait")
    c.given("the tiles above", "all three tiles")
    c.holds("32×32 threads is {} warps", 32 * 32 / 32)
    c.holds("holds {} such blocks", GPU.threads_per_sm / 32**2)
    c.tested("test_an_sm_holds_two_blocks_of_32_and_eight_of_16", "it holds eight")
    c.at("lab-text")
    c.given("the lab's tiles", "leaves 64 out", "tiles of 8, 16 and 32", "128^3", "256×256×256",
            "tiles of 16")  # fmt: skip
    c.at("lab-answers")
    flat, of_cube = predict(Gemm(512, 512, 4), GPU, TILED), predict(cube(128), GPU, TILED)
    assert flat.flops < of_cube.flops
    assert flat.bytes["global"] > of_cube.bytes["global"]
    c.asserted("512×512×4")
    c.given("the question's case", "n = 256")
    c.holds(
        "takes {} µs where the model says {}:", us(TILED, cube(256)), 1e6 * bound(TILED, cube(256))
    )
    c.at("two-elements")
    c.given("the exercise", "two elements")
    c.at("transfer-read")
    c.holds("{} of the bytes", (1 / 2 + 1) / 2)
    c.holds(
            "For two FMAs a thread loads one word of `As` and two of `Bs`, "
            "so {} shared loads for each FMA in place of {}.",
            (1 + 2) / 2, 2)  # fmt: skip
    c.at("recap")
    c.given(
        "half as many steps, twice as long", "half as many steps and barriers, and twice as much"
    )
