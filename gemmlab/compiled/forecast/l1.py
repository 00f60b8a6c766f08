"""The L1 cache of an SM: which sectors of a warp's accesses it holds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from gemmlab.model.transactions import LINE, SECTOR

SECTORS = LINE // SECTOR  # of a line


class L1:
    """Lines of four sectors; the line that was not used for longest gives way.

    A sector that was asked for in the same round is on its way: those that ask again wait, too, but
    L2 is asked once.
    """

    def __init__(self, size: int) -> None:
        """`size` is in bytes."""
        self.most = max(1, size // LINE)
        self.lines: OrderedDict[int, list[int]] = OrderedDict()  # number -> rounds of its sectors
        self.round = 0

    def load(self, sectors: Iterable[int]) -> tuple[int, bool]:
        """Ask for sectors: how many come from L2, and whether one that was asked for is awaited."""
        missing, awaited = 0, False
        for sector in sectors:
            line, place = sector // SECTORS, sector % SECTORS
            held = self.lines.get(line)
            if held is None:
                held = self.lines[line] = [0] * SECTORS
                if len(self.lines) > self.most:
                    self.lines.popitem(last=False)
            else:
                self.lines.move_to_end(line)
            if not held[place]:
                missing += 1
                held[place] = self.round
            elif held[place] == self.round:
                awaited = True
        return missing, awaited
