"""Instructions are fetched in lines, from a scheduler's own cache or from that of the SM.

When a warp enters a line, the next few are asked for, too. So a warp that goes straight on waits
only for lines that the SM's cache lacks; after a branch it waits until its target has come all
the way to the scheduler.
"""

from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sm.compiled import compiled
from gemmlab.compiled.sm.facts import Facts
from gemmlab.compiled.sm.result import SCHEDULERS

ABSENT = 1 << 60  # the cycle in which a line comes that nobody has asked for


class Lines(NamedTuple):
    """The lines of instructions are where these arrays say.

    near : (schedulers, lines), the cycle in which a line is in a scheduler's cache, or `ABSENT`
    ring, oldest : (schedulers, places) and (schedulers,), its lines in the order of their coming
    tags, arrivals, used : (sets, ways) of the SM's cache: line, cycle of its coming, of its use
    filled : (1,), when the SM's cache can ask for its next line
    turned : (schedulers,), when a scheduler's fetching can turn to another target
    """

    near: np.ndarray
    ring: np.ndarray
    oldest: np.ndarray
    tags: np.ndarray
    arrivals: np.ndarray
    used: np.ndarray
    filled: np.ndarray
    turned: np.ndarray


def empty_lines(count: int, facts: Facts) -> Lines:
    """Caches without any of the `count` lines."""
    far = facts.far_sets, facts.far_ways
    return Lines(
        near=np.full((SCHEDULERS, count), ABSENT),
        ring=np.full((SCHEDULERS, facts.near_lines), -1),
        oldest=np.zeros(SCHEDULERS, np.int64),
        tags=np.full(far, -1),
        arrivals=np.zeros(far, np.int64),
        used=np.zeros(far, np.int64),
        filled=np.zeros(1),
        turned=np.zeros(SCHEDULERS, np.int64),
    )


@compiled
def arrival(lines, facts, line, t):
    """Return the cycle in which the SM's cache has a line; the line used least recently goes."""
    row = line % facts.far_sets
    way = 0
    for k in range(facts.far_ways):
        if lines.tags[row, k] == line:
            lines.used[row, k] = t + 1
            return max(t, lines.arrivals[row, k])
        if lines.used[row, k] < lines.used[row, way]:
            way = k
    lines.filled[0] = max(lines.filled[0], float(t)) + facts.far_interval
    lines.tags[row, way] = line
    lines.used[row, way] = t + 1
    lines.arrivals[row, way] = int(np.ceil(lines.filled[0])) + facts.far_latency
    return lines.arrivals[row, way]


@compiled
def fetch(lines, facts, scheduler, line, t):
    """Return the cycle in which a scheduler has a line; its oldest one makes room."""
    if lines.near[scheduler, line] == ABSENT:
        place = lines.oldest[scheduler]
        leaving = lines.ring[scheduler, place]
        if leaving >= 0:
            lines.near[scheduler, leaving] = ABSENT
        lines.ring[scheduler, place] = line
        lines.oldest[scheduler] = (place + 1) % facts.near_lines
        lines.near[scheduler, line] = arrival(lines, facts, line, t)
    return lines.near[scheduler, line]


@compiled
def enter(lines, facts, scheduler, line, jumps, t):
    """Return the cycle from which a warp has the instructions of the line that it enters."""
    at = t
    if jumps:
        at = max(at, lines.turned[scheduler]) + facts.branch_latency
        lines.turned[scheduler] = at - facts.branch_latency + facts.branch_interval
        if lines.near[scheduler, line] == ABSENT:
            at += facts.near_miss
    at = max(at, fetch(lines, facts, scheduler, line, t))
    for following in range(line + 1, min(line + 1 + facts.ahead, lines.near.shape[1])):
        fetch(lines, facts, scheduler, following, t)
    return at
