"""Products by `wgmma` beside what else uses shared memory: loads, and copies by the TMA.

A product reads B from shared memory, and A, where that is not in registers. What it reads takes
time from others, although no instruction of a warp says so.
"""

from __future__ import annotations

from benchmarks.microbenchmarks.asynchronous import (
    A_BYTES,
    B_BYTES,
    COPY,
    FILLED,
    HOPPER,
    MATRICES,
    PAST,
    PLACES,
    PRODUCTS,
    ROW,
    TILE,
    WARPGROUP,
    product,
)
from benchmarks.microbenchmarks.global_memory import L2_BYTES, ZEROS_AT
from benchmarks.microbenchmarks.loop import WARP, Loop, lines, registers, started

N = 128  # columns of a product's B, where nothing else is said
FRAGMENT, FIRST = 10, 20  # registers of A, and the first of those that are loaded
QUADS = 8  # so many loads of four registers each before one is loaded again
COPIED_TO = A_BYTES + N * ROW  # behind what is multiplied
BARRIER = COPIED_TO + TILE
_FENCE = "wgmma.fence.sync.aligned;"
_WAIT = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
_IN_REGISTERS = f"ld.shared.v4.b32 {{{', '.join(registers('r', 4, FRAGMENT))}}}, [y];"
OWN_LANES = tuple(16 * lane for lane in range(WARP))  # where a warp's lanes load, with their tile
_WORDS = {False: "", True: "_registers"}


def _loading(in_registers: bool, count: int, columns: int = N) -> Loop:
    """Products, and after each so many loads of 16 bytes a lane."""
    body = [_FENCE]
    for k in range(PRODUCTS):
        body.append(product(columns, registers("r", 4, FRAGMENT) if in_registers else ()))
        for c in range(k * count, (k + 1) * count):
            quad = ", ".join(registers("r", 4, FIRST + 4 * (c % QUADS)))
            body.append(f"ld.volatile.shared.v4.b32 {{{quad}}}, [y];")
    return _beside(
        f"64x{columns}x16{_WORDS[in_registers]}_beside_{count}_lds", in_registers,
        f"{count} LDS of 16 bytes a lane after each", [*body, _WAIT], {"LDS": PRODUCTS * count},
        columns,
    )  # fmt: skip


def _copying(in_registers: bool, count: int) -> Loop:
    """Products, and for each turn so many copies from L2, which one thread waits for."""
    held = registers("r", 4, FRAGMENT) if in_registers else ()
    body = [
        f"@p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [s+{BARRIER}], {count * TILE};",
        *("@p0 " + COPY.format("v2", k % PLACES * TILE, f"s+{BARRIER}") for k in range(count)),
        *[_FENCE, *[product(N, held)] * PRODUCTS, _WAIT, "mov.pred p1, on;"],
        f"AGAIN: @p0 mbarrier.try_wait.parity.shared::cta.b64 p1, [s+{BARRIER}], r0;",
        "@!p1 bra AGAIN; xor.b32 r0, r0, 1; bar.warp.sync 0xffffffff;",
    ]
    return _beside(
        f"64x{N}x16{_WORDS[in_registers]}_beside_{count}_tma", in_registers,
        f"{count} copies of {TILE} bytes by the TMA in a turn", body, {"UBLKCP": count},
    )  # fmt: skip


def _beside(
    name: str, in_registers: bool, words: str, body: list[str], code: dict, columns: int = N
) -> Loop:
    sums = registers("f", columns // 2)
    where = "in registers" if in_registers else "in shared memory"
    return Loop(
        f"wgmma_{name}",
        f"cycles of a warpgroup for each of {PRODUCTS} products, A {where}, with {words}",
        lines(body),
        PRODUCTS,
        {"HGMMA": PRODUCTS} | code,
        lines([
            started(sums), FILLED, MATRICES, _IN_REGISTERS,
            f"add.u64 v2, data, {ZEROS_AT}; add.u32 r2, s, {COPIED_TO}; mov.u32 r0, 0;",
            "setp.eq.u32 p0, tid, 0; bar.sync 0;",
            f"@p0 mbarrier.init.shared::cta.b64 [s+{BARRIER}], 1;",
            "fence.mbarrier_init.release.cluster;",
        ]),
        (*sums, *registers("r", 4 * QUADS * ("LDS" in code), FIRST)),
        warps=(WARPGROUP, 2 * WARPGROUP),
        data_bytes=L2_BYTES,
        shared_bytes=A_BYTES + B_BYTES + PAST,
        lanes=OWN_LANES,
        requires=HOPPER,
    )  # fmt: skip


LOOPS = (
    *(_loading(held, count) for held in (False, True) for count in (1, 2, 3, 4, 6)),
    *(_loading(held, count, 64) for held in (False, True) for count in (2, 4)),
    *(_loading(held, count, 256) for held in (False, True) for count in (4, 6)),
    *(_copying(held, count) for held in (False, True) for count in (1, 2, 4, 6)),
)
