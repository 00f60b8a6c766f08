"""What each number in chapter 05's sentences must be."""

import math
from dataclasses import replace
from itertools import pairwise

from gemmlab import Gemm, kernels, records
from gemmlab.course.ch05_tile_and_wave_quantization import guesses
from gemmlab.measure.records import series
from gemmlab.model.alignment import multiples
from gemmlab.model.in_tiles import in_tiles
from gemmlab.model.quantization import quantization
from tests.course.ch05_tile_and_wave_quantization import test_chapter as chapter
from tests.course.ch05_tile_and_wave_quantization.test_chapter import (
    A100,  # fmt: skip
    GPU,
    GROWN,
    LARGE,
    MIDDLE,
    OURS,
    SMALL,
)
from tests.course.computed import PEAK, cube, seconds, tflops
from tests.course.sentences import Claims, about


def full(m, tile, sizes):
    """The n of these sizes whose waves have no place left, on a GPU of 8 SMs."""
    small = replace(GPU, sms=8)
    return [n for n in sizes if quantization(Gemm(m, n, 16), small, (tile, tile), 1).use == 1]


def clock(n):
    """The clock of an SM while cuBLAS ran in TF32 [GHz]."""
    return float(chapter.library("tf32")[n].provenance["sm_clock_hz"]) / 1e9


def steps(dtype):
    """Steps of cuBLAS beyond n = 1000: (n before, n after, relative, microseconds)."""
    found = chapter.library(dtype)
    sizes = sorted(n for n in found if n >= 1000)
    times = {n: found[n].seconds for n in sizes}
    return [
        (a, b, times[b] / times[a] - 1, 1e6 * (times[b] - times[a])) for a, b in pairwise(sizes)
    ]


def fastest(n):
    """The speed of our fastest tile at n [FLOP/s]."""
    return max(records.find(OURS, cube(n), t).flops_per_second for t in OURS.tilings)


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("cases that the chapter's cells compute", "128×128", "256×256", "256×257", "64×64",
               "256×128", "128×256", "2304×1544", "64×64×8192", "n = 1024", "n = 3072", "n = 8192",
               "n = 3080", "m = 2816", "T = 16", "m = 32", "m = 40")  # fmt: skip
    c.anywhere("a warp", "32 lanes")
    c.at("title")
    before, after, far = GROWN[3072], GROWN[3080], GROWN[6144]
    c.holds("1408×4096 by 4096×3072 in {} ms", 1e3 * before.seconds)
    more = after.problem.flops / before.problem.flops - 1
    c.holds("B eight more columns: the work grows by {} %, and the product takes {} ms",
            100 * more, 1e3 * after.seconds)  # fmt: skip
    assert far.seconds < 1.05 * after.seconds
    c.holds("next {} columns are", about(6144 - 3080, 0.03))
    c.at("one-column")
    c.given("the question's case", "four tiles")
    c.at("count-text")
    c.holds("itself needs {} % more", 100 * (257 / 256 - 1))
    c.given("a smaller case", "eight times smaller", "two loads")
    c.at("rest-text")
    c.given("the question's case", "16 rows and 17 columns")
    c.holds("its {} warps", 16 * 16 / 32)
    c.at("waves")
    c.holds("{} tiles of {} columns cover C exactly, and eight columns", 3072 / 256, LARGE.block[1])
    cut = quantization(Gemm(2304, 1544, 4096), A100, (256, 128), per_sm=1)
    c.holds("There are {} × {} = {} tiles, and the A100 has {} SMs", cut.down, cut.across,
            cut.tiles, A100.sms)  # fmt: skip
    c.at("tail-read")
    c.holds("so {} tiles too many double the time", cut.tail)
    assert cut.waves == 2
    c.holds("finds {} SMs", GPU.sms)
    ours = quantization(Gemm(1408, 3072, 4096), GPU, (128, 256), per_sm=1)
    c.holds("1408 rows make {} of them, and {} SMs take {} columns", ours.down, GPU.sms,
            GPU.sms // ours.down)  # fmt: skip
    assert ours.waves == ours.wave_use == 1
    c.given("the question", "two waves")
    c.at("staircase-read")
    c.holds("128 columns take as long as 3072, which are {} times the work", 3072 / 128)
    assert abs(GROWN[128].seconds / GROWN[3072].seconds - 1) < 0.04
    step = GROWN[3080].seconds - GROWN[3072].seconds
    c.holds(
        "steps are {} % lower", 100 * (1 - step / (GROWN[9216].seconds - GROWN[3072].seconds) * 2)
    )
    share = float(in_tiles(before.problem, GPU, (128, 256), per_sm=1).seconds) / before.seconds
    c.holds("is {} too short", about(1 - share, 0.15))
    c.holds("for {} % of the time", 100 * share)
    c.at("explore")
    c.given("the explorer", "has 8 SMs", "tiles of 8", "tiles of 4 and of 16", "m to 2816")
    of_32, of_40 = full(32, 8, range(1, 65)), full(40, 8, range(1, 65))
    c.holds("Multiples of {}: four tiles", of_32[0])
    c.given("32 / 8 and 8 / 4", "four tiles", "8 SMs take two columns")
    c.holds("With 40 rows there are five, and the waves fill at multiples of {} only: {} "
            "columns of tiles, {} tiles", of_40[0], of_40[0] / 8, of_40[0] / 8 * 5)  # fmt: skip
    c.given("the whole GPU", "100 %")
    c.holds("full wave, n = {},", GPU.sms // 11 * 128)
    c.at("free-read")
    c.given("the tail's wave", "w + 1:")
    c.holds("{} of the time after one wave, {} after nine", 1 / 2, 1 / 10)
    c.given("NVIDIA's guide", "below 300 blocks")
    c.holds("is two to {} waves", 300 / A100.sms)
    assert math.floor(300 / GPU.sms) == 2
    c.at("sharing-text")
    places = chapter.recorded(1024, SMALL).resources["blocks_per_sm"]
    c.holds("has {} places", places * GPU.sms)
    c.holds("wave then {} tiles", places * GPU.sms)
    c.holds("there are {} tiles", (1024 // 64) ** 2)
    c.given("the question", "as 100 %")
    c.at("sharing-picture-text")
    c.holds(
        "{} blocks on one SM share its FMA units, so that each takes up to {} times", places, places
    )
    c.holds("longer by {}, not", 1 / places)
    c.at("sharing-read")
    c.holds("recorded {} %", guesses.side_by_side().number)
    c.at("stays-text")
    c.holds("with {} blocks has", GPU.sms)
    c.holds("there are {} tiles", quantization(Gemm(1408, 3080, 4096), GPU, (128, 256), 1).tiles)
    c.at("size")
    c.holds("reaches {} TFLOP/s with tiles of 128×256, and {} with",
            tflops(OURS, cube(1024), LARGE), tflops(OURS, cube(1024), SMALL))  # fmt: skip
    c.holds("of the {} SMs", GPU.sms)
    c.at("sizes-text")
    c.given("of the picture", "three tiles")
    c.at("split-text")
    filled = Gemm(8448, 2048, 4096)
    speeds = [next(m for m in series(OURS, "n", tiling=t, m=8448, k=4096) if m.problem == filled)
              .flops_per_second / 1e12 for t in (MIDDLE, SMALL)]  # fmt: skip
    c.holds("128×128 loads {} as much", 64 / 128)
    c.holds("faster: {} against {} TFLOP/s", *speeds)
    c.holds("begins {} µs after", 1e6 * GPU.launch_interval)
    c.holds("stored, {} times 64×64", GPU.sms)
    c.holds("Let {} blocks share", GPU.sms)
    c.at("split-read")
    thin = Gemm(64, 64, 8192)
    part = float(in_tiles(thin, GPU, (64, 64), 1).seconds)
    c.holds(
        "takes {} ms, {} times the bound",
        1e3 * seconds(OURS, thin),
        round(seconds(OURS, thin) / part),
    )
    c.holds("fills {}.", 64 * 64 / (128 * 256))
    c.at("library")
    c.given("the records of cuBLAS", "three formats")
    c.holds("that is {} tiles of 256 rows", 2816 / 256)
    c.holds("first step, at n = {},", GPU.sms / 11 * 128)
    c.at("library-read")
    largest = {d: sorted(steps(d), key=lambda s: s[2])[-3:] for d in ("float32", "tf32", "float16")}
    ends = sorted(s[0] for s in largest["float32"])
    assert ends == sorted(s[0] for s in largest["tf32"])
    c.holds("{} largest steps beyond n = 1000, in per cent, stand where a wave of {} tiles is "
            "full: at {}, {} and {}", 3, GPU.sms, *ends)  # fmt: skip
    longest = max(steps("float32"), key=lambda s: s[3])
    c.holds("its largest, {} µs, is at {}", longest[3], longest[0])
    half = largest["float16"][-1]
    c.holds("largest step at {} instead, with {} %", half[0], math.floor(100 * half[2]))
    c.given("the first full wave", "after 1536")
    c.holds(
        "from 1544 to 2304: {} waves",
        quantization(Gemm(2816, 2304, 4096), GPU, (256, 128), 1).waves,
    )
    c.holds("at {} GHz there and at {} GHz at 1544", clock(1536), clock(1544))
    c.holds("at 2304 it was {} GHz", clock(2304))
    assert chapter.library("tf32")[2304].seconds <= chapter.library("tf32")[1544].seconds
    c.asserted("in TF32 1544 columns take as long as 2304", "than at 1544")
    c.at("alignment")
    c.holds("up to {} bytes at once, from an address that is a multiple of {}; so rows should be "
            "multiples of {} bytes long", 16, 16, 16)  # fmt: skip
    c.given("the question's case", "k = 4098", "one of 16 bytes")
    c.at("alignment-read")
    library = {k: seconds(kernels.cublas, Gemm(4096, 4096, k)) / k for k in (4096, 4097, 4104)}
    c.holds("The {} % of cuBLAS", about(100 * (library[4097] / library[4096] - 1), 0.1))
    assert abs(library[4104] / library[4097] - 1) < 0.01
    c.asserted("4104 is aligned, and costs as much as 4097")
    c.holds("is {} times faster", about(GPU.peak_of("float16") / PEAK, 0.03))
    c.holds("multiples of {} for k and n, and of {} on an A100", multiples("float16").efficient,
            multiples("float16").on_a100)  # fmt: skip
    c.at("against-text")
    c.given("the exercise", "three tiles")
    c.at("against-read")
    c.tested("test_the_rule_picks_the_fastest_tile_of_every_square", "even at 2049")
    c.holds("runs {} % slower at 4095 than at 4096, and {} % slower at 1023 than at 1024",
            100 * (1 - fastest(4095) / fastest(4096)),
            100 * (1 - fastest(1023) / fastest(1024)))  # fmt: skip
    c.at("recap")
    c.given("a step and the next", "two steps")
    c.given("a question", "33,708", "to 33,792", "109 tiles on 108 SMs", "108 tiles take, and 216",
            "If 109 take as long as 216", "300 SMs")  # fmt: skip
    c.holds(
        "33,792 is a multiple of {} and of {}, so", math.gcd(33_792, 128), math.gcd(33_792, 256)
    )
    c.holds("{} of a percent", about(100 * (33_792 / 33_708 - 1), 0.03))
    c.given("tiles enough", "some thousand rows")
