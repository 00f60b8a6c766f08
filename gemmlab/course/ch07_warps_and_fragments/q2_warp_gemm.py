"""Exercise 07.2: one warp's matrix product, from fragments."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float32, uint32

from gemmlab.course.judging import (
    FAILING,
    Diagnosis,
    Finding,
    Task,
    arrays_on_trial as trial,
    drawing,
    matrices,
    one_warp,
    timed,
)
from gemmlab.course.judging.launches import Launch
from gemmlab.instructions import layout, mma_m16n8k16_f32_f16, pack_f16x2
from gemmlab.numerics import fused_dot_add
from gemmlab.simt import cuda

element_a, element_b, element_c = (layout("m16n8k16", x).element for x in "ABC")
CASES = (16, 32, 48)  # k, smallest first
WAS = 4096  # in C before; no sum of 48 products of numbers up to 4 comes near


def build_warp_gemm():
    """The kernel of one warp that stores A·B in C: A 16×k, B k×8, of float16."""

    def kernel(A, B, C):
        lane = cuda.threadIdx.x
        a = cuda.local.array(4, uint32)
        b = cuda.local.array(2, uint32)
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 16):
            for w in range(4):
                i, j = element_a(lane, 2 * w)
                a[w] = pack_f16x2(A[i, p + j], A[i, p + j + 1])
            # b[0] and b[1]: the pairs that this lane holds of rows p to p + 15 of B.
            # [answer]
            for w in range(2):
                i, j = element_b(lane, 2 * w)
                b[w] = pack_f16x2(B[p + i, j], B[p + i + 1, j])
            # [end]
            c = mma_m16n8k16_f32_f16((a[0], a[1], a[2], a[3]), (b[0], b[1]), c)

        # Store what this lane has of the result, c[0] to c[3], where it belongs in C.
        # [answer]
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]
        # [end]

    return kernel


EXAMPLE = one_warp.example(16, 8, 1024)


def judge(answer: Any) -> Finding:
    """The smallest k for which the kernel is wrong: hazards, values; then whose result it is."""
    kernel = trial.Kernel(answer, ["A", "B", "C"])
    anew = 16 * int(drawing.generator().integers(14, 20))  # far longer than all others
    launches = []
    for k in (*CASES, anew):
        rng = drawing.generator() if k == anew else np.random.default_rng(k)
        values = one_warp.ANEW if k == anew else one_warp.USUAL
        a = rng.choice(values, (16, k)).astype(np.float16)
        b = rng.choice(values, (k, 8)).astype(np.float16)
        launch = Launch((), (1,), (32,), (a, b, np.full((16, 8), np.nan, np.float32)))
        launches.append((f"A is 16×{k}, B is {k}×8, one warp", launch))
    reports = trial.tried(answer, kernel.parameters, launches)
    for k, (case, launch), report in zip((*CASES, anew), launches, reports, strict=False):
        if isinstance(report, Finding):
            return report
        a, b, c = launch.arguments
        found = trial.hazard(report, case)
        if found:
            return replace(found, diagnosis=_of_hazard(found))
        found = trial.different("C", _product(a, b), c, case)
        if found and k == anew:
            nearly = one_warp.rounded(a, b, c)
            return replace(found, diagnosis=nearly) if nearly else found.anew
        if found:
            other = np.full((16, 8), WAS, np.float32)
            if np.isnan(c).any():
                trial.launch(kernel, (1,), (32,), case, a, b, other)
            return replace(found, diagnosis=_why(a, b, c, other))
        if not report.instructions["inst_mma"]:
            return Finding("no-mma", ((FAILING, case),))
        if report.counters["global_store_bytes"] > c.nbytes:
            return Finding("stored-twice", ((FAILING, case),))
    return timed.beside(_made_by_mma(kernel), answer, build_warp_gemm, EXAMPLE)


def _made_by_mma(kernel: trial.Kernel) -> Finding:
    """Whether the result is that of the Tensor Core, which cuts off where other sums round."""
    a, b = _telling()
    c = np.full((16, 8), np.nan, np.float32)
    expected = fused_dot_add(a[:, None], b.T, np.float32(0))
    case = "one product of each row is 1, the others are far smaller"
    report = trial.launch(kernel, (1,), (32,), case, a, b, c)
    found = report if isinstance(report, Finding) else trial.different("C", expected, c, case)
    if found:
        i, j = found.details.get("index", (0, 0))
        text = f"C[{i}, {j}] is {c[i, j]!r}; a Tensor Core gives {expected[i, j]!r}"
        return Finding("mma-ignored", ((FAILING, case), ("Result", text)), found.details)
    values = f"right for k = {', '.join(map(str, CASES))} and for numbers drawn anew"
    return Finding("passed", (("Values", values), ("Made by", "the Tensor Core, to the bit")))


def _telling() -> tuple[np.ndarray, np.ndarray]:
    """A and B whose product no sum in float32 or float64 gets right, in whatever order.

    Each row has a product of 1, its first or its last, and others of 2^-24, which a Tensor Core
    keeps, or of 2^-26, which it cuts off. All lie in the first eight columns of A.
    """
    a = np.zeros((16, 16), np.float16)
    for row in range(16):
        small, count = ((2.0**-18, 5), (2.0**-20, 8))[row % 2]
        a[row, :count] = small
        a[row, 0 if row % 4 < 2 else count - 1] = 2.0**6
    return a, np.full((16, 8), 2.0**-6, np.float16)


def _of_hazard(found: Finding) -> str:
    """The diagnosis of a hazard that has a meaning of its own here."""
    kind = found.details["kind"]
    if kind == "out-of-bounds" and found.details["array"] == "b":
        return "not-packed"
    own = {"uninitialised-read": "not-loaded", "divergent-barrier": "lanes-missing"}
    return own.get(kind, found.diagnosis)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


# Rows of B as the Tensor Core sees them -> those that a mistake brings there, of 16 each.
ROWS_INSTEAD = {
    "halves-swapped": [r ^ 1 for r in range(16)],
    "registers-exchanged": [r ^ 8 for r in range(16)],
    "registers-alike": [r % 8 for r in range(16)],
    "words-counted": [r if r < 8 else r - 7 for r in range(16)],
    "pair-of-one": [r - r % 2 for r in range(16)],
}


def _why(a: np.ndarray, b: np.ndarray, c: np.ndarray, other: np.ndarray) -> str:
    """The diagnosis that explains just this result; `other` is that of a C that held WAS before."""
    right = _product(a, b)
    if np.isnan(c).any():
        if np.array_equal(other, WAS + right):
            return "adds-to-c"
        return "not-written" if (other == WAS).any() else "not-packed"
    tiles = b.reshape(-1, 16, 8)
    instead = {name: _product(a, tiles[:, r].reshape(b.shape)) for name, r in ROWS_INSTEAD.items()}
    instead |= {
        "first-tile-only": _product(a, np.tile(b[:16], (len(tiles), 1))),
        "last-step-only": _product(a[:, -16:], b[-16:]),
        "rows-mixed": right[[r ^ 8 for r in range(16)]],
    }
    for name, wrong in instead.items():
        if np.array_equal(c, wrong):
            return name
    return matrices.pattern(right, c)


TASK = Task(
    name="07.2",
    title="A warp's product",
    section="chapter 07, One warp's product",
    asked="build_warp_gemm() returns a kernel (A, B, C) with which one warp stores A·B in C, for A "
    "of 16×k and B of k×8, k a multiple of 16.",
    prompt="""
    One warp multiplies A (16×k) and B (k×8), both of float16, in steps of 16 along k. The fragments
    of A are loaded for you, and `mma` adds to `c`. Load those of **B**, straight from global
    memory: two registers, each a pair of float16 made by `pack_f16x2(low, high)`. And store the
    four float32 that each lane has of **C**.

    `element_a`, `element_b` and `element_c` give the row and column of a register, counted in
    elements: what `b[1]` holds begins with register 2. C is memory that nobody has cleared. The
    check runs the kernel on the simulator, for several k.
    """,
    judge=judge,
    answers=(build_warp_gemm,),
    diagnoses={
        "stored-twice": one_warp.STORED_TWICE,
        "low-precision": one_warp.LOW_PRECISION,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which two elements share a register of B: neighbours in a row, or in a column?",
            "```python\nfor w in range(2):\n    i, j = element_b(lane, ...)\n```",
        ),
        "wrong-type": Diagnosis(
            "build_warp_gemm() is to return the kernel, a function of (A, B, C).",
            "What does the last line of build_warp_gemm say?",
            "```python\nreturn kernel\n```",
        ),
        "outside": Diagnosis(
            "An element outside of a matrix is touched. B is k high and 8 wide, the pair of a "
            "register lies in one of its columns, and C is 16 high and 8 wide.",
            "Which index of the line that is named is too large, and what does it stand for?",
            "```python\nb[w] = pack_f16x2(B[p + i, j], B[..., j])\n```",
        ),
        "two-writers": Diagnosis(
            "Two lanes write the same element; each of the 128 is in one register of one lane.",
            "For which lane and register is the element that is named?",
            "```python\ni, j = element_c(lane, x)\n```",
        ),
        "not-written": Diagnosis(
            "Some elements of C are not stored; a lane has four of them, in two rows.",
            "How many stores does each lane make, and how many elements does it hold?",
            "```python\nfor x in range(4):\n    i, j = element_c(lane, x)\n```",
        ),
        "halves-swapped": Diagnosis(
            "The two halves of B's registers are exchanged: the first element is the low half.",
            "What is the first argument of pack_f16x2?",
            "```python\nb[w] = pack_f16x2(B[p + i, j], B[..., j])\n```",
        ),
        "not-loaded": Diagnosis(
            "A register goes into the multiplication before anything was put into it.",
            "Which registers of B does `mma` take, and which does your loop fill?",
            "```python\nfor w in range(2):\n    i, j = element_b(lane, ...)\n    b[w] = ...\n```",
        ),
        "not-packed": Diagnosis(
            "b[0] and b[1] are 32 bits each, and two float16 go into each: pack_f16x2 puts them "
            "there.",
            "How many elements of B does a lane hold, and in how many registers?",
            "```python\nb[w] = pack_f16x2(B[p + i, j], B[..., j])\n```",
        ),
        "lanes-missing": Diagnosis(
            "The multiplication is the warp's, and some of its lanes do not get there.",
            "Which condition keeps lanes away from `mma`?",
            "```python\nc = mma_m16n8k16_f32_f16(...)    # for every lane\n```",
        ),
        "words-counted": Diagnosis(
            "The register of element_b counts elements, and each of b[0] and b[1] holds two.",
            "Which registers, counted in elements, are in b[1]?",
            "```python\ni, j = element_b(lane, ... * w)\n```",
        ),
        "registers-alike": Diagnosis(
            "b[0] and b[1] hold the same; the second has rows 8 to 15 of each step.",
            "Which registers, counted in elements, are in b[1]?",
            "```python\ni, j = element_b(lane, ... * w)\n```",
        ),
        "registers-exchanged": Diagnosis(
            "b[0] and b[1] are exchanged: the first has rows 0 to 7 of each step.",
            "Which rows does element_b name for register 0?",
            "```python\nb[w] = pack_f16x2(...)    # w = 0: registers 0 and 1\n```",
        ),
        "pair-of-one": Diagnosis(
            "Both halves of a register hold the same element; they are two of a column.",
            "Where does the neighbour of (i, j) lie that shares its register?",
            "```python\nb[w] = pack_f16x2(B[p + i, j], B[..., j])\n```",
        ),
        "adds-to-c": Diagnosis(
            "The result is added to what was in C before; C is memory that nobody has cleared.",
            "What does += read, the first time?",
            "```python\nC[i, j] = ...\n```",
        ),
        "last-step-only": Diagnosis(
            "What comes out is the product of the last step alone: c starts again in every step.",
            "Which value of c goes into `mma` in the second step?",
            "```python\nc = mma_m16n8k16_f32_f16(..., ..., c)    # adds to the c before\n```",
        ),
        "places-mixed": Diagnosis(
            "All values are right, but not all are where they belong in C.",
            "Which of element_a, element_b, element_c tells where a register of the result goes?",
            "```python\nfor x in range(4):\n    i, j = element_c(lane, x)\n```",
        ),
        "first-tile-only": Diagnosis(
            "Every step multiplies the first 16 rows of B.",
            "Which rows of B belong to the columns p to p + 15 of A?",
            "```python\nb[w] = pack_f16x2(B[p + ..., j], ...)\n```",
        ),
        "rows-mixed": Diagnosis(
            "The upper and the lower eight rows of C are exchanged.",
            "Which registers of C hold the rows from 8 on?",
            "```python\ni, j = element_c(lane, x)\n```",
        ),
        "wrong-values": Diagnosis(
            "Hardly any element of C is right: the registers of B hold the wrong rows.",
            "Which two rows of B belong into b[0] of lane 0, and which does your line put there?",
            "```python\ni, j = element_b(lane, ...)    # the first row of the pair in b[w]\n```",
        ),
        "mma-ignored": Diagnosis(
            "The values are right, but they were summed up beside the Tensor Core: what `mma` "
            "returned is not what was stored.",
            "Which variable holds what `mma` returns, and is it the one that is stored?",
            "```python\nc = mma_m16n8k16_f32_f16(...)\n...\nC[i, j] = c[x]\n```",
        ),
        "no-mma": Diagnosis(
            "The result is right, but it was not made by the Tensor Core.",
            "Which instruction shall do the 2048 multiplications of a step?",
            "```python\nc = mma_m16n8k16_f32_f16(...)\n```",
        ),
    },
    praise="Whoever knows which lane holds what needs no help to bring it there, and none to take "
    "it away.",
)
