"""A pipeline of copies and products: what a ring of tiles in shared memory gains, in cycles."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Tile:
    """The times of one step's tile [cycle]: its copy begins, has arrived; its product begins, ends.

    A product begins when its tile is there and the product before is done.
    """

    asked: float
    there: float
    begins: float
    done: float


@dataclass(frozen=True)
class Pipeline:
    """The steps along k of one block, with room for the tiles of `stages` steps.

    copy : from asking for a tile until it can be multiplied; multiply : of one tile [cycle]

    With one stage a step copies, then multiplies. With more, the product of a step lets the copy
    of the tile `stages` − 1 steps further begin, and copies on their way do not disturb each other:
    their latency is what counts, as long as no bandwidth is used up.

    >>> Pipeline(steps=8, stages=1, copy=900, multiply=300).period
    1200
    >>> Pipeline(steps=8, stages=4, copy=900, multiply=300).period
    300
    """

    steps: int
    stages: int
    copy: float
    multiply: float

    def __post_init__(self) -> None:
        for name in ("steps", "stages"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}; use a whole number from 1 on")
        for name in ("copy", "multiply"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)!r}; use a number of cycles above 0")

    @property
    def ahead(self) -> int:
        """Tiles that are on their way while one is multiplied."""
        return self.stages - 1

    @property
    def period(self) -> float:
        """The mean time from one step to the next in a long loop."""
        if not self.ahead:
            return self.copy + self.multiply
        return max(self.multiply, self.copy / self.ahead)

    @property
    def gap(self) -> float:
        """Cycles of a period in which nothing is multiplied."""
        return self.period - self.multiply

    def among(self, blocks: int) -> float:
        """Cycles in which `blocks` such blocks of one SM make a step each.

        While one waits the others multiply: blocks that share an SM are stages for each other.
        """
        return max(blocks * self.multiply, self.period)

    def launch(self, tiles: int, places: int, blocks: int) -> float:
        """Cycles of a launch whose `tiles` of C go in rounds to `places` SMs with `blocks` each."""
        rounds = ceil(tiles / (places * blocks))
        each = self.copy + (self.steps - 1) * self.among(blocks) + blocks * self.multiply
        return rounds * each

    @property
    def cycles(self) -> float:
        """The whole loop: the first copy, a period for each further step, the last product.

        Copies come in turns of `ahead`, so that a loop which ends within a turn that waits is done
        a little earlier.
        """
        return self.copy + (self.steps - 1) * self.period + self.multiply

    def schedule(self) -> list[Tile]:
        """The times of each step's tile, step after step."""
        tiles: list[Tile] = []
        for step in range(self.steps):
            done = tiles[-1].done if tiles else 0
            if not self.ahead:
                asked = done
            elif step < self.ahead:
                asked = 0
            else:  # the product that leaves room for it has begun
                asked = tiles[step - self.ahead].begins
            there = asked + self.copy
            begins = max(there, done)
            tiles.append(Tile(asked, there, begins, begins + self.multiply))
        return tiles


def stages_needed(copy: float, multiply: float) -> int:
    """The fewest stages with which nobody waits in the loop: (stages − 1) · multiply ≥ copy.

    >>> stages_needed(copy=900, multiply=300)
    4
    """
    return 1 + ceil(copy / multiply)
