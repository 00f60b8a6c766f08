"""Answers to the questions of chapter 10, split-K."""

from dataclasses import replace

from gemmlab import Gemm, device, kernels
from gemmlab.course.guesses import Answer
from gemmlab.measure import records
from gemmlab.measure.microbenchmarks import load
from gemmlab.model import schedule
from gemmlab.model.quantization import quantization

_H200 = device("h200")
_TALL = Gemm(1024, 1024, 8192)
_LARGE = kernels.split_k.default  # tiles of 128×256, in steps of 16
_TILES, _STEPS = 32, 512  # of _TALL


def _recorded(split: int) -> float:
    """Recorded time of *split_k* for 1024×1024×8192 [s]."""
    return records.find(kernels.split_k, _TALL, replace(_LARGE, split=split)).seconds


def idle() -> Answer:
    """1024×1024 in tiles of 128×256: which share of the FMA peak can be reached at most?"""
    share = 100 * quantization(_TALL, _H200, _LARGE.block[:2], per_sm=1).use
    seen = records.find(kernels.pipelined, _TALL)
    reached = 100 * seen.flops_per_second / _H200.peak_of("float32")
    return Answer(
        round(share, 1),
        f"{_TILES} tiles occupy {_TILES} of {_H200.sms} SMs, whatever k is. *pipelined* reaches "
        f"{reached:.0f} % (recorded).",
        {
            100: "The arithmetic would suffice for that, but an SM without a tile does none of it.",
            round(100 * 64 / _H200.sms, 1): "That is with tiles of 128×128.",
            round(100 * 256 / _H200.sms / 2, 1): "That is with tiles of 64×128.",
        },
        within=0.02,
    )


def traffic() -> Answer:
    """Eight parts of 1024×1024: how many MB of sums go to the workspace and come back?"""
    stored = 8 * _TALL.m * _TALL.n * 4 / 1e6
    operands = sum(_TALL.array_bytes[:2]) / 1e6
    return Answer(
        round(2 * stored, 1),
        f"Each part has as many sums as C has elements, of 4 bytes: {stored:.1f} MB are stored, "
        f"and then loaded. A and B have {operands:.0f} MB together.",
        {
            round(stored, 1): "That is what is stored. The second launch loads it.",
            round(stored / 8, 1): "That is one part, stored. There are eight, and they come back.",
            round(stored / 4, 1): "That is one part, stored and loaded. There are eight.",
            round(2 * stored / 8 * 7, 1): "The first part goes to the workspace, too: its block "
            "does not know whether the others are done.",
        },
        within=0.03,
    )


def best() -> Answer:
    """1024×1024×8192 in tiles of 128×256: which number of parts takes least time?"""
    return Answer(
        4,
        f"4 × {_TILES} = {4 * _TILES} blocks fill one wave of {_H200.sms}, as nearly as can be.",
        {
            _H200.sms: f"That would be one tile's parts. With {_TILES} tiles it makes "
            f"{_TILES * _H200.sms:,} blocks, and as many tiles of sums.",
            5: f"{5 * _TILES} blocks are more than {_H200.sms}: a second wave begins.",
            8: "Two waves, nearly full: no better than one, and twice the sums.",
            2: f"{2 * _TILES} blocks leave half of the SMs idle.",
            3: f"{3 * _TILES} blocks leave a quarter of the SMs idle.",
            16: "Four waves, nearly full: no better than one, and four times the sums.",
        },
    )


def one_more() -> Answer:
    """Five parts in place of four: how many times as long?"""
    times = _recorded(5) / _recorded(4)
    waves, part = -(-5 * _TILES // _H200.sms), -(-_STEPS // 5)
    return Answer(
        round(times, 2),
        f"{5 * _TILES} blocks take {waves} waves of {part} steps, {waves * part} in place of "
        f"{_STEPS // 4}: {waves * part / (_STEPS // 4):.2f} times as many (recorded: {times:.2f} "
        "times as long).",
        {
            0.8: "A block has a fifth less to do, but some SMs have two of them.",
            1: "The work is the same, but a second wave begins.",
            2: "A second wave begins, but each wave is shorter: its blocks have fewer steps.",
            1.25: "That is the number of blocks. They come in waves.",
        },
        within=0.05,
    )


def same() -> Answer:
    """All lanes add to one element in place of 32 neighbours: how many times as long?"""
    times = _cycles("same") / _cycles("own")
    return Answer(
        round(times),
        "L2 makes the additions to one element one after the other. They take less than 32 times "
        "as long, because additions to 32 neighbours are not made all at once either.",
        {
            32: "That would be so if 32 neighbours cost as much as one element.",
            1: "Each addition needs the result of the one before.",
        },
        within=0.1,
    )


def _cycles(which: str) -> float:
    """Recorded cycles for a warp's request of atomic additions in FP32, with 32 warps."""
    loop = load().loop(f"global_red_f32_{which}_rate", 32)
    return loop.each / loop.warps


def orders() -> Answer:
    """Four parts are added to 0 in any order: how many different results, at most?"""
    return Answer(
        12,
        "There are 24 orders. The first part is added to 0, which is exact, and a + b = b + a: "
        "which of two parts comes first makes no difference. From the third on the order counts.",
        {
            24: "That is the number of orders. Exchange the first two: does the sum change?",
            1: "Each addition rounds, and what it rounds depends on what was added before.",
            4: "That is how many parts can come last. The order of the others counts as well.",
            6: "That is for three parts after the first, but which one is first counts, too.",
        },
    )


def stream() -> Answer:
    """143 tiles on 132 SMs: by steps, how many times as fast with equal shares?"""
    tiles, steps = 143, 4096 // 8
    whole = -(-tiles // _H200.sms) * steps
    share = -(-tiles * steps // _H200.sms)
    return Answer(
        round(whole / share, 2),
        f"The busiest SM has {share} steps in place of {whole}.",
        {
            2: "That would be one wave's time. 143 tiles are more than one wave's work.",
            round(tiles / _H200.sms, 2): "That is how much more work there is than in one wave.",
            1: "The second wave is nearly empty. Shares fill it.",
        },
        within=0.02,
    )


def pieces() -> Answer:
    """512 tiles of 512 steps in 132 shares: how many tiles of sums wait to be added?"""
    dealt = schedule.stream_k(512, 512, _H200.sms)
    waiting = sum(not piece.whole for share in dealt for piece in share)
    return Answer(
        waiting,
        f"There are {_H200.sms - 1} cuts. A cut through a tile leaves two pieces, and 3 of the "
        "cuts fall between tiles. All other tiles are whole, and go to C at once.",
        {
            1024: "That is *split_k* with two parts. Here most tiles have one block.",
            512: "Most tiles have one block, which needs no workspace.",
            _H200.sms - 1: "A cut through a tile leaves two pieces: one on either side.",
        },
        within=0.04,
    )
