"""The diagnosis of this machine: what works, what stands in for the rest, and how to mend it."""

import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from gemmlab.here.compilers import EXTRAS, MLIR, NUMBA, missing
from gemmlab.here.driver import GpuStatus, gpu_status, package_version

Version = tuple[int, ...]


class Need(NamedTuple):
    """A package, the versions that work (from ``least``, below ``below``) and what it is for."""

    least: Version
    below: Version | None
    purpose: str
    install: str  # what pip is given to have it
    gpu_only: bool = False


PYTHON = Need((3, 11), (3, 15), "the language", "")
NEEDS = {
    "numpy": Need((2, 0), None, "arrays", "numpy>=2.0"),
    "numba": Need((0, 61), None, "compiled CPU kernels", "gemmlab[lab]"),
    "jupyterlab": Need((4, 4), (5,), "notebooks", "gemmlab[lab]"),
    "ipywidgets": Need((8, 1), (9,), "sliders and buttons", "gemmlab[lab]"),
    "matplotlib": Need((3, 9), None, "figures", "gemmlab[lab]"),
    "numba-cuda": Need((0, 30), (0, 31), "GPU kernels", "gemmlab[gpu]", gpu_only=True),
    "numba-cuda-mlir": Need((0, 6), (0, 7), "GPU kernels", EXTRAS[MLIR]),
    "cupy": Need((13, 6), None, "cuBLAS as the reference", "gemmlab[gpu]", gpu_only=True),
}
COMPILERS = {  # of kernels, and what each is for
    NUMBA: "it made the code that is recorded, and launches kernels on a GPU",
    MLIR: "it is the only one here",
}
NUMPY_OF_NUMBA_CUDA = (2, 5)  # below: numba-cuda 0.30 refers to what NumPy 2.5 removed
CUPY = ("cupy", "cupy-cuda13x", "cupy-cuda12x")  # names under which CuPy is distributed
SETUP = "python run.py lab"
DRIVERS = "https://www.nvidia.com/drivers"


@dataclass(frozen=True)
class Environment:
    """Everything that a diagnosis depends on."""

    python: Version
    packages: Mapping[str, str | None]  # installed version, or None
    gpu: GpuStatus
    recorded: Mapping[str, int]  # device -> number of recorded measurements
    clone: bool  # run.py lies beside the package
    platform: str = "linux"  # as sys.platform
    missing: tuple[str, ...] = ()  # of what compiles kernels and reads their code


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis: ``status`` is "ok", "note" (works differently) or "problem"."""

    topic: str
    status: str
    text: str
    fix: str = ""  # the command, or the page, that mends it


def environment() -> Environment:
    """Return the environment of this Python."""
    packages = {name: package_version(name) for name in NEEDS}
    packages["cupy"] = next(filter(None, map(package_version, CUPY)), None)
    recorded = {}
    folder = Path(str(resources.files("gemmlab"))) / "recorded"
    for file in sorted(folder.glob("*/*.jsonl")):
        lines = sum(1 for line in file.read_text("utf-8").splitlines() if line.strip())
        recorded[file.parent.name] = recorded.get(file.parent.name, 0) + lines
    return Environment(
        python=sys.version_info[:3],
        packages=packages,
        gpu=gpu_status(),
        recorded=recorded,
        clone=(Path(__file__).parents[1] / "run.py").is_file(),
        platform=sys.platform,
        missing=missing(),
    )


def diagnose(env: Environment | None = None) -> list[Finding]:
    """The findings about `env`, this Python's environment where None, in the order of a report."""
    env = environment() if env is None else env
    packages = [_package(name, need, env) for name, need in NEEDS.items() if name != MLIR]
    return [
        _python(env), *packages, _compiler(env),
        _gpu(env), _backend(env), _recorded(env), _predictions(env),
    ]  # fmt: skip


def report(env: Environment | None = None) -> str:
    """Return the diagnosis as one screen of plain ASCII text, for any console.

    Each line says ok, a note ("--", something stands in) or a problem ("!!"), and below it "->"
    the command that mends it.
    """
    mark = {"ok": "ok", "note": "--", "problem": "!!"}
    findings = diagnose(env)
    lines = []
    for f in findings:
        lines += _wrap(f"  {mark[f.status]}  {f.topic:<12}", f.text)
        if f.fix:
            lines += _wrap(" " * 18 + "-> ", f.fix)
    problems = sum(f.status == "problem" for f in findings)
    lines.append(f"{problems} problem{'s' * (problems != 1)}" if problems else "Everything works.")
    return "\n".join(lines)


def _wrap(first: str, text: str, width: int = 100) -> list[str]:
    text = text.encode("ascii", "backslashreplace").decode("ascii")
    rest = " " * len(first)
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def _python(env: Environment) -> Finding:
    have = _text(env.python)
    if env.python[:2] < PYTHON.least:
        fix = f"install Python 3.13 from https://www.python.org/downloads, then: {SETUP}"
        return Finding("Python", "problem", f"{have}, needs {_range(PYTHON)}", fix)
    if env.python[:2] >= PYTHON.below:
        return Finding("Python", "note", f"{have}, tested with {_range(PYTHON)}")
    return Finding("Python", "ok", have)


def _package(name: str, need: Need, env: Environment) -> Finding:
    have = env.packages.get(name)
    of_gpu = need.gpu_only and _launching(env) == MLIR  # whose extra brings no second compiler
    fix = _install("gemmlab[gpu-mlir]" if of_gpu else need.install, env)
    if name == NUMBA and have is None and env.packages.get(MLIR):
        return Finding(name, "ok", f"not installed; {MLIR} is in its place")
    if need.gpu_only and env.gpu.problem in ("no-driver", "no-gpu"):
        predicts = name == NUMBA and not env.packages.get(MLIR)
        more = ", and for predictions" if predicts else " only"
        return Finding(name, "ok", f"{have or 'not installed'} (of use with a GPU{more})")
    if have is None:
        return Finding(name, "problem", f"not installed: no {need.purpose}", fix)
    version = _numbers(have)
    if name == "numpy" and env.packages.get(NUMBA) and version >= NUMPY_OF_NUMBA_CUDA:
        fix = 'python -m pip install "numpy<2.5"'
        return Finding(name, "problem", f"{have}, and numba-cuda 0.30 needs <2.5", fix)
    if version < need.least or (need.below is not None and version >= need.below):
        return Finding(name, "problem", f"{have}, needs {_range(need)} for {need.purpose}", fix)
    return Finding(name, "ok", have)


def _compiler(env: Environment) -> Finding:
    """Which compilers of kernels are here, and which of them compiles where none is named."""
    here = {name: env.packages[name] for name in COMPILERS if env.packages.get(name)}
    if not here:
        text = f"neither {' nor '.join(COMPILERS)} is installed: no times from compiled code"
        fix = f'{_install(EXTRAS[NUMBA], env)}; or "{EXTRAS[MLIR]}"' if not env.clone else SETUP
        return Finding("compiler", "note", text, "" if env.platform == "darwin" else fix)
    used = next(iter(here))
    listed = " and ".join(f"{name} {version}" for name, version in here.items())
    if MLIR in here and not NEEDS[MLIR].least <= _numbers(here[MLIR]) < NEEDS[MLIR].below:
        text = f"{listed}, tested with numba-cuda-mlir {_range(NEEDS[MLIR])}"
        return Finding("compiler", "note", text, _install(EXTRAS[MLIR], env))
    return Finding("compiler", "ok", f"{listed}; auto -> {used}: {COMPILERS[used]}")


def _gpu(env: Environment) -> Finding:
    gpu = env.gpu
    if gpu.works:
        capability = _text(gpu.compute_capability or ())
        text = f"{gpu.name}, compute capability {capability}, driver {gpu.driver}"
        return Finding("GPU", "ok", text)
    fixes = {
        "no-driver": f"with an NVIDIA GPU: install its driver, {DRIVERS}",
        "no-gpu": "see whether the driver finds a GPU: nvidia-smi",
        "no-numba-cuda": _install(NEEDS["numba-cuda"].install, env),
        "driver-too-old": f"install a newer driver, {DRIVERS}" + _older_cuda(gpu, env),
        "broken": _reinstall(env),
    }
    fix = "" if env.platform == "darwin" else fixes[gpu.problem]
    status = "note" if gpu.problem in ("no-driver", "no-gpu") else "problem"
    return Finding("GPU", status, f"none in use: {gpu.reason}", fix)


def _older_cuda(gpu: GpuStatus, env: Environment) -> str:
    """The other way out of an old driver: CUDA packages that it can run, where there are such."""
    if gpu.cuda is None or gpu.cuda[0] != 12:
        return ""
    return f', or: python -m pip install "{_pinned(_launching(env), "cu12")}"'


def _backend(env: Environment) -> Finding:
    if env.gpu.works:
        return Finding("backend", "ok", "auto -> gpu: kernels run and are timed on the GPU")
    text = (
        "auto -> simulator: kernels run and are counted exactly; GPU times come from recorded data"
    )
    return Finding("backend", "note", text)


def _recorded(env: Environment) -> Finding:
    if not env.recorded:
        return Finding("recorded", "note", "no recorded measurements in this installation")
    text = ", ".join(f"{name} ({count} measurements)" for name, count in env.recorded.items())
    return Finding("recorded", "ok", text)


def _predictions(env: Environment) -> Finding:
    if env.missing:
        text = f"no times from compiled code: there is no {' and no '.join(env.missing)}"
        fix = "" if env.platform == "darwin" else _install(EXTRAS[_launching(env)], env)
        return Finding("predictions", "note", text, fix)
    return Finding("predictions", "ok", "a kernel's time on an H200 follows from its compiled code")


def _install(package: str, env: Environment) -> str:
    """Return the command that brings a package; in a clone, run.py sets up everything in one."""
    return SETUP if env.clone else f'python -m pip install "{package}"'


def _reinstall(env: Environment) -> str:
    name = _launching(env)
    if env.clone:  # .venv keeps which compiler it has
        chosen = f" --compiler {name}" if name != NUMBA else ""
        return f"delete the folder .venv, then: {SETUP}{chosen}"
    packages = f'"{_pinned(name, "cu13")}" "cuda-toolkit==13.0.*"'
    packages += ' "numpy<2.5"' if name == NUMBA else ""
    return f"python -m pip install --force-reinstall {packages}"


def _launching(env: Environment) -> str:
    """Return which compiler launches kernels there, or would."""
    return MLIR if env.packages.get(MLIR) and not env.packages.get(NUMBA) else NUMBA


def _pinned(name: str, extra: str) -> str:
    """Return what pip is given to have the tested version of a package, with an extra of its."""
    return f"{name}[{extra}]=={_text(NEEDS[name].least)}.*"


def _numbers(version: str) -> Version:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])


def _text(version: Version) -> str:
    return ".".join(map(str, version))


def _range(need: Need) -> str:
    above = f">={_text(need.least)}"
    return above if need.below is None else f"{above},<{_text(need.below)}"
