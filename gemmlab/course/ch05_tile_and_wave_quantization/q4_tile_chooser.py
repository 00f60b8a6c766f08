"""Exercise 05.4: a rule that picks the tile for any product on any GPU."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gemmlab.course.judging import DRAWN_ANEW, FAILING, Diagnosis, Finding, Task, drawing, guard
from gemmlab.course.judging.source import short

Tile = tuple[int, int]
Case = tuple[int, int, int, dict[Tile, float]]  # m, n, SMs, tile -> speed

# A tile's speed is what an SM reaches while it computes it, as a share of its peak.
SPEEDS: Mapping[Tile, float] = {(256, 128): 0.9, (128, 128): 0.8, (128, 64): 0.7, (64, 64): 0.55}
OTHERS: Mapping[Tile, float] = {(32, 256): 0.8, (96, 96): 0.6, (64, 32): 0.75}
SIDES = (64, 100, 257, 500, 1024, 1100, 2304, 3000, 4096, 8200)
LARGE = ((299_750, 117), (117, 299_750), (298_760, 336), (336, 298_760), (65_536, 65_664))
CASES: tuple[Case, ...] = tuple(
    (m, n, sms, dict(speeds))
    for speeds in (SPEEDS, OTHERS)
    for sms in (8, 132)
    for m in SIDES
    for n in SIDES[::3]
) + tuple(
    (m, n, 132, {(bm, bn) if m > n else (bn, bm): speed for (bm, bn), speed in SPEEDS.items()})
    for m, n in LARGE
)
DRAWN = 50  # cases that are drawn anew: one rule of thumb is right in most of them
NEAR = 1.05  # times the least time that is as good as the least


def choose(m, n, sms, speeds):
    """The tile (bm, bn) of `speeds` with which the launch takes the least time."""

    # [answer] return ...
    def time(tile):
        bm, bn = tile
        waves = -(-(-(-m // bm) * -(-n // bn)) // sms)
        return waves * bm * bn / speeds[tile]

    return min(speeds, key=time)
    # [end]


def count(m: int, n: int, tile: Tile) -> int:
    """Tiles that cover C."""
    return -(-m // tile[0]) * -(-n // tile[1])


def waves(m: int, n: int, sms: int, tile: Tile) -> int:
    """Waves of these tiles."""
    return -(-count(m, n, tile) // sms)


def area(tile: Tile) -> int:
    """Elements of a tile."""
    return tile[0] * tile[1]


def time(m: int, n: int, sms: int, speeds: Mapping[Tile, float], tile: Tile) -> float:
    """The time of the launch, in elements at full speed: waves · bm · bn / speed."""
    return waves(m, n, sms, tile) * area(tile) / speeds[tile]


# What a rule would minimise that overlooks something: (m, n, SMs, speeds, tile) -> a number.
INSTEAD: Mapping[str, Callable[[int, int, int, Mapping[Tile, float], Tile], float]] = {
    "fastest-tile": lambda m, n, sms, speeds, t: -speeds[t],
    "smallest-tile": lambda m, n, sms, speeds, t: area(t),
    "longest-time": lambda m, n, sms, speeds, t: -time(m, n, sms, speeds, t),
    "waves-forgotten": lambda m, n, sms, speeds, t: count(m, n, t) * area(t) / speeds[t],
    "area-forgotten": lambda m, n, sms, speeds, t: waves(m, n, sms, t) / speeds[t],
    "upside-down": lambda m, n, sms, speeds, t: waves(m, n, sms, t) * area(t) * speeds[t],
    "speed-forgotten": lambda m, n, sms, speeds, t: waves(m, n, sms, t) * area(t),
    "least-overhang": lambda m, n, sms, speeds, t: count(m, n, t) * area(t),
    "fewest-waves": lambda m, n, sms, speeds, t: waves(m, n, sms, t),
    "fullest-waves": lambda m, n, sms, speeds, t: -count(m, n, t) / waves(m, n, sms, t),
}


def judge(answer: Any) -> Finding:
    """Compare the chosen tile's time with the least, on every case and on some drawn anew."""
    fresh = [_drawn() for _ in range(DRAWN)]
    every = [*CASES, *fresh]
    outcomes = guard.attempts(answer, every)
    picks: list[Tile] = []
    wrong: list[tuple[float, int]] = []  # how many times the least time, and which case
    for i, (case, outcome) in enumerate(zip(every, outcomes, strict=False)):
        m, n, sms, speeds = case
        label = FAILING if i < len(CASES) else DRAWN_ANEW
        said = (label, f"choose({m}, {n}, {sms}, {_shown(speeds)})")
        if outcome.fault:
            if wrong:
                break
            return Finding(outcome.fault.diagnosis, (said, *outcome.fault.facts), {"case": case})
        if outcome.value is Ellipsis:
            return Finding("not-attempted", (("choose", "still returns ..."),))
        if not _is_tile(outcome.value, speeds):
            told = f"it returned {short(outcome.value)}; use one of {', '.join(map(str, speeds))}"
            return Finding("wrong-type", (said, ("Found", told)), {"case": case})
        tile = tuple(int(side) for side in outcome.value)
        picks.append(tile)
        times = {t: time(m, n, sms, speeds, t) for t in speeds}
        ratio = times[tile] / min(times.values())
        if ratio > NEAR:
            wrong.append((ratio, i))
    known = [w for w in wrong if w[1] < len(CASES)]
    if not wrong:
        told = f"{len(CASES)} products on 8 or on 132 SMs, and {len(fresh)} drawn anew"
        return Finding("passed", (("Checked", told),))
    facts, details = _told(max(known or wrong), known or wrong, every, picks)
    if not known:
        return Finding("known-cases-only", ((DRAWN_ANEW, facts[0][1]), *facts[1:]), details)
    return Finding(_explained(picks[: len(CASES)]), facts, details)


def _drawn() -> Case:
    """A product, a GPU and tiles that nobody knew before."""
    rng = drawing.generator()
    m, n = (int(size) for size in np.exp(rng.uniform(np.log(50), np.log(90_000), 2)))
    sms = int(rng.integers(5, 200))
    tiles = {(int(a), int(b)) for a, b in 16 * rng.integers(2, 17, (5, 2))}
    return m, n, sms, {t: round(float(rng.uniform(0.4, 1.0)), 2) for t in sorted(tiles)}


def _is_tile(value: Any, speeds: Mapping[Tile, float]) -> bool:
    sides = type(value) in (tuple, list) and all(
        isinstance(side, (int, np.integer)) and not isinstance(side, bool) for side in value
    )
    return sides and tuple(int(side) for side in value) in speeds


def _told(
    worst: tuple[float, int], wrong: list[tuple[float, int]], every: list[Case], picks: list[Tile]
) -> tuple[tuple[tuple[str, str], ...], dict[str, Any]]:
    """The worst case in words: what was picked, what would have been best, how far it is off."""
    ratio, i = worst
    m, n, sms, speeds = every[i]
    best = min(speeds, key=lambda t: time(m, n, sms, speeds, t))
    picked = picks[i]
    told = [
        f"{bm}×{bn}: {count(m, n, (bm, bn)):,} tiles, waves: {waves(m, n, sms, (bm, bn)):,}"
        for bm, bn in (picked, best)
    ]
    facts = (
        ("Worst case", f"choose({m}, {n}, {sms}, {_shown(speeds)})"),
        ("You picked", told[0]),
        ("Best", f"{told[1]}; yours takes {ratio:.2f} times as long"),
        ("In all", f"{len(wrong)} of {len(picks)} picks take more than {NEAR - 1:.0%} longer"),
    )
    return facts, {"case": every[i], "got": picked, "expected": best, "ratio": ratio}


def _explained(picks: list[Tile]) -> str:
    """The mistake that makes just these picks, else what they have in common."""
    for name, key in INSTEAD.items():
        if all(
            key(m, n, sms, speeds, pick) == min(key(m, n, sms, speeds, t) for t in speeds)
            for (m, n, sms, speeds), pick in zip(CASES, picks, strict=True)
        ):
            return name.split()[0]
    return "right-in-part"


def _shown(speeds: Mapping[Tile, float]) -> str:
    return "{" + ", ".join(f"{t}: {speed}" for t, speed in speeds.items()) + "}"


TASK = Task(
    name="05.4",
    title="A rule for every product",
    section="chapter 05, Which tile, then?",
    asked="choose(m, n, sms, speeds) returns the tile (bm, bn), a key of `speeds`, with which the "
    "launch takes the least time.",
    prompt=f"""
    `speeds` holds the tiles that a library has, and what an SM reaches while it computes one, as a
    share of its peak: `{_shown(dict(list(SPEEDS.items())[::3]))}`, say. An SM computes one tile at
    a time. Return the tile with which a product of m rows and n columns is done first on `sms` SMs.

    Your rule is judged on {len(CASES)} products with known tiles, and on others with tiles drawn
    anew. A tile whose time is within {NEAR - 1:.0%} of the least is right.
    """,
    judge=judge,
    answers=(choose,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "How long does one wave take with a tile, if its speed is the share of the peak?",
            "```python\nreturn min(speeds, key=lambda tile: ...)    # its time\n```",
        ),
        "fastest-tile": Diagnosis(
            "This always takes the tile with the highest speed.",
            "How many SMs have a tile of 256×128 where C has 300 rows and 300 columns?",
            "time = waves · bm · bn / speed; the waves depend on m, n and the tile.",
        ),
        "smallest-tile": Diagnosis(
            "This always takes the smallest tile.",
            "Once every SM has many tiles, which of them is done with C first?",
            "time = waves · bm · bn / …",
        ),
        "least-overhang": Diagnosis(
            "This looks for the tile that hangs over the edge least.",
            "C is covered exactly by two tiles. What do the other SMs do meanwhile?",
            "Count the waves, ⌈tiles / sms⌉, not the elements.",
        ),
        "fewest-waves": Diagnosis(
            "This takes the fewest waves, however long each of them is.",
            "How long does a wave of 256×128 take beside one of 64×64?",
            "time = waves · … / speed",
        ),
        "fullest-waves": Diagnosis(
            "This fills the waves best. Small tiles fill them well, and are slow.",
            "What does a full wave of 64×64 get done, and in what time?",
            "time = waves · bm · bn / …",
        ),
        "speed-forgotten": Diagnosis(
            "This compares elements of the SM that has most to do, as if all tiles were as fast.",
            "What does `speeds` say of the tile that you picked?",
            "time = waves · bm · bn / …",
        ),
        "waves-forgotten": Diagnosis(
            "This lets all SMs share the tiles evenly, down to fractions of a tile.",
            "One tile more than there are SMs: how long does the launch take?",
            "waves = ⌈tiles / sms⌉",
        ),
        "area-forgotten": Diagnosis(
            "The time of a wave depends on the size of its tiles.",
            "How many products does a tile of bm×bn have for each step along k?",
            "time = waves · bm · … / speed",
        ),
        "upside-down": Diagnosis(
            "A tile with a higher speed takes less time, not more.",
            "Should the speed multiply the time, or divide it?",
            "time = waves · bm · bn … speed",
        ),
        "longest-time": Diagnosis(
            "This picks the tile that takes longest.",
            "Do you look for the least or for the most?",
            "```python\nreturn ...(speeds, key=time)\n```",
        ),
    },
    praise="Whole waves, of whole tiles, at the tile's own speed: this is what a library weighs "
    "when it chooses.",
)
