"""Exercise 10.2: what a split of k gains, what it costs, and which one takes least time."""

from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial

# (tiles, steps, split, SMs): one tile, whole waves, one block too many, parts of unequal length.
SPLITS = (
    (1, 1, 1, 1), (1, 8, 2, 4), (1, 9, 2, 4), (3, 8, 2, 4), (5, 8, 1, 4), (5, 8, 2, 4),
    (5, 10, 3, 4), (1, 512, 131, 132), (32, 512, 4, 132), (32, 512, 5, 132), (18, 1024, 7, 132),
    (18, 1024, 8, 132), (18, 1024, 22, 132),
)  # fmt: skip
# (m, n, split)
SUMS = (
    (1, 1, 1), (1, 1, 2), (2, 3, 4), (64, 64, 1), (64, 64, 131), (1024, 1024, 4), (768, 768, 22),
)  # fmt: skip
# (tiles, steps, SMs, start, each): nothing to gain, dear and cheap splits, waves that just fill.
CHOICES = (
    (1, 1, 1, 1, 1), (4, 8, 4, 3, 0.5), (1, 8, 4, 1, 0.1), (1, 8, 4, 100, 1), (5, 8, 4, 1, 0.1),
    (5, 8, 4, 0, 0), (1, 8, 2, 1, 3), (1, 512, 132, 8, 0.02), (32, 512, 132, 4, 1),
    (18, 1024, 132, 4, 0.6), (18, 1024, 132, 4, 12), (132, 256, 132, 4, 0.5), (143, 256, 132, 4, 3),
    (1, 100, 8, 0, 2),
)  # fmt: skip


def longest(tiles, steps, split, sms):
    """The steps of the SM that has most: waves, times the steps of the longest part."""
    # [answer] return ...
    return -(-tiles * split // sms) * -(-steps // split)
    # [end]


def moved(m, n, split):
    """The bytes of float32 sums that are stored, and loaded again, for a C of m×n."""
    # [answer] return ...
    return 2 * 4 * split * m * n if split > 1 else 0
    # [end]


def best(tiles, steps, sms, start, each):
    """The split from 1 to `steps` that takes least time; of equally fast ones the smallest."""

    # [answer] return ...
    def time(split):
        waves, part = -(-tiles * split // sms), -(-steps // split)
        return waves * part + (start + each * split if split > 1 else 0)

    return min(range(1, steps + 1), key=time)
    # [end]


def _time(tiles: int, steps: int, sms: int, start: float, each: float, split: int) -> float:
    return longest(tiles, steps, split, sms) + (start + each * split if split > 1 else 0)


def _least(time: Any, steps: int) -> int:
    return min(range(1, steps + 1), key=time)


LONGEST_INSTEAD = {
    "waves-forgotten": lambda tiles, steps, split, sms: -(-steps // split),
    "cut-anywhere": lambda tiles, steps, split, sms: -(-tiles * steps // sms),
    "not-rounded": lambda tiles, steps, split, sms: tiles * steps / sms,
    "part-rounded-down": lambda tiles, steps, split, sms: -(-tiles * split // sms)
    * (steps // split),
    "waves-not-rounded": lambda tiles, steps, split, sms: tiles * split / sms * -(-steps // split),
    "waves-of-whole-tiles": lambda tiles, steps, split, sms: -(-tiles // sms)
    * -(-steps // split),
    "split-forgotten": lambda tiles, steps, split, sms: -(-tiles * split // sms) * steps,
}  # fmt: skip
MOVED_INSTEAD = {
    "stored-alone": lambda m, n, split: 4 * split * m * n if split > 1 else 0,
    "unsplit-stores": lambda m, n, split: 8 * split * m * n,
    "elements-not-bytes": lambda m, n, split: 2 * split * m * n if split > 1 else 0,
    "one-part": lambda m, n, split: 8 * m * n if split > 1 else 0,
    "first-part-free": lambda m, n, split: 8 * (split - 1) * m * n,
}
BEST_INSTEAD = {
    "unsplit-pays": lambda tiles, steps, sms, start, each: _least(
        lambda s: longest(tiles, steps, s, sms) + start + each * s, steps
    ),
    "price-forgotten": lambda tiles, steps, sms, start, each: _least(
        lambda s: longest(tiles, steps, s, sms), steps
    ),
    "one-block-each": lambda tiles, steps, sms, start, each: max(1, min(steps, sms // tiles)),
    "one-block-each 2": lambda tiles, steps, sms, start, each: min(steps, -(-sms // tiles)),
    "start-forgotten": lambda tiles, steps, sms, start, each: _least(
        lambda s: longest(tiles, steps, s, sms) + (each * s if s > 1 else 0), steps
    ),
    "each-forgotten": lambda tiles, steps, sms, start, each: _least(
        lambda s: longest(tiles, steps, s, sms) + (start if s > 1 else 0), steps
    ),
    "largest-of-equals": lambda tiles, steps, sms, start, each: min(
        range(steps, 0, -1), key=lambda s: _time(tiles, steps, sms, start, each, s)
    ),
    "time-not-split": lambda tiles, steps, sms, start, each: min(
        _time(tiles, steps, sms, start, each, s) for s in range(1, steps + 1)
    ),
}


def judge(most: Any, bytes_moved: Any, chosen: Any) -> Finding:
    """Try the three functions in turn; the first that is wrong decides."""
    rng = drawing.generator()
    tiles, split, sms = (int(rng.integers(*r)) for r in ((3, 30), (3, 40), (20, 200)))
    steps = int(rng.integers(80, 300))
    start, each = (round(float(x), 3) for x in rng.uniform(0.5, 6, 2))
    judged = functions_on_trial.judge
    found = (
        judged(
            "longest", most, SPLITS, longest, LONGEST_INSTEAD, fresh=[(tiles, steps, split, sms)]
        )
        or judged("moved", bytes_moved, SUMS, moved, MOVED_INSTEAD, fresh=[(steps, sms, split)])
        or judged(
            "best", chosen, CHOICES, best, BEST_INSTEAD, fresh=[(tiles, steps, sms, start, each)]
        )
    )
    if found is None:
        told = f"{len(SPLITS)} splits, {len(SUMS)} workspaces, {len(CHOICES)} choices"
        return Finding("passed", (("Checked", told),))
    return Finding(found.diagnosis.split()[0], found.facts, found.details)


TASK = Task(
    name="10.2",
    title="How many parts?",
    section="chapter 10, How many parts are best?",
    asked="longest(tiles, steps, split, sms), moved(m, n, split) and best(tiles, steps, sms, "
    "start, each), each a number.",
    prompt="""
    C has `tiles` tiles of `steps` steps each, and each tile is cut into `split` parts that differ
    by one step at most. An SM computes one part at a time, and the launch proceeds in waves.

    - `longest(tiles, steps, split, sms)`: the time of the product, in steps: the number of waves,
      times the steps of the longest part;
    - `moved(m, n, split)`: the bytes of partial sums in float32 that go to the workspace and come
      back from it; none where k is whole;
    - `best(tiles, steps, sms, start, each)`: the split, 1 … `steps`, of the least time. Without a
      split the time is that of the product. With one, `start` steps are added for the second
      launch, and `each` steps for each part of a tile. Of equally fast splits take the smallest.
    """,
    judge=judge,
    answers=(longest, moved, best),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "How many blocks are there, and how many waves do they take?",
            "waves = ⌈tiles · split / sms⌉",
        ),
        "waves-forgotten": Diagnosis(
            "This is one part. An SM may have several, one after the other.",
            "How many blocks are there with 18 tiles in 8 parts, and how many SMs?",
            "longest = ⌈tiles · split / sms⌉ · …",
        ),
        "cut-anywhere": Diagnosis(
            "This deals out all steps evenly, whatever tile they belong to. Here each block has a "
            "part of one tile, and blocks come in waves.",
            "How long does the second wave take when it has one block?",
            "longest = ⌈tiles · split / sms⌉ · ⌈… / …⌉",
        ),
        "not-rounded": Diagnosis(
            "There are no fractions of steps, and no fractions of waves.",
            "What is ⌈9 / 2⌉, and what ⌈5 / 4⌉?",
            "longest = ⌈tiles · split / sms⌉ · ⌈… / …⌉",
        ),
        "part-rounded-down": Diagnosis(
            "The longest part decides: steps that are left over belong to some part.",
            "9 steps in 2 parts: how long is the longer one?",
            "longest = waves · ⌈steps / …⌉",
        ),
        "waves-not-rounded": Diagnosis(
            "A wave that is begun takes as long as a full one.",
            "How many waves do 5 blocks take on 4 SMs?",
            "waves = ⌈tiles · split / sms⌉",
        ),
        "waves-of-whole-tiles": Diagnosis(
            "The waves are those of whole tiles; a split makes more blocks.",
            "How many blocks do 3 tiles in 2 parts make?",
            "waves = ⌈tiles · … / sms⌉",
        ),
        "split-forgotten": Diagnosis(
            "A block of a split has a part of the steps, not all of them.",
            "How many of 8 steps does a block have, with 2 parts?",
            "longest = waves · ⌈steps / …⌉",
        ),
        "stored-alone": Diagnosis(
            "The sums that are stored have to be loaded again, to be added up.",
            "What does the second launch read?",
            "moved = 2 · 4 · …",
        ),
        "unsplit-stores": Diagnosis(
            "Where k is whole, the sums go to C at once, and no workspace is needed.",
            "What should it be for a split of 1?",
            "```python\nreturn ... if split > 1 else 0\n```",
        ),
        "elements-not-bytes": Diagnosis(
            "These are numbers, or a wrong size of them: a float32 has 4 bytes.",
            "How many bytes has one float32 that is stored and then loaded?",
            "moved = 2 · 4 · split · m · n",
        ),
        "one-part": Diagnosis(
            "Each part stores sums of its own.",
            "How many sums of one element of C are there with 4 parts?",
            "moved = 2 · 4 · … · m · n",
        ),
        "first-part-free": Diagnosis(
            "All parts go to the workspace, the first as well: no block knows whether the others "
            "are done.",
            "How many parts does the second launch add?",
            "moved = 2 · 4 · split · m · n, for any split above 1",
        ),
        "unsplit-pays": Diagnosis(
            "A split of 1 is compared as if it, too, had a second launch.",
            "What is added up where there is one part?",
            "time = longest(…) + (start + each · split if split > 1 else …)",
        ),
        "price-forgotten": Diagnosis(
            "This takes the least time of the product alone. Parts cost something.",
            "What do twice as many parts add to the time?",
            "time = longest(…) + start + … · split",
        ),
        "one-block-each": Diagnosis(
            "This gives each SM a block, whatever that costs and whatever is left over.",
            "18 tiles on 132 SMs: how much of the GPU works with 7 parts, and with 22?",
            "Try every split, and take the one of the least time.",
        ),
        "start-forgotten": Diagnosis(
            "The second launch itself costs time, `start`, whenever k is split.",
            "Is a split worth it that saves one step, if `start` is 3?",
            "time = longest(…) + (start + … if split > 1 else 0)",
        ),
        "each-forgotten": Diagnosis(
            "Each part costs time: its sums are stored and loaded.",
            "What do 100 parts cost more than 10?",
            "time = longest(…) + (start + each · … if split > 1 else 0)",
        ),
        "largest-of-equals": Diagnosis(
            "Of equally fast splits this takes the largest.",
            "Which of two equally fast splits needs less memory?",
            "```python\nmin(range(1, steps + 1), key=...)    # the first of the least\n```",
        ),
        "time-not-split": Diagnosis(
            "This is the least time. The question is at which split it is reached.",
            "Does `min(…)` give the value or the place?",
            "```python\nreturn min(range(1, ...), key=time)\n```",
        ),
    },
    praise="A split buys shorter parts and pays with sums; waves make the gain come in steps.",
)
