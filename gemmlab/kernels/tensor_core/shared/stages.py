"""A ring of tiles in shared memory: the stage that a step uses, and its product by `wgmma`."""

from __future__ import annotations

from collections.abc import Callable

from numpy import uint32

from gemmlab.instructions.warpgroup import K
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tensor_core.shared.tma_tiles import along_k, placing


def turning(stages: int) -> tuple[Callable, Callable]:
    """Device functions of the number of a step: its stage of the ring, and its turn's parity."""

    @on_device
    def stage_of(step):
        """The stage of the ring that a step uses."""
        return step % uint32(stages)

    @on_device
    def parity_of(step):
        """The parity of the phase of its barriers: 0 in the first turn of the ring, then 1, 0 …"""
        return step // uint32(stages) & uint32(1)

    return stage_of, parity_of


def multiplying_16(wgmma: Callable, layout: str) -> Callable:
    """The device function by which a warpgroup multiplies 16 along k of a stage.

    wgmma : the instruction, see `gemmlab.instructions.warpgroup`
    layout : which operands are stored transposed, see `Gemm.layout`
    """
    in_a, in_b = map(placing, along_k(layout))

    @on_device
    def multiply_add(acc, As, Bs, stage, group, q, more):
        """Add the product from q of k on to acc, or begin with it."""
        a, i, j = in_a(group, q)
        b, x, y = in_b(0, q)
        wgmma(acc, As, stage, a, i, j, Bs, stage, b, x, y, more)

    return multiply_add


def multiplying(wgmma: Callable, layout: str) -> Callable:
    """The device function by which a warpgroup multiplies a stage: 64 along k."""
    multiply_add = multiplying_16(wgmma, layout)

    @on_device
    def multiply(acc, As, Bs, stage, group, more):
        """Add the product of a stage to acc, or begin with it."""
        multiply_add(acc, As, Bs, stage, group, 0, more)
        multiply_add(acc, As, Bs, stage, group, K, True)
        multiply_add(acc, As, Bs, stage, group, 2 * K, True)
        multiply_add(acc, As, Bs, stage, group, 3 * K, True)

    return multiply
