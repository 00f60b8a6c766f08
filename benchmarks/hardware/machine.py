"""The GPU of this machine: launches on it, its versions, and the programs that observe them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import ROOT
from gemmlab.device import Device, name_of
from gemmlab.here.driver import gpu_status, stamp
from gemmlab.instructions import host
from gemmlab.instructions.typed import MLIR
from gemmlab.numerics import TENSOR_CORES

CUDA = Path("/usr/local/cuda/bin")  # where a tool is looked for that is not on the PATH


@cache
def compiled(kernel: Callable) -> Callable:
    """A kernel that Numba compiles once."""
    return host.cuda().jit(kernel)


def launch(
    kernel: Callable, grid: Any, block: Any, arguments: Sequence[Any], shared: int = 0
) -> list[Any]:
    """The arguments after a GPU has run a kernel on copies of them; shared : dynamic memory [B]."""
    cuda = host.cuda()
    on_gpu = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in arguments]
    compiled(kernel)[grid, block, 0, shared](*on_gpu)
    cuda.synchronize()
    return [
        there.copy_to_host() if isinstance(here, np.ndarray) else here
        for here, there in zip(arguments, on_gpu, strict=True)
    ]


def launches_by_mlir() -> bool:
    """Whether numba-cuda-mlir compiles and launches here, not Numba-CUDA."""
    return host.package() == MLIR


def left_out(names: Iterable[str], faults: Mapping[str, str]) -> dict[str, str]:
    """Pieces of a check, and why one is left out where numba-cuda-mlir launches.

    faults : pieces that release 0.6.0 refuses or makes wrong code of, and why; tests/instructions/
        test_numba_cuda_mlir.py fails when one is mended
    """
    known = faults if launches_by_mlir() else {}
    return {name: known.get(name, "") for name in names}


def tensor_core(device: Device) -> str | None:
    """The architecture whose Tensor Cores a GPU has, where their arithmetic is known."""
    arch = name_of(device.compute_capability)
    return arch if arch in TENSOR_CORES else None


def unknown_arithmetic(device: Device) -> str:
    """Why products of a GPU's Tensor Cores are not compared."""
    capability = "{}.{}".format(*device.compute_capability)
    return f"how the Tensor Cores of compute capability {capability} round is not known here"


def tool(name: str) -> str | None:
    """The path of "ncu" or "compute-sanitizer", None where it is not installed."""
    beside = CUDA / name
    return shutil.which(name) or (str(beside) if beside.exists() else None)


def under(name: str, options: Sequence[str], check: str, piece: str) -> list[str]:
    """The command that launches a piece of a check with a tool watching; with none for ""."""
    program = [sys.executable, "-m", "benchmarks.hardware.launch", check, piece]
    return [tool(name), *options, *program] if name else program


class Ran(NamedTuple):
    """What a program wrote, and its exit status, None where it had to be ended."""

    text: str
    status: int | None


def run(commands: Iterable[Sequence[str]], limit: float) -> list[Ran]:
    """Run programs at the same time; one that takes longer than `limit` seconds is ended."""
    with ExitStack() as stack:
        running = []
        for command in commands:
            out = stack.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
            stack.callback(end, process)
            running.append((process, out))
        last, found = time.monotonic() + limit, []
        for process, out in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, last - time.monotonic()))
            status = process.poll()
            end(process)
            out.seek(0)
            found.append(Ran(out.read().decode("utf-8", "replace"), status))
        return found


def end(process: subprocess.Popen) -> None:
    """End a program that `run` began and, where sessions exist, what it has begun itself."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


@cache
def origin(name: str = "") -> dict[str, str]:
    """Device, driver and versions, that of a tool too; the date is now."""
    status = gpu_status()
    found = {
        "device": status.name,
        "driver": status.driver,
        "compute_capability": "{}.{}".format(*status.compute_capability),
        **stamp("python", "numpy", "numba", host.package()),
    }
    if name and tool(name):
        said = subprocess.run([tool(name), "--version"], capture_output=True, text=True).stdout
        told = re.search(r"Version (\S+)", said)
        found[name.replace("-", "_")] = told[1] if told else "unknown"
    return found | stamp("date")
