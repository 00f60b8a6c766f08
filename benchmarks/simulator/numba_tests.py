"""The tests of numba-cuda itself run on the simulated GPU, from the package that is installed.

    python -m benchmarks.simulator.numba_tests [MODULE ...]

Each module runs in a process of its own, for at most `SECONDS`, with the simulated GPU under the
name `numba.cuda`; what the tests need of Numba's own besides, its types, its typing and its test
classes, they get. Nothing is left out for being hard on a simulator, as Numba's own leaves out.
What came out is kept in `recorded/numba_tests.json`: of each test that does not pass the reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.machinery
import io
import json
import platform
import re
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.hardware.check import Result
from benchmarks.hardware.store import read, write

RECORDED = Path(__file__).parent / "recorded" / "numba_tests"
SECONDS = 240  # of a module
AT_ONCE = 2
FOLDERS = ("core", "cudadrv", "cudapy", "doc_examples", "nocuda", "nrt")

KERNELS, HOST, EXAMPLES = "kernels and their functions", "arrays, streams, devices", "the manual"
COMPILER = "Numba's compiler: its steps, types, listings and cache"
LINKED = "code of other languages, and what links it"
DRIVER = "the driver: contexts, allocation, other processes and GPUs"
COUNTED = (KERNELS, HOST, EXAMPLES)  # what needs no hardware, and is about what a GPU does
# Modules of the other groups, a group a line; those of folders that are not named count.
OTHERS = f"""
{COMPILER} = analysis byteflow caching compiler copy_propagate debug debuginfo debuginfo_types \
extending extending_types fastmath flow_control inline inspect ir ir_utils launch_config_sensitive \
libdevice lineinfo optimization overload tracing typeconv typeinfer warning gufunc_scheduling \
bfloat16 bfloat16_bindings fp8_bindings make_function_to_jit_function serialize itanium_mangler \
cache_version dummyarray function_resolution import library_lookup nvvm nvvm_driver
{LINKED} = inline_ptx linker linkable_code module_callbacks nvjitlink nvrtc cffi ffi cpointer
{DRIVER} = context_stack cuda_driver cuda_memory deallocations emm_plugins host_alloc init \
managed_alloc reset_device runtime ipc multigpu cupy_bfloat16_interop nrt nrt_refct
"""
OF = {
    name: own
    for own, _, names in (line.partition(" = ") for line in OTHERS.strip().splitlines())
    for name in names.split()
}
# Why a test does not pass -> what its error says. The first that is found holds.
REASONS = {
    "refused: code of another language": r"another language|NVRTC|libnvrtc",
    "refused: text, dates, bfloat16": r"has dtype (date|timedelta|\\||<U)|bfloat16|ml_dtypes",
    "refused: what has no simulated counterpart": r"UnsupportedError|not (a )?part of the sim",
    "needs a package that is missing": r"^(Skipped|SkipTest)|could not import|requires",
    "asks the driver, or Numba's own insides": r"no attribute|cannot import|No module|not imported"
    r"|CudaSupportError|DynamicLib",
    "asks for the words of an error or a warning": r"not found in|not match|DID NOT WARN"
    r"|not triggered|Regex",
    "asks for an error that is not raised": r"not raised|unexpected success",
    "looks at compiled code": r"object\(\) takes no|inspect_",
    "a value that differs": r"AssertionError|Not equal",
}
OTHER = "another error"


def recorded() -> dict[str, Result]:
    """What was recorded, by module: how many tests passed, and why others did not."""
    return read(RECORDED)


def group(module: str) -> str:
    """The group of a module of tests, such as "cudapy.test_atomics"."""
    folder, name = module.split(".")
    known = OF.get(name.removeprefix("test_"))
    return known or {"cudapy": KERNELS, "doc_examples": EXAMPLES}.get(folder, HOST)


def counts() -> dict[str, Counter]:
    """By group: tests, and how many passed, were refused, left out, or failed."""
    found: dict[str, Counter] = {}
    for module, result in recorded().items():
        own = found.setdefault(group(module), Counter())
        left = Counter(outcome for outcome, *_ in result.measured["left"].values())
        own["passed"] += result.measured["passed"]
        own.update(left)
        own["tests"] += result.measured["passed"] + sum(left.values())
    return found


def reasons() -> Counter:
    """Why tests of the groups that count did not pass."""
    return Counter(
        reason
        for module, result in recorded().items()
        if group(module) in COUNTED
        for _, reason, _ in result.measured["left"].values()
    )


def reason_of(words: str) -> str:
    """The kind of a reason, by what an error says."""
    return next((kind for kind, said in REASONS.items() if re.search(said, words)), OTHER)


# --------------------------------------------------------------------------- in a process apart


class Real:
    """Finds the parts of the installed numba-cuda that the simulated GPU has none of."""

    def __init__(self, root: str) -> None:
        self.root = root

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The place of a part of `numba.cuda`; other modules are for other finders."""
        if not name.startswith("numba.cuda."):
            return None
        where = [self.root] if name.count(".") == 2 else path
        return importlib.machinery.PathFinder.find_spec(name, where)


def stand_in_for_filecheck() -> None:
    """Let tests import the package filecheck, which reads compiled code, where it is missing."""
    with contextlib.suppress(ImportError):
        importlib.import_module("filecheck.matcher")
        return
    parts = {
        **{"": (), ".matcher": ("Matcher",), ".options": ("Options",), ".finput": ("FInput",)},
        ".parser": ("Parser", "pattern_for_opts"),
    }
    for part, names in parts.items():
        module: Any = types.ModuleType(f"filecheck{part}")
        module.__path__ = []
        vars(module).update(dict.fromkeys(names, object))
        sys.modules[module.__name__] = module


NEEDED = (  # parts of Numba's own that tests and their classes use
    *("testing", "tests.support", "core.errors", "core.ir", "typing", "typing.typeof", "types"),
    *("np.numpy_support", "extending", "launchconfig", "compiler", "descriptor", "cudadrv.nvvm"),
    *("datamodel", "models", "cudadrv.libs", "typeconv", "flags", "np"),
    *("cudadrv.nvrtc", "cgutils", "itanium_mangler", "serialize", "utils", "core", "cudadecl"),
)


@contextlib.contextmanager
def simulated() -> Iterator[list]:
    """Have tests find the simulated GPU; the hazards of launches, as they are found."""
    stand_in_for_filecheck()
    numbas: dict[str, Any] = {n: importlib.import_module(f"numba.cuda.{n}") for n in NEEDED}
    own = {name: module for name, module in sys.modules.items() if name.startswith("numba.cuda.")}
    root = str(Path(sys.modules["numba.cuda"].__file__ or "").parent)

    from gemmlab.here.numbas import Later
    from gemmlab.programs import following
    from gemmlab.programs.running import in_place_of_numba
    from gemmlab.simt import cuda
    from gemmlab.simt.cuda import devices
    from gemmlab.simt.cuda.kernels import watching
    from gemmlab.simt.numbers.types import TYPES

    testing, hazards = numbas["testing"], []
    testing.skip_on_cudasim = lambda reason: lambda test: test
    capability = devices.current_device().compute_capability
    testing.cudadevrt_missing = lambda: False  # which is linked where a kernel waits for its grid
    headers = unittest.skip("CUDA's headers are not installed")
    testing.skip_if_cuda_includes_missing = testing.skip_if_curand_kernel_missing = headers
    testing.skip_if_nvjitlink_missing = lambda reason: lambda test: test
    testing.cc_X_or_above = lambda *asked: capability >= asked
    with (
        tempfile.TemporaryDirectory() as folder,
        following.in_environment(Path(folder)),  # processes that a test starts follow, too
        in_place_of_numba(),
        watching(lambda done: hazards.extend(done.report.hazards)),
    ):
        for name, module in own.items():
            if isinstance(sys.modules.get(name, Later("")), Later):
                sys.modules[name] = module
        for name, module in own.items():  # the simulated GPU's own stay where it has some
            *_, owner, short = name.split(".")
            of = {"cuda": cuda, "cudadrv": cuda.cudadrv}.get(owner)
            if (
                of is not None
                and short not in ("testing", "types", "tests")
                and not hasattr(of, short)
            ):
                setattr(of, short, module)
        its = vars(numbas["types"])
        vars(cuda).update({name: its[name] for name in TYPES if name in its and name != "void"})
        sys.meta_path.insert(0, Real(root))
        yield hazards


def run_module(name: str) -> None:
    """Run the tests of one module here, and say of each what came out, a line of JSON each."""
    warnings.simplefilter("ignore")
    out = sys.stdout
    with simulated() as hazards:
        try:
            module = importlib.import_module(f"numba.cuda.tests.{name}")
        except BaseException as error:
            for test in _names(name):  # each of them is one that does not pass
                say(out, test, "failed", f"the module is not imported: {_told(error)}")
            return
        for test in _tests(unittest.defaultTestLoader.loadTestsFromModule(module)):
            hazards.clear()
            outcome, words = run_test(test)
            kinds = ", ".join(sorted({hazard.kind for hazard in hazards}))
            say(out, f"{type(test).__name__}.{test._testMethodName}", outcome, words, kinds)


def _names(name: str) -> list[str]:
    """The tests of a module, as its text has them."""
    text = (_root() / f"{name.replace('.', '/')}.py").read_text("utf-8")
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return [
        f"{owner.name}.{node.name}"
        for owner in classes
        for node in owner.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    ] or ["the whole module"]


def say(out: Any, test: str, outcome: str, words: str, hazards: str = "") -> None:
    """Write what came out of a test as a line of JSON."""
    out.write(json.dumps([test, outcome, words, hazards]) + "\n")
    out.flush()


def _tests(suite: Any) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _tests(test)
        else:
            yield test


def _told(error: BaseException) -> str:
    text = without_places(" ".join(str(error).split()))
    return f"{type(error).__name__}: {text}"[:300]


def without_places(words: str) -> str:
    """Return words without the folders of the machine on which they were said."""
    return re.sub(r"/[\w./+-]*/(?=[\w.+-]+)", "", words)


class Outcome(unittest.TestResult):
    """What came out of one test: passed, failed or left out, and what it said."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome, self.words = "passed", ""

    def _ended(self, outcome: str, words: str) -> None:
        if self.outcome == "passed":
            self.outcome, self.words = outcome, words

    def addFailure(self, test: Any, err: Any) -> None:
        """A comparison fails."""
        self._ended("failed", _told(err[1]))

    def addError(self, test: Any, err: Any) -> None:
        """The test raises something else."""
        self._ended("failed", _told(err[1]))

    def addSkip(self, test: Any, reason: str) -> None:
        """The test leaves itself out."""
        self._ended("left out", f"SkipTest: {reason}")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        """A part of a test ends."""
        if err is not None:
            self._ended("failed", _told(err[1]))

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        """The test fails, as it says itself: it passes."""

    def addUnexpectedSuccess(self, test: Any) -> None:
        """The test says that it would fail, and does not."""
        self._ended("failed", "unexpected success")


def run_test(test: unittest.TestCase) -> tuple[str, str]:
    """Run one test: what came out, and why."""
    result = Outcome()
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            test.run(result)
    except BaseException as error:
        return "failed", _told(error)
    return result.outcome, result.words


# ------------------------------------------------------------------------------------------ all


def _root() -> Path:
    """The folder of the tests of the installed package."""
    spec = find_spec("numba_cuda")
    if spec is None or not spec.origin:
        raise RuntimeError("numba-cuda is not installed, whose tests these are")
    return Path(spec.origin).parent / "numba" / "cuda" / "tests"


def modules() -> list[str]:
    """The modules of tests of the installed package, as FOLDER.MODULE."""
    return [f"{f}.{p.stem}" for f in FOLDERS for p in sorted((_root() / f).glob("test_*.py"))]


def apart(name: str) -> Result:
    """Run a module in a process of its own, and sum up what came out."""
    command = [sys.executable, "-m", "benchmarks.simulator.numba_tests", "--apart", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        text = done.stdout
        end = f"ended with {done.returncode}: {done.stderr[-200:]}" if done.returncode else ""
    except subprocess.TimeoutExpired as late:
        text, end = (late.stdout or b"").decode(), f"not done after {SECONDS} s"
    rows = [json.loads(line) for line in text.splitlines() if line.startswith('["')]
    if end:
        rows.append(["the rest", "failed", end, ""])
    left = {}
    for test, outcome, words, _ in rows:
        if outcome != "passed":
            reason = reason_of(words)
            refused = outcome == "failed" and reason.startswith("refused")
            left[test] = ["refused" if refused else outcome, reason, words]
    passed = sum(outcome == "passed" for _, outcome, *_ in rows)
    hazards = {test: kinds for test, outcome, _, kinds in rows if kinds and outcome == "passed"}
    origin = {
        "python": platform.python_version(),
        **{p.replace("-", "_"): version(p) for p in ("numpy", "numba", "numba-cuda")},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return Result(name, {"passed": passed, "left": left, "hazards": hazards}, origin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="MODULE", help="default: all")
    parser.add_argument("--apart", metavar="MODULE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.apart:
        run_module(arguments.apart)
        return
    known, whole = recorded(), modules()
    wanted = [name for name in whole if name in arguments.names or not arguments.names]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for result in pool.map(apart, wanted):
            known[result.piece] = result
            left = Counter(outcome for outcome, *_ in result.measured["left"].values())
            print(
                f"{result.piece:<45} {result.measured['passed']:>4} passed", dict(left), flush=True
            )
            write(RECORDED, (known[name] for name in whole if name in known))
    for name, found in counts().items():
        print(name, dict(found))


if __name__ == "__main__":
    main()
