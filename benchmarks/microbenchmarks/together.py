"""What an SM has while others are at work, too: bytes from L2, and the clock.

Copies by the TMA of a quarter of the SMs, and of all where two neighbours want the same, tell how
L2 is shared. The clock falls within microseconds where many SMs multiply: how far depends on what
moves, so that these loops do what products do. Their tiles of random numbers come from L2 and are
multiplied meanwhile; nobody waits for a tile, since its numbers do not matter.
"""

from __future__ import annotations

import numpy as np

from benchmarks.microbenchmarks.asynchronous import (
    A_BYTES,
    B_BYTES,
    COPIES,
    FILLED,
    HOPPER,
    MATRICES,
    PAIRS,
    PAST,
    WARPGROUP,
    copies,
    product,
)
from benchmarks.microbenchmarks.global_memory import ZEROS_AT
from benchmarks.microbenchmarks.loop import WARP, Loop, lines, registers, span, started

# Quarters of the SMs, and how a name tells them.
SMS = {1: "quarter_of_sms", 2: "half_of_sms", 3: "three_quarters_of_sms", 4: "all_sms"}
WARPS = 2 * WARPGROUP
ROOM, PIECE = A_BYTES + B_BYTES, 16_384  # of what is multiplied, and of a copy at most [B]
TILE = ROOM + A_BYTES  # each warpgroup has its own A, which comes to the same place [B]
PLACES = 4  # in global memory, of two blocks
SLICE = 16 * 2 >> 4  # of a row for products whose k is 16, as a descriptor counts
STEPS = 4  # such products along the k of a tile
TWICE = 2  # that all of a tile is multiplied in a turn
SUMS = registers("f", 128)
MMAS, MATRIX = 32, 512  # of a warp's 64 x 64 x 16, and bytes of an ldmatrix
BARRIER = ROOM

# Tiles of random halves, a few powers of two apart, in global memory, then in shared memory. All
# blocks write the same.
_MADE = lines(
    [
        f"mov.u32 x, %ctaid.x; {PAIRS}",
        f"mad.wide.u32 v9, x, {PLACES * TILE}, data; add.u64 v9, v9, {ZEROS_AT};",
        "mad.wide.u32 v8, tid, 16, v9; mad.lo.u32 r0, tid, 277803737, 7; mov.u32 i, 0;",
        "MAKE:",
        *(
            "mad.lo.u32 r0, r0, 1664525, 1013904223; shf.l.wrap.b32 x, r0, r0, 13; "
            f"lop3.b32 r{i}, x, 0x8fff8fff, 0x30003000, 0xea;"
            for i in (1, 2, 3, 4)
        ),
        f"st.global.v4.b32 [v8], {{r1, r2, r3, r4}}; add.u64 v8, v8, {WARPS * WARP * 16};",
        f"add.u32 i, i, {WARPS * WARP * 16}; setp.lt.u32 more, i, {PLACES * TILE};",
        "@more bra MAKE; fence.proxy.async;",
        FILLED,
        "bar.sync 0; mov.u32 r0, 0;",
        f"setp.eq.u32 p0, tid, 0; @p0 mbarrier.init.shared::cta.b64 [s+{BARRIER}], 1;",
        "fence.mbarrier_init.release.cluster;",
    ]
)


def _copy(at: int, to: int, bytes_: int) -> str:
    """PTX of the copy of a piece of the tile."""
    return (
        "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        f"[s+{to}], [v8+{at}], {bytes_}, [s+{BARRIER}];"
    )


def _asked(tiles: int) -> str:
    """PTX with which one thread asks for so many tiles in a turn, each of another place."""
    found = [
        f"@p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [s+{BARRIER}], {tiles * TILE};",
    ]
    for tile in range(tiles):
        found += [
            f"add.u32 x, i, {tile}; and.b32 x, x, {PLACES - 1}; mad.wide.u32 v8, x, {TILE}, v9;",
            *(_copy(at, 0, A_BYTES) for at in (0, A_BYTES)),
            *(_copy(at, at - A_BYTES, PIECE) for at in range(2 * A_BYTES, TILE, PIECE)),
        ]
    return lines(found)


# It waits for them at the turn's end.
_CAME = (
    f"mov.pred p1, on; AGAIN: @p0 mbarrier.try_wait.parity.shared::cta.b64 p1, [s+{BARRIER}], r0; "
    "@!p1 bra AGAIN; xor.b32 r0, r0, 1; bar.warp.sync 0xffffffff;"
)


def own_clock(clocks: np.ndarray) -> list[int]:
    """Cycles as `span` has them, and the SMs' clock [MHz], the median of what each block tells.

    A warp that comes early waits for the others after it has read the time and before the cycles.
    """
    cycles = clocks["end"].max(axis=1) - clocks["start"].min(axis=1)
    ns = clocks["end_ns"].max(axis=1) - clocks["start_ns"].max(axis=1)
    return [*span(clocks), round(float(np.median(1000 * cycles / ns)))]


def _loop(
    name: str, quarters: int, tiles: int, setup: str, body: str, code: dict[str, int]
) -> Loop:
    return Loop(
        f"{name}_together_on_{SMS[quarters]}",
        f"cycles of a warp for each product while {quarters} of 4 SMs multiply, and their clock",
        lines([_asked(tiles), body, _CAME]),
        max(code.values()),
        code | {"UBLKCP": tiles * (2 + B_BYTES // PIECE)},
        lines([started(SUMS), _MADE, setup]),
        SUMS,
        warps=(WARPS,),
        of_sms=quarters / max(SMS),
        turns=300,
        data_bytes=1 << 26,
        shared_bytes=ROOM + PAST,
        requires=HOPPER,
        observe=own_clock,
    )


def _wgmma(quarters: int) -> Loop:
    """Two warpgroups, each with 64x256x64 of a tile."""
    slices = [(f"v{10 + 2 * k}", f"v{11 + 2 * k}") for k in range(STEPS)]
    setup = [MATRICES]
    setup += [
        f"add.u64 {a}, v0, {k * SLICE}; add.u64 {b}, v1, {k * SLICE};"
        for k, (a, b) in enumerate(slices)
    ]
    body = ["wgmma.fence.sync.aligned;", *(product(256, of=of) for of in slices * TWICE)]
    body += ["wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"]
    return _loop("wgmma", quarters, TWICE, lines(setup), lines(body), {"HGMMA": STEPS * TWICE})


def _mma(quarters: int) -> Loop:
    """Eight warps, each with 64x64x64: products of 16x8x16, and fragments for those that follow."""
    fragments = [(registers("r", 16, at), registers("r", 16, at + 16)) for at in (10, 50)]
    body = []
    for k in range(STEPS):
        body += [_loaded(fragments[(k + 1) % 2], 8 * MATRIX * k), _multiplied(*fragments[k % 2])]
    setup = [
        f"shr.u32 x, tid, 5; mad.lo.u32 x, x, {4 * MATRIX}, s; mad.lo.u32 y, lane, 16, x;",
        *(_loaded(one, 0) for one in fragments),
    ]
    code = {"HMMA": MMAS * STEPS, "LDSM": 8 * STEPS}
    return _loop("hmma", quarters, 1, lines(setup), lines(body), code)


def _loaded(fragments: tuple[tuple[str, ...], ...], at: int) -> str:
    """PTX that loads fragments of A and B, 64x16 and 16x64."""
    quads = [f"{{{', '.join(of[q : q + 4])}}}" for of in fragments for q in range(0, 16, 4)]
    return lines(
        f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {quad}, [y+{at + i * MATRIX}];"
        for i, quad in enumerate(quads)
    )


def _multiplied(a: tuple[str, ...], b: tuple[str, ...]) -> str:
    """PTX of the products of such fragments."""
    of = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    found = []
    for i in range(MMAS):
        row, column = divmod(i, 8)
        sums = ", ".join(SUMS[4 * i : 4 * i + 4])
        of_a, of_b = ", ".join(a[4 * row : 4 * row + 4]), ", ".join(b[2 * column : 2 * column + 2])
        found.append(f"{of} {{{sums}}}, {{{of_a}}}, {{{of_b}}}, {{{sums}}};")
    return lines(found)


LOOPS = (
    copies(COPIES[-1], "tma_together_on_quarter_of_sms", " of a quarter of the SMs", 0.25),
    copies(COPIES[-1], "tma_together_by_2", " of every SM, the same of two neighbours", 1.0, PAIRS),
    *(_wgmma(quarters) for quarters in SMS),
    *(_mma(quarters) for quarters in SMS),
)
