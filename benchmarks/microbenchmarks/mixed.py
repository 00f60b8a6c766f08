"""Requests of several kinds that share the pipe of shared memory and L1, and phases of blocks."""

from __future__ import annotations

import numpy as np

from benchmarks.microbenchmarks.global_memory import ADDRESS, L2_BYTES, copies
from benchmarks.microbenchmarks.loop import Loop, lines, on_one_sm, registers
from benchmarks.microbenchmarks.patterns import SHARED
from benchmarks.microbenchmarks.shared_memory import SHARED_ADDRESS, load, load_matrices

LOADS, OTHERS = 16, 4  # of shared memory in a turn, and of another kind among them
OWN_LANES = SHARED["32_own"].lanes
APART = 512  # from one global access of a warp to its next [B]
_KINDS = {  # PTX of one, its opcode, and what it is
    "ldg_l1": ("ld.global.ca.u32 r{i}, [v0+{at}];", "LDG", "loads from L1"),
    "ldg_l2": ("ld.global.cg.u32 r{i}, [v0+{at}];", "LDG", "loads from L2"),
    "sts": ("st.volatile.shared.u32 [y+128], r101;", "STS", "stores to shared memory"),
    "stg": ("st.global.u32 [v0+{at}], r101;", "STG", "stores to L2"),
}
OWN_WARP = f"shr.u32 x, tid, 5; mul.wide.u32 w, x, {OTHERS * APART}; add.u64 v0, v0, w; "


def _mixed(kind: str) -> Loop:
    text, opcode, words = _KINDS[kind]
    body = []
    for k in range(LOADS):
        body.append(load(4, k))
        if k % (LOADS // OTHERS) == 1:
            body.append(text.format(i=32 + k, at=k // (LOADS // OTHERS) * APART))
    loaded = opcode == "LDG"
    if loaded:  # each is needed, and comes from another place in the next turn
        first, second, third, fourth = (32 + k for k in range(1, LOADS, LOADS // OTHERS))
        body += [f"lop3.b32 r100, r{first}, r{second}, r100, 0x96;"]
        body += [f"lop3.b32 r100, r{third}, r{fourth}, r100, 0x96; xor.b64 v0, v0, 65536;"]
    return Loop(
        f"lds{LOADS}_with_{OTHERS}_{kind}",
        f"cycles of a warp for {LOADS} loads from shared memory among which come {OTHERS} {words}",
        lines(body),
        1,
        {"LDS": LOADS, opcode: OTHERS} | ({"LOP3": 3} if loaded else {}),
        f"{ADDRESS} {SHARED_ADDRESS} mov.u32 r101, tid; {OWN_WARP}",
        ("r0", "r100"),
        lanes=OWN_LANES,
    )


MATRICES = 8  # ldmatrix of a turn, each of four matrices


def _copying(others: int) -> Loop:
    """Loads of matrices among which come copies of 16 bytes a lane, as a pipeline has them."""
    begun, setup = copies(16, "cg", others)
    body = [load_matrices(k) for k in range(MATRICES)]
    for k, one in enumerate(begun):
        body.insert((k + 1) * MATRICES // others + k, one)
    return Loop(
        f"ldsm{MATRICES}_with_{others}_ldgsts",
        f"cycles of a warp for {MATRICES} LDSM of four matrices among which come {others} copies "
        "of 16 bytes a lane from L2 to shared memory",
        lines([*body, "cp.async.commit_group; cp.async.wait_group 1;"]),
        1,
        {"LDSM": MATRICES, "LDGSTS": others, "LDGDEPBAR": 1, "DEPBAR": 1, "LDS": 3 * others},
        setup,
        registers("r", 4 * MATRICES),
        (4, 8, 16),
        requires=(8, 0),
        shared_bytes=32_768,
    )


def block_ends(clocks: np.ndarray) -> list[int]:
    """When each block of an SM ends, in cycles after the first one's start, by their numbers."""
    on = on_one_sm(clocks)
    return (on["end"].max(axis=1) - on["start"].min()).tolist()


# A step of a tile: its words come from L2, and each is used by all warps.
_STEP_LOADS = 16
PHASES = lines(
    [
        "ld.global.cg.u32 r40, [v0]; ld.global.cg.u32 r41, [v0+512];",
        "st.volatile.shared.u32 [y], r40; st.volatile.shared.u32 [y+1024], r41;",
        "bar.sync 0;",
        *(
            f"{load(4, 2 * k, 128 * (k % 8))} {load(4, 2 * k + 1, 1024 + 128 * (k % 8))} "
            f"mad.lo.u32 r100, r{2 * k}, r{2 * k + 1}, r100;"
            for k in range(_STEP_LOADS)
        ),
        "bar.sync 0;",
    ]
)
_OWN_BLOCK = "mov.u32 x, %ctaid.x; mul.wide.u32 w, x, 16384; add.u64 v0, v0, w; "


def _phases(blocks: int) -> Loop:
    return Loop(
        f"phases_of_{blocks}_blocks",
        f"when each of {blocks} blocks on every SM ends, in cycles for each step: it loads from "
        "L2, stores to shared memory, and loads from there, with a barrier after each",
        PHASES,
        1,
        {"LDG": 2, "STS": 2, "LDS": 2 * _STEP_LOADS, "BAR": 2, "IMAD": _STEP_LOADS},
        f"{ADDRESS} {SHARED_ADDRESS} {OWN_WARP} {_OWN_BLOCK}",
        ("r100",),
        (8,),
        blocks_per_sm=blocks,
        of_sms=1.0,
        turns=64,
        shared_bytes=4096,
        data_bytes=L2_BYTES,
        lanes=OWN_LANES,
        observe=block_ends,
    )


LOOPS = (*map(_mixed, _KINDS), *map(_copying, (2, 4, 8)), *map(_phases, (1, 2, 4, 8)))
