"""More blocks than places: which SM gets how many, and how far SMs are apart by then."""

from __future__ import annotations

import numpy as np

from benchmarks.microbenchmarks.global_memory import ADDRESS
from benchmarks.microbenchmarks.loop import Loop, by_sm, lines, registers, started
from benchmarks.microbenchmarks.mixed import OWN_LANES, OWN_WARP, PHASES
from benchmarks.microbenchmarks.shared_memory import SHARED_ADDRESS

BLOCKS, WARPS = 12, 8  # for each SM on average, of which it holds four at once; of a block
SHARED_BYTES = 48 << 10  # of a block, so that an SM holds four
STEPS = 64
_STEP_BYTES = 2048 * WARPS  # from a block's loads in one step to those in the next
_FFMA, _SUMS = 128, registers("f", 8)


def taken(clocks: np.ndarray) -> list[int]:
    """How many blocks each SM took, and after how many cycles its first one ended.

    The numbers of all SMs come first, then the cycles, SM by SM.
    """
    of = by_sm(clocks)
    ends = [int(on["end"].max(axis=1).min() - on["entry"].min()) for on in of]
    return [len(on) for on in of] + ends


_OWN_BLOCK = f"mov.u32 x, %ctaid.x; mul.wide.u32 w, x, {STEPS * _STEP_BYTES}; add.u64 v0, v0, w; "


LOOPS = (
    Loop(
        "blocks_that_load",
        f"how many of {BLOCKS} blocks for each SM each SM takes, four at once, and when its first "
        "one ends: their words come from DRAM, go through shared memory, with barriers between",
        f"{PHASES}\nadd.u64 v0, v0, {_STEP_BYTES};",
        1,
        {"LDG": 2, "STS": 2, "LDS": 32, "BAR": 2, "IMAD": 16, "IADD3": 1, "IADD3.X": 1},
        f"{ADDRESS} {SHARED_ADDRESS} {OWN_WARP} {_OWN_BLOCK}",
        ("r100",),
        (WARPS,),
        blocks_per_sm=BLOCKS,
        of_sms=1.0,
        turns=STEPS,
        passes=1,
        shared_bytes=SHARED_BYTES,
        data_bytes=1 << 31,
        lanes=OWN_LANES,
        cold=True,
        observe=taken,
    ),
    Loop(
        "blocks_that_multiply",
        f"how many of {BLOCKS} blocks for each SM each SM takes, four at once, and when its first "
        "one ends: they do nothing but FFMAs",
        lines(f"fma.rn.f32 f{i % 8}, f{i % 8}, fb, fc;" for i in range(_FFMA)),
        _FFMA,
        {"FFMA": _FFMA},
        started(_SUMS),
        _SUMS,
        (WARPS,),
        blocks_per_sm=BLOCKS,
        of_sms=1.0,
        passes=1,
        shared_bytes=SHARED_BYTES,
        observe=taken,
    ),
)
