"""Run the tests of numba-cuda itself on the simulated GPU.

python -m benchmarks.simulator.numba_tests [--again] [MODULE ...]
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import types
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

SECONDS = 120  # of a module
FOLDERS = ("core", "cudadrv", "cudapy", "doc_examples", "nocuda", "nrt")


class Real:
    """Finds the parts of the installed numba-cuda that the simulated GPU has none of."""

    def __init__(self, root: str) -> None:
        self.root = root

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if not name.startswith("numba.cuda."):
            return None
        where = [self.root] if name.count(".") == 2 else path
        return importlib.machinery.PathFinder.find_spec(name, where)


def stubs() -> None:
    """Stand in for the package filecheck, which reads compiled code."""
    try:
        importlib.import_module("filecheck.matcher")
        return
    except ImportError:
        pass
    parts = {"": (), ".matcher": ("Matcher",), ".options": ("Options",), ".finput": ("FInput",),
             ".parser": ("Parser", "pattern_for_opts")}  # fmt: skip
    for part, names in parts.items():
        module: Any = types.ModuleType(f"filecheck{part}")
        module.__path__ = []
        for name in names:
            setattr(module, name, object)
        sys.modules[module.__name__] = module


def run_module(name: str) -> None:
    """Run one module's tests here; a line of JSON for each."""
    warnings.simplefilter("ignore")
    stubs()
    out = sys.stdout
    import numba.cuda
    import numba.cuda.testing as testing
    import numba.cuda.tests.support

    for extra in ("core.errors", "core.ir", "typing.typeof", "np.numpy_support", "extending",
                  "vector_types", "launchconfig", "compiler", "descriptor", "cudadrv.nvvm"):  # fmt: skip
        importlib.import_module(f"numba.cuda.{extra}")
    root = str(Path(numba.cuda.__file__).parent)
    kept = {n: m for n, m in sys.modules.items() if n.startswith("numba.cuda.")}
    config = numba.cuda.config

    from gemmlab.programs.running import in_place_of_numba
    from gemmlab.simt import cuda
    from gemmlab.simt.cuda import devices

    def skip_on_cudasim(reason: str) -> Any:
        def mark(thing: Any) -> Any:
            thing.without_simulator = reason
            return thing

        return mark

    testing.skip_on_cudasim = skip_on_cudasim
    testing.cc_X_or_above = lambda major, minor: (
        devices.current_device().compute_capability >= (major, minor)
    )
    from gemmlab.programs.following import SPOOL, STARTED
    from gemmlab.simt.cuda.kernels import watching

    os.environ[SPOOL] = tempfile.mkdtemp()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(STARTED), os.environ.get("PYTHONPATH", "")])
    hazards: list = []
    with in_place_of_numba(), watching(lambda launched: hazards.extend(launched.report.hazards)):
        for full, module in kept.items():
            if full.startswith("numba.cuda.tests"):
                sys.modules[full] = module
            elif full not in sys.modules:
                sys.modules[full] = module
        sys.meta_path.insert(0, Real(root))
        for extra in (
            "typing",
            "utils",
            "compiler",
            "launchconfig",
            "descriptor",
            "serialize",
            "core",
            "types",
        ):
            setattr(cuda, extra, kept[f"numba.cuda.{extra}"])
        try:
            module = importlib.import_module(f"numba.cuda.tests.{name}")
        except unittest.SkipTest as skipped:
            say(out, module=name, test="", outcome="skipped", why=str(skipped))
            return
        except BaseException as error:
            say(
                out,
                module=name,
                test="",
                outcome="import",
                why=told(type(error), error, error.__traceback__),
            )
            return
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        for test in walk(suite):
            hazards.clear()
            run_one(out, name, test, hazards)


def say(out: Any, **what: Any) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


def walk(suite: Any) -> Any:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from walk(test)
        else:
            yield test


def told(kind: Any, error: Any, trace: Any) -> str:
    frames = traceback.extract_tb(trace)
    ours = [f"{Path(f.filename).name}:{f.lineno}" for f in frames][-3:]
    return f"{kind.__name__}: {error} @ {' '.join(ours)}"


class Result(unittest.TestResult):
    def __init__(self) -> None:
        super().__init__()
        self.outcome, self.why = "passed", ""

    def addFailure(self, test: Any, err: Any) -> None:
        self.outcome, self.why = "failed", told(*err)

    def addError(self, test: Any, err: Any) -> None:
        self.outcome, self.why = "error", told(*err)

    def addSkip(self, test: Any, reason: str) -> None:
        self.outcome, self.why = "skipped", reason

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None and self.outcome == "passed":
            self.outcome, self.why = "error", told(*err)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        pass

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.outcome, self.why = "failed", "unexpected success"


def run_one(out: Any, name: str, test: Any, hazards: list) -> None:
    result = Result()
    start = time.process_time()
    method = getattr(test, test._testMethodName, None)
    mark = getattr(method, "without_simulator", None) or getattr(
        type(test), "without_simulator", None
    )
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            test.run(result)
    except BaseException as error:
        result.outcome, result.why = "error", told(type(error), error, error.__traceback__)
    say(
        out,
        module=name,
        test=f"{type(test).__name__}.{test._testMethodName}",
        outcome=result.outcome,
        why=result.why[:600],
        mark=mark,
        hazards=sorted({h.kind for h in hazards}),
        seconds=round(time.process_time() - start, 2),
    )


def modules() -> list[str]:
    import numba.cuda

    root = Path(numba.cuda.__file__).parent / "tests"
    return [f"{f}.{p.stem}" for f in FOLDERS for p in sorted((root / f).glob("test_*.py"))]


def apart(name: str) -> list[dict]:
    try:
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name, "--child", name],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        text, end = (
            done.stdout,
            f"exit {done.returncode} {done.stderr[-300:]}" if done.returncode else "",
        )
    except subprocess.TimeoutExpired as late:
        text, end = (late.stdout or b"").decode(), "timeout"
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if end:
        rows.append({"module": name, "test": "", "outcome": "died", "why": end})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--child")
    parser.add_argument("--out", default="/tmp/nt/out.jsonl")
    asked = parser.parse_args()
    if asked.child:
        run_module(asked.child)
        return
    names = [
        m
        for m in modules()
        if not asked.modules or m in asked.modules or m.split(".")[1] in asked.modules
    ]
    with ThreadPoolExecutor(2) as pool, open(asked.out, "w") as out:
        for rows in pool.map(apart, names):
            for row in rows:
                out.write(json.dumps(row) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
