"""Exercise 13.4: what a step leaves idle, and what fusing or splitting its launches would save."""

from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial

# Steps as launches: (kind, blocks, microseconds), smallest first, the last as on an H100.
STEPS = (
    [("product", 4, 10.0)],
    [("product", 1, 8.0), ("each", 2, 2.0)],
    [("sum", 2, 3.0), ("product", 8, 5.0)],
    [("product", 2, 20.0), ("each", 8, 2.0), ("each", 3, 4.0), ("sum", 1, 2.0)],
    [("each", 4, 1.0), ("product", 3, 12.0), ("sum", 2, 5.0), ("each", 2, 3.0)],
    [("product", 1, 2.5), ("product", 4, 30.0), ("each", 1, 1.0), ("sum", 8, 16.0)],
    [("product", 8, 21.0), ("each", 128, 2.5), ("product", 1, 20.0), ("each", 4, 2.2),
     ("sum", 2, 5.7), ("product", 64, 5.9), ("each", 1024, 3.0), ("sum", 128, 2.8)],
)  # fmt: skip
SMS = 4, 132
FIXED = 1.0, 3.0
Launches = list[tuple[str, int, float]]


def idle(launches, sms):
    """The share of the time of all SMs in which they have no block."""
    # [answer] return ...
    total = sum(time for _, _, time in launches)
    busy = sum(time * min(blocks, sms) / sms for _, blocks, time in launches)
    return 1 - busy / total
    # [end]


def fused(launches):
    """The time of the step when epilogues do what follows products, element by element."""
    # [answer] return ...
    total, behind_product = 0, False
    for kind, _, time in launches:
        behind_product = kind == "product" or (kind == "each" and behind_product)
        if kind == "product" or not behind_product:
            total += time
    return total
    # [end]


def in_parts(launches, sms, fixed):
    """The time of the step when products are cut along k where that makes them faster."""
    # [answer] return ...
    total = 0
    for kind, blocks, time in launches:
        parts = max(1, sms // blocks)
        cut = fixed + (time - fixed) / parts + fixed
        total += min(time, cut) if kind == "product" else time
    return total
    # [end]


def _idle(launches: Launches, sms: int) -> float:
    """The right result of `idle`."""
    total = sum(t for *_, t in launches)
    return sum(t * max(0, sms - b) / sms for _, b, t in launches) / total


def _fused(launches: Launches) -> float:
    """The right result of `fused`: of each run of launches behind a product, what is left."""
    kinds = [kind for kind, *_ in launches]
    gone = [
        i
        for i, kind in enumerate(kinds)
        if kind == "each" and next((k for k in kinds[:i][::-1] if k != "each"), "") == "product"
    ]
    return sum(t for i, (*_, t) in enumerate(launches) if i not in gone)


def _cut(blocks: int, time: float, parts: int, fixed: float) -> float:
    return 2 * fixed + (time - fixed) / parts


def _split(launches: Launches, sms: int, fixed: float) -> float:
    """The right result of `in_parts`."""
    return sum(
        min(t, _cut(b, t, max(1, sms // b), fixed)) if kind == "product" else t
        for kind, b, t in launches
    )


def _total(launches: Launches) -> float:
    return sum(t for *_, t in launches)


def _split_by(of: Any) -> Any:
    """A mistake that gives each product the time `of` (blocks, time, parts, fixed)."""
    return lambda launches, sms, fixed: sum(
        of(b, t, max(1, sms // b), fixed) if kind == "product" else t for kind, b, t in launches
    )


def _kept(launches: Launches, gone: tuple[str, ...]) -> float:
    """The time without what is of a kind in `gone` and anywhere behind a product."""
    first = next((i for i, (kind, *_) in enumerate(launches) if kind == "product"), 0)
    return sum(t for i, (kind, _, t) in enumerate(launches) if i < first or kind not in gone)


def _last_wave(blocks: int, sms: int) -> float:
    """The share of the SMs that the last wave of a launch leaves without a block."""
    return -blocks % sms / sms


IDLE_INSTEAD = {
    "busy-share": lambda launches, sms: 1 - _idle(launches, sms),
    "launches-alike": lambda launches, sms: sum(max(0, sms - b) / sms for _, b, _ in launches)
    / len(launches),
    "more-than-all": lambda launches, sms: sum(t * (sms - b) / sms for _, b, t in launches)
    / _total(launches),
    "last-wave": lambda launches, sms: sum(t * _last_wave(b, sms) for _, b, t in launches)
    / _total(launches),
    "time-not-share": lambda launches, sms: _idle(launches, sms) * _total(launches),
    "products-alone": lambda launches, sms: sum(
        t * max(0, sms - b) / sms for kind, b, t in launches if kind == "product"
    ) / _total(launches),
}  # fmt: skip
FUSED_INSTEAD = {
    "nothing-gone": _total,
    "all-each-gone": lambda launches: sum(t for kind, _, t in launches if kind != "each"),
    "sums-gone": lambda launches: sum(t for kind, _, t in launches if kind == "product"),
    "sums-gone 2": lambda launches: _kept(launches, ("each", "sum")),
    "behind-a-sum": lambda launches: _kept(launches, ("each",)),
    "first-only": lambda launches: sum(
        t for i, (kind, _, t) in enumerate(launches)
        if not (kind == "each" and i and launches[i - 1][0] == "product")
    ),
    "saved-not-left": lambda launches: _total(launches) - _fused(launches),
}  # fmt: skip
SPLIT_INSTEAD = {
    "never-split": lambda launches, sms, fixed: _total(launches),
    "always-split": _split_by(lambda b, t, parts, fixed: _cut(b, t, parts, fixed)),
    "second-launch-free": _split_by(
        lambda b, t, parts, fixed: min(t, fixed + (t - fixed) / parts)
    ),
    "fixed-divided": _split_by(lambda b, t, parts, fixed: min(t, t / parts + fixed)),
    "parts-rounded-up": lambda launches, sms, fixed: sum(
        min(t, _cut(b, t, -(-sms // b), fixed)) if kind == "product" else t
        for kind, b, t in launches
    ),
    "parts-not-whole": lambda launches, sms, fixed: sum(
        min(t, _cut(b, t, max(1, sms / b), fixed)) if kind == "product" else t
        for kind, b, t in launches
    ),
    "all-kinds-split": lambda launches, sms, fixed: sum(
        min(t, _cut(b, t, max(1, sms // b), fixed)) for _, b, t in launches
    ),
    "saved-not-left": lambda launches, sms, fixed: _total(launches)
    - _split(launches, sms, fixed),
}  # fmt: skip


def judge(of_idle: Any, of_fused: Any, of_parts: Any) -> Finding:
    """Try the three functions in turn; the first that is wrong decides."""
    rng = drawing.generator()
    kinds = ["product", "each", "each", "sum", "product", "each", "sum", "each"]
    drawn = [
        (kind, int(rng.integers(1, 200)), round(float(rng.uniform(2, 30)), 2)) for kind in kinds
    ]
    pairs = [(one, sms) for one in STEPS for sms in SMS]
    cuts = [(*pair, fixed) for pair in pairs for fixed in FIXED]
    judged = functions_on_trial.judge
    found = (
        judged(idle.__name__, of_idle, pairs, _idle, IDLE_INSTEAD, _shown, [(drawn, 108)])
        or judged(
            fused.__name__, of_fused, [(one,) for one in STEPS], _fused, FUSED_INSTEAD, _shown,
            [(drawn,)],
        )
        or judged(in_parts.__name__, of_parts, cuts, _split, SPLIT_INSTEAD, _shown,
                  [(drawn, 108, 2.5)])
    )  # fmt: skip
    if found is None:
        return Finding("passed", (("Checked", f"{len(STEPS)} steps and one drawn anew"),))
    return Finding(found.diagnosis.split()[0], found.facts, found.details)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        some = ", ".join(f"({kind}, {blocks}, {time:g})" for kind, blocks, time in value[:4])
        return f"[{some}{', …' if len(value) > 4 else ''}]"
    return f"{value:g}"


TASK = Task(
    name="13.4",
    title="What to change first",
    section="chapter 13, Where does the time of a step go?",
    asked="idle(launches, sms), fused(launches) and in_parts(launches, sms, fixed), each a number.",
    prompt="""
    A step is a list of launches, `(kind, blocks, time)`, one after the other. A "product" is a
    GEMM, "each" does something to every element by itself, a "sum" adds up rows or columns.

    - `idle(launches, sms)`: the share of the time of all `sms` SMs in which they have no block. A
      launch with more blocks than SMs leaves none idle.
    - `fused(launches)`: the time of the step when epilogues replace every "each" that follows a
      "product", also one behind another "each". Assume that they take no time. A "sum" needs
      elements of several blocks: it stays, and so does an "each" behind it.
    - `in_parts(launches, sms, fixed)`: each "product" may be cut along k into `sms // blocks`
      parts. Of its time, `fixed` does not shrink and the rest is divided by the parts; a launch
      that adds the parts takes `fixed` more. Products that would not be faster stay whole. The time
      of the step, again.
    """,
    judge=judge,
    answers=(idle, fused, in_parts),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "1 block on 4 SMs for 8 µs: which share of the SMs' time passes without a block?",
            "```python\nbusy += time * min(blocks, sms) / sms\n```",
        ),
        "busy-share": Diagnosis(
            "This is the share in which SMs are busy.",
            "4 blocks on 4 SMs: what should be idle?",
            "1 − what you return.",
        ),
        "launches-alike": Diagnosis(
            "Every launch counts alike, however long it takes.",
            "Which matters more: 20 µs with one block, or 2 µs?",
            "```python\nsum(time * ...) / sum(time)\n```",
        ),
        "more-than-all": Diagnosis(
            "A launch with more blocks than SMs counts as if it left fewer than none idle.",
            "1024 blocks on 132 SMs: how many SMs have a block?",
            "```python\nmin(blocks, sms) / sms\n```",
        ),
        "last-wave": Diagnosis(
            "This counts the SMs that the last wave leaves idle, as if it lasted the whole launch. "
            "Asked is less: a launch with more blocks than SMs leaves none idle.",
            "133 blocks on 132 SMs: which share of the launch has 131 SMs idle?",
            "```python\nmin(blocks, sms) / sms\n```",
        ),
        "time-not-share": Diagnosis(
            "This is a time. Asked is its share of the step's.",
            "By what do you divide?",
            "```python\n... / sum(time for _, _, time in launches)\n```",
        ),
        "products-alone": Diagnosis(
            "Only products count here, but an SM is idle in other launches, too.",
            "Which launches of the step leave SMs without a block?",
            "```python\nfor kind, blocks, time in launches:    # whatever the kind is\n```",
        ),
        "nothing-gone": Diagnosis(
            "This is the step as it is.",
            "Which launches does an epilogue replace?",
            '```python\nif kind == "each" and behind_product:\n    continue\n```',
        ),
        "all-each-gone": Diagnosis(
            'Every "each" is gone, also where no product comes before it.',
            'Whose epilogue would do the "each" behind a "sum"?',
            '```python\nbehind_product = kind == "product" or (kind == "each" and ...)\n```',
        ),
        "sums-gone": Diagnosis(
            "Sums are gone, too. Their elements are in several blocks, none of which has them all.",
            "Which block could add a whole row of C, when a row runs through eight tiles?",
            '```python\nif kind == "each" and behind_product:\n    continue\n```',
        ),
        "behind-a-sum": Diagnosis(
            'An "each" behind a "sum" is gone, too. It needs the finished sum, which no product\'s '
            "epilogue has.",
            'What does the "each" behind a "sum" work on?',
            '```python\nbehind_product = kind == "product" or (kind == "each" and '
            "behind_product)\n```",
        ),
        "first-only": Diagnosis(
            'Of two "each" behind a product only the first is gone.',
            "May an epilogue do two things to an element?",
            '```python\nbehind_product = kind == "product" or (kind == "each" and '
            "behind_product)\n```",
        ),
        "saved-not-left": Diagnosis(
            "This is what the change saves. Asked is the time of the step after it.",
            "How long does the step take now, and how long then?",
            "The step's time − what you return.",
        ),
        "never-split": Diagnosis(
            "This is the step as it is: no product was cut.",
            "20 µs in one block on 132 SMs: how long in 132 parts?",
            "```python\nmin(time, fixed + (time - fixed) / parts + fixed)\n```",
        ),
        "always-split": Diagnosis(
            "Products are cut where that makes them slower.",
            "What does a second launch cost a product of 2.5 µs?",
            "```python\nmin(time, ...)\n```",
        ),
        "second-launch-free": Diagnosis(
            "The parts are never added: the second launch takes `fixed`, too.",
            "Who adds 16 parts, and when?",
            "```python\nfixed + (time - fixed) / parts + ...\n```",
        ),
        "fixed-divided": Diagnosis(
            "The fixed part is divided, too. A launch and the first loads take as long, however "
            "short the loop is.",
            "What is left of a product's time with infinitely many parts?",
            "```python\nfixed + (time - fixed) / parts + ...\n```",
        ),
        "parts-rounded-up": Diagnosis(
            "There are more blocks than SMs: some SMs get two, and a second wave begins.",
            "64 blocks on 132 SMs: how many parts give each SM one block at most?",
            "```python\nparts = max(1, sms // blocks)\n```",
        ),
        "parts-not-whole": Diagnosis(
            "The number of parts is a fraction.",
            "How many parts is 132 / 64?",
            "```python\nparts = max(1, sms // blocks)\n```",
        ),
        "all-kinds-split": Diagnosis(
            "Other launches are cut, too. Only a product has a k.",
            "What would be cut in a launch that rectifies each element?",
            '```python\n... if kind == "product" else time\n```',
        ),
    },
    praise="Time first, then the share of the GPU that worked, then one change at a time: that is "
    "a profile read by numbers.",
)
