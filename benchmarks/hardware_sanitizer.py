"""Run the wrong kernels of tests/support/wrong_kernels, and right ones, under compute-sanitizer.

On a machine with a GPU, for all of them or for those that are named:

    python benchmarks/hardware_sanitizer.py record OUT.jsonl [NAME ...]

Right are the kernels that the wrong ones were made from, and all rungs of the ladder. One process
for each kernel and tool, so that a kernel that breaks its process or never ends spoils no other's
diagnosis. `launch NAME` is what runs under the tool.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gemmlab.kernels import Kernel

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
WORKERS = 12
SECONDS = 60  # a process that takes longer is ended: its kernel does not end


def kernels_on_trial() -> dict[str, tuple]:
    """Name -> (kernel, what it is based on, its launch or None)."""
    from tests.support.right_kernels import RIGHT
    from tests.support.wrong_kernels import FILES, load

    trials = {f"right_{base}": (kernel, base, None) for base, kernel in RIGHT.items()}
    for path in FILES:
        wrong = load(path)
        trials[path.stem] = wrong.kernel, wrong.BASE, getattr(wrong, "launch", None)
    return trials


def launch(name: str) -> None:
    """Run every trial of a kernel; print whether its results were right."""
    from tests.support.right_kernels import LADDER, trials

    base = name.removeprefix("right_")
    verdicts = list(of_the_ladder(LADDER[base]) if base in LADDER else of_a_file(name, trials))
    print("verdicts", json.dumps(verdicts), flush=True)


def of_a_file(name: str, trials: Callable) -> Iterator[bool]:
    """Whether each trial of a kernel gives the right result."""
    from gemmlab.driver import numba_cuda

    cuda = numba_cuda()
    function, base, choose = kernels_on_trial()[name]
    for trial in trials(base, choose):
        compiled = cuda.jit(lineinfo=True)(trial.kernel or function)
        on_device = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in trial.arguments]
        compiled[trial.grid, trial.block](*on_device)
        cuda.synchronize()
        on_device[-1].copy_to_host(trial.arguments[-1])
        yield bool(trial.is_right())


def of_the_ladder(rung: Kernel) -> Iterator[bool]:
    """The same of a rung with its own tiling, compiled as for a measurement."""
    from gemmlab.backends.gpu import Matrices, Runner
    from gemmlab.problem import Gemm
    from tests.support.right_kernels import PROBLEMS

    # Several of the largest tiles too, aligned and not.
    for problem in (*PROBLEMS, Gemm(150, 272, 40), Gemm(131, 259, 33, alpha=2, beta=-0.5)):
        operands = problem.operands()
        runner = Runner(rung, problem, rung.default, Matrices(problem))
        result = runner.compute(problem, operands)
        yield bool(problem.error(result, operands) <= problem.tolerance)


def examine(name: str, tool: str | None) -> dict:
    """What `tool`, or none, says of a kernel."""
    program = [sys.executable, __file__, "launch", name]
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    options = ["--tool", tool, "--print-limit", "40"]
    options += ["--destroy-on-device-error", "kernel"] if tool == "memcheck" else []
    command = program if tool is None else [sanitizer, *options, *program]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        text, ended = running.communicate(timeout=SECONDS)[0], True
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)  # the tool, and the program that it watches
        text, ended = running.communicate()[0], False
    return {"kernel": name, "tool": tool, "ended": ended, **diagnosis(text, name)}


def diagnosis(text: str, name: str) -> dict:
    """The tool's errors, the lines of the kernel's own file that they name, and the results."""
    said = [line.lstrip("= ").rstrip() for line in text.splitlines() if line.startswith("=====")]
    kinds = []
    for line in said:
        kind = re.sub(r"\b\d+ bytes|\(.*|: .*| of size .*", "", line).strip()
        if re.match(r"(Error|Warning|Invalid|Uninitialized|Barrier|Divergent|Race|Program hit)",
                    line) and kind not in kinds:  # fmt: skip
            kinds.append(kind)
    file = "kernels/.*|tiled|naive|right_kernels|warp_gemms" if name.startswith("right_") else name
    places = re.findall(rf"(?:{file})\.py:(\d+)", text)
    verdicts = re.search(r"verdicts (\[.*\])", text)
    summary = [line for line in said if "SUMMARY" in line]
    return {
        "kinds": kinds,
        "lines": sorted({int(p) for p in places}),
        "summary": summary,
        "verdicts": json.loads(verdicts[1]) if verdicts else None,
    }


def provenance() -> dict[str, str]:
    """Device, driver, version of the tool and date."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    device, driver = (
        subprocess.run(query, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    ).split(", ")
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "device": device,
        "driver": driver,
        "compute_sanitizer": re.search(r"Version (\S+)", version)[1],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def record(out: Path, names: list[str]) -> None:
    """Examine everything, or `names` alone, and write one JSON line for each kernel and tool."""
    origin = provenance()
    jobs = [(name, tool) for name in names or kernels_on_trial() for tool in (None, *TOOLS)]
    endless = ("runaway", "never_ends")  # last: they hold the GPU until they are ended
    jobs.sort(key=lambda job: any(word in job[0] for word in endless))
    with ThreadPoolExecutor(WORKERS) as pool, out.open("w", encoding="utf-8") as file:
        for found in pool.map(lambda job: examine(*job), jobs):
            file.write(json.dumps({**found, **origin}) + "\n")
            file.flush()
            if not found["ended"] or found["kinds"]:
                print(found["kernel"], found["tool"], found["kinds"], found["lines"], flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "launch":
        launch(sys.argv[2])
    else:
        record(Path(sys.argv[2]), sys.argv[3:])
