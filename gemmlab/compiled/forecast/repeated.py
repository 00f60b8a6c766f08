"""Loops whose turns repeat are simulated in part: with a few turns, and with some more.

Beyond these each turn takes as long as those by which the two differ, as a longer product in
`rungs` takes as long for each period of k. What was executed says how many turns are missing.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.visits import Again, Visit, count, further
from gemmlab.model.transactions import SECTORS

# Instructions of warps: as many are simulated, if there are so many. How far few blocks are in step
# differs from one turn to the next, so that of FEW warps in all more are needed.
SIMULATED, OF_FEW, FEW = 2_500_000, 5_000_000, 100
AT_FIRST = 1500  # instructions of each warp that are simulated at least of what was left out

Part = tuple[float, list[Visit]]


def parts(visits: Sequence[Visit]) -> list[Part]:
    """Return runs with fewer turns, and how often each counts: together as often as all turns.

    >>> import numpy as np
    >>> turn = Visit(3, np.arange(200), 503)  # of 200 warps
    >>> whole = [turn, turn, Again.of([turn], [turn], 100), turn]
    >>> [(round(often, 1), len(run)) for often, run in parts(whole)]
    [(-4.1, 7), (5.1, 26)]
    """
    sites = {again.site: again for again in _agains(visits)}
    warps = max((len(again.warps) for again in sites.values()), default=0)
    enough = OF_FEW if warps <= FEW else SIMULATED
    if not sites or count(visits) <= enough:
        return [(1.0, unrolled(visits, dict.fromkeys(sites, NEVER))[0])]
    least = {site: _turns(again, AT_FIRST) for site, again in sites.items()}
    first, done = unrolled(visits, least)
    left = _left(first)
    mine = count(visit for visit in first if not isinstance(visit, Again))
    found = []
    for group in _groups(visits):
        there = [v for v in first if isinstance(v, Again) and v.site in group]
        if not there:
            continue
        part = max(enough - mine, mine // 3) / count(there)
        more = {v.site: least[v.site] + math.ceil(part * v.times) for v in there}
        run, did = unrolled(visits, least | more)
        missing, simulated = (
            sum(of[site] * count(sites[site].period) for site in group) for of in (left, did - done)
        )
        found.append((missing / simulated, run))
    return [(1.0 - sum(often for often, _ in found), first), *found]


NEVER = 1 << 60  # turns


def _groups(visits: Sequence[Visit]) -> list[set[int]]:
    """Return the loops that follow each other, and each of those inside of them by itself."""
    outer = [v for v in visits if isinstance(v, Again)]
    inner = {again.site for one in outer for again in _agains(one.period)}
    together = {one.site for one in outer} - inner
    return [together, *({site} for site in sorted(inner))]


def _turns(again: Again, instructions: int) -> int:
    return math.ceil(instructions * len(again.warps) / count(again.period))


def _agains(visits: Sequence[Visit]) -> Iterator[Again]:
    """Yield what is done again, and in it what is."""
    for visit in visits:
        if isinstance(visit, Again):
            yield visit
            yield from _agains(visit.period)


def _left(visits: Sequence[Visit]) -> Counter[int]:
    """Count the turns that were left out, by the loop's first instruction."""
    found: Counter[int] = Counter()
    for visit in visits:
        if isinstance(visit, Again):
            found[visit.site] += visit.times
            for site, times in _left(visit.period).items():
                found[site] += visit.times * times
    return found


def unrolled(visits: Sequence[Visit], turns: dict[int, int]) -> tuple[list[Visit], Counter[int]]:
    """Do again at most so many turns of each loop; return the visits, and how many were done."""
    found: list[Visit] = []
    done: Counter[int] = Counter()
    for visit in visits:
        if not isinstance(visit, Again):
            found.append(visit)
            continue
        period, inside = unrolled(visit.period, turns)
        earlier, _ = unrolled(visit.earlier, turns)
        mine = min(turns.get(visit.site, 0), visit.times)
        whole = replace(visit, period=period, earlier=earlier)
        for number in range(1, mine + 1):
            found += whole.turn(number)
            done.update(inside)
        done[visit.site] += mine
        if mine < visit.times:
            found.append(_after(whole, mine))
    return found, done


def _after(again: Again, number: int) -> Again:
    """Return what is left once so many turns are done."""
    period, earlier = (
        [further(b, a, at) for b, a in zip(again.earlier, again.period, strict=True)]
        for at in (number, number - 1)
    )
    return replace(again, period=period, earlier=earlier, times=again.times - number)


def pass_by(cache: Any, again: Again, cached: Sequence[bool]) -> None:
    """Keep in L1 what a loop leaves there, of whose turns only the last lines are still held.

    cache : a `traffic.L1`; cached : of each instruction, whether it looks into L1
    """
    last, steps = (np.concatenate(rows) for rows in _sectors(again, cached))
    if not last.size:
        return
    last, steps = np.unique(np.stack([last, steps]), axis=1)  # warps have most in common
    fresh = len(np.setdiff1d((last + steps) // SECTORS, last // SECTORS))
    turns = 1 + min(again.times - 1, -(-cache.most // fresh) if fresh else 0)
    ahead = np.arange(again.times, again.times - turns, -1)[:, None]  # the last turn first
    every = (last + ahead * steps).ravel()
    lines, first = np.unique(every // SECTORS, return_index=True)
    kept = lines[np.argsort(first)][: cache.most]
    of_line: dict[int, list[int]] = {int(line): [0] * SECTORS for line in kept[::-1]}
    for sector in np.unique(every).tolist():
        if (line := sector // SECTORS) in of_line:
            of_line[line][sector % SECTORS] = cache.round
    for line, held in of_line.items():
        cache.lines[line] = held
        cache.lines.move_to_end(line)
    while len(cache.lines) > cache.most:
        cache.lines.popitem(last=False)


def _sectors(again: Again, cached: Sequence[bool]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """List the sectors that a turn loads by way of L1, and how far each goes on in the next."""
    last, steps = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for before, after in zip(again.earlier, again.period, strict=True):
        if isinstance(after, Again):
            of_after, of_steps = _sectors(after, cached)
            last, steps = [*last, *of_after], [*steps, *(0 * step for step in of_steps)]
            continue
        for (_, old), (at, new) in zip(before.costs, after.costs, strict=True):
            if cached[at] and new.op == "load" and new.pieces is not None:
                asked = new.pieces >= 0
                last.append(new.pieces[asked])
                steps.append((new.pieces - old.pieces)[asked])
    return last, steps
