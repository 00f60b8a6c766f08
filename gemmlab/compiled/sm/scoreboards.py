"""A warp waits until what holds one of its six scoreboards is done."""

from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sass.listing import BARRIERS
from gemmlab.compiled.sm.compiled import compiled

NEVER = 1 << 60  # a cycle that does not come: something else has to happen first
GROUPS = BARRIERS  # behind the six: groups of products of a warpgroup, as if they held one
HISTORY = 64  # completions that are remembered: DEPBAR counts up to 63


class Scoreboards(NamedTuple):
    """The scoreboards are arrays by warp and by scoreboard.

    until : the cycle in which the last of what holds it is done
    cause : which instruction that is
    pending : how many hold it of which no such cycle is known yet
    history, known : those cycles in their order, and how many there have been
    """

    until: np.ndarray
    cause: np.ndarray
    pending: np.ndarray
    history: np.ndarray
    known: np.ndarray


def free_scoreboards(warps: int) -> Scoreboards:
    """Scoreboards that nothing holds."""
    shape = warps, BARRIERS + 1
    return Scoreboards(
        *(np.zeros(shape, np.int64) for _ in range(3)),
        history=np.zeros((*shape, HISTORY), np.int64),
        known=np.zeros(shape, np.int64),
    )


@compiled
def hold(boards, warp, board, i):
    """Instruction i holds a scoreboard (-1: none) until further notice."""
    if board >= 0:
        boards.pending[warp, board] += 1
        boards.cause[warp, board] = i


@compiled
def complete(boards, warp, board, i, at):
    """Instruction i holds a scoreboard (-1: none) until cycle `at`."""
    if board < 0:
        return
    if at >= boards.until[warp, board]:
        boards.until[warp, board] = at
        boards.cause[warp, board] = i
    boards.history[warp, board, boards.known[warp, board] % HISTORY] = at
    boards.known[warp, board] += 1


@compiled
def free(boards, warp, board, left):
    """Return the cycle in which at most `left` instructions, which end in order, hold a board."""
    left -= boards.pending[warp, board]
    known = boards.known[warp, board]
    if left < 0:
        return NEVER
    if left == 0:
        return boards.until[warp, board]
    if left >= min(known, HISTORY):
        return 0
    return boards.history[warp, board, (known - 1 - left) % HISTORY]
