"""The launches that are looked into: a rung of each family, two rounds of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from benchmarks.inside.marks import FIRST, Places, marked
from gemmlab import Gemm, device, kernels
from gemmlab.kernels.kernel import Kernel
from gemmlab.tiling import WARP

DEVICE = device("h100_sxm")
TILE_THERE = "cuda.syncthreads()"
UPDATE = "update(C, row + i, col + j, alpha, acc, beta)"


@dataclass(frozen=True)
class Case:
    """A launch with marks: which kernel, which product, and where its warps read the clock.

    rounds : of tiles of C, that a block has one after the other
    """

    kernel: Kernel
    problem: Gemm
    places: Places
    rounds: int = 1

    @property
    def name(self) -> str:
        return self.kernel.name

    @cached_property
    def tiling(self):
        return self.kernel.choose(None, self.problem, DEVICE)

    @property
    def turns(self) -> int:
        """The tiles along k of a tile of C."""
        return self.tiling.steps(self.problem)

    @property
    def each(self) -> int:
        """The words of a warp's row, with room for one mark more of each tile of C."""
        return FIRST + 1 + self.rounds * (self.turns + 3)

    @cached_property
    def marked(self) -> Kernel:
        return marked(self.kernel, self.places, self.each)

    @property
    def blocks(self) -> int:
        x, y, *_ = self.kernel.launch(self.problem, self.tiling, DEVICE)[0]
        return x * y

    @property
    def warps(self) -> int:
        """The warps of a block."""
        return self.kernel.launch(self.problem, self.tiling, DEVICE)[1][0] // WARP


HALF = {"dtype": "float16", "out_dtype": "float32"}
CASES = {
    case.name: case
    for case in (
        Case(
            kernels.pipelined,
            Gemm(2048, 4096, 256),
            Places(
                TILE_THERE,
                "while p < k:",
                "update_tile(C, row + i, col + j, DOWN, ACROSS, alpha, acc, beta)",
            ),
        ),
        Case(
            kernels.mma_pipelined,
            Gemm(4096, 2048, 1024, **HALF),
            Places(TILE_THERE, "for p in range(0, k, BK):", UPDATE),
        ),
        Case(
            kernels.wgmma_pipelined,
            Gemm(2048, 4096, 1024, **HALF, layout="nt"),
            Places(TILE_THERE, "wgmma_wait(0, acc)", UPDATE),
        ),
        Case(
            kernels.warp_specialised,
            Gemm(2048, 4096, 1024, **HALF, layout="nt"),
            Places(
                "mbarrier_wait(full, stage, parity_of(step))",
                "wgmma_wait(0, acc)",
                UPDATE,
                "mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))",
            ),
            rounds=2,
        ),
        Case(
            kernels.tcec_registers,
            Gemm(2048, 2048, 512),
            Places(
                TILE_THERE, "join(main, cross)", "update(C, row + i, col + j, alpha, main, beta)"
            ),
        ),
    )
}
