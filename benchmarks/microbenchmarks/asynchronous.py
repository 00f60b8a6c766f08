"""What goes on while a warp does other things: `wgmma`, bulk copies by the TMA, mbarriers."""

from __future__ import annotations

from benchmarks.microbenchmarks.global_memory import L2_BYTES, ZEROS_AT
from benchmarks.microbenchmarks.loop import WARP, Loop, lines, registers, started

HOPPER = (9, 0)
WARPGROUP = 4  # warps
ROW = 128  # bytes of a row of a tile, in the 128-byte swizzle
A_BYTES, B_BYTES = 64 * ROW, 256 * ROW  # of a warpgroup; of all
PAST = 8192  # bytes that the last round of filling may write behind both
COLUMNS = (64, 128, 256)  # of a product's B
PRODUCTS = 8  # of a turn

# ------------------------------------------------------------------------------------------- wgmma

# A matrix of rows of 128 bytes in that swizzle: groups of eight rows are 1024 bytes apart.
_SWIZZLED = 1 << 62 | (1024 >> 4) << 32 | 1 << 16
FILLED = lines(  # halves of moderate size and random bits, 16 bytes of a thread at a time
    [
        "mad.lo.u32 r0, tid, 747796405, 12345; mad.lo.u32 y, tid, 16, s;",
        *(
            lines(
                f"mad.lo.u32 r0, r0, 1664525, 1013904223; lop3.b32 r{i}, r0, 0x87ff87ff, "
                "0x38003800, 0xea;"
                for i in (1, 2, 3, 4)
            )
            + f"\nst.shared.v4.b32 [y+{at}], {{r1, r2, r3, r4}};"
            for at in range(0, A_BYTES + B_BYTES, WARPGROUP * WARP * 16)
        ),
        "fence.proxy.async.shared::cta;",
    ]
)
MATRICES = lines(
    [
        "cvt.u64.u32 v0, s; shr.u64 v0, v0, 4;",
        f"or.b64 v0, v0, {_SWIZZLED}; add.u64 v1, v0, {A_BYTES >> 4};",
    ]
)


def product(
    columns: int, fragment: tuple[str, ...] = (), of: tuple[str, str] = ("v0", "v1")
) -> str:
    """PTX of a product of 64 x `columns` x 16; A is in `fragment`, or in shared memory as B is.

    of : registers with the descriptors of A and B
    """
    sums = ", ".join(registers("f", columns // 2))
    a, end = (f"{{{', '.join(fragment)}}}", "0") if fragment else (of[0], "0, 0")
    return (
        f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16 {{{sums}}}, {a}, {of[1]}, on, "
        f"1, 1, {end};"
    )


def _products(columns: int, name: str, fact: str, count: int, **options: object) -> Loop:
    """Products of 64 x `columns` x 16, one after the other to the same sums, and the wait."""
    sums = registers("f", columns // 2)
    body = ["wgmma.fence.sync.aligned;", *[product(columns)] * count]
    body += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    return Loop(
        f"wgmma_64x{columns}x16_{name}",
        fact,
        lines(body),
        count,
        {"HGMMA": count},
        started(sums) + FILLED + MATRICES,
        sums,
        shared_bytes=A_BYTES + B_BYTES + PAST,
        requires=HOPPER,
        **options,
    )


# ---------------------------------------------------------------------------------------- the TMA

TILE = 16_384  # bytes of a copy
PLACES = 8  # in global memory, of a block
COPY = (  # from an address and so many bytes further on, told to an mbarrier
    f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r2], [{{}}+{{}}], {TILE}, "
    "[{}];"
)
COPIES = (1, 15, 60)  # of a turn; the bytes that a phase waits for are less than 2^20
# One thread does it all; the other lanes have ended.
_ALONE = (
    f"setp.ne.u32 p0, tid, 0; @p0 ret; add.u32 y, s, {TILE}; mov.u32 r2, s; mov.u32 r0, 0; "
    "mbarrier.init.shared::cta.b64 [y], 1; fence.mbarrier_init.release.cluster;"
)
_WAIT = (  # for a phase by its parity, which is the other one the next time
    "AGAIN{0}: mbarrier.try_wait.parity.shared::cta.b64 p1, [y], r0; @!p1 bra AGAIN{0}; "
    "xor.b32 r0, r0, 1;"
)
_BLOCK = "mov.u32 x, %ctaid.x; {}" + (
    f"mad.wide.u32 v0, x, {PLACES * TILE}, data; add.u64 v0, v0, {ZEROS_AT};"
)
PAIRS = "shr.u32 x, x, 1; "  # two blocks in a row have the same places


def copies(count: int, name: str, words: str = "", of_sms: float = 0.0, blocks: str = "") -> Loop:
    """Bulk copies of a thread to one place, from eight that L2 holds, and the wait for all.

    words : whose they are; blocks : PTX that makes of a block's number that of its places, x
    """
    body = [
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [y], {count * TILE};",
        *(COPY.format("v0", k % PLACES * TILE, "y") for k in range(count)),
        _WAIT.format(0),
    ]
    return Loop(
        name,
        f"cycles until {count} x {TILE} bytes have come from L2 to shared memory, by the TMA"
        + words,
        lines(body),
        1,
        {"UBLKCP": count},
        f"{_BLOCK.format(blocks)} {_ALONE}",
        ("r0",),
        (1,),
        of_sms=of_sms,
        turns=40,
        data_bytes=L2_BYTES,
        shared_bytes=TILE + 128,
        requires=HOPPER,
    )


_ARRIVALS = 8
_ARRIVAL = Loop(
    "mbarrier_latency",
    "cycles from an arrival that completes a phase to the end of the wait for it",
    lines(f"mbarrier.arrive.shared::cta.b64 _, [y]; {_WAIT.format(k)}" for k in range(_ARRIVALS)),
    _ARRIVALS,
    {"SYNCS": 2 * _ARRIVALS},
    _ALONE,
    ("r0",),
    (1,),
    shared_bytes=TILE + 128,
    requires=HOPPER,
)

LOOPS = (
    *(
        _products(
            columns,
            "latency",
            "cycles from a fence to the end of the wait for one product",
            1,
            warps=(WARPGROUP,),
        )
        for columns in COLUMNS
    ),
    *(
        _products(
            columns,
            "rate",
            f"cycles of a warpgroup for each of {PRODUCTS} products and the wait for them",
            PRODUCTS,
            warps=(WARPGROUP, 2 * WARPGROUP),
        )
        for columns in COLUMNS
    ),
    _products(
        256,
        "all_sms",
        "cycles of a warpgroup for each product while all SMs compute for 0.2 s, and their clock",
        PRODUCTS,
        warps=(2 * WARPGROUP,),
        of_sms=1.0,
        turns=150_000,
        passes=1,
    ),
    *(copies(count, f"tma_{count}_copies") for count in COPIES),
    copies(COPIES[-1], f"tma_{COPIES[-1]}_copies_all_sms", " of every SM", 1.0),
    _ARRIVAL,
)
