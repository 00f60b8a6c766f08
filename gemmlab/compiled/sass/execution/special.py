"""Special registers: what a lane knows of itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gemmlab.tiling import WARP

Dim = tuple[int, int, int]


def special_registers(
    grid: Dim, block: Dim, blocks: Sequence[Dim], room: int
) -> dict[str, np.ndarray]:
    """What S2R reads, a row each."""
    thread = np.arange(room)
    x, y = thread % block[0], thread // block[0]
    lane = thread % WARP
    bits = np.uint64(1) << lane.astype(np.uint64)
    at = np.asarray(blocks)
    rows = {
        "SR_TID.X": x, "SR_TID.Y": y % block[1], "SR_TID.Z": y // block[1],
        "SR_LANEID": lane, "SR_EQMASK": bits, "SR_LTMASK": bits - 1,
        "SR_LEMASK": 2 * bits - 1, "SR_GTMASK": (2**32 - 1) ^ (2 * bits - 1),
        "SR_GEMASK": (2**32 - 1) ^ (bits - 1), "SR_CgaCtaId": 0 * lane,
    }  # fmt: skip
    special = {name: np.tile(row, len(blocks)).astype(np.uint32) for name, row in rows.items()}
    for axis, name in enumerate("XYZ"):
        special[f"SR_CTAID.{name}"] = np.repeat(at[:, axis], room).astype(np.uint32)
    return special
