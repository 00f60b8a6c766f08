"""Answers to the questions of chapter 00, before the chapters."""

import numpy as np

from gemmlab.course.guesses import Answer
from gemmlab.model import transactions
from gemmlab.tiling import WARP


def sectors() -> Answer:
    """Sectors that a warp loads when each lane takes the float64 next to its neighbour's."""
    lanes, sector, size = WARP, transactions.SECTOR, 8  # bytes of a float64
    return Answer(
        int(transactions.sectors(size * np.arange(lanes), np.ones(lanes, bool))),
        f"{lanes} numbers of {size} bytes are {lanes * size} bytes side by side, and a sector "
        f"holds {sector} of them.",
        {
            4: "That is right for float32, which has half as many bytes.",
            lanes: f"You counted threads; {sector // size} of them share a sector.",
            lanes * size: "You counted bytes.",
            1: "A sector holds only four of the numbers.",
        },
    )
