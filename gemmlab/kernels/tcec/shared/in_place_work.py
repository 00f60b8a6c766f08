"""What tiles in FP32 that are split in shared memory ask of the machine; see `in_place`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from gemmlab.instructions.tensor_maps import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.simt.shared.vector_access import FOUR
from gemmlab.kernels.tcec.shared.in_place import BOX, BOXES, shape
from gemmlab.kernels.tcec.shared.product_sums import PRODUCTS, are_aligned, flops
from gemmlab.kernels.tensor_core.shared.accumulators import update_c
from gemmlab.kernels.tensor_core.shared.tma_tiles import BLOCK, DEPTH, along_k
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.tiling import WARP, Tiling


def work_of(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """The work of persistent blocks.

    Each step of 64 along k brings tiles in FP32; B is loaded and stored once more, A loaded, and
    each consumer reads all of B for each of three products.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    by_depth = replace(tiling, block=(bm, bn, DEPTH))
    steps = by_depth.steps(problem)
    bringing = brought(problem, by_depth)
    copied = bringing.pop("tensor_copy_bytes", 0)
    found = traffic.staged(
        problem, by_depth, bringing, [(steps, each) for each in moved_in_shared(problem, tiling)],
        update_c(problem, tiling), barriers=0, round_trips=1, flops=flops(problem, by_depth),
    )  # fmt: skip
    read = across * down * steps * PRODUCTS * bm // ROWS * bn
    return replace(
        found,
        counters=found.counters + Counter(tensor_copy_bytes=copied),
        l1_wavefronts=found.l1_wavefronts + read + copied // ROW,
        chain=(1, 0),
        block_counters=Counter(barriers=1),
    )


def brought(problem: Gemm, tiling: Tiling) -> Counter[str]:
    """How all tiles come: bytes that the TMA copies, or the loads of `carrying`.

    tiling : with steps of 64 along k
    """
    if are_aligned(problem):
        (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
        copies = across * down * tiling.steps(problem)
        return Counter(tensor_copy_bytes=copies * BOXES * (bm + bn) * ROW)
    lanes = []
    for size, along in zip(tiling.block, along_k(problem.layout), strict=False):
        _, blocks, rows, _ = shape(size, along)
        one = traffic.in_turn(WARPGROUP, rows, BOX, FOUR)
        every = one.repeated([0], range(0, blocks * BLOCK, BOX))
        lanes.append(every.repeated([0], range(FOUR)))
    return traffic.copied(problem, tiling, *lanes)


def moved_in_shared(problem: Gemm, tiling: Tiling) -> list[Counter[str]]:
    """A block's loads and stores in a step of 64 along k, all of them without bank conflicts."""
    (bm, bn, _), (along, _) = tiling.block, along_k(problem.layout)
    of_a = whole_lines("load", bm, 2 if along else 1)
    of_b = whole_lines("load", bn, FOUR), whole_lines("store", bn, FOUR)
    carried = [] if are_aligned(problem) else [whole_lines("store", bm + bn, FOUR)]
    return [of_a, *of_b, *carried]


def whole_lines(op: str, rows: int, wide: int) -> Counter[str]:
    """Accesses of so many words a lane to both boxes of rows: a wavefront for each."""
    lines = BOXES * rows
    return Counter({
        f"shared_{op}_requests": lines * BOX // (WARP * wide),
        f"shared_{op}_wavefronts": lines,
    })  # fmt: skip
