"""A simulation tells cycles, and what each issue slot did or why it was empty."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from gemmlab.compiled.sm.pipes import Kind

SCHEDULERS = 4  # of an SM, since Volta


class Reason(IntEnum):
    """A slot is empty for one of these reasons: the first warp that goes on was waiting for it."""

    STALL = 0  # the pause that the compiler wrote into the instruction before
    SCOREBOARD = 1  # a result, or operands that are still to be read
    BARRIER = 2  # the other warps of its block
    BANK = 3  # a port of the register file
    PIPE = 4  # the instruction before in its pipe
    LSU = 5  # a place in the queue before the LSU
    FETCH = 6  # its own instructions
    DISPATCH = 7  # the product before, which takes several cycles to issue
    IDLE = 8  # there is no warp
    NOT_SELECTED = 9  # of a warp that could issue: the slot is another's


@dataclass(frozen=True, eq=False)
class Timeline:
    """A timeline has warps by cycles, from cycle `first` on.

    issued : int32 (warps, cycles), the instruction that a warp issues, -1 for none
    reasons : int8 (warps, cycles), the `Reason` why it does not, -1 where it issues
    opened : bool (blocks at a time, mbarriers, cycles), where a phase of an mbarrier is complete
    Warp w belongs to scheduler w mod 4.
    """

    first: int
    issued: np.ndarray
    reasons: np.ndarray
    opened: np.ndarray


@dataclass(frozen=True, eq=False)
class Result:
    """A result has the cycles of one SM, and its issue slots, four a cycle.

    cycles : from the first instruction to the last one's issue
    issued : int64 (n,), how often each instruction of the listing was issued
    lost : int64 (reasons, n), slots that were empty, by reason and by instruction: the one that is
        waited for where the reason is a scoreboard, else the one that had to wait
    kinds : int8 (n,), the `Kind` of each instruction
    block_ends : int64, the cycle after each block's last instruction
    issued_then : int64, how many instructions had been issued by then
    drained : the cycle by which L2 has taken all that was asked of it
    """

    cycles: int
    issued: np.ndarray
    lost: np.ndarray
    kinds: np.ndarray
    block_ends: np.ndarray
    issued_then: np.ndarray
    timeline: Timeline | None = field(default=None, repr=False)
    drained: int = 0

    @property
    def slots(self) -> int:
        """The issue slots: one for each scheduler and cycle."""
        return SCHEDULERS * self.cycles

    @property
    def used(self) -> Mapping[str, int]:
        """The slots in which an instruction was issued, by its kind."""
        count = np.bincount(self.kinds, self.issued, len(Kind)).astype(int)
        return {kind.name.lower(): int(count[kind]) for kind in Kind if count[kind]}

    @property
    def empty(self) -> Mapping[str, int]:
        """The slots in which none was issued, by the reason."""
        count = self.lost.sum(axis=1)
        return {reason.name.lower(): int(count[reason]) for reason in Reason if count[reason]}
