"""The three products of a stage of 64 along k by `wgmma`: the main one, and two that correct it."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.instructions.warpgroup import K
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tensor_core.boxes import DEPTH


def stage_products(multiply_add: Callable) -> tuple[Callable, Callable]:
    """Device functions (sums, Ah, Al, Bh, Bl, stage, group, more): main products, corrections.

    multiply_add : `ring.multiplying_16` of the instruction
    more : whether they are added to the sums, or begin them
    """

    @on_device
    def nothing(sums, Ah, Al, Bh, Bl, stage, group, more):
        pass

    def main_products(q):
        """A device function that adds the main products of a stage, from q of k on."""
        others = main_products(q + K) if q + K < DEPTH else nothing

        @on_device
        def multiply(part, Ah, Al, Bh, Bl, stage, group, more):
            multiply_add(part, Ah, Bh, stage, group, q, more)
            others(part, Ah, Al, Bh, Bl, stage, group, True)

        return multiply

    def corrections(q):
        """A device function that adds the products that correct them."""
        others = corrections(q + K) if q + K < DEPTH else nothing

        @on_device
        def multiply(cross, Ah, Al, Bh, Bl, stage, group, more):
            multiply_add(cross, Al, Bh, stage, group, q, more)
            multiply_add(cross, Ah, Bl, stage, group, q, True)
            others(cross, Ah, Al, Bh, Bl, stage, group, True)

        return multiply

    return main_products(0), corrections(0)
