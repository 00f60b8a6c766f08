"""Warps are simulated by the instructions that they execute, under the effects that count."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Self

import numpy as np


class Level(IntEnum):
    """A level answers a global access, or sends other lines to memory for what it stores."""

    L1 = 0
    L2 = 1
    DRAM = 2
    STORED = 3


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream has the instructions of one warp, one entry for each time that one is executed.

    instructions : int32 (n,), indices into the listing's instructions
    cycles : int32 (n,), cycles of the pipe of shared memory and L1 that each asks for (its
        wavefronts); 0 for an instruction that makes no request
    sectors : int32 (n,), 32-byte sectors that a global access asks of L2
    moved : int32 (n,), sectors of device memory that it moves, if it does; as `sectors` by default
    levels : int8 (n,), the `Level` that answers a global access
    mbarriers : int32 (n,), of what is asynchronous, the number of its mbarrier in the block
    amounts : int32 (n,), how many arrivals or else bytes that counts; of a wait, 1 and the parity;
        0 where nothing is asked of one
    Raises ValueError where these differ in length or where there is nothing to execute.
    """

    instructions: np.ndarray
    cycles: np.ndarray
    sectors: np.ndarray
    levels: np.ndarray
    mbarriers: np.ndarray | None = None
    amounts: np.ndarray | None = None
    moved: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.moved is None:
            object.__setattr__(self, "moved", self.sectors)
        for name in ("mbarriers", "amounts"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.zeros(len(self.instructions), np.int32))
        lengths = {name: len(array) for name, array in vars(self).items()}
        if len(set(lengths.values())) > 1 or not len(self.instructions):
            raise ValueError(f"arrays of one length, at least 1, are needed, not {lengths}")

    def __len__(self) -> int:
        return len(self.instructions)


Block = Sequence[Stream]  # one for each warp


def stream(
    instructions: Sequence[int],
    cycles: Sequence[int] | int = 0,
    sectors: Sequence[int] | int = 0,
    level: Level = Level.L1,
) -> Stream:
    """Make a stream from sequences, or from numbers that hold for all of its instructions.

    >>> len(stream([0, 1, 2, 1, 2, 3]))
    6
    """
    n = len(instructions)
    return Stream(
        np.asarray(instructions, np.int32),
        np.broadcast_to(np.asarray(cycles, np.int32), n),
        np.broadcast_to(np.asarray(sectors, np.int32), n),
        np.full(n, level, np.int8),
    )


def turns(first: int, last: int, count: int) -> list[int]:
    """List the indices of a loop from `first` to `last`, `count` times round.

    >>> turns(3, 5, 2)
    [3, 4, 5, 3, 4, 5]
    """
    return [*range(first, last + 1)] * count


@dataclass(frozen=True)
class Effects:
    """Effects keep a warp from issuing, besides the one slot of a scheduler in a cycle.

    stalls : the cycles that an instruction makes its warp pause, written into it by the compiler
    scoreboards : waits for results and operands of instructions that take no fixed time
    barriers : waits for the other warps of the block
    pipes : arithmetic pipes that are busy with the instruction before
    lsu : the pipe of shared memory and L1, and the queues before it
    banks : ports of the register banks, and the cache of operands before them
    fetch : branches that are taken, and instructions that no near cache holds
    l2 : the SM's shares of the bandwidth of L2 and of device memory

    >>> Effects.only("stalls", "pipes").names
    ('stalls', 'pipes')
    """

    stalls: bool = True
    scoreboards: bool = True
    barriers: bool = True
    pipes: bool = True
    lsu: bool = True
    banks: bool = True
    fetch: bool = True
    l2: bool = True

    @classmethod
    def only(cls, *names: str) -> Self:
        """Return these effects and no others; ValueError for a name that is none."""
        known = [f.name for f in fields(cls)]
        for name in names:
            if name not in known:
                raise ValueError(f"unknown effect {name!r}; the effects are {', '.join(known)}")
        return cls(**{name: name in names for name in known})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the effects that are taken into account."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name))
