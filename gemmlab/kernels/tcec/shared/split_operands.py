"""The parts of A and B as FP16: in global memory, and in rings of shared memory.

A part is stored as its operand is, in rows that begin at multiples of 16 bytes, as the TMA asks;
what a row has beyond the operand is zero. The launch that writes them only moves bytes: it reads
four for each element and writes four.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from numpy import float16, float32

from gemmlab import Gemm, Tiling
from gemmlab.instructions import mbarrier_arrive_expect, store_v4, tensor_map
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.kernels.kernel import Dim, Launch, Workspace, on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR, moved, reading
from gemmlab.kernels.tcec.shared.product_sums import are_aligned
from gemmlab.kernels.tcec.shared.splitting import SCALE
from gemmlab.kernels.tensor_core.shared.tma_tiles import HALF, WORD, box_rows
from gemmlab.model import traffic
from gemmlab.model.transactions import SECTOR
from gemmlab.simt import cuda

PARTS = 2
PIECE = 8  # elements: 16 bytes
THREADS = 256
WIDTH = FOUR * THREADS  # elements of a row that a block splits
HEIGHT = 4  # rows of them, whose loads do not wait for each other
MOST = 65535  # blocks of a grid along y


def build_split(tiling: Tiling, aligned: bool = True) -> Callable:
    """Return the function that splits A and B."""
    read_four = reading(aligned)

    @on_device
    def split_one(x):
        high = float16(x)
        return high, float16((x - float32(high)) * SCALE)  # the difference is exact

    @on_device
    def split_matrix(X, high, low):
        col = (cuda.blockIdx.x * THREADS + cuda.threadIdx.x) * FOUR
        rows, length = high.shape
        for first in range(cuda.blockIdx.y * HEIGHT, rows, cuda.gridDim.y * HEIGHT):
            for n in range(HEIGHT):
                row = first + n
                if row < rows and col < length:
                    v = read_four(X, row, col)
                    h0, l0 = split_one(v[0])
                    h1, l1 = split_one(v[1])
                    h2, l2 = split_one(v[2])
                    h3, l3 = split_one(v[3])
                    store_v4(high, row, col, (h0, h1, h2, h3))
                    store_v4(low, row, col, (l0, l1, l2, l3))

    def split(alpha, A, B, beta, C, A_high, A_low, B_high, B_low, to_Ah, to_Al, to_Bh, to_Bl):
        if cuda.blockIdx.z == 0:
            split_matrix(A, A_high, A_low)
        else:
            split_matrix(B, B_high, B_low)

    return split


def split_variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
    """Keyword arguments of `build_split`."""
    return {"aligned": are_aligned(problem)}


def configure_split(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): across rows, down them, and A and B."""
    rows, columns = map(max, zip(*padded(problem), strict=True))
    return (-(-columns // WIDTH), min(-(-rows // HEIGHT), MOST), 2), (THREADS, 1)


SPLIT = Launch(build_split, configure_split, variant=split_variant)


def padded(problem: Gemm) -> list[tuple[int, int]]:
    """Shapes of the parts of A and of B."""
    return [(rows, -(-columns // PIECE) * PIECE) for rows, columns in problem.shapes[:2]]


def workspace(problem: Gemm, tiling: Tiling) -> tuple[Workspace, ...]:
    """High and low parts of A, and of B: as many bytes as A and B have."""
    a, b = padded(problem)
    return tuple(Workspace(shape, "float16") for shape in (a, a, b, b))


def with_maps(problem: Gemm, tiling: Tiling, *parts: Any) -> tuple:
    """Return the parts, and the tensor map of each."""
    a, b = box_rows(tiling, problem.layout)
    maps = (tensor_map(part, rows) for part, rows in zip(parts, (a, a, b, b), strict=True))
    return (*parts, *maps)


def rings(tiling: Tiling) -> tuple[int, ...]:
    """Offsets [B] of the rings of A's high and low parts, of those of B's, and of mbarriers."""
    a, b = (tiling.stages * size * ROW for size in tiling.block[:2])
    return 0, a, 2 * a, 2 * a + b, 2 * (a + b)


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: both parts in all stages, and two mbarriers for each."""
    return rings(tiling)[-1] + 2 * tiling.stages * WORD


def copying_parts(tiling: Tiling, copy_a: Callable, copy_b: Callable) -> Callable:
    """Return the device function that lets the TMA copy both parts of tiles of A and B to a stage.

    copy_a, copy_b : (ring, stage, map, row or column of C, k, mbarrier), such as
        `tma_tiles.copying`
    """
    bm, bn, _ = tiling.block
    STAGE_BYTES = PARTS * (bm + bn) * ROW

    @on_device
    def copy(Ah, Al, Bh, Bl, stage, to_Ah, to_Al, to_Bh, to_Bl, row, col, p, q, full):
        """Copy from p of A's k on, and q of B's; `full` counts their bytes."""
        mbarrier_arrive_expect(full, stage, STAGE_BYTES)
        copy_a(Ah, stage, to_Ah, row, p, full)
        copy_b(Bh, stage, to_Bh, col, q, full)
        copy_a(Al, stage, to_Al, row, p, full)
        copy_b(Bl, stage, to_Bl, col, q, full)

    return copy


def split_work(problem: Gemm) -> traffic.Work:
    """Return the transactions of the launch that splits A and B."""
    fours = traffic.in_turn(THREADS, HEIGHT, WIDTH, FOUR)
    lanes, wide = moved(fours, are_aligned(problem))
    tile, counters = (HEIGHT, WIDTH), Counter()
    for shape, stored in zip(problem.shapes, padded(problem), strict=False):
        counters += traffic.of_matrix("load", 2 * HALF, lanes, shape, tile, wide=wide)
        counters += traffic.of_matrix("store", HALF, fours, stored, tile, 2, FOUR)
    counters.pop("lane_bytes")
    cycles = counters.pop("l1_cycles")
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    return traffic.Work(
        counters=counters, flops={}, l2_bytes=SECTOR * sectors, l1_wavefronts=cycles, chain=(1, 0)
    )
