"""Exercise 12.2: what passes through shared memory for a product of split operands."""

from dataclasses import replace
from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial, source
from gemmlab.model.register_blocking import split_in_memory, split_in_registers

GRANULE = 16  # of a warp's tile
ANEW = 24  # warps, and SMs, drawn for each check

# (m, n, k, stored) of a warp's product
WARPS = tuple(
    (m, n, k, stored)
    for m, n in ((16, 16), (32, 32), (64, 32), (32, 64), (64, 64), (48, 16), (128, 64))
    for k in (16, 32, 48)
    for stored in (True, False)
)
TILES = tuple((m, n, k) for m, n, k, stored in WARPS if stored)
# (flops, bandwidth, stored): FLOP of Tensor Cores and bytes of shared memory a cycle, of an SM.
SMS = tuple(
    (flops, bandwidth, stored)
    for flops in (1024, 2048, 4096, 8192)
    for bandwidth in (64, 128, 256)
    for stored in (True, False)
)


def passed(m, n, k, stored):
    """Bytes that pass through shared memory for a warp's product."""
    # [answer] return ...
    each = 4 + 2 * 2 * 2 if stored else 4
    return each * (m * k + k * n)
    # [end]


def held(m, n, k):
    """32-bit registers of a lane for all parts and both sums."""
    # [answer] return ...
    parts = 2 * (m * k + k * n)  # of 16 bits
    sums = 2 * m * n  # of 32 bits
    return (parts // 2 + sums) // 32
    # [end]


def least(flops, bandwidth, stored):
    """The least n, a multiple of 16, at which Tensor Cores limit a warp's n×n×n product."""
    # [answer] return ...
    n = 16
    while 3 * 2 * n**3 / flops < passed(n, n, n, stored) / bandwidth:
        n += 16
    return n
    # [end]


def _passed(m: int, n: int, k: int, stored: bool) -> int:
    return (split_in_memory if stored else split_in_registers)(m, n, k).shared_bytes


def _held(m: int, n: int, k: int) -> int:
    return int(split_in_registers(m, n, k).registers)


def _least(flops: int, bandwidth: int, stored: bool, products: int = 3, each: int = 0) -> int:
    """⌈each · flops / (products · bandwidth)⌉ to a multiple of 16."""
    wanted = (each or (12 if stored else 4)) * flops
    return GRANULE * max(1, -(-wanted // (products * bandwidth * GRANULE)))


PASSED_INSTEAD = {
    "parts-once": lambda m, n, k, stored: (8 if stored else 4) * (m * k + k * n),
    "half-words": lambda m, n, k, stored: (10 if stored else 2) * (m * k + k * n),
    "one-operand": lambda m, n, k, stored: (12 if stored else 4) * m * k,
    "sums-too": lambda m, n, k, stored: _passed(m, n, k, stored) + 8 * m * n,
    "sums-too 2": lambda m, n, k, stored: _passed(m, n, k, stored) + 4 * m * n,
    "always-stored": lambda m, n, k, stored: 12 * (m * k + k * n),
    "exchanged-ways": lambda m, n, k, stored: _passed(m, n, k, not stored),
}
HELD_INSTEAD = {
    "one-sum": lambda m, n, k: (m * k + k * n + m * n) // 32,
    "halves-as-words": lambda m, n, k: (2 * (m * k + k * n) + 2 * m * n) // 32,
    "high-alone": lambda m, n, k: ((m * k + k * n) // 2 + 2 * m * n) // 32,
    "of-the-warp": lambda m, n, k: m * k + k * n + 2 * m * n,
}
LEAST_INSTEAD = {
    "one-product": lambda f, b, stored: _least(f, b, stored, products=1),
    "two-flops": lambda f, b, stored: _least(2 * f, b, stored),
    "not-a-multiple": lambda f, b, stored: -(-(12 if stored else 4) * f // (3 * b)),
    "rounded-down": lambda f, b, stored: max(1, (12 if stored else 4) * f // (48 * b)) * GRANULE,
    "beyond": lambda f, b, stored: ((12 if stored else 4) * f // (48 * b) + 1) * GRANULE,
}


def judge(*answers: Any) -> Finding:
    """The first function that is wrong, at its smallest case; "half-done" if one is not written."""
    rng = drawing.generator()
    warps = [
        (*(16 * int(x) for x in rng.integers(1, 20, 3)), bool(rng.integers(2))) for _ in range(ANEW)
    ]
    sms = [
        (int(rng.integers(5, 200)) * 64, int(rng.integers(3, 20)) * 16, bool(rng.integers(2)))
        for _ in range(ANEW)
    ]
    to_do = []
    for (asked, right, instead, cases, fresh), answer in zip(
        (
            (passed, _passed, PASSED_INSTEAD, WARPS, warps),
            (held, _held, HELD_INSTEAD, TILES, [warp[:3] for warp in warps]),
            (least, _least, LEAST_INSTEAD, SMS, sms),
        ),
        answers,
        strict=True,
    ):
        name = asked.__name__
        if source.unchanged(asked, answer):
            to_do.append((name, "still to be written"))
            continue
        found = functions_on_trial.judge(name, answer, cases, right, instead, fresh=fresh)
        if found is not None:
            got = found.details.get("got", 0)
            if found.diagnosis != "known-cases-only" and isinstance(got, float) and got % 1:
                return replace(found, diagnosis="not-whole")
            return replace(found, diagnosis=found.diagnosis.split()[0])
    if to_do:
        return Finding("half-done", tuple(to_do))
    return Finding("passed", (("Checked", f"{len(WARPS)} warps, {len(SMS)} SMs, and new ones"),))


TASK = Task(
    name="12.2",
    title="What passes through shared memory",
    section="chapter 12, What feeds three products?",
    asked="passed(m, n, k, stored), held(m, n, k) and least(flops, bandwidth, stored), each a "
    "whole number.",
    prompt="""
    A warp multiplies an m×k tile of A by a k×n tile of B, both in FP32, by three products of FP16.
    The sums stay in registers.

    - `passed(m, n, k, stored)`: how many **bytes** pass through shared memory? If `stored`, each
      FP32 element is loaded once, its two parts are stored, and both are loaded as fragments. If
      not, each element is loaded once, and split in registers.
    - `held(m, n, k)`: how many 32-bit registers does a **lane** need for the two parts of all
      elements, two to a register, and for the two sums of each element of C?
    - `least(flops, bandwidth, stored)`: an SM's Tensor Cores do `flops` operations in a cycle (a
      multiplication and an addition are two), its shared memory moves `bandwidth` bytes. Which n
      is the least **multiple of 16** for which the n×n×n product takes Tensor Cores as long as
      shared memory, or longer?
    """,
    judge=judge,
    answers=(passed, held, least),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "How many bytes has an FP32 element, and how many have its two parts?",
            "```python\neach = 4 + ... if stored else 4\nreturn each * (m * k + k * n)\n```",
        ),
        "half-done": Diagnosis(
            "Some functions are still to be written.",
            "Which of the three is named, and on what does it depend?",
            "```python\nreturn (parts // 2 + sums) // 32\n```",
        ),
        "not-whole": Diagnosis(
            "The result is not a whole number.",
            "Which division leaves a fraction?",
            "```python\n... // 32\n```",
        ),
        "parts-once": Diagnosis(
            "Something passes once more: parts are stored *and* loaded, after the word is loaded.",
            "Follow one element, stored: which instructions touch it, with how many bytes each?",
            "4 bytes loaded, 2 · 2 bytes ..., 2 · 2 bytes ...",
        ),
        "half-words": Diagnosis(
            "Operands come in FP32, of 4 bytes, also where nothing is stored.",
            "In which format do the tiles lie in shared memory?",
            "```python\neach = ... if stored else 4\n```",
        ),
        "one-operand": Diagnosis(
            "Only A is counted.",
            "Which tiles does the warp load?",
            "```python\n... * (m * k + ...)\n```",
        ),
        "sums-too": Diagnosis(
            "The sums are counted, which stay in registers over all of k.",
            "When does a sum leave its register?",
            "```python\neach * (m * k + k * n)\n```",
        ),
        "always-stored": Diagnosis(
            "Both ways pass the same bytes.",
            "What is left out where parts are made in registers?",
            "```python\n... if stored else ...\n```",
        ),
        "exchanged-ways": Diagnosis(
            "The two ways are exchanged.",
            "Does `stored` mean that parts go through shared memory?",
            "```python\neach = 12 if ... else 4\n```",
        ),
        "one-sum": Diagnosis(
            "One sum is counted for each element of C.",
            "Which two sums does the kernel of 12.1 have?",
            "```python\nsums = ... * m * n\n```",
        ),
        "halves-as-words": Diagnosis(
            "A part is counted as a register; two of them share one.",
            "How many bits has a part?",
            "```python\nparts // 2\n```",
        ),
        "high-alone": Diagnosis(
            "One part is counted for each element.",
            "Into how many float16 is an element split?",
            "```python\nparts = 2 * (m * k + k * n)\n```",
        ),
        "of-the-warp": Diagnosis(
            "These are the registers of all lanes together.",
            "How many lanes share a warp's tile?",
            "```python\n(...) // 32\n```",
        ),
        "one-product": Diagnosis(
            "The time of one product is counted; there are three.",
            "How many products make one?",
            "```python\n3 * 2 * n**3 / flops\n```",
        ),
        "two-flops": Diagnosis(
            "A multiplication and its addition are counted as one operation.",
            "How many operations are n³ products and additions?",
            "```python\n3 * 2 * n**3 / flops\n```",
        ),
        "not-a-multiple": Diagnosis(
            "The result is no multiple of 16.",
            "Which sizes can a warp's tile have?",
            "```python\nn += 16\n```",
        ),
        "rounded-down": Diagnosis(
            "There the Tensor Cores still wait: the result is rounded down.",
            "Which takes longer at the n that you return?",
            "```python\nwhile 3 * 2 * n**3 / flops < ...:\n    n += 16\n```",
        ),
        "beyond": Diagnosis(
            "Where both take the same time, you go one step further.",
            "What does *as long, or longer* say of equality?",
            "```python\nwhile ... < ...:    # not <=\n```",
        ),
    },
    praise="Splitting in registers allows tiles of a third of the size, or three times the speed.",
)
