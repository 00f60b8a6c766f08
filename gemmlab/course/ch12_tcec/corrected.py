"""Judging a kernel of one warp whose product, by three of float16, has the accuracy of FP32."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab.course.judging import FAILING, Finding, arrays_on_trial as trial, drawing
from gemmlab.course.judging.arrays_on_trial import scaled
from gemmlab.course.judging.launches import Launch
from gemmlab.numerics import POLICIES, Policy, emulated_matmul, forward_error, split
from gemmlab.simt import Report

M, N, STEP = 16, 8, 16  # of the product, and of one `mma` along k
PRODUCTS = 3
CASES = ((16, "either sign"), (128, "positive"))  # k, and values
LONG = range(1040, 1105, 16)  # k of the case that is drawn for each check
ALLOWED = 2  # times the error of the emulated product
NEAR = 0.1  # a mistake explains C that is so much nearer to it than to the right product

PARAMETERS = ["A", "B", "C"]

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Corrected:
    """An exercise that asks for a kernel (A, B, C), which stores A·B in C, of 16×8 elements.

    by_columns : B is handed over transposed, 8×k
    instead : (A, B) -> what C a mistake gives, by the name of its diagnosis
    costly : (report, k, case) -> what is wrong with a right kernel; None if nothing is
    """

    by_columns: bool = False
    instead: Callable[[np.ndarray, np.ndarray], Arrays] = lambda a, b: {}
    costly: Callable[[Report, int, str], Finding | None] = lambda report, k, case: None


def judge(answer: Any, asked: Corrected) -> Finding:
    """The smallest case in which the kernel is wrong: hazards, then values; then what it costs."""
    long = int(drawing.generator().choice(LONG))
    cases = (*CASES, (long, "positive"))
    drawn = [operands(k, values, None if k == long else k) for k, values in cases]
    launches = [
        (f"A is {M}×{k}, B is {k}×{N}, {values}, one warp", _launch(asked, *operands))
        for (k, values), operands in zip(cases, drawn, strict=True)
    ]
    reports = trial.tried(answer, PARAMETERS, launches)
    for (k, _), (a, b), (case, launch), report in zip(
        cases, drawn, launches, reports, strict=False
    ):
        if isinstance(report, Finding):
            return report
        anew, c = k == long, launch.arguments[-1]
        found = _hazard(report, case) or _wrong(a, b, c, case, asked)
        if found:
            return found.anew if anew and "kind" not in found.details else found
        if costs := _products(report, k, case) or asked.costly(report, k, case):
            return costs
        if k == CASES[0][0] and not _by_mma(answer, asked, a, b, c):
            return Finding("mma-ignored", ((FAILING, f"{case}; each mma takes twice its A"),))
    sizes = ", ".join(str(k) for k, _ in CASES)
    error = f"k = {sizes} and numbers drawn anew: the error is that of the emulated product"
    return Finding("passed", (("Values", error), ("Counted", f"{PRODUCTS} mma in each step")))


def _by_mma(answer: Any, asked: Corrected, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> bool:
    """Whether C is twice as large where each mma takes twice its A."""
    launch = _launch(asked, a, b)
    with scaled("mma", 2):
        next(trial.tried(answer, PARAMETERS, [("", launch)]))
    return np.array_equal(launch.arguments[-1], 2 * c)


def _hazard(report: Report, case: str) -> Finding | None:
    """The first hazard; a race of a reader is for want of a barrier."""
    found = trial.hazard(report, case)
    if found is None:
        return None
    kind, both_write = found.details["kind"], found.details["ops"] == ("write", "write")
    if kind == "shared-race":
        return replace(found, diagnosis="two-writers" if both_write else "no-barrier")
    own = {
        "misaligned": "misaligned",
        "uninitialised-read": "unset",
        "divergent-barrier": "lanes-missing",
    }
    return replace(found, diagnosis=own.get(kind, found.diagnosis))


def operands(k: int, values: str, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """A (16, k) and B (k, 8) in float32, uniform."""
    rng = drawing.generator() if seed is None else np.random.default_rng(seed)
    low = 0.0 if values == "positive" else -1.0
    a, b = rng.uniform(low, 1, (M, k)), rng.uniform(low, 1, (k, N))
    return a.astype(np.float32), b.astype(np.float32)


def parts(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The main product, and the two that correct it, as they count: exactly, in float64."""
    (ah, al, scale), (bh, bl, _) = split(a), split(b)
    ah, al, bh, bl = (x.astype(np.float64) for x in (ah, al, bh, bl))
    return ah @ bh, al @ bh / scale, ah @ bl / scale


def _launch(asked: Corrected, a: np.ndarray, b: np.ndarray) -> Launch:
    stored = np.ascontiguousarray(b.T) if asked.by_columns else b
    return Launch((), (1,), (32,), (a, stored, np.full((M, N), np.nan, np.float32)))


def _wrong(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, case: str, asked: Corrected
) -> Finding | None:
    """Find what is wrong with C; None where it is as exact as it can be."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    allowed = ALLOWED * forward_error(emulated_matmul(a, b), exact)
    error = forward_error(c, exact)
    if error <= allowed:
        return None
    facts = ((FAILING, case), ("Error", f"{error:.2g} by norm, at most {allowed:.2g} asked"))
    found = Finding("wrong-values", facts, {"k": a.shape[1], "error": error})
    if np.isnan(c).any():
        return replace(found, diagnosis="not-written")
    distance = float(np.linalg.norm(c - exact))
    with np.errstate(all="ignore"):
        for name, instead in (_mistakes(a, b) | dict(asked.instead(a, b))).items():
            if np.linalg.norm(c - instead) <= NEAR * min(distance, np.linalg.norm(instead - exact)):
                return replace(found, diagnosis=name.partition(",")[0])
    return found


def _mistakes(a: np.ndarray, b: np.ndarray) -> Arrays:
    """The C that each mistake gives which any such kernel can have."""
    main, left, right = parts(a, b)
    last = a[:, -STEP:], b[-STEP:]
    of_last = parts(*last)
    doubled = np.zeros_like(main)
    for p in range(0, a.shape[1], STEP):
        doubled = 2 * doubled + parts(a[:, p : p + STEP], b[p : p + STEP])[0]
    scale = POLICIES["tcec_fp16"].scale
    return {
        "not-corrected": main,
        "one-correction": main + left,
        "one-correction, the other": main + right,
        "scale-forgotten": main + scale * (left + right),
        "scale-forgotten, multiplied": main + scale**2 * (left + right),
        "last-step-only": of_last[0] + left + right,
        "last-step-only, of all": sum(of_last),
        "corrections-start-again": main + of_last[1] + of_last[2],
        "added-twice": doubled + left + right,
        "summed-inside": emulated_matmul(a, b, Policy(outside=False)),
        "not-corrected, inside": emulated_matmul(a, b, POLICIES["fp16"]),
    }


def _products(report: Report, k: int, case: str) -> Finding | None:
    """A right kernel that takes other than three products in a step."""
    each = report.instructions["inst_mma"] * STEP / k
    if each == 0:
        return Finding("mma-ignored", ((FAILING, case),))
    if each > PRODUCTS:
        fact = ("Counted", f"{each:g} mma in each step, {PRODUCTS} asked")
        return Finding("too-many-products", ((FAILING, case), fact))
    return None
