"""Judging an entry: small cases, then blocks of the shape itself, then its predicted time.

The small cases are simulated as those of an exercise are. A kernel that is right on them may still
leave out work where it is timed. So some blocks of the launch that is predicted are simulated, too:
those which the forecast executes, at each k at which it does, and some that are drawn. The forecast
sees random operands without a zero, and its code is counted: an FMA for each product. Each of the
three builds the kernel anew in a copy of the process, and makes one first call there: what builds
another kernel later is not asked again.
"""

from __future__ import annotations

import linecache
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.compiled.forecast.rungs import depths
from gemmlab.course.judging import drawing, guard, integrity, kernels_on_trial, timed
from gemmlab.course.judging.apart import NotJudged, apart
from gemmlab.course.judging.diagnoses import about
from gemmlab.course.judging.launches import built
from gemmlab.course.judging.verdict import Diagnosis, Finding
from gemmlab.course.worklog import shapes
from gemmlab.course.worklog.shapes import Shape
from gemmlab.device import device, name_of
from gemmlab.here.compilers import lacking
from gemmlab.kernels import Kernel
from gemmlab.kernels.kernel import as_it_is, as_they_are
from gemmlab.measure.backends.trial import told
from gemmlab.problem import Gemm
from gemmlab.simt import HazardError, simulate
from gemmlab.tiling import WARP, Tiling

if TYPE_CHECKING:
    from gemmlab.compiled.forecast.executed import Executed
    from gemmlab.compiled.forecast.kernel import Forecast

GPUS = ("h200", "h100_sxm")
SECONDS = 120.0  # of the processor, for the blocks of one k
OPERATIONS = 40_000  # of a thread, about as many as are simulated in two seconds
DRAWN, LOOKED_AT = 2, 4096  # blocks, and elements of C of which each is computed once more
ALL = 1024  # blocks, at most, of a grid with fewer than C has tiles: all are simulated
LONG = 1024  # k from which on a block takes long
STEPS = 1 << 18  # turns of a thread's while
LINES = 3  # of the source, whose costs are told
OWN = {
    "host-work": Diagnosis(
        "Part of the work is done before the launch, where nobody counts it.",
        "What does the kernel get in place of A, B and C?",
    ),
    "other-grid": Diagnosis(
        "The launch that is timed has other blocks than C needs: some tiles have none, or two.",
        "How many tiles has C, and how many blocks has the grid for this shape?",
    ),
    "wrong-on-the-shape": Diagnosis(
        "It is right on small cases, and wrong on the shape whose time counts.",
        "Which condition of the kernel holds for large sizes alone?",
    ),
    "not-all-of-c": Diagnosis(
        "Blocks that are timed leave elements of their tile of C as they were.",
        "Which threads store nothing, and for which sizes?",
    ),
    "another-matrix": Diagnosis(
        "The first matrix of the batch is right, and those after it are not.",
        "In which row of B does the second matrix begin, and in which the one of your block?",
    ),
    "tile-does-not-divide": Diagnosis(
        "The block tile does not divide the shape: the sample of blocks would not stand for all.",
        "Which powers of two divide m and n?",
    ),
}


@dataclass(frozen=True)
class Judged:
    """What is found of an entry, as data.

    facts : (label, text), as a verdict has them; seconds, waits : by GPU, empty where no time could
        be predicted; counts : of one block of the shape, simulated
    depth : the largest k that was simulated, 0 for all of it
    lines : the dearest lines of the source, and their shares of all issue slots
    """

    diagnosis: str
    facts: tuple[tuple[str, str], ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    waits: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    depth: int = 0
    lines: tuple[tuple[str, float], ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it is right."""
        return self.diagnosis == "passed"

    @property
    def far(self) -> str:
        """How far right means right, in words; empty where that is all of k."""
        return f" as far as k = {self.depth:,}" if self.depth else ""


def judge(rung: Kernel, shape: Shape, lines: bool = True) -> Judged:
    """Judge a rung that `kernels.own` has made, on a shape; find its dearest `lines`, too."""
    tiling = rung.default
    found = _launchable(rung, shape, tiling) or _on_small_cases(rung, shape, tiling)
    depth = 0
    if found.diagnosis == "passed":
        found, depth = _on_the_shape(rung, shape, tiling)
    if found.diagnosis != "passed":
        return _told(found)
    counts, facts = dict(found.details), found.facts
    if lacking():
        facts += (("Time on a GPU", f"left out: {lacking()}"),)
        return Judged("passed", facts, counts=counts, depth=depth)
    times = timed.predicted(found, partial(_times, rung, shape, tiling, _seed(), lines))
    if isinstance(times, Finding):
        passed = times.diagnosis == "passed"
        return Judged("passed", times.facts, depth=depth) if passed else _told(times)
    by_gpu = dict(zip(GPUS, times, strict=True))
    for name, time in by_gpu.items():
        least = shape.bound(device(name))["the FMAs"]
        if time.seconds < least:
            fact = (
                f"{timed.ms(time.seconds)} predicted, where the FMAs alone take {timed.ms(least)}"
            )
            return _told(Finding("work-left-out", (("Time", fact),)))
    return Judged(
        "passed",
        facts,
        seconds={name: time.seconds for name, time in by_gpu.items()},
        waits={name: time.waits for name, time in by_gpu.items()},
        counts=counts,
        depth=depth,
        lines=times[0].lines,
    )


def _told(found: Finding) -> Judged:
    """A finding as data, with the likely cause before its facts."""
    cause = OWN.get(found.diagnosis) or about(found.diagnosis, found.details, {})
    return Judged(found.diagnosis, (("Likely cause", cause.cause), *found.facts))


def _launchable(rung: Kernel, shape: Shape, tiling: Tiling) -> Finding | None:
    """Find what in a launch, or around it, is not for an entry."""
    p, (bm, bn, _) = shape.problem, tiling.block
    if (rung.operands, rung.result) != (as_they_are, as_it_is):
        return Finding("host-work", (("Found", f"{rung.name} prepares its operands"),))
    if len(rung.launches) > 1 or rung.dynamic:
        what = "more than one launch" if len(rung.launches) > 1 else "dynamic shared memory"
        return Finding("host-work", (("Found", f"{rung.name} needs {what}; use one plain launch"),))
    if (p.m // shape.batch) % bm or p.n % bn:
        text = f"a tile of {bm}×{bn} in matrices of {p.m // shape.batch}×{p.n}"
        return Finding("tile-does-not-divide", (("Found", text),))
    try:
        grid, _ = rung.launch(p, tiling, device(GPUS[0]))
    except Exception as error:
        return Finding("raises", (("Error", told(error)),))
    blocks, tiles = math.prod(grid), math.prod(tiling.grid(p))
    if blocks > tiles or ALL < blocks < tiles:
        text = f"{blocks:,} blocks for {tiles:,} tiles of C; use one for each, or at most {ALL:,}"
        return Finding("other-grid", (("Found", text),))
    return None


def _on_small_cases(rung: Kernel, shape: Shape, tiling: Tiling) -> Finding:
    gpu = device(GPUS[0])

    def grid(tiling: Tiling, problem: Gemm) -> tuple[int, ...]:
        return rung.launch(problem, tiling, gpu)[0]

    found = kernels_on_trial.judge(
        rung.build,
        shapes.cases(shape, tiling),
        lambda tile: tiling,
        grid,
        shapes.form(tiling, rung.configure(shape.problem, tiling)[1]),
        shapes.anew(shape, tiling),
    )
    if not isinstance(found, Finding):
        return Finding("passed")
    (row, _), rows = found.details.get("index", (0, 0)), tiling.block[0]
    if shape.batch > 1 and row >= rows:
        m, *_ = found.details["shape"]
        text = f"the {m} rows are {m // rows} matrices of {rows}, and the first one is right"
        return Finding("another-matrix", (*found.facts, ("Found", text)), found.details)
    return found


# ------------------------------------------------------------------------- blocks of the shape


def _on_the_shape(rung: Kernel, shape: Shape, tiling: Tiling) -> tuple[Finding, int]:
    """Simulate some blocks of each launch that is timed, the longest last; and how long that is.

    The length is 0 where it is all of k.
    """
    found, longest = Finding("passed"), _longest(tiling, shape.problem.k)
    ks = depths(shape.problem, rung, tiling) if shape.batch == 1 else []
    for k in dict.fromkeys([*ks, longest]):
        work = partial(_blocks, rung, shape, tiling, k, _seed())
        for item in apart(work, SECONDS):
            if guard.ended(item):
                raise NotJudged(f"simulating blocks of {shape}: {item.what}", item.where)
            found = item
        if found.diagnosis != "passed":
            break
    if longest == shape.problem.k:
        return found, 0
    text = f"blocks with k up to {longest:,} of {shape.problem.k:,}"
    return replace(found, facts=(*found.facts, ("Simulated", text))), longest


def _longest(tiling: Tiling, k: int) -> int:
    """The longest k that is simulated: all of it, or one that is drawn, where a thread has much.

    A shorter one costs no safety of a league: no forecast looks at a longer one either.
    """
    tm, tn = tiling.thread
    most = OPERATIONS // (tm * tn + tm + tn)
    return k if k <= most else int(drawing.generator().integers(most // 2, most)) // 4 * 4


def _blocks(rung: Kernel, shape: Shape, tiling: Tiling, k: int, seed: int) -> Iterator[Finding]:
    """Look at what some blocks store; in a process of its own."""
    kernel = built(rung.build, kernels_on_trial.PARAMETERS, (tiling,), integrity.parts())
    if isinstance(kernel, Finding):
        yield kernel
        return
    rng, problem = np.random.default_rng(seed), replace(shape.problem, k=k)
    grid, block = rung.launch(shape.problem, tiling, device(GPUS[0]))
    chosen = _chosen(grid, tiling, problem, rng)
    a, b = (shapes.filled(s, rng) for s in ((problem.m, k), (shape.batch * k, problem.n)))
    c = np.full((problem.m, problem.n), np.nan, np.float32)
    try:
        report = simulate(
            kernel, grid, block, np.float32(1), a, b, np.float32(0), c,
            sample=chosen, max_steps=STEPS,
        )  # fmt: skip
    except HazardError as error:
        yield Finding("wrong-on-the-shape", (("Hazard", str(error)),))
        return
    except Exception as error:
        yield guard.fault(error)
        return
    found = _stored(tiling, problem, math.prod(grid), len(chosen), c)
    if found.diagnosis == "passed":
        found = _values(shape, problem, a, b, c, rng)
    counts = {name: int(n) // len(chosen) for name, n in report.counters.items()}
    yield replace(found, details=counts) if found.diagnosis == "passed" else found


def _chosen(
    grid: Sequence[int], tiling: Tiling, problem: Gemm, rng: np.random.Generator
) -> tuple[int, ...]:
    """The blocks to look at: those that a forecast executes, some drawn, or all that share tiles.

    Where each takes long it is the first and one that is drawn.
    """
    blocks, tiles = math.prod(grid), math.prod(tiling.grid(problem))
    long = problem.k > LONG
    if blocks < tiles and not long:
        return tuple(range(blocks))
    of_an_sm = [0] if long else [i * device(g).sms for g in GPUS for i in range(3)]
    drawn = rng.integers(blocks, size=1 if long else DRAWN)
    return tuple(sorted({int(i) for i in (*of_an_sm, *drawn) if i < blocks}))


def _stored(tiling: Tiling, problem: Gemm, blocks: int, chosen: int, c: np.ndarray) -> Finding:
    """Whether the blocks stored their share of C, whose elements were NaN."""
    (bm, bn, _), stored = tiling.block, int((c == c).sum())
    tiles = math.prod(tiling.grid(problem))
    if blocks == chosen:  # all of them
        wanted, diagnosis = problem.m * problem.n, "other-grid"
    else:
        wanted, diagnosis = chosen * (tiles // blocks) * bm * bn, "not-all-of-c"
    if stored >= wanted:
        return Finding("passed")
    text = f"{chosen} of {blocks:,} blocks stored {stored:,} numbers of {wanted:,} ({problem})"
    return Finding(diagnosis, (("Found", text),))


def _values(
    shape: Shape,
    problem: Gemm,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    rng: np.random.Generator,
) -> Finding:
    """Compare some of the elements that were stored with their sums in FP64."""
    places = np.argwhere(c == c)
    rows, columns = places[rng.permutation(len(places))[:LOOKED_AT]].T
    height = problem.m // shape.batch
    k = np.arange(problem.k)
    for row, column in zip(np.array_split(rows, 16), np.array_split(columns, 16), strict=True):
        of_a = a[row].astype(np.float64)
        of_b = b[row[:, None] // height * problem.k + k, column[:, None]].astype(np.float64)
        sums, most = (of_a * of_b).sum(1), np.abs(of_a * of_b).sum(1)
        wrong = ~(np.abs(c[row, column] - sums) <= problem.tolerance * most)
        if wrong.any():
            at = int(np.argmax(wrong))
            got, right = c[row[at], column[at]], sums[at]
            text = f"C[{row[at]}, {column[at]}] = {got:.6g}, and {right:.6g} is right ({problem})"
            return Finding("wrong-on-the-shape", (("First wrong element", text),))
    return Finding("passed")


def _seed() -> int:
    return int(drawing.generator().integers(1 << 30))


# ------------------------------------------------------------------------------------- the time


def _times(
    rung: Kernel, shape: Shape, tiling: Tiling, seed: int, lines: bool
) -> Iterator[timed.Time | Finding | str]:
    """The predicted time on each GPU, in a process of its own."""
    kernel = built(rung.build, kernels_on_trial.PARAMETERS, (tiling,), integrity.parts())
    if isinstance(kernel, Finding):
        yield kernel
        return
    mine = replace(rung, build=lambda tiling: kernel)
    try:
        for name in GPUS:
            drawn = on_drawn_operands(mine, seed)
            if shape.batch == 1 and name == GPUS[0]:
                missing = left_out(drawn, shape.problem, tiling)
                if missing.diagnosis != "passed":
                    yield missing
                    return
            yield forecast(drawn, shape, tiling, name, seed, lines and name == GPUS[0])
    except Exception as error:
        yield timed.refused(error)


def on_drawn_operands(rung: Kernel, seed: int) -> Kernel:
    """The rung with random operands, the same each time it is made, wherever its code is executed.

    What is executed of a rung is kept: whoever asks for the same one again gets it at once.
    """
    rng = np.random.default_rng(seed)

    def operands(problem: Gemm, tiling: Tiling, a: Any, b: Any) -> tuple:
        return tuple(shapes.filled(x.shape, rng).copy() for x in (a, b))

    return replace(rung, operands=operands)


def left_out(rung: Kernel, problem: Gemm, tiling: Tiling) -> Finding:
    """Whether the code does an FMA for each product, at each k that a forecast of it rests on.

    A long k is predicted by the line through two shorter ones. So the FMAs between these count as
    well as those of each: who does more than is needed at the shorter one makes the line flatter.
    A product and an addition apart are as good as an FMA.
    """
    from gemmlab.compiled.forecast.rungs import execute_rung

    grid, _ = rung.launch(problem, tiling, device(GPUS[0]))
    each = math.prod(tiling.grid(problem)) / math.prod(grid) * tiling.block[0] * tiling.block[1]
    rounds = execute_rung(problem, GPUS[0], rung, tiling)
    done = {0: 0.0} | {k: fmas(executed) for k, executed in sorted(rounds.items())}
    for (k, fewer), (longer, more) in pairwise(done.items()):
        if more - fewer < (longer - k) * each:
            text = (
                f"from k = {k} to {longer} a block does {more - fewer:,.0f} FMAs more, and "
                f"{(longer - k) * each:,.0f} products"
            )
            return Finding("work-left-out", (("Found", text),))
    return Finding("passed")


def fmas(executed: Executed) -> float:
    """Count the FMAs in float32 of a block, the mean of those that were executed."""
    code = executed.code.instructions
    times = sum(
        np.bincount(stream.instructions, minlength=len(code))
        for block in executed.blocks(cold=False)
        for stream in block
    )
    found: Counter[str] = Counter()
    for one, count in zip(code, times.tolist(), strict=True):
        found[one.opcode.partition(".")[0]] += count
    apart = min(found["FMUL"], found["FADD"])
    return WARP * (found["FFMA"] + apart) / executed.count


def forecast(
    rung: Kernel, shape: Shape, tiling: Tiling, gpu: str, seed: int, lines: bool = False
) -> timed.Time:
    """The predicted time of a rung on a shape and a GPU; a batch is drawn by the seed."""
    from gemmlab.compiled.forecast.kernel import predict_time
    from gemmlab.compiled.forecast.rungs import predict_rung
    from gemmlab.compiled.forecast.telling import sentence

    p, rng = shape.problem, np.random.default_rng(seed)
    grid, block = rung.launch(p, tiling, device(gpu))
    function, c = rung.function(p, tiling), np.zeros((p.m, p.n), np.float32)
    one, zero = np.float32([1, 0])
    if shape.batch == 1:
        found = predict_rung(p, gpu, rung, tiling)
        a, b = np.zeros((p.m, p.k), np.float32), np.zeros((p.k, p.n), np.float32)
    else:
        a, b = (shapes.filled(s, rng).copy() for s in ((p.m, p.k), (shape.batch * p.k, p.n)))
        found = predict_time(function, grid, block, one, a, b, zero, c, device=gpu)
    told = dearest(found, function, block, (one, a, b, zero, c)) if lines else ()
    return timed.Time(found.seconds, sentence(found), told)


def dearest(
    found: Forecast, function: Callable, block: Sequence[int], arguments: tuple
) -> tuple[tuple[str, float], ...]:
    """The lines of a kernel that cost most issue slots, used or waited for, and their shares."""
    from gemmlab.compiled.forecast.telling import lines
    from gemmlab.compiled.sass.compiling import with_places

    target = name_of(device(found.device).compute_capability)
    code, places = with_places(function, arguments, target, launch_bounds=math.prod(block))
    if [i.opcode for i in code.instructions] != [i.opcode for i in found.listing.instructions]:
        return ()
    costs = lines(found.result, (places.get(i.address, ()) for i in code.instructions))
    own = function.__code__.co_filename  # of what has no file Numba makes one in this folder
    at = [(one.place, one.share) for one in costs if one.place]
    files = [own if Path(place.file) == Path(own).absolute() else place.file for place, _ in at]
    told = [
        (linecache.getline(file, place.number).strip(), share)
        for file, (place, share) in zip(files, at, strict=True)
    ]
    return tuple((text, share) for text, share in told if text)[:LINES]
