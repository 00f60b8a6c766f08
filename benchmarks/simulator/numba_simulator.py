"""What Numba's own simulator makes of the realistic kernels and of the wrong ones.

    python -m benchmarks.simulator.numba_simulator [--again] [NAME ...]

Each runs apart, in a Python with ``NUMBA_ENABLE_CUDASIM=1``, for at most `SECONDS`; what came out
is kept in `recorded/numba_simulator.json`, with versions and date, and the hash of its source. The
guide (`book/simulator.md`) puts it beside what this simulator says. What is kept is left as it is,
unless its source was edited since, or with --again.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import platform
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import numpy as np

from benchmarks import ROOT
from benchmarks.fingerprint import fingerprint
from benchmarks.hardware.check import Result
from benchmarks.hardware.store import read, write

RECORDED = Path(__file__).parent / "recorded" / "numba_simulator"
SECONDS = 60
AT_ONCE = 2

RIGHT = "right"
WRONG = "wrong result"  # and nothing is said
RAISED = "raised"
ENDLESS = "does not end"


def recorded() -> dict[str, Result]:
    """What was recorded, by the name of a realistic case or of a wrong kernel."""
    return read(RECORDED)


def files() -> dict[str, Path]:
    """The file of every kernel that is run; of a realistic case, that of its topic."""
    from benchmarks.samples.realistic import CASES
    from benchmarks.samples.wrong_kernels import FILES

    topics = {name: Path(inspect.getfile(case)) for name, case in CASES.items()}
    return topics | {path.stem: path for path in FILES}


# --------------------------------------------------------------------------- in Numba's simulator


def numbas() -> ModuleType:
    """Numba's simulator, which is `gemmlab.cuda` to all that is imported from now on."""
    from numba import config, cuda

    import gemmlab

    assert config.ENABLE_CUDASIM
    gemmlab.cuda = cuda
    return cuda


def results(name: str) -> Iterator[bool]:
    """Run a kernel in Numba's simulator: whether each of its results is right."""
    from benchmarks.samples.right_kernels import trials  # with kernels of gemmlab's own `cuda`

    cuda = numbas()
    from benchmarks.samples.realistic import CASES, is_right
    from benchmarks.samples.wrong_kernels import FILES, load

    if name in CASES:

        def launch(kernel, grid, block, *arguments, shared_bytes=0):
            kernel[grid, block, 0, shared_bytes](*map(writeable, arguments))

        yield is_right(CASES[name](launch))
        return
    [wrong] = [load(path) for path in FILES if path.stem == name]
    kernel = cuda.jit(wrong.kernel)
    for trial in trials(wrong.BASE, getattr(wrong, "launch", None)):
        kernel[trial.grid, trial.block, 0, trial.shared_bytes](*trial.arguments)
        yield bool(trial.is_right())


def writeable(argument: object) -> object:
    """An argument that can be written to, as Numba's simulator does with every array at the end."""
    protected = isinstance(argument, np.ndarray) and not argument.flags.writeable
    return argument.copy() if protected else argument


def outcome(name: str) -> dict[str, object]:
    """How a kernel ended, what was said, and at which line of its file."""
    try:
        return {"outcome": RIGHT if all(results(name)) else WRONG}
    except Exception as error:
        file = files()[name]
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == file]
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        return {"outcome": RAISED, "said": said, "line": lines[-1] if lines else None}


# ------------------------------------------------------------------------------------- apart


def apart(name: str) -> dict[str, object]:
    """The same in a process of its own."""
    run = [sys.executable, "-m", "benchmarks.simulator.numba_simulator", "--apart", name]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    try:
        done = subprocess.run(
            run, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"outcome": ENDLESS, "seconds": SECONDS}
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--again", action="store_true", help="run what is recorded, too")
    parser.add_argument("--apart", metavar="NAME", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.apart:
        print("\n" + json.dumps(outcome(arguments.apart)))
        os._exit(0)  # threads of a block that a fault has left waiting do not end

    hashes = {name: fingerprint(path.read_text("utf-8")) for name, path in files().items()}
    known = {n: r for n, r in recorded().items() if r.measured["source_sha256"] == hashes.get(n)}
    wanted = arguments.names or list(hashes)
    todo = [name for name in wanted if arguments.again or name not in known]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, measured in zip(todo, pool.map(apart, todo), strict=True):
            origin = {
                "python": platform.python_version(),
                **{p.replace("-", "_"): version(p) for p in ("numpy", "numba", "numba-cuda")},
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            known[name] = Result(name, {**measured, "source_sha256": hashes[name]}, origin)
            print(f"{name:<50} {measured['outcome']}  {measured.get('said', '')}", flush=True)
            write(RECORDED, (known[n] for n in hashes if n in known))


if __name__ == "__main__":
    main()
