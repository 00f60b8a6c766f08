"""Judging a kernel of one warp that multiplies fragments which it loads from shared memory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab.course.judging import arrays_on_trial as trial, drawing, kernels_on_trial, timed
from gemmlab.course.judging.arrays_on_trial import scaled
from gemmlab.course.judging.launches import Launch
from gemmlab.course.judging.verdict import FAILING, Diagnosis, Finding
from gemmlab.device import RECORDED, device
from gemmlab.simt import Report

PARAMETERS = ["A", "B", "C"]
USUAL = range(-4, 5)  # what elements are drawn from
ANEW = (9.25, 11.5, 13.75)  # likewise: sums pass 2048, beyond which float16 has no odd numbers


@dataclass(frozen=True)
class OneWarp:
    """An exercise that asks for a kernel (A, B, C), which stores A·B in C, of m×n elements.

    step : elements along k between two copies; cases : k of each, smallest first
    wavefronts : of shared loads, the most that a step may take
    why : (A, B, C) -> the mistake that gives just this wrong C
    costly : (report, steps, case) -> what is wrong with a right kernel that loads as asked
    too_many : the diagnosis of more wavefronts with conflicts; without, a fragment comes again
    long : a k that is tried last, about as much or more; None where there is none
    """

    m: int
    n: int
    step: int
    cases: tuple[int, ...]
    wavefronts: int
    why: Callable[[np.ndarray, np.ndarray, np.ndarray], str]
    costly: Callable[[Report, int, str], Finding | None] = lambda *told: None
    too_many: str = "bank-conflicts"
    long: int | None = None

    def drawn(self) -> int:
        """The k of the case that is drawn for each check: more steps than any other case has."""
        return self.cases[-1] + self.step * int(drawing.generator().integers(2, 4))


LOW_PRECISION = Diagnosis(
    "The sums are nearly right: they are rounded to 11 bits between two steps.",
    "In which format does each sum wait for the next step?",
    "```python\n... mma_m16n8k16_f32_f16(...)    # sums in float32, kept in float32\n```",
)


ADDED_APART = Diagnosis(
    "The result is right, but the sums are added up beside the mma, which can do that by itself.",
    "Which sums go into each `mma`, and what do your own additions add?",
    "```python\n... = mma_m16n8k16_f32_f16(..., ..., (acc...))    # the sums so far\n```",
)
LANES_MISSING = Diagnosis(
    "A part of the warp comes to an instruction that all its 32 lanes execute together.",
    "Which condition keeps lanes from the line that is named?",
    "```python\na = ldmatrix_x4(As, ...)    # without an if that depends on lane\n```",
)
LOADED_AGAIN = Diagnosis(
    "The result is right, and no two rows meet, but fragments are loaded more than once.",
    "How often is each `ldmatrix` executed in a step, and how often is it needed?",
    "```python\na = ldmatrix_x4(As, ...)    # once in a step\n```",
)
STORED_TWICE = Diagnosis(
    "The result is right, but elements of C are stored more than once.",
    "How often does a lane come to its store of one element?",
    "```python\nC[i, j] = ...    # after the loop over p, once\n```",
)
OWN = {
    "low-precision": LOW_PRECISION,
    "added-apart": ADDED_APART,
    "lanes-missing": LANES_MISSING,
    "stored-twice": STORED_TWICE,
}


def judge(answer: Any, asked: OneWarp) -> Finding:
    """Find the smallest k for which the kernel is wrong: hazards, then values; then its loads."""
    known = [(k, USUAL, np.random.default_rng(k)) for k in asked.cases]
    found = _tried(answer, asked, known) or _ignored(answer, asked)
    if found:
        return found
    beyond = [asked.drawn()]
    if asked.long:
        beyond.append(asked.long + asked.step * int(drawing.generator().integers(1, 5)))
    found = _tried(answer, asked, [(k, ANEW, drawing.generator()) for k in beyond])
    if found:
        of_numbers = ("whole-numbers-only", *OWN)
        return found if found.diagnosis in of_numbers else found.anew
    text = f"{asked.wavefronts} wavefronts of shared loads for each step along k"
    values = f"right for k = {', '.join(map(str, (*asked.cases, *beyond)))}, the last drawn anew"
    return Finding("passed", (("Values", values), ("Counted", text)))


def _tried(
    answer: Any, asked: OneWarp, cases: list[tuple[int, Iterable[float], np.random.Generator]]
) -> Finding | None:
    """Find the first case that is wrong; `cases`: k, what elements are drawn from, and by what."""
    launches = []
    for k, values, rng in cases:
        shapes = (asked.m, k), (k, asked.n)
        a, b = (rng.choice(values, shape).astype(np.float16) for shape in shapes)
        c = np.full((asked.m, asked.n), np.nan, np.float32)
        case = f"A is {asked.m}×{k}, B is {k}×{asked.n}, one warp"
        launches.append((case, Launch((), (1,), (32,), (a, b, c))))
    reports = trial.tried(answer, PARAMETERS, launches)
    for (case, launch), report in zip(launches, reports, strict=False):
        if isinstance(report, Finding):
            return report
        a, b, c = launch.arguments
        found = trial.hazard(report, case)
        if found:
            return replace(found, diagnosis=of_hazard(found))
        found = trial.different("C", product(a, b), c, case)
        if found and np.abs(a).max() > max(USUAL) and (nearly := rounded(a, b, c)):
            return replace(found, diagnosis=nearly)
        if found:
            return replace(found, diagnosis=asked.why(a, b, c))
        wasteful = _loads(asked, report, a.shape[1], case)
        if wasteful:
            return wasteful
        if np.abs(a).max() > max(USUAL) and (found := _stores(asked, report, case)):
            return found
    return None


def rounded(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> str:
    """The diagnosis of a result that only lacks fractions or bits; empty where it is another."""
    whole_a, whole_b = np.trunc(a), np.trunc(b)
    for x, y in ((whole_a, b), (a, whole_b), (whole_a, whole_b)):
        if np.array_equal(c, product(x, y)):
            return "whole-numbers-only"
    return trial.rounded(product(a, b), c)


def _stores(asked: OneWarp, report: Report, case: str) -> Finding | None:
    """Find sums that are made beside the mma, or stored more than once."""
    added, products = report.instructions["inst_fp"], report.instructions["inst_mma"]
    if added >= products:
        fact = ("Float additions of the warp", f"{added}, beside {products} mma")
        return Finding("added-apart", ((FAILING, case), fact))
    stored, bytes_of_c = report.counters["global_store_bytes"], 4 * asked.m * asked.n
    if stored > bytes_of_c:
        fact = ("Stored", f"{stored} bytes, where C has {bytes_of_c}")
        return Finding("stored-twice", ((FAILING, case), fact))
    return None


def example(m: int, n: int, k: int) -> timed.Example:
    """One warp's product with a long k, whose time is predicted."""

    def launch() -> Launch:
        a, b = np.zeros((m, k), np.float16), np.zeros((k, n), np.float16)
        return Launch((), (1,), (32,), (a, b, np.zeros((m, n), np.float32)))

    gpu = device(RECORDED)
    least = 2 * m * n * k / gpu.peak_of("float16") * gpu.sms
    return timed.Example(PARAMETERS, launch, f"one warp and k = {k}", least)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A·B in float64."""
    return a.astype(np.float64) @ b.astype(np.float64)


def of_hazard(found: Finding) -> str:
    """The diagnosis of a hazard that has a meaning of its own here."""
    if found.details["ops"] == ("write", "write"):
        return "two-writers"
    own = {
        "shared-race": "no-barrier",
        "misaligned": "misaligned",
        "uninitialised-read": "unused",
        "divergent-barrier": "lanes-missing",
    }
    return own.get(found.details["kind"], found.diagnosis)


def _loads(asked: OneWarp, report: Report, k: int, case: str) -> Finding | None:
    """Find what a right kernel loads otherwise than asked; None where it loads as asked."""
    steps, counters = k // asked.step, report.counters
    once = 2 * k * (asked.m + asked.n)
    copied = report.shares.of("load", "A", "B")
    loaded, wavefronts = counters["global_load_bytes"], counters["shared_load_wavefronts"]
    if loaded > once:
        fact = ("Global loads", f"{loaded} bytes, where A and B together have {once}")
        return Finding("loaded-twice", ((FAILING, case), fact))
    if kernels_on_trial.uneven(copied):
        fact = ("Copied by a lane", f"{copied.min()} … {copied.max()} bytes")
        return Finding("few-lanes-copy", ((FAILING, case), fact))
    if not report.instructions["inst_mma"]:
        return Finding("no-mma", ((FAILING, case),))
    if single := report.instructions["inst_shared_load"]:
        fact = ("Shared loads", f"{single} of single elements, where ldmatrix needs none")
        return Finding("elements-loaded", ((FAILING, case), fact))
    most = asked.wavefronts * steps
    if wavefronts > most:
        conflicts = counters["shared_bank_conflicts"]
        text = f"{wavefronts} of shared loads, at most {most} asked; {conflicts} are conflicts"
        fact = ("Wavefronts", text)
        diagnosis = asked.too_many if conflicts else "loaded-again"
        return Finding(diagnosis, ((FAILING, case), fact), {"wavefronts": wavefronts})
    return asked.costly(report, steps, case)


def _ignored(answer: Any, asked: OneWarp) -> Finding | None:
    """Find an instruction on whose result C does not depend; None where it depends on all.

    With `ldmatrix` bringing twice its matrices and `mma` multiplying by three times its A, C is
    2·2·3 times A·B, if both operands come by the one and the products from the other.
    """
    rng, k = drawing.generator(), asked.cases[0]
    a, b = (rng.integers(1, 5, s).astype(np.float16) for s in ((asked.m, k), (k, asked.n)))
    c = np.full((asked.m, asked.n), np.nan, np.float32)
    case = "each ldmatrix brings twice its values, each mma takes three times its A"
    with scaled("ldmatrix", 2), scaled("mma", 3):
        report = trial.launch(trial.Kernel(answer, PARAMETERS), (1,), (32,), case, a, b, c)
    if isinstance(report, Finding):
        return report
    once = product(a, b)
    found = trial.different("C", 12 * once, c, case)
    if not found:
        return None
    by_mma = any(np.array_equal(c, by * once) for by in (3, 6))
    return replace(found, diagnosis="matrices-ignored" if by_mma else "mma-ignored")
