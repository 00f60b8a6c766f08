"""Counts of a kernel's transactions: the functions that a kernel's file predicts its `Work` with.

`Lanes` say where the threads of warps are in a tile. `of_matrix` and `shared_access` count the
transactions of one load or store by such lanes, over the whole grid or in a block. `unstaged` and
`staged` add up a whole launch: without shared memory, or tile by tile through it.

The counts are algebra, not execution, and exact as the source is written, for operands whose first
element lies at the start of a line. The compiler unrolls loops over a tile and may merge shared
loads of neighbours into wider ones: a GPU's requests and wavefronts are then fewer than these.
"""

from gemmlab.model.traffic.access import (
    Lanes,
    global_access,
    in_turn,
    of_matrix,
    plane,
    shared_access,
)
from gemmlab.model.traffic.staged import copied, staged, update_c
from gemmlab.model.traffic.unstaged import unstaged
from gemmlab.model.work import Work

__all__ = [
    "Lanes",
    "Work",
    "copied",
    "global_access",
    "in_turn",
    "of_matrix",
    "plane",
    "shared_access",
    "staged",
    "unstaged",
    "update_c",
]
