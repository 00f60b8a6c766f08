"""A launch on a whole GPU, seen from one SM: which blocks it gets, and how many at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gemmlab.compiled.sass.execution.machine import Dim
from gemmlab.device import Device
from gemmlab.model.occupancy import check_block, resident_blocks


@dataclass(frozen=True)
class Share:
    """The blocks of the SM that has most to do.

    blocks : how many it gets
    resident : how many at once
    """

    grid: Dim
    blocks: int
    resident: int
    sms: int

    def places(self, count: int, first: int = 0) -> Iterator[Dim]:
        """Places in the grid of `count` of its blocks, in the order in which they start.

        first : the number of its first block, one of the first `sms`

        Blocks are handed out in the order of their numbers, x first: every `sms`-th is its. Those
        that it has at once follow each other, and such rounds lie evenly in all that it gets.
        """
        last = math.prod(self.grid) - 1
        further = -(-count // self.resident) - 1
        step = max(self.resident, (self.blocks - self.resident) // max(1, further))
        for i in range(count):
            a_round, place = divmod(i, self.resident)
            its = a_round * step + place
            yield self.place(min(its * self.sms + first, last))

    def place(self, number: int) -> Dim:
        """The place in the grid of a block by its number, which counts x first."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)


def share(device: Device, grid: Dim, threads: int, shared_bytes: int, registers: int) -> Share:
    """The share of one SM of a launch; ValueError for a block that `device` cannot hold."""
    check_block(device, threads, shared_bytes)
    resident = resident_blocks(device, threads, shared_bytes, registers)
    blocks = -(-math.prod(grid) // device.sms)
    return Share(grid, blocks, min(resident, blocks), device.sms)
