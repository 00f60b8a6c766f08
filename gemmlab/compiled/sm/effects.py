"""The effects that a simulation takes into account, each of which can be left out."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Effects:
    """What may keep a warp from issuing, besides the one slot that a scheduler has in a cycle.

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
    def only(cls, *names: str) -> Effects:
        """These effects and no others; ValueError for a name that is none."""
        known = [f.name for f in fields(cls)]
        for name in names:
            if name not in known:
                raise ValueError(f"unknown effect {name!r}; the effects are {', '.join(known)}")
        return cls(**{name: name in names for name in known})

    @property
    def names(self) -> tuple[str, ...]:
        """Those that are taken into account."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name))
