"""Exercise 01.2: operations, bytes and intensity of a GEMM."""

from typing import Any

import numpy as np

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial

SIZES = (
    (1, 1, 1),
    (1, 3, 2),
    (2, 3, 5),
    (64, 1, 64),
    (100, 7, 33),
    (1024, 512, 2048),
    (9001, 5, 7001),
)
SIZES_AND_BYTES = tuple((*s, b) for s in SIZES for b in (2, 4, 8))


def flops(m, n, k):
    """Operations of C ← AB [FLOP]."""
    # [answer] return ...
    return 2 * m * n * k
    # [end]


def bytes_moved(m, n, k, itemsize):
    """Traffic that cannot be avoided [B]."""
    # [answer] return ...
    return itemsize * (m * k + k * n + m * n)
    # [end]


def intensity(m, n, k, itemsize):
    """Arithmetic intensity [FLOP/B]."""
    # [answer] return ...
    return flops(m, n, k) / bytes_moved(m, n, k, itemsize)
    # [end]


def _intensity_of(operations: Any, moved: Any) -> Any:
    return lambda m, n, k, s: operations(m, n, k) / moved(m, n, k, s)


FLOPS_INSTEAD = {
    "fma-counted-once": lambda m, n, k: m * n * k,
    "one-addition-fewer": lambda m, n, k: m * n * (2 * k - 1),
    "sums-of-sizes": lambda m, n, k: 2 * (m * k + k * n + m * n),
}
BYTES_INSTEAD = {
    "elements-not-bytes": lambda m, n, k, s: m * k + k * n + m * n,
    "every-load-counted": lambda m, n, k, s: s * (2 * m * n * k + m * n),
    "every-load-counted-c-too": lambda m, n, k, s: s * 3 * m * n * k,
    "result-forgotten": lambda m, n, k, s: s * (m * k + k * n),
    "c-read-as-well": lambda m, n, k, s: s * (m * k + k * n + 2 * m * n),
    "bits-not-bytes": lambda m, n, k, s: 8 * s * (m * k + k * n + m * n),
}
INTENSITY_INSTEAD = {
    "upside-down": lambda m, n, k, s: bytes_moved(m, n, k, s) / flops(m, n, k),
    "rounded": lambda m, n, k, s: flops(m, n, k) // bytes_moved(m, n, k, s),
    "fma-counted-once": _intensity_of(FLOPS_INSTEAD["fma-counted-once"], bytes_moved),
    **{name: _intensity_of(flops, moved) for name, moved in BYTES_INSTEAD.items()},
}


def _drawn_anew() -> tuple[int, int, int]:
    m, n, k = (int(x) for x in drawing.generator().choice(np.arange(3, 99_999), 3, replace=False))
    return m, n, k


def judge(operations: Any, moved: Any, ratio: Any) -> Finding:
    """Try the three functions in turn; the first that is wrong decides."""
    sizes = _drawn_anew()
    fresh = ((*sizes, 2), (*sizes, 8))
    found = (
        functions_on_trial.judge("flops", operations, SIZES, flops, FLOPS_INSTEAD, fresh=(sizes,))
        or functions_on_trial.judge(
            "bytes_moved", moved, SIZES_AND_BYTES, bytes_moved, BYTES_INSTEAD, fresh=fresh
        )
        or functions_on_trial.judge(
            "intensity", ratio, SIZES_AND_BYTES, intensity, INTENSITY_INSTEAD, fresh=fresh
        )
    )
    if found is not None:
        return found
    return Finding(
        "passed",
        (("Checked", f"{len(SIZES)} shapes and one drawn anew, elements of 2, 4 and 8 bytes"),),
    )


TASK = Task(
    name="01.2",
    title="Operations, bytes, intensity",
    section="chapter 01, How much work, how many bytes?",
    asked="flops(m, n, k) in FLOP, bytes_moved(m, n, k, itemsize) in B, and "
    "intensity(m, n, k, itemsize) in FLOP/B, of C ← A·B.",
    prompt="""
    For $C \\leftarrow AB$ ($\\beta = 0$, so C is written and not read) write three functions:

    - `flops(m, n, k)`: operations, a fused multiply-add counting as two
    - `bytes_moved(m, n, k, itemsize)`: the traffic that cannot be avoided, with each matrix moved
      once and `itemsize` bytes an element
    - `intensity(m, n, k, itemsize)`: operations per byte

    Check them with `q2.check(flops, bytes_moved, intensity)`.
    """,
    judge=judge,
    answers=(flops, bytes_moved, intensity),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "How many products make one element of C, and how many elements has each matrix?",
            "flops = 2 · … · … · …;  bytes = itemsize · (m·k + … + …)",
        ),
        "fma-counted-once": Diagnosis(
            "A multiply-add is counted as one operation; it is a multiplication and an addition.",
            "What two operations does acc += a * b consist of?",
            "flops = … · m · n · k",
        ),
        "one-addition-fewer": Diagnosis(
            "The first addition, to 0, is left out; by convention it counts: k multiply-adds.",
            "How many multiply-adds does the loop over k run?",
            "flops = 2 · m · n · …",
        ),
        "sums-of-sizes": Diagnosis(
            "Elements are counted, not operations.",
            "How many multiply-adds make one element of C?",
            "flops = 2 · (elements of C) · …",
        ),
        "elements-not-bytes": Diagnosis(
            "Elements are counted; each has itemsize bytes.",
            "How would the result change if the elements were twice as large?",
            "bytes = … · (m·k + k·n + m·n)",
        ),
        "bits-not-bytes": Diagnosis(
            "Bits are counted; itemsize is in bytes already.",
            "In which unit is itemsize given?",
            "bytes = itemsize · (…)",
        ),
        "every-load-counted": Diagnosis(
            "Each operand of each multiply-add is counted; what cannot be avoided is to move each "
            "element once.",
            "If memory on the chip held everything, how often would an element of A be fetched?",
            "bytes = itemsize · (elements of A + … + …)",
        ),
        "every-load-counted-c-too": Diagnosis(
            "Each access of each multiply-add is counted; what cannot be avoided is to move each "
            "element once.",
            "If memory on the chip held everything, how often would an element of A be fetched?",
            "bytes = itemsize · (elements of A + … + …)",
        ),
        "result-forgotten": Diagnosis(
            "Writing C is left out.",
            "Which of the three matrices leaves the chip?",
            "bytes = itemsize · (m·k + k·n + …)",
        ),
        "c-read-as-well": Diagnosis(
            "C is counted as read and written; with beta = 0 it is only written.",
            "What is read of C when beta = 0?",
            "bytes = itemsize · (m·k + k·n + … · m·n)",
        ),
        "upside-down": Diagnosis(
            "Bytes are divided by operations.",
            "Which unit does FLOP/B say is on top?",
            "intensity = … / bytes_moved(m, n, k, itemsize)",
        ),
        "rounded": Diagnosis(
            "The quotient is rounded to a whole number.",
            "What do / and // differ in?",
            "intensity = flops(m, n, k) … bytes_moved(m, n, k, itemsize)",
        ),
    },
    praise="Operations grow with the product of the sizes and bytes with the sum of the faces: "
    "that is why large products can be limited by arithmetic.",
)
