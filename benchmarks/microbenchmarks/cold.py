"""Launches that find nothing in L2 but lines that were written: as each launch that is timed does.

What comes from device memory then sends other lines back to it. Kernels do not read it as a stream
does: their blocks have rings of tiles, each tile has short pieces of many rows, and other blocks
ask for the same.
"""

from __future__ import annotations

from benchmarks.microbenchmarks.launch import DRAM_BYTES, Launch
from benchmarks.microbenchmarks.loop import lines

THREADS, ROWS, PIECE = 128, 64, 128  # of a block; of a tile; bytes of each row in it
TILE = ROWS * PIECE
STAGES = 3
TILES = (6, 12)  # of a block, one after the other
SHARED_BY = (1, 2, 4)  # blocks
PER_SM = 3  # blocks: 48 KB under way, as in the rings of kernels
_PITCH = PIECE * max(TILES)  # from one row to the next
_DOWN = THREADS * 16 // PIECE  # rows that a block copies at a time

_START = f"""
shr.u32 y, tid, 3; and.b32 z, tid, 7; mul.wide.u32 v0, y, {_PITCH};
div.u32 x, block, {{by}}; mul.wide.u32 v1, x, {_PITCH * ROWS}; mul.wide.u32 v2, z, 16;
add.u64 v0, v0, v1; add.u64 v0, v0, v2; add.u64 v0, v0, data;
mov.u32 r0, room; mad.lo.u32 r0, tid, 16, r0;
"""
_END = """
cp.async.wait_all; ld.shared.u32 r1, [r0];
setp.eq.u32 rare, r1, 12345; @rare st.global.u32 [out], r1;
"""


def _ring(tiles: int, by: int) -> Launch:
    """Blocks whose rings of three stages have two tiles under way at any time."""

    def ask(tile: int) -> list[str]:
        at, to = tile * PIECE, tile % STAGES * TILE
        copies = [
            f"cp.async.cg.shared.global [r0+{to + row * PIECE}], [v0+{at + row * _PITCH}], 16;"
            for row in range(0, ROWS, _DOWN)
        ]
        return [*(copies if tile < tiles else ()), "cp.async.commit_group;"]

    body = [_START.replace("{by}", str(by)), *ask(0), *ask(1)]
    for tile in range(tiles):
        body += ["cp.async.wait_group 1; bar.sync 0;", *ask(tile + 2)]
    return Launch(
        f"ring_of_{tiles}_tiles_by_{by}_cold",
        f"seconds for {tiles} tiles of {ROWS} rows and {PIECE} bytes, the same for {by} blocks",
        lines([*body, _END]),
        (PER_SM,),
        per_sm=True,
        threads=THREADS,
        in_bytes=1 << 28,
        in_a_row=1,
        shared_bytes=STAGES * TILE,
        requires=(8, 0),
        cold=True,
    )


# What comes before: each word of an array that no L2 holds is read and written.
UPDATE = Launch(
    "dram_update_128",
    "bytes per second of adding to each word, reading and writing counted",
    lines([
        "mul.wide.u32 w, g, 16; add.u64 v1, out, w; ld.global.v4.u32 {r0, r1, r2, r3}, [v1];",
        "add.u32 r0, r0, 1; add.u32 r1, r1, 1; add.u32 r2, r2, 1; add.u32 r3, r3, 1;",
        "st.global.v4.u32 [v1], {r0, r1, r2, r3};",
    ]),
    (DRAM_BYTES // 16 // 256,),
    bytes=2 * DRAM_BYTES,
    out_bytes=DRAM_BYTES,
)  # fmt: skip

LAUNCHES = tuple(_ring(tiles, by) for by in SHARED_BY for tiles in TILES)
