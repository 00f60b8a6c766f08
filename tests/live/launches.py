"""Counters, hazards and the bits of results of kernels on the simulated GPU.

    python -m tests.live.launches OUT [SEED [rungs|trials|integers]]

Every rung of the ladders, right and wrong kernels of the tests, and drawn ones that compute with
integers of all widths. What this program writes in Pyodide and here has to be the same
(`python -m benchmarks.live` compares).
"""

# ruff: noqa: B023 (`note` calls what it is given at once)

import linecache
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.live.told import Results
from gemmlab import Gemm, kernels, simulate
from gemmlab.kernels import GPU, Kernel
from gemmlab.measure.backends import simulator
from gemmlab.simt import Report, cuda
from tests.simt import suspicious
from tests.simt.suspicious import (
    right_in_blocks,
    right_in_grids,
    wrong_in_blocks,
    wrong_in_grids,
    wrong_in_memory,
    wrong_in_warps,
)

TRIALS = (
    *wrong_in_blocks.WRONG, *wrong_in_warps.WRONG, *wrong_in_grids.WRONG, *wrong_in_memory.WRONG,
    *right_in_blocks.RIGHT, *right_in_grids.RIGHT,
)  # fmt: skip
SIZES = (64, 64, 64), (96, 72, 40), (130, 66, 33)
INTEGERS = "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
ONE = ("-{}", "~{}", "abs({})", "{} ** 2", "{} * {}", "cuda.popc({})", "cuda.clz({})",
       "int64({})", "uint32({})", "int32({})", "float64({})", "{} + 2147483648", "{} * 65536",
       "{} - 4294967296", "{} // 3", "{} % 7", "{} << 5", "{} >> 3", "float32({})", "min({}, 100)",
       "max({}, -5000000000)", "{} + t * 1048576", "t * 2147483647 + {}", "{} ** 3",
       "int64({}) * 4294967297", "cuda.brev(uint32({}))", "cuda.ffs({})")  # fmt: skip
TWO = ("{} + {}", "{} - {}", "{} * {}", "{} // ({} | 1)", "{} % ({} | 1)", "{} & {}", "{} | {}",
       "{} ^ {}", "{} << ({} & 31)", "{} >> ({} & 31)", "{} < {}", "{} == {}", "{} / ({} | 1)",
       "min({}, {})", "max({}, {})", "{} if {} else t", "cuda.selp(t > 3, {}, {})")  # fmt: skip
LANES = 40


def told_report(report: Report) -> dict[str, Any]:
    """Tell counters, lines and hazards of a launch."""
    lines = {str(line): dict(counts) for line, counts in sorted(report.by_line.items())}
    return {
        "counters": dict(report.counters),
        "instructions": dict(report.instructions),
        "hazards": [(found.kind, found.line, found.message) for found in report.hazards],
        "notes": [str(note) for note in report.notes],
        "lines": {line: {str(k): v for k, v in of.items()} for line, of in lines.items()},
    }


def rungs(rng: random.Random, out: Results) -> None:
    """Every rung, at three small sizes, in one of its layouts each."""
    for kernel in (*GPU, *kernels.POLICIES):
        for size in SIZES:
            form = kernel.arithmetic[0]._asdict() | {"layout": rng.choice(kernel.layouts)}
            problem, tiling = Gemm(*size, alpha=1.5, beta=0.5, **form), small(kernel)
            out.note(f"rung {kernel.name} {size}", lambda: _run(kernel, problem, tiling))


def small(kernel: Kernel) -> Any:
    """Return the tiling of a rung that is simulated, with k in 3 parts where it is divided."""
    tiling = kernel.choose(None)
    return tiling if tiling.split == 1 else type(tiling)(**{**vars(tiling), "split": 3})


def _run(kernel: Kernel, problem: Gemm, tiling: Any) -> tuple:
    kernel.check_problem(problem)
    a, b, c = problem.operands()
    (alpha, beta), result = problem.scalars(), c.copy()
    found = simulator.launches(
        kernel, problem, tiling, (alpha, a, b, beta, result), on_hazard="collect"
    )
    return dict(found), result


def trials(rng: random.Random, out: Results) -> None:
    """The tests' right and wrong kernels, with their hazards."""
    for trial in TRIALS:
        for kernel in (trial.kernel, *([suspicious.twin(trial.kernel)] if trial.kind else [])):
            mended = "" if kernel is trial.kernel else ", mended"
            out.note(f"trial {trial.name}{mended}", lambda: _tried(trial, kernel))


def _tried(trial: suspicious.Trial, kernel: Callable) -> tuple:
    given = trial.arguments()
    report = simulate(kernel, trial.grid, trial.block, *given, shared_bytes=trial.shared_bytes,
                      on_hazard="collect", max_steps=5000)  # fmt: skip
    return told_report(report), [x for x in given if isinstance(x, np.ndarray)]


def integers(rng: random.Random, out: Results) -> None:
    """Arithmetic on integers of each type, beside another type, with results that wrap."""
    for i in range(300):
        x, y = rng.choice(INTEGERS), rng.choice(INTEGERS)
        text = rng.choice(ONE).format("x", "x") if i % 2 else rng.choice(TWO).format("x", "y")
        if rng.random() < 0.4:
            text = rng.choice(TWO).format(f"({text})", rng.choice("xyt"))
        given = edges(rng, x), edges(rng, y)
        out.note(f"integers {i} {x} {y} {text}", lambda: _computed(text, given))


def edges(rng: random.Random, name: str) -> np.ndarray:
    """Draw numbers of a type, those at its ends among them."""
    info = np.iinfo(name)
    least, most = int(info.min), int(info.max)
    known = [0, 1, 2, 3, 7, 100, most, most - 1, least, least + 1, most // 2, most // 3 + 1]
    drawn = (rng.choice((rng.choice(known), rng.randint(least, most))) for _ in range(LANES))
    return np.array(list(drawn), name)


def _computed(text: str, given: tuple[np.ndarray, np.ndarray]) -> tuple:
    lines = (
        "def kernel(x_, y_, whole, wide, real):\n",
        "    t = cuda.grid(1)\n",
        "    if t < x_.size:\n",
        "        x, y = x_[t], y_[t]\n",
        f"        v = {text}\n",
        # An integer of a float that does not fit is undefined in C, and differs among machines.
        "        whole[t] = int64(v) if abs(v) < 9000000000000000000 else 0\n",
        "        wide[t] = uint32(whole[t])\n",
        "        real[t] = v\n",
    )
    file = f"<integers {text}>"
    linecache.cache[file] = (len("".join(lines)), None, list(lines), file)
    types = {name: getattr(np, name) for name in (*INTEGERS, "float32", "float64")}
    scope = {**types, "cuda": cuda}
    exec(compile("".join(lines), file, "exec"), scope)
    results = (np.zeros(LANES, kind) for kind in (np.int64, np.uint32, np.float64))
    results = tuple(results)
    report = simulate(scope["kernel"], 2, 32, *given, *results, on_hazard="collect")
    return told_report(report), results


PARTS = rungs, trials, integers


def main() -> None:
    """Launch all of them and write what they did."""
    out, seed = Results(), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for part in PARTS:
        if part.__name__ not in (sys.argv[3:] or [part.__name__]):
            continue
        part(random.Random(f"{part.__name__} {seed}"), out)
        out.write(sys.argv[1])


if __name__ == "__main__":
    main()
