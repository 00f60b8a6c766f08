"""Wrong kernels, and right ones, under each tool of compute-sanitizer.

Right are the kernels that the wrong ones of `benchmarks/samples/wrong_kernels` were made from, all
rungs of the ladder, and products and matrices made of fragments: no tool may find anything in them,
and their results must be right. Of a wrong kernel, what a tool says must name the line of the
fault, and be what was recorded on this device. One process for each kernel and tool, so that a
kernel that breaks its process or never ends spoils no other's diagnosis.
"""

import json
import re
from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.hardware import machine, store
from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.samples.right_kernels import FRAGMENTS, LADDER, PROBLEMS, PRODUCTS, RIGHT, trials
from benchmarks.samples.wrong_kernels import FILES, load
from gemmlab import Gemm
from gemmlab.device import Device
from gemmlab.instructions import host
from gemmlab.kernels import Kernel
from gemmlab.measure.backends import gpu

NAME, PROGRAM = "sanitizer", "compute-sanitizer"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
OPTIONS = {"memcheck": ("--destroy-on-device-error", "kernel")}
ALONE = "none"  # the key of a run with no tool
SECONDS = 120  # a process that takes longer is ended: its kernel does not end
ENDLESS = 30  # the same for a kernel that is known not to
ASKING = "cuGetProcAddress"  # how the bindings of CUDA ask a driver for what it may not have
SAID = r"(Error|Warning|Invalid|Uninitialized|Barrier|Divergent|Race|Program hit)"

COMPILED = "it is compiled"  # what a kernel's program prints before each launch
# What kernels call and release 0.6.0 of numba-cuda-mlir does not compile.
UNKNOWN = {
    "threadfence": "numba-cuda-mlir does not know cuda.threadfence",
    "threadfence_block": "numba-cuda-mlir does not know cuda.threadfence_block",
    "cas": "numba-cuda-mlir makes invalid code of a compare-and-swap with plain numbers",
}

RIGHT_NAMES = {f"right_{base}": base for base in RIGHT}
WRONG = {path.stem: path for path in FILES}


def never_ends(piece: str) -> bool:
    return piece in WRONG and load(WRONG[piece]).EXPECT in ("step-limit", "deadlock")


def pieces(device: Device) -> Mapping[str, str]:
    """Every kernel; those that do not end come last: they hold the GPU until they are ended."""
    names = sorted([*RIGHT_NAMES, *WRONG], key=never_ends)
    return {name: refusal(name, device) for name in names}


def refusal(name: str, device: Device) -> str:
    base = RIGHT_NAMES.get(name, "")
    if machine.launches_by_mlir() and (reason := unknown_to_mlir(name)):
        return reason
    if base in PRODUCTS and machine.tensor_core(device) != "sm_90":
        return "the right bits of a product are known for sm_90"
    if base in FRAGMENTS and device.compute_capability < (8, 0):
        return "matrices made from rules need compute capability 8.0"
    return ""


def unknown_to_mlir(name: str) -> str:
    """Why release 0.6.0 of numba-cuda-mlir does not compile a kernel, "" where it does.

    tests/instructions/test_numba_cuda_mlir.py fails when one of the reasons is mended.
    """
    kernel = load(WRONG[name]).kernel if name in WRONG else RIGHT.get(RIGHT_NAMES[name])
    code = getattr(kernel, "__code__", None)  # a rung has none
    names = () if code is None else code.co_names
    return next((reason for called, reason in UNKNOWN.items() if called in names), "")


# ------------------------------------------------------------------------------- under the tool


def launch(piece: str) -> None:
    """Run every trial of a kernel; print whether its results were right."""
    base = RIGHT_NAMES.get(piece, "")
    verdicts = of_a_rung(LADDER[base]) if base in LADDER else of_a_kernel(piece)
    print("verdicts", json.dumps(list(verdicts)), flush=True)


def of_a_kernel(name: str) -> Iterator[bool]:
    """Whether each trial of a kernel gives the right result."""
    cuda = host.cuda()
    if name in WRONG:
        wrong = load(WRONG[name])
        function, base, choose = wrong.kernel, wrong.BASE, getattr(wrong, "launch", None)
    else:
        function, base, choose = RIGHT[RIGHT_NAMES[name]], RIGHT_NAMES[name], None
    for trial in trials(base, choose):
        compiled = cuda.jit(lineinfo=True)(trial.kernel or function)
        on_device = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in trial.arguments]
        compiled.compile(tuple(map(compiled.typeof_pyval, on_device)))
        print(COMPILED, flush=True)
        compiled[trial.grid, trial.block](*on_device)
        cuda.synchronize()
        on_device[-1].copy_to_host(trial.arguments[-1])
        yield bool(trial.is_right())


def of_a_rung(rung: Kernel) -> Iterator[bool]:
    """The same of a rung with its own tiling, compiled as for a measurement."""
    # Several of the largest tiles too, aligned and not.
    for problem in (*PROBLEMS, Gemm(150, 272, 40), Gemm(131, 259, 33, alpha=2, beta=-0.5)):
        operands = problem.operands()
        runner = gpu.Runner(rung, problem, rung.default, gpu.Matrices(problem))
        result = runner.compute(problem, operands)
        yield bool(problem.error(result, operands) <= problem.tolerance)


# ------------------------------------------------------------------------------- what it says


def measure(piece: str, device: Device) -> Measured:
    """What each tool, and none, says of a kernel."""
    ways = (ALONE, *TOOLS)
    ran = machine.run(
        (command(piece, way) for way in ways), ENDLESS if never_ends(piece) else SECONDS
    )
    return {
        way: {"ended": one.status is not None, **diagnosis(one.text, piece)}
        for way, one in zip(ways, ran, strict=True)
    }


def command(piece: str, way: str) -> list[str]:
    options = ["--tool", way, "--print-limit", "40", *OPTIONS.get(way, ())]
    return machine.under("" if way == ALONE else PROGRAM, options, NAME, piece)


def diagnosis(text: str, piece: str) -> dict:
    """The tool's errors, the lines of the kernel's own file that they name, and the results.

    compiled : whether there was a launch; a wrong kernel that is none has nothing to be found
    """
    said = [line.lstrip("= ").rstrip() for line in text.splitlines() if line.startswith("=====")]
    said = [line for line in said if ASKING not in line]
    kinds = []
    for line in said:
        kind = re.sub(r"\b\d+ bytes|\(.*|: .*| of size .*", "", line).strip()
        if re.match(SAID, line) and kind not in kinds:
            kinds.append(kind)
    places = re.findall(rf"{piece if piece in WRONG else ''}\.py:(\d+)", text)
    verdicts = re.search(r"verdicts (\[.*\])", text)
    return {
        "compiled": COMPILED in text,
        "kinds": kinds,
        "lines": sorted({int(p) for p in places}),
        "summary": [line for line in said if "SUMMARY" in line],
        "verdicts": json.loads(verdicts[1]) if verdicts else None,
    }


def fault_line(piece: str) -> int:
    """The line of a wrong kernel's file that is marked `# fault`."""
    lines = WRONG[piece].read_text("utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if "# fault" in line)


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    before = store.recorded(device.name, NAME).get(piece) if piece in WRONG else None
    for way in (ALONE, *TOOLS):
        one, name = measured[way], f"{piece}, {way}"
        if piece in RIGHT_NAMES:
            found.equal(f"{name}: what it says", one["kinds"], [])
            found.holds(one["ended"], f"{name}: it does not end")
            found.holds(one["verdicts"] and all(one["verdicts"]), f"{name}: {one['verdicts']}")
            continue
        found.holds(one.get("compiled", True), f"{name}: it is not compiled")  # older records: none
        if one["kinds"]:
            line = fault_line(piece)
            found.holds(
                line in one["lines"], f"{name}: lines {one['lines']}, the fault's is {line}"
            )
        if before:
            for key in ("ended", "kinds", "lines"):
                found.equal(f"{name}: {key}, recorded", one[key], before.measured[way][key])
    return found


CHECK = Check(
    NAME,
    "wrong and right kernels under compute-sanitizer: what it says, and the line that it names",
    pieces,
    measure,
    compare,
    tool=PROGRAM,
    launch=launch,
    quick=("right_tiled", "tiled_guard_missing"),
)
