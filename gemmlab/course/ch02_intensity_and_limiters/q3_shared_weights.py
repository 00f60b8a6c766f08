"""Exercise 02.3: a linear layer for a small batch, whose weights are loaded once."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float32

from gemmlab.course.judging import (
    FAILING,
    Diagnosis,
    Finding,
    Task,
    arrays_on_trial as trial,
    drawing,
    kernels_on_trial,
    matrices,
    timed,
)
from gemmlab.course.judging.launches import Launch
from gemmlab.device import RECORDED, device
from gemmlab.simt import Report, cuda
from gemmlab.simt.report.trace import Access
from gemmlab.tiling import WARP

# (outputs, inputs, batch, threads of a block), smallest first; the last one's traffic is counted.
CASES = (
    (1, 1, 1, 1),
    (1, 2, 1, 1),
    (2, 2, 2, 2),
    (3, 2, 4, 2),
    (5, 9, 1, 4),
    (9, 7, 3, 8),
    (64, 72, 12, 32),
)
FLOAT = np.dtype(np.float32).itemsize
PARAMETERS = ["W", "X", "Y"]
FINE = 100  # weights, from which on cases have numbers of 12 bits
SPARE = 1.01  # times as many loads are free: one print of an element
IN_TURNS = 1.75  # times the requests that a warp has to make
AHEAD = 8  # weights of a row that wait before one is used, or rows of X that one sum goes through


def build_layer(batch):
    """The kernel that computes Y ← WX, one row of Y for each thread."""

    def kernel(W, X, Y):
        row = cuda.grid(1)
        outputs, inputs = W.shape
        if row < outputs:
            acc = cuda.local.array(batch, float32)  # the sums of this row, one for each column
            # Set them to 0, use each weight for all of them, and store them.
            # [answer]
            for j in range(batch):
                acc[j] = 0
            for p in range(inputs):
                weight = W[row, p]
                for j in range(batch):
                    acc[j] += weight * X[p, j]
            for j in range(batch):
                Y[row, j] = acc[j]
            # [end]

    return kernel


def _example() -> Launch:
    """A launch that keeps an H200 busy."""
    outputs, inputs, batch = 1 << 14, 256, 16
    shapes = (outputs, inputs), (inputs, batch), (outputs, batch)
    return Launch((batch,), (128,), (128,), tuple(np.zeros(shape, np.float32) for shape in shapes))


EXAMPLE = timed.Example(
    PARAMETERS,
    _example,
    "16384×256 weights and a batch of 16",
    2 * 16 * (1 << 22) / device(RECORDED).peak_of("float32"),
)


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, the traffic of the largest, and cases drawn anew."""
    arrays = trial.Arrays(answer, PARAMETERS, _launch, _wrong)
    largest = arrays.first_wrong(CASES)
    found = largest if isinstance(largest, Finding) else _traffic(*largest)
    if found.diagnosis == "passed":
        found = arrays.wrong_anew(_drawn_anew()) or _double(answer) or found
    return timed.beside(found, answer, build_layer, EXAMPLE)


def _drawn_anew() -> list[tuple[int, int, int, int]]:
    """Sizes beyond those of all cases: most of them, then each in turn."""
    rng = drawing.generator()
    batch, outputs, inputs, wide = (
        int(rng.integers(least, 5 * least // 4)) for least in (33, 2000, 500, 130)
    )
    return [(70, 34, batch, 32), (outputs, 3, 2, 32), (2, inputs, 1, 4), (3, 2, wide, 2)]


def _launch(sizes: tuple[int, int, int, int], rng: np.random.Generator) -> tuple[str, Launch]:
    """A case in words, and its launch."""
    outputs, inputs, batch, block = sizes
    grid = -(-outputs // block)
    case = f"W is {outputs}×{inputs}, X is {inputs}×{batch}; blocks of {block} threads: {grid}"
    # Every sum is exact: where one factor has 12 bits, the other one is small.
    w, x = (
        rng.integers(1, 4, shape).astype(np.float32)
        for shape in ((outputs, inputs), (inputs, batch))
    )
    if outputs * inputs > FINE:
        for fine in (w[:, ::2], x[1::2]):
            fine[...] = (2 * rng.integers(1024, 2048, fine.shape) + 1) / 64
    y = np.full((outputs, batch), np.nan, np.float32)
    return case, Launch((batch,), (grid,), (block,), (w, x, y), trace=("",))


def _wrong(case: str, launch: Launch, report: Report) -> Finding | None:
    """Find what is wrong with the result of a launch, or with the threads that made it."""
    w, x, y = launch.arguments
    found = trial.hazard(report, case) or trial.different("Y", w @ x, y, case)
    working, outputs = int((report.shares.of("store", "Y") > 0).sum()), len(w)
    if found is None and working < outputs:
        fact = ("Threads that store", f"{working}, where Y has {outputs} rows")
        return Finding("few-threads-work", ((FAILING, case), fact), {"working": working})
    if found and found.details.get("kind") == "uninitialised-read":
        return replace(found, diagnosis="sums-not-cleared")
    if found and found.details.get("array", "W") not in (*PARAMETERS, ""):
        return replace(found, diagnosis="too-few-sums")
    if found and found.diagnosis == "wrong-values":
        return replace(found, diagnosis=_why(w, x, y))
    return found


def _double(answer: Any) -> Finding | None:
    """Find sums of 64 bits: they keep a 1 that float32 loses beside 2²⁶.

    Whatever the order of a sum of three is, float32 keeps the 1 in one column of X alone: in that
    one where it comes last.
    """
    w, x = np.ones((1, 3), np.float32), np.zeros((3, 3), np.float32)
    for j in range(3):
        x[:, j] = np.roll([1, 2.0**26, -(2.0**26)], j)
    y = np.full((1, 3), np.nan, np.float32)
    case = "W is 1×3, X is 3×3, with 1, 2²⁶ and -2²⁶ in each column"
    report = trial.launch(trial.Kernel(answer, PARAMETERS, (3,)), (1,), (1,), case, w, x, y)
    if isinstance(report, Finding) or not (y == 1).all():
        return None
    fact = ("Result", "each sum is 1; float32 has lost the 1 in two of the three")
    return Finding("sums-in-double", ((FAILING, case), fact))


def _why(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> str:
    """Name the mistake that gives just this result, else the pattern of what is wrong."""
    expected = w @ x
    if np.isnan(y[~(y == expected)]).all():
        return "not-written"
    instead = {
        "last-product-only": w[:, -1:] @ x[-1:],
        "whole-numbers-only": np.trunc(w) @ x,
        "whole-numbers-only of X": w @ np.trunc(x),
        "product-missing": w[:, 1:] @ x[1:],
        "product-missing at the end": w[:, :-1] @ x[:-1],
        "columns-added-up": np.repeat(expected.sum(axis=1, keepdims=True), y.shape[1], axis=1),
        "columns-added-up so far": np.cumsum(expected, axis=1),
    }
    for diagnosis, result in instead.items():
        if np.array_equal(y, result):
            return diagnosis.split()[0]
    return trial.rounded(expected, y) or matrices.pattern(expected, y)


def _traffic(report: Report, case: str) -> Finding:
    """Whether each weight is loaded once and used at once, with its sums in registers."""
    outputs, inputs, batch, block = CASES[-1]
    loaded = {x: int(report.shares.of("load", x).sum()) // FLOAT for x in ("W", "X", "Y")}
    stores = report.counters["global_store_bytes"] // FLOAT
    sums = loaded["Y"] + report.counters["global_atomic_bytes"] // FLOAT
    weights, uses = outputs * inputs, outputs * inputs * batch
    staged = weights + outputs // block * inputs * batch  # tiles of W and X, copied once
    shared = int(kernels_on_trial.of_shared(report.shares, "store").sum()) // FLOAT
    requests, asked = report.counters["global_load_requests"], (weights + uses) // WARP
    facts = (
        ("Values", f"right in all {len(CASES)} cases and in those drawn anew, with no hazard"),
        ("Case", case),
        ("Weights loaded", f"{loaded['W']:,}; budget {weights:,}, each once"),
        ("Elements of X loaded", f"{loaded['X']:,}; one for each FMA: {uses:,}"),
        ("Loads of warps", f"{requests:,}; budget {asked:,}"),
        ("Elements of Y", f"{stores:,} stored, {sums:,} read again; Y has {outputs * batch:,}"),
    )
    details = {"weights": loaded["W"], "budget": weights, "uses": loaded["X"]}
    if sums or stores > outputs * batch:
        return Finding("sums-in-memory", facts, details)
    if shared > staged:
        told = (("Stored in shared memory", f"{shared:,} words; W and X have {staged:,}"),)
        return Finding("sums-in-memory", facts + told, details)
    if loaded["W"] > SPARE * weights:
        return Finding("weights-loaded-again", facts, details)
    if loaded["X"] > SPARE * uses:
        return Finding("inputs-loaded-again", facts, details)
    if requests > IN_TURNS * asked:
        return Finding("lanes-in-turns", facts, details)
    if _row_first(report.trace):
        return Finding("row-first", facts, details)
    return Finding("passed", facts, details)


def _row_first(accesses: list[Access]) -> bool:
    """Whether weights wait: many are loaded before the first use, or a sum goes through its row.

    A trace has the first accesses of each line alone.
    """
    loads = [access.array for access in accesses if access.op == "load" and access.array in "WX"]
    ahead = loads.index("X") if "X" in loads else 0
    rows: dict[int, set[int]] = {}  # of X, by line
    for access in accesses:
        if access.op == "load" and access.array == "X":
            first = int(access.addresses[access.active][0])
            rows.setdefault(access.line, set()).add(first // (FLOAT * CASES[-1][2]))
    through = max(map(len, rows.values()), default=0)
    return max(ahead, through) >= AHEAD


_OUTPUTS, _INPUTS, _BATCH, _ = CASES[-1]

TASK = Task(
    name="02.3",
    title="A batch shares its weights",
    section="chapter 02, How large must a batch be?",
    asked="build_layer(batch) returns a kernel (W, X, Y) that computes Y ← WX, one row of Y a "
    "thread, and loads each weight once.",
    prompt=f"""
    W is outputs×inputs, X is inputs×batch, Y is outputs×batch; `batch` is a number that is known
    when the kernel is built. Each thread computes one row of Y, all `batch` elements of it.

    The kernel above takes one column after the other and loads every weight `batch` times. Load
    each weight once, and use it for all columns before the next. The thread needs as many sums as
    there are columns: `cuda.local.array(batch, float32)` holds them, in registers if all its
    indices are known to the compiler. It holds anything at first, so set the sums to 0.

    The budget for {_OUTPUTS}×{_INPUTS} weights and a batch of {_BATCH}: {_OUTPUTS * _INPUTS:,}
    loads of W, and nothing of Y is read. A row of W may have thousands of weights, so that a thread
    has no room for a copy of it. `q3.check(build_layer)` counts the loads and predicts the time on
    an H200. A value that is named again while a compiler still has it in a register is no second
    load.
    """,
    judge=judge,
    answers=(build_layer,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "What should a thread do with W[row, p] before it goes on to p + 1?",
            "```python\nfor p in range(inputs):\n    weight = W[row, p]\n"
            "    for j in range(batch):\n        acc[j] += ...\n```",
        ),
        "weights-loaded-again": Diagnosis(
            "The result is right, but each weight is loaded for one column after the other.",
            "Which of your two loops, over p and over j, is the outer one?",
            "```python\nfor p in range(inputs):\n    weight = W[row, p]    # once\n"
            "    for j in ...:\n        ...\n```",
        ),
        "inputs-loaded-again": Diagnosis(
            "The result is right, but elements of X are loaded more often than FMAs use them.",
            "How many products does one element of X take part in, in one thread?",
            "```python\nacc[j] += weight * X[p, j]    # batch products for each p, no more\n```",
        ),
        "sums-in-memory": Diagnosis(
            "The result is right, but the sums are kept in memory: each step reads and writes "
            "them.",
            "Where does acc[j] live, and where does Y[row, j], or an element of shared memory?",
            "```python\nacc[j] += ...    # inside the loop over p\n"
            "Y[row, j] = acc[j]    # after it, once\n```",
        ),
        "row-first": Diagnosis(
            "The result is right, but the weights of a row wait in a copy until one column after "
            "the other has had them: a row of thousands has no room in registers.",
            "When the first sum gets its second product, which weights has the thread loaded?",
            "```python\nfor p in range(inputs):\n    weight = W[row, p]    # one, not an array\n"
            "    for j in ...:\n        ...\n```",
        ),
        "lanes-in-turns": Diagnosis(
            "The result is right, but the lanes of a warp work in turns: each branch is executed "
            "for a part of them.",
            "Which condition differs between the lanes of one warp, and what do both branches do?",
            "```python\nif row < outputs:    # the only condition that needs the thread's place\n"
            "```",
        ),
        "too-few-sums": Diagnosis(
            "An array of the thread's own has fewer elements than the kernel uses of it.",
            "How many sums does a batch of 33 need, and how many has the array?",
            "```python\nacc = cuda.local.array(batch, float32)\n```",
        ),
        "sums-in-double": Diagnosis(
            "The sums have 64 bits: they take twice the registers, and their FMAs a unit of which "
            "a GPU has fewer.",
            "In which dtype are W, X and Y, and in which the sums?",
            "```python\nacc = cuda.local.array(batch, float32)\n```",
        ),
        "low-precision": Diagnosis(
            "The results are nearly right: weights, inputs or sums are rounded to 11 bits.",
            "In which dtype are W, X and Y, and in which the sums?",
            "```python\nacc = cuda.local.array(batch, float32)\n```",
        ),
        "whole-numbers-only": Diagnosis(
            "Fractions are cut off on the way: a weight or an input is made a whole number.",
            "Where does an int() stand, or an array of whole numbers?",
            "```python\nweight = W[row, p]    # float32, as it is\n```",
        ),
        "few-threads-work": Diagnosis(
            "The result is right, but some threads compute several rows of Y and others none.",
            "How many rows has Y, and how many threads does the launch have?",
            "```python\nrow = cuda.grid(1)    # this thread's row, and no other\n```",
        ),
        "sums-not-cleared": Diagnosis(
            "The sums hold anything at first, and are added to before they are set.",
            "What is in acc[j] when the first product is added to it?",
            "```python\nfor j in range(batch):\n    acc[j] = ...\n```",
        ),
        "last-product-only": Diagnosis(
            "Y holds the last product of each sum: each step replaces the one before.",
            "What does acc[j] hold after the second step?",
            "```python\nacc[j] ... weight * X[p, j]\n```",
        ),
        "product-missing": Diagnosis(
            "Each sum lacks its first or its last product.",
            "Which values does p take, and how many columns has W?",
            "```python\nfor p in range(inputs):    # 0 to inputs - 1\n```",
        ),
        "columns-added-up": Diagnosis(
            "Products of several columns land in one sum.",
            "How many sums does a thread need for a batch of 3, and which one does X[p, 2] go to?",
            "```python\nacc[...] += weight * X[p, j]\n```",
        ),
        "outside": Diagnosis(
            "An index is larger than the array is long.",
            "Which of W, X and Y is indexed by p, and in which place?",
            "```python\nacc[j] += W[row, ...] * X[..., j]\n```",
        ),
        "two-writers": Diagnosis(
            "Two threads are in charge of the same row.",
            "Which part of the thread's place is missing from your row?",
            "```python\nrow = cuda.grid(1)\n```",
        ),
        "not-written": Diagnosis(
            "Some elements of Y are never stored.",
            "How many elements of its row does your thread store?",
            "```python\nfor j in range(batch):\n    Y[row, j] = ...\n```",
        ),
    },
    praise="Each weight was loaded once and used for the whole batch: the intensity at the weights "
    "grows with the batch. Chapter 6 does the same in both directions.",
)
