"""What each number in chapter 10's sentences must be."""

import math
from dataclasses import replace

from gemmlab import Gemm, kernels
from gemmlab.model import schedule
from gemmlab.model.quantization import quantization
from tests.course.ch10_split_k.test_chapter import GPU, GRADIENT, SMALL, TALL, bound, splits, time
from tests.course.computed import cube
from tests.course.sentences import Claims, about

SPLIT, STREAM, PLAIN, LIBRARY = (kernels.split_k, kernels.stream_k, kernels.pipelined,
                                 kernels.cublas)  # fmt: skip
RAGGED, WHOLE = Gemm(1408, 3080, 4096), Gemm(1408, 3072, 4096)


def cut(p, split=1):
    """A product in tiles of 128×256."""
    return quantization(p, GPU, (128, 256), per_sm=1, split=split)


def sectors(split):
    """What 64×64×1024 in so many parts loads and stores."""
    counters = SPLIT.work(Gemm(64, 64, 1024), replace(SPLIT.tilings[-1], split=split)).counters
    return counters["global_load_sectors"] + counters["global_store_sectors"]


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("cases that the chapter's cells compute", "64×64×8192", "1024×1024×8192", "128×256",
               "β \\ne 0", "β = 0", "tile of 64×64", "64×64×1024, tile 64×64", "768×768×16384",
               "768×768 weights", "4096×4096×4096", "1408×3080×4096", "k = 4096")  # fmt: skip
    c.at("title")
    ours, theirs = time(SPLIT, SMALL, 1), time(LIBRARY, SMALL)
    c.holds("takes {} µs for the product", 1e6 * ours)
    c.holds("takes {} µs on the same GPU: it is {} times as fast", 1e6 * theirs, ours / theirs)
    c.holds("How can {} SMs", GPU.sms)
    c.at("busy-read")
    c.holds(
        "works through {} products for each element, and {} SMs have no block", SMALL.k, GPU.sms - 1
    )
    c.at("third-axis")
    c.given("the next cell's case", "12 steps on a GPU of 4 SMs", "four blocks", "tile 0")
    c.at("parts-read")
    ends = [schedule.ends(schedule.schedule(schedule.split_k(1, 12, s), 4)) for s in (1, 4)]
    c.holds("time is {}.", ends[1] / ends[0])
    c.given("the picture's parts", "four sums")
    c.at("stages-text")
    c.holds("16×16×256 in tiles of 8×8: {} tiles of {} steps", (16 / 8) ** 2, 256 / 8)
    c.at("traffic-text")
    c.given("any two", "no two parts")
    c.given("the question's case", "eight parts")
    c.at("rung")
    assert 2 * 8 * TALL.m * TALL.n * 4 == sum(TALL.array_bytes[:2])
    c.asserted("eight parts move")
    c.holds("has {} MiB", GPU.l2_bytes / 2**20)
    c.given("a loop's ends", "in place of 0 to")
    c.at("rung-next")
    c.given("an example", "100 parts")
    c.at("best-text")
    c.holds("on {} SMs", GPU.sms)
    c.at("curve-read")
    c.holds("({} µs)", 1e6 * GPU.launch_interval)
    c.at("small-text")
    c.holds("so that {} parts give", GPU.sms)
    c.at("small-read")
    seen = splits(SMALL)
    factor = seen[1] / bound(SMALL, 1).seconds
    off = {s: t / (factor * bound(SMALL, s).seconds) for s, t in seen.items()}
    c.holds("From {} parts on the marks leave the dashed line, and they turn at {} µs",
            min(s for s in off if off[s] > 1.1), 1e6 * min(seen.values()))  # fmt: skip
    most = SPLIT.suggest(SMALL, GPU).split
    found = bound(SMALL, most)
    c.holds("By the bound, {} parts take {} µs for the product and {} µs for the sums", most,
            1e6 * found.product, 1e6 * found.sums)  # fmt: skip
    c.holds(
        "The other {} µs are what no split shortens: {} launches",
        1e6 * (seen[most] - found.seconds),
        2,
    )
    c.holds("within {} % of the best", 100 * (seen[most] / min(seen.values()) - 1))
    c.holds("Beyond {} parts", GPU.sms)
    c.at("explore")
    c.given(
        "the explorer",
        "parts 4, then 5",
        "At 5,",
        "64×64×1024",
        "run 2, 8 and 32 parts",
        "with 1 part",
    )
    at_5 = cut(TALL, 5)
    c.holds("{} blocks are {} and {}.", at_5.tiles, GPU.sms, at_5.tail)
    idle = GPU.sms - at_5.tail
    c.holds("leaves {} SMs idle: {} % of all SMs", idle, 100 * idle / (2 * GPU.sms))
    c.holds("About {}.", max(s for s in range(1, 40) if sectors(s) < 2 * sectors(1)))
    c.holds("One part moves {} sectors; each part more stores {} of sums", sectors(1),
            (sectors(2) - sectors(1)) / 2)  # fmt: skip
    c.holds("{} tiles make nearly {} full waves, and any split adds sums of {} MB a part",
            cut(cube(4096)).tiles, cut(cube(4096)).waves, 4 * 4096**2 / 1e6)  # fmt: skip
    c.at("atomics")
    c.holds("add to 32 neighbours, in {} sectors", 32 * 4 / 32)
    c.given("the question", "Let all 32 lanes")
    c.at("order")
    ways = [splits(SMALL, kernel) for kernel in kernels.SPLIT_K[:2]]
    c.holds("With 512 parts each element of C is added to 512 times, one after the other, and "
            "atomics take {} as long", about(ways[1][512] / ways[0][512], 0.06))  # fmt: skip
    c.given("the next cell's case", "Four parts", "holds 0")
    c.at("order-text")
    c.holds("adds four parts of one 16×16 tile in each of the {} orders", math.factorial(4))
    c.at("stream")
    c.holds("4096: {} tiles on {} SMs, {} waves", cut(RAGGED).tiles, GPU.sms, cut(RAGGED).waves)
    c.holds("cut all {} tiles because of the last {}", cut(RAGGED).tiles, cut(RAGGED).tail)
    c.given("the next cell's case", "5 tiles of 8 steps on 4 SMs, three times")
    c.at("stream-read")
    deals = schedule.split_k(5, 8), schedule.split_k(5, 8, 2), schedule.stream_k(5, 8, 4)
    placed = [schedule.schedule(blocks, 4) for blocks in deals]
    c.holds("Whole tiles take {} steps, halves {}, equal shares {}: all {} steps divided by 4",
            *map(schedule.ends, placed), 5 * 8)  # fmt: skip
    c.holds("added, {} pieces in place of {}, because", schedule.sums_stored(placed[2]),
            schedule.sums_stored(placed[1]))  # fmt: skip
    whole = sorted({one.piece.tile for one in placed[2] if one.piece.whole})
    c.holds("because tiles {} and {} lie", *whole)
    c.holds("{} tiles of 512 steps on {} SMs", cut(RAGGED).tiles, GPU.sms)
    c.at("ex3-text")
    mine = [one.piece.tile for one in placed[2] if one.block == 1]
    c.holds(
        "Block 1 of the picture is a good test: it begins in tile {} and ends in tile {}", *mine
    )
    c.at("stream-table-text")
    c.given("chapter 5's question", "eight columns")
    c.at("pieces-text")
    times = {k: time(k, RAGGED) for k in (PLAIN, SPLIT, STREAM, LIBRARY)}
    gained = {k: times[PLAIN] - times[k] for k in (SPLIT, STREAM)}
    c.holds("stream_k is {} times as fast as whole tiles", times[PLAIN] / times[STREAM])
    assert times[STREAM] < times[LIBRARY]
    c.holds("each of the {} tiles into {} parts, and gains not quite {} as much",
            cut(RAGGED).tiles, SPLIT.suggest(RAGGED, GPU).split,
            about(gained[SPLIT] / gained[STREAM], 0.06))  # fmt: skip
    c.holds("at 3072, stream_k has nothing to gain, and loses {} %",
            100 * (time(STREAM, WHOLE) / time(PLAIN, WHOLE) - 1))  # fmt: skip
    c.holds("which has {} tiles of 512 steps", cut(cube(4096)).tiles)
    c.holds("two parts of each would leave {} tiles of sums", 2 * cut(cube(4096)).tiles)
    c.holds("{} equal shares", GPU.sms)
    c.at("hybrid")
    c.holds("go {} along k in place of {}", STREAM.default.block[2], SPLIT.default.block[2])
    c.holds("nearly {} full waves, stream_k takes {} % longer", cut(cube(4096)).waves,
            100 * (time(STREAM, cube(4096)) / time(PLAIN, cube(4096)) - 1))  # fmt: skip
    c.at("networks")
    c.given("the case", "32 texts of 512 tokens")
    c.holds("which is {} tiles", cut(GRADIENT).tiles)
    c.at("gradient-read")
    seen = splits(GRADIENT)
    c.holds("more than 7 costs {} %, and one more than 14 costs {} %",
            100 * (seen[8] / seen[7] - 1), 100 * (seen[15] / seen[14] - 1))  # fmt: skip
    assert time(STREAM, GRADIENT) < 1.02 * min(seen.values())
    c.asserted("within 2 %")
    c.at("recap")
    c.given("loaded and stored, of 4 bytes", "2 · 4 · smn")
    c.tested("test_the_recap", "two tiles of sums")
    c.given("their names", "three kernels")
    c.given("a question", "4096×4096×4096 in two", "200 SMs", "200 shares")
    c.holds("{} tiles make nearly {} full waves: the", cut(cube(4096)).tiles, cut(cube(4096)).waves)
    c.holds("loads {} MB of sums", 2 * 4 * 4096**2 / 1e6)
    c.at("recap-next")
    c.given("the articles' years", "2023")
