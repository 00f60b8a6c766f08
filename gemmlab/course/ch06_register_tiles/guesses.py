"""Answers to the questions of chapter 06, register tiles."""

from collections.abc import Iterable

import numpy as np

from gemmlab import Gemm, Tiling, device, kernels, predict
from gemmlab.course.guesses import Answer
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure import records
from gemmlab.model import transactions
from gemmlab.model.pipeline import step
from gemmlab.tiling import WARP

_GPU = device("h200")
_BIG = Gemm(4096, 4096, 4096)
_FMAS_A_CYCLE = _GPU.flop_per_cycle_per_sm["float32"] / 2 / WARP  # of whole warps, on an SM


def _wavefronts(kernel: Kernel, tiling: Tiling | None = None, problem: Gemm = _BIG) -> float:
    """Wavefronts of shared loads for each FMA of a warp, predicted."""
    e = predict(problem, _GPU, kernel, tiling)
    return e.counters["shared_load_wavefronts"] / (e.tiling.padded_flops(problem) / 2 / WARP)


def _of_tile(tm: int, tn: int) -> float:
    """Shared loads for each FMA of *register_tiled* with tm×tn elements a thread."""
    return _wavefronts(kernels.register_tiled, Tiling((16 * tm, 16 * tn, 8), (tm, tn)))


def _recorded(kernel: Kernel, n: int) -> float:
    """Recorded rate at m = n = k [FLOP/s]."""
    return records.find(kernel, Gemm(n, n, n)).flops_per_second


def share() -> Answer:
    """What percentage of the FMA peak can *tiled* reach, by its shared loads?"""
    loads = _wavefronts(kernels.tiled)
    percent = 100 / (loads * _FMAS_A_CYCLE)
    return Answer(
        percent,
        f"Each FMA of a warp needs {loads:g} wavefronts, so the pipe feeds one FMA every "
        f"{loads:g} cycles. In that time the SM could have started {loads * _FMAS_A_CYCLE:g}.",
        {
            100 / loads: "You let an SM start one FMA of a warp in a cycle; it starts "
            f"{_FMAS_A_CYCLE:g}.",
            100 / _FMAS_A_CYCLE: "You counted one load for each FMA; the line has one of As and "
            "one of Bs.",
            100: "Loads and FMAs overlap, but the pipe that is slower sets the pace.",
        },
    )


def limit() -> Answer:
    """Which loads for each FMA does a column of more and more sums approach?"""
    tall, taller = _of_tile(64, 1), _of_tile(128, 1)
    return Answer(
        2 * taller - tall,  # what falls like 1/R cancels
        "R rows cost R words of As and one word of Bs for R FMAs: 1 + 1/R. The column reuses B and "
        "not A.",
        {
            0: "Each FMA still loads a word of As of its own.",
            2: "The word of Bs is loaded once for the column, not once for each FMA.",
            0.5: "R rows need R words of As, not one.",
        },
    )


def side() -> Answer:
    """Which is the smallest square thread tile that shared memory can feed?"""
    fits = (t for t in range(1, 17) if _of_tile(t, t) * _FMAS_A_CYCLE <= 1)
    least = next(fits)
    return Answer(
        least,
        f"t rows and t columns take 2t words for t² FMAs: 2/t loads for each FMA, and 2/{least} is "
        f"1/{_FMAS_A_CYCLE:g}. The pipe and the FMA units are then both full.",
        {
            2: "2×2 has four FMAs for each p, but also four loads.",
            4: "4×4 takes 8 loads for 16 FMAs: half a load for each, twice what the pipe delivers.",
            16: "That is more than enough: 32 loads for 256 FMAs, half of what the pipe delivers.",
        },
    )


def integers() -> Answer:
    """How many integer instructions does *register_tiled* execute for 100 FMAs?"""
    from gemmlab.compiled.forecast.rungs import execute_rung
    from gemmlab.compiled.forecast.steps import steps

    kernel = kernels.register_tiled
    done = steps(execute_rung(_BIG, _GPU, kernel), kernel.default.block[2])
    integer = done.used["integer"] + done.used.get("uniform", 0)
    inner = ("for p in", "a[i] =", "b[j] =", "acc[i, j] +=")
    in_loop = sum(
        cost.used.get("integer", 0) + cost.used.get("uniform", 0)
        for cost in done.lines
        if cost.line.text.startswith(inner)
    )
    return Answer(
        round(100 * integer / done.used["fma"]),
        f"About {100 * in_loop / done.used['fma']:.0f} of them belong to the loop over p: counters "
        "and addresses in shared memory. The others copy the tiles: for every word a thread "
        "computes an address of 64 bits and compares its row and its column with the matrix.",
        {
            0: "Somebody has to compute the addresses, compare them with the edges, and count.",
            round(100 * in_loop / done.used["fma"]): "That is the loop over p alone; the copies "
            "of the tiles have more.",
        },
        within=0.1,
    )


def warps() -> Answer:
    """How many warps does the fastest rung keep on an SM?"""
    best, first = (
        max(found, key=lambda m: m.flops_per_second)
        for found in (
            _with_resources(kernels.LADDER),
            _with_resources([kernels.register_tiled]),
        )
    )
    held = best.resources["warps_per_sm"]
    return Answer(
        held,
        f"{best.kernel} keeps {best.resources['registers']} registers a thread, and an SM has "
        f"{_GPU.registers_per_sm:,}. Its {held} warps suffice, because each brings more than a "
        "hundred independent sums.",
        {
            _GPU.threads_per_sm // WARP: "A full SM hides waiting by many warps; this one hides it "
            "by many sums in each.",
            first.resources["warps_per_sm"]: "That is register_tiled with 8×8 sums; the fastest "
            "rung holds fewer still.",
        },
    )


def _with_resources(rungs: Iterable[Kernel]) -> list:
    return [
        m
        for kernel in rungs
        for m in records.load(_GPU.name, kernel)
        if m.problem == _BIG and m.resources
    ]


def wide() -> Answer:
    """How do wavefronts of shared loads change with 128-bit loads: after ÷ before?"""
    q = Gemm(128, 128, 128)
    after, before = (
        predict(q, _GPU, k).counters["shared_load_wavefronts"]
        for k in (kernels.vectorised, kernels.register_tiled)
    )
    return Answer(
        after / before,
        "The words are as many as before. Loads of Bs still take a wavefront for each 8 lanes; "
        "loads of As take half, because lanes that share an address are served together.",
        {
            0.25: "Requests fall to a quarter. A wavefront carries 128 bytes, and a 128-bit load "
            "of 32 different groups needs four of them.",
            1: "That is right for Bs. Of As, lanes want the same words, and a wavefront serves "
            "16 such lanes.",
            0.5: "That is right for As alone.",
            0.625: "That is right for Bs. The two groups that lanes want of As would fit into one "
            "wavefront, but no wavefront of a 128-bit load serves more than 16 lanes.",
        },
    )


def padding() -> Answer:
    """How many wavefronts does a transposing store take without padding?"""
    lane, everyone = np.arange(WARP), np.ones(WARP, bool)
    row, p = lane // 2, lane % 2 * 4  # of A: two lanes in a row, four columns each

    def passes(pad: int) -> int:
        return int(transactions.wavefronts(4 * (p * (128 + pad) + row), everyone, 4))

    aligned = range(0, transactions.BANKS, 4)  # else rows do not begin at multiples of 16 bytes
    words = next(pad for pad in aligned if passes(pad) == 1)
    return Answer(
        passes(0),
        "16 lanes store neighbours in row p of As and 16 in row p + 4. Rows of 128 words all begin "
        f"in bank 0, so that the two halves meet. With {words} unused words a row they begin "
        f"{4 * words} banks apart, and {passes(words)} wavefront is enough.",
        {
            passes(words): "That is with padding. Without it rows p and p + 4 begin in one bank.",
            WARP: "That is a column of a tile; here 16 lanes are neighbours in one row of As.",
            16: "16 rows of A become 16 neighbours of a row of As, in 16 different banks.",
            4: "One instruction stores one word for each lane; a group of four takes four of them.",
        },
    )


def warp() -> Answer:
    """How many wavefronts has *warp_tiled* for each of *vectorised*?"""
    strip, compact = _wavefronts(kernels.vectorised), _wavefronts(kernels.warp_tiled)
    smaller = Tiling(block=(128, 128, 16), warp=(64, 32), thread=(8, 8))
    order = _wavefronts(kernels.warp_tiled, smaller) / strip
    return Answer(
        compact / strip,
        f"The order of the lanes makes it {order:.2g}: loads of Bs take two wavefronts, not four. "
        "Threads of 16×8 instead of 8×8 make it the rest.",
        {
            1: "A compact tile needs fewer different words, and lanes that want the same words "
            "share a wavefront.",
            float(f"{order:.2g}"): "That is the new order of lanes alone; thread tiles grow too.",
            0.25: "Loads of As took two wavefronts already; only those of Bs can gain.",
            (128 / 4096) / (144 / 2048): "You counted different words. Each 128-bit load takes two "
            "wavefronts now, however few words it brings.",
        },
        within=0.01,
    )


def gap() -> Answer:
    """For what percentage of a step of one block alone do the FMA units stand still?"""
    one = step(kernels.warp_tiled, _GPU)
    return Answer(
        round(100 * one.idle_share),
        f"Its FMAs take {one.multiply:,.0f} cycles. Loading, the way to DRAM and storing take "
        f"{one.load:.0f} + {one.wait:.0f} + {one.store:.0f}.",
        {
            0: "A block cannot multiply a tile that has not arrived.",
            round(100 * one.wait / (one.wait + one.multiply)): "That is the way to DRAM; issuing "
            "the loads and storing what they bring takes time too.",
            round(100 * one.idle / one.multiply): "That is waiting divided by multiplying; a step "
            "has both.",
        },
        within=0.03,
    )


def small() -> Answer:
    """How many times as fast as *tiled* is *pipelined* at n = 512?"""
    at_512 = _recorded(kernels.pipelined, 512) / _recorded(kernels.tiled, 512)
    at_4096 = _recorded(kernels.pipelined, 4096) / _recorded(kernels.tiled, 4096)
    small = Gemm(512, 512, 512)
    blocks = [int(np.prod(k.default.grid(small))) for k in (kernels.pipelined, kernels.tiled)]
    return Answer(
        round(at_512, 2),
        f"pipelined cuts 512×512 into {blocks[0]} blocks, and {_GPU.sms} SMs wait for work: most "
        f"get none. tiled cuts it into {blocks[1]:,}.",
        {
            round(at_4096, 1): "That is the ratio at 4096, where every SM has work.",
            1: "The two are far from equal: count the blocks of each.",
        },
        within=0.15,
    )
