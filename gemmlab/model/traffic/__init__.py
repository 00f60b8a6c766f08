"""What each kernel of the ladder asks of the machine: transactions, operations, dependent steps.

The counts are algebra, not execution, and exact as the source is written, for operands whose first
element lies at the start of a line.
"""

from gemmlab.model.traffic.one_element import coalesced, naive
from gemmlab.model.traffic.tiles import register_tiled, tiled, vectorised
from gemmlab.model.traffic.warp_tiles import warp_tiled
from gemmlab.model.traffic.work import Work

__all__ = ["Work", "coalesced", "naive", "register_tiled", "tiled", "vectorised", "warp_tiled"]
