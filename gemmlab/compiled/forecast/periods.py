"""A longer product from two shorter ones: its warps go round their loop more often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gemmlab.compiled.forecast.kernel import Executed
from gemmlab.compiled.sm.streams import Stream


@dataclass(frozen=True, eq=False)
class Longer(Executed):
    """The blocks of the longer of two products, with the stretch that it has more, repeated.

    shorter, longer : the same blocks of the two products
    periods : times that the stretch is executed; 0 for the shorter product, 1 for the longer one
    """

    shorter: Executed
    longer: Executed
    periods: int

    def blocks(self, cold: bool, later: bool = False) -> list[list[Stream]]:
        """The streams of each block, as `Executed.blocks` gives them."""
        return [
            [repeated(*warps, self.periods) for warps in zip(*blocks, strict=True)]
            for blocks in zip(
                self.shorter.blocks(cold, later), self.longer.blocks(cold, later), strict=True
            )
        ]


def longer(shorter: Executed, longer: Executed, periods: int) -> Longer:
    """The product with so many periods more than the shorter one; the longer one has one.

    Its blocks are known where `repeats` says so.
    """
    footprint = shorter.footprint + periods * (longer.footprint - shorter.footprint)
    known = vars(longer) | {"footprint": footprint}
    return Longer(**known, shorter=shorter, longer=longer, periods=periods)


def repeats(shorter: Executed, longer: Executed) -> bool:
    """Whether each warp of the longer product executes one stretch more, and else the same."""
    pairs = zip(shorter.blocks(cold=False), longer.blocks(cold=False), strict=True)
    return all(
        stretch(short, long) is not None
        for blocks in pairs
        for short, long in zip(*blocks, strict=True)
    )


def repeated(short: Stream, long: Stream, periods: int) -> Stream:
    """The stream with the stretch that `long` has more than `short`, `periods` times.

    >>> from gemmlab.compiled.sm.streams import stream
    >>> short, long = stream([0, 1, 2, 1, 2, 3]), stream([0, 1, 2, 1, 2, 1, 2, 3])
    >>> repeated(short, long, 3).instructions.tolist()
    [0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3]
    """
    more = stretch(short, long)
    columns = (
        *(long.instructions, long.cycles, long.sectors, long.levels),
        *(long.mbarriers, long.amounts),
    )
    return Stream(
        *(np.concatenate([c[: more.start], *[c[more]] * periods, c[more.stop :]]) for c in columns)
    )


def stretch(short: Stream, long: Stream) -> slice | None:
    """The instructions that `long` has more than `short`; None where they are not in one place.

    A loop can be cut anywhere. It is cut in the middle, since what its first and last turns ask of
    memory differs: loads that are ahead end before the loop does.
    """
    done, more = long.instructions, len(long) - len(short)
    if more < 0:
        return None
    last = _alike(short.instructions, done[: len(short)])
    if not np.array_equal(done[last + more :], short.instructions[last:]):
        return None
    backwards = _alike(done[:last][::-1], done[more : last + more][::-1])
    cut = last - backwards // 2
    return slice(cut, cut + more)


def _alike(a: np.ndarray, b: np.ndarray) -> int:
    """How many elements at the beginning are the same."""
    same = a == b
    return len(a) if same.all() else int(same.argmin())
