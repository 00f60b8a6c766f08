"""Write the tables of the user's guide, `book/simulator.md`, from the collections of kernels.

    python -m benchmarks.simulator.guide

What Numba's simulator and compute-sanitizer make of the same kernels is recorded, in
`benchmarks/simulator/recorded` and `benchmarks/hardware/recorded`.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from numba.cuda.simulator import kernelapi

from benchmarks import ROOT
from benchmarks.hardware.checks.sanitizer import ALONE, TOOLS, fault_line
from benchmarks.hardware.store import recorded as recorded_on_gpu
from benchmarks.page_tables import table, write
from benchmarks.samples.host_scripts import SCRIPTS
from benchmarks.samples.numba_examples import EXAMPLES, FOUND, LEFT_OUT, RIGHT
from benchmarks.samples.realistic import BENIGN, CASES, is_right, simulated
from benchmarks.samples.wrong_kernels import FILES, MAX_STEPS, findings, load
from benchmarks.simulator import by_name, numba_simulator as numbas, numba_tests, speed
from benchmarks.simulator.work import WORKS
from gemmlab.simt import Hazard
from gemmlab.simt.syntax.names import INTRINSICS

PAGE = ROOT / "book" / "simulator.md"
WRONG = {path.stem: load(path) for path in FILES}
DEVICE = "h200"
VALUES = "values"  # what `EXPECT` says where no rule of memory is broken


# --------------------------------------------------------------------------- realistic kernels


@cache
def right_here(name: str) -> bool:
    """Whether the simulated GPU gives a right result, and finds no fault."""
    result, reports = simulated(CASES[name])
    kinds = {hazard.kind for report in reports for hazard in report.hazards}
    return is_right(result) and kinds == BENIGN.get(name, set())


def topic_of(name: str) -> str:
    """The topic of a case."""
    return name.partition(".")[0]


def realistic() -> str:
    """By topic: how many kernels are right here and in Numba's simulator, and how many are not."""
    there = {name: numbas.recorded()[name].measured["outcome"] for name in CASES}
    rows, total = [], Counter()
    for topic in dict.fromkeys(map(topic_of, CASES)):
        own = [name for name in CASES if topic_of(name) == topic]
        counts = Counter(there[name] for name in own)
        counts["all"], counts["here"] = len(own), sum(map(right_here, own))
        rows.append([topic.replace("_", " "), *_cells(counts)])
        total += counts
    rows.append(["**all**", *(f"**{cell}**" for cell in _cells(total))])
    header = ["kernels", "number", "right here", "right in Numba's simulator"]
    header += ["stopped there", "wrong there", f"over {numbas.SECONDS} s there"]
    return table(header, rows)


def _cells(counts: Counter) -> list[int]:
    outcomes = (numbas.RIGHT, numbas.RAISED, numbas.WRONG, numbas.ENDLESS)
    return [counts[key] for key in ("all", "here", *outcomes)]


def stopped() -> str:
    """What Numba's simulator lacks for the realistic kernels that it stops."""
    said = Counter(
        re.sub(r"^(\w+): (tid=.*?\]: )?", r"\1: ", result.measured["said"])
        for name, result in numbas.recorded().items()
        if name in CASES and result.measured["outcome"] == numbas.RAISED
    )
    missing = re.compile(r".*FakeCUDA\w+' object has no attribute '(\w+)'")
    names = Counter({m[1]: n for text, n in said.items() if (m := missing.match(text))})
    listed = ", ".join(f"`{name}` ({count})" for name, count in names.most_common())
    return (
        f"Of the {said.total()} kernels that Numba's simulator stops, {names.total()} use a name "
        f"that it does not have: {listed}."
    )


def programs() -> str:
    """Host programs and examples of the manual that run."""
    became = Counter(outcome for outcome, _ in EXAMPLES.values())
    return (
        f"{len(SCRIPTS)} whole host programs in the style of Numba's manual run with their import "
        "changed, and under `gemmlab simulate` with nothing changed: "
        + ", ".join(f"`{script.stem}`" for script in SCRIPTS)
        + f". Of the {len(EXAMPLES)} examples that Numba's own manual is made of, {became[RIGHT]} "
        f"are right, {became[FOUND]} has a fault that is found, and {became[LEFT_OUT]} have no "
        "kernel in Python "
        "([the list](numba_examples.md))."
    )


# ------------------------------------------------------------------------------- wrong kernels


@cache
def found_here(name: str) -> bool:
    """Whether the simulated GPU, or a look at the result, finds a wrong kernel at its line."""
    wrong = WRONG[name]
    launch = getattr(wrong, "launch", None)
    trials = findings(wrong.kernel, wrong.BASE, launch, max_steps=MAX_STEPS)
    found = next(filter(None, trials), None)
    if wrong.EXPECT == VALUES or not isinstance(found, Hazard):
        return found == wrong.EXPECT
    return (found.kind, found.line) == (wrong.EXPECT, fault_line(name))


def found_by_sanitizer(name: str) -> bool:
    """Whether any tool of compute-sanitizer says something of a wrong kernel."""
    known = recorded_on_gpu(DEVICE, "sanitizer")[name].measured
    return any(known[tool]["kinds"] for tool in TOOLS)


def right_on_gpu(name: str) -> bool:
    """Whether the GPU left right results of a wrong kernel when no tool watched."""
    verdicts = recorded_on_gpu(DEVICE, "sanitizer")[name].measured[ALONE]["verdicts"]
    return bool(verdicts) and all(verdicts)


def in_numbas(name: str) -> str:
    """What Numba's simulator makes of a wrong kernel: where it stops, or how it ends."""
    measured = numbas.recorded()[name].measured
    if measured["outcome"] == numbas.RAISED:
        return "at the line" if measured["line"] == fault_line(name) else "elsewhere"
    return measured["outcome"]


def wrong() -> str:
    """By kind of fault: how many wrong kernels each tool finds."""
    by_kind: dict[str, list[str]] = {}
    for name, kernel in WRONG.items():
        by_kind.setdefault(kernel.EXPECT, []).append(name)
    rows, total = [], Counter()
    for kind in sorted(by_kind, key=lambda kind: (kind == VALUES, -len(by_kind[kind]), kind)):
        own = by_kind[kind]
        counts = Counter(map(in_numbas, own))
        counts["all"] = len(own)
        counts["here"] = sum(map(found_here, own))
        counts["sanitizer"] = sum(map(found_by_sanitizer, own))
        counts["on GPU"] = sum(map(right_on_gpu, own))
        name = "the result alone is wrong" if kind == VALUES else f"`{kind}`"
        rows.append([name, *_verdicts(counts)])
        total += counts
    rows.append(["**all**", *(f"**{cell}**" for cell in _verdicts(total))])
    header = ["fault", "kernels", "found here", "compute-sanitizer reports"]
    header += ["stopped by Numba's simulator", "right result there", "right result on an H200"]
    return table(header, rows)


def _verdicts(counts: Counter) -> list[int]:
    stops = counts["at the line"] + counts["elsewhere"]
    others = (counts[key] for key in (numbas.RIGHT, "on GPU"))
    return [counts["all"], counts["here"], counts["sanitizer"], stops, *others]


def hook() -> str:
    """How many wrong kernels look right on the GPU, and who finds them nevertheless."""
    lucky = [name for name in WRONG if right_on_gpu(name)]
    there = sum(in_numbas(name) == numbas.RIGHT for name in lucky)
    return (
        f"**{len(lucky)} of {len(WRONG)} wrong kernels give the right result on an H200.** They "
        "lack a barrier, a fence or a bound, for instance, and this GPU, in this run, forgave it. "
        f"compute-sanitizer reports {sum(map(found_by_sanitizer, lucky))} of the {len(lucky)}; "
        f"Numba's own simulator gives the right result for {there}, too. "
        f"The simulated GPU of `gemmlab` finds {sum(map(found_here, lucky))}, each at its line, "
        "without a GPU. What else does it find, and what does it not run?"
    )


def silent() -> str:
    """The wrong kernels that look right to everybody else."""
    names = [
        name
        for name in WRONG
        if in_numbas(name) == numbas.RIGHT
        and right_on_gpu(name)
        and not found_by_sanitizer(name)
        and found_here(name)
    ]
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        f"{len(names)} wrong kernels give the right result in Numba's simulator and on the H200, "
        f"and compute-sanitizer reports nothing of them: {listed}."
    )


def intrinsics() -> str:
    """How many names of `cuda` kernels may use, and which of them Numba's simulator lacks."""
    module = kernelapi.FakeCUDAModule(*[kernelapi.Dim3(1, 1, 1)] * 2, 0)
    lacks = [path for path in INTRINSICS if not has(module, path)]
    return (
        f"Numba's simulator lacks {len(lacks)} of these {len(INTRINSICS)} names: "
        + ", ".join(f"`{path}`" for path in lacks)
        + "."
    )


def has(module: kernelapi.FakeCUDAModule, path: str) -> bool:
    """Whether Numba's simulator gives kernels a name; some are there in threads alone."""
    namespace, _, name = path.rpartition(".")
    owner = type(getattr(module, namespace)) if namespace else type(module)
    return hasattr(owner, name) or name in vars(module)


# ------------------------------------------------------------------------ numba-cuda's own tests


def numbas_tests() -> str:
    """What comes out of numba-cuda's own tests, by what they are about."""
    found = numba_tests.counts()
    rows, whole = [], Counter()
    for name in numba_tests.COUNTED:
        rows.append([name, *_test_cells(found[name])])
        whole += found[name]
    rows.append(["**these**", *(f"**{cell}**" for cell in _test_cells(whole))])
    for name in (numba_tests.COMPILER, numba_tests.LINKED, numba_tests.DRIVER):
        rows.append([f"not counted: {name}", *_test_cells(found[name])])
    header = ["tests of numba-cuda", "number", "passed", "refused", "failed", "left out", "share"]
    return table(header, rows)


def _test_cells(counts: Counter) -> list[object]:
    outcomes = [counts[name] for name in ("tests", "passed", "refused", "failed", "left out")]
    return [*outcomes, f"{counts['passed'] / (counts['tests'] - counts['left out']):.0%}"]


def reasons_table() -> str:
    """Why tests that count did not pass."""
    rows = [[reason, count] for reason, count in numba_tests.reasons().most_common()]
    return table(["why one of these does not pass", "tests"], rows)


def tests_origin() -> str:
    """Where the outcomes come from, and how many right tests have a hazard."""
    results = numba_tests.recorded().values()
    first = next(iter(results)).origin
    suspicious = sum(len(result.measured.get("hazards", {})) for result in results)
    return (
        f"Tests of numba-cuda {first['numba_cuda']}, Python {first['python']}, NumPy "
        f"{first['numpy']}, {first['date'][:10]}. In {suspicious} tests that pass, the simulated "
        "GPU reports a hazard beside."
    )


# ----------------------------------------------------------------------------- side by side


def beside() -> str:
    """The three tools in a few lines."""
    right = sum(r.measured["outcome"] == numbas.RIGHT for n, r in numbas.recorded().items()
                if n in CASES)  # fmt: skip
    stops = sum(in_numbas(name) in ("at the line", "elsewhere") for name in WRONG)
    reported = sum(map(found_by_sanitizer, WRONG))
    here = sum(map(found_here, WRONG))
    rows = [
        ["needs", "NumPy", "`numba-cuda`", "an NVIDIA GPU and the CUDA Toolkit"],
        [f"{len(CASES)} realistic kernels: right", sum(map(right_here, CASES)), right, "not tried"],
        [f"{len(WRONG)} wrong kernels: found", here, f"{stops} stop", reported],
        ["says", "line, threads, element, both accesses", "what Python raises",
         "line, threads, address"],
        ["races", "shared and global memory", "no", "shared memory (`racecheck`)"],
        ["counters", "requests, sectors, wavefronts, conflicts, instructions", "no",
         "no ([Nsight Compute](hardware.md) has them)"],
        ["warps", "shuffles, votes, `syncwarp`", "no", "the GPU's own"],
        ["blocks that wait for blocks", "yes, and deadlocks are found", "no", "the GPU's own"],
        ["number types", "Numba's, bit by bit", "NumPy's", "the GPU's own"],
        ["time of a kernel", "predicted for an H200", "no", "no"],
    ]  # fmt: skip
    return table(["what", "`gemmlab`", "Numba's simulator", "compute-sanitizer"], rows)


def origin() -> str:
    """Where what is recorded comes from."""
    first = next(iter(numbas.recorded().values())).origin
    gpu = next(iter(recorded_on_gpu(DEVICE, "sanitizer").values())).origin
    versions = ", ".join(f"{key} {value}" for key, value in first.items() if key != "date")
    return (
        f"Numba's simulator: {versions}, {first['date'][:10]}. compute-sanitizer "
        f"{gpu['compute_sanitizer']}: {gpu['device']}, driver {gpu['driver']}, {gpu['date'][:10]}."
    )


# ----------------------------------------------------------------------------------- speed


def per_turn(cost: dict[str, float]) -> float:
    """Time for each execution of a work's innermost statement [s]."""
    return cost["wall"] / cost["turns"]


def speed_table() -> str:
    """What the works of the benchmark cost here, and a turn of them in Numba's simulator."""
    rows = []
    for name, result in speed.recorded().items():
        here, there = (result.measured[where] for where in ("here", "there"))
        what = WORKS[name].launch.__doc__.splitlines()[0].rstrip(".")
        costs = f"{here['wall']:.2f} s", f"{here['bytes'] / 1e6:.0f} MB"
        turns = (duration(per_turn(cost)) for cost in (here, there))
        ratio = f"{short(per_turn(there) / per_turn(here))} ×"
        rows.append([f"`{name}`: {what}", f"{here['turns']:,}", *costs, *turns, ratio])
    header = ["work", "turns", "time", "memory", "a turn", "a turn in Numba's simulator", "as fast"]
    return table(header, rows)


def duration(seconds: float) -> str:
    """A time with a unit in which it is 1 or more."""
    unit, size = next((u, s) for u, s in (("ms", 1e-3), ("µs", 1e-6), ("ns", 0)) if seconds >= s)
    return f"{short(seconds / (size or 1e-9))} {unit}"


def short(number: float) -> str:
    """A number of two digits or more, as a table shows it."""
    rounded = float(f"{number:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.1f}"


def speed_origin() -> str:
    """The works that Numba's simulator does faster, and where the times come from."""
    results = speed.recorded()
    slower = [
        f"`{name}`"
        for name, result in results.items()
        if per_turn(result.measured["here"]) > per_turn(result.measured["there"])
    ]
    origins = [dict(result.origin) for result in results.values()]
    day = max(origin.pop("date") for origin in origins)[:10]
    told = dict.fromkeys(
        ", ".join(f"{key.replace('_', '-')} {value}" for key, value in origin.items())
        for origin in origins
    )
    which = f"{len(slower)} of {len(results)} works: {', '.join(slower)}"
    return (
        f"Numba's simulator is faster in {which if slower else f'none of {len(results)} works'}. "
        f"The quickest of {speed.TIMES} runs each: "
        f"{'; '.join(told)}, {day}."
    )


def by_name_table() -> str:
    """What programs of others did by both names of the simulated GPU."""
    found = by_name.counts()
    rows = [[what, found[what]] for what in sorted(found, key=lambda what: -found[what])]
    header = ["programs of others, by `numba.cuda` and by `numba_cuda_mlir.cuda`", "number"]
    return table(header, [*rows, ["**all**", f"**{found.total()}**"]])


TABLES = {
    "beside": beside,
    "by-name": by_name_table,
    "realistic": realistic,
    "stopped": stopped,
    "programs": programs,
    "wrong": wrong,
    "hook": hook,
    "silent": silent,
    "intrinsics": intrinsics,
    "numba-tests": numbas_tests,
    "numba-tests-reasons": reasons_table,
    "numba-tests-origin": tests_origin,
    "simulators-origin": origin,
    "speed": speed_table,
    "speed-origin": speed_origin,
}

if __name__ == "__main__":
    write(PAGE, TABLES)
