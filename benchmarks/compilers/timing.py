"""Every rung by both compilers on a GPU: the same bits, and times beside each other.

python -m benchmarks.compilers.timing FOLDER FILE

FOLDER has the cubins that `compiling` wrote; FILE gets a line for each rung. A rung whose kernels
hang is given up after a while, and the rest go on.
"""

import ctypes
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.compilers import RUNGS
from gemmlab import Device, Gemm, Tiling, kernels
from gemmlab.compiled.forecast.rung_listings import usual
from gemmlab.compiled.sass.cubins import of_mlir, of_numba
from gemmlab.compiled.sass.execution.machine import dim
from gemmlab.here.compilers import COMPILERS
from gemmlab.here.driver import answered, gpu_status, one_line, stamp
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.backends import checking, compiled, gpu

SAMPLES = 21  # of each compiler, in turn
PATIENCE = 40  # seconds for one rung
CHECKED = Gemm(1024, 1024, 1024)
TIMED = Gemm(4096, 4096, 4096)
LONG = Gemm(256, 256, 16384)  # for rungs that divide k
PASSED = dict(zip(COMPILERS, (of_numba, of_mlir), strict=True))


def carried(folder: Path, compiler: str) -> Callable[..., compiled.Launch]:
    """Return what launches cubins of a compiler in the place of `compiled.launch`."""

    def launch(
        kernel: Kernel, problem: Gemm, tiling: Tiling, device: Device, arguments: Any
    ) -> compiled.Launch:
        calls, taken = [], {}
        for one in kernel.launches:
            name = one.function(problem, tiling, device.compute_capability).__name__
            path = folder / f"{kernel.name}.{name}.{compiler}.cubin"
            grid, block = one.launch(problem, tiling, device)
            shared = one.dynamic_shared_bytes(problem, tiling)
            function = _function(path.read_bytes(), shared)
            calls.append(partial(_launched, function, grid, block, shared, one.cluster))
            if one is kernel:
                taken = _taken(function)

        def in_turn(*arguments: Any) -> None:
            values = [v for a in arguments for v in PASSED[compiler](a, _address(a))]
            for call in calls:
                call(values)

        return compiled.Launch(in_turn, taken)

    return launch


def _address(argument: Any) -> int | None:
    held = getattr(argument, "__cuda_array_interface__", None)
    return held and held["data"][0]


def _function(cubin: bytes, shared: int) -> Any:
    from cuda.bindings import driver

    (name,) = set(re.findall(rb"\0\.text\.([\w$.]+)(?=\0)", cubin))
    module = answered(driver.cuModuleLoadData(cubin))
    function = answered(driver.cuModuleGetFunction(module, name))
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    answered(driver.cuFuncSetAttribute(function, attribute, shared))
    return function


def _taken(function: Any) -> dict[str, int]:
    """Tell what a thread takes."""
    from cuda.bindings import driver

    names = {"registers": "NUM_REGS", "local_bytes": "LOCAL_SIZE_BYTES"}
    kinds = driver.CUfunction_attribute
    return {
        name: answered(
            driver.cuFuncGetAttribute(getattr(kinds, f"CU_FUNC_ATTRIBUTE_{code}"), function)
        )
        for name, code in names.items()
    }


def _launched(
    function: Any, grid: Any, block: Any, shared: int, cluster: int, values: list[Any]
) -> None:
    from cuda.bindings import driver

    held = [np.atleast_1d(value) for value in values]
    places = (ctypes.c_void_p * len(held))(*(value.ctypes.data for value in held))
    asked, together = driver.CUlaunchConfig(), driver.CUlaunchAttribute()
    asked.gridDimX, asked.gridDimY, asked.gridDimZ = dim(grid)
    asked.blockDimX, asked.blockDimY, asked.blockDimZ = dim(block)
    asked.sharedMemBytes = shared
    together.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    size = together.value.clusterDim
    size.x, size.y, size.z = cluster, 1, 1
    asked.attrs, asked.numAttrs = [together], 1
    answered(driver.cuLaunchKernelEx(asked, function, ctypes.addressof(places), 0))


def runners(folder: Path, kernel: Kernel, problem: Gemm) -> dict[str, gpu.Runner]:
    """Return a rung of each compiler, with the same matrices."""
    matrices, tiling, found = gpu.Matrices(problem), kernel.choose(None), {}
    for compiler in COMPILERS:
        with mock.patch.object(gpu.compiled, "launch", carried(folder, compiler)):
            found[compiler] = gpu.Runner(kernel, problem, tiling, matrices)
    return found


def rung(folder: Path, kernel: Kernel) -> dict[str, Any]:
    """Check a rung of both compilers, and time them in turn."""
    problem = usual(kernel, CHECKED)
    both, operands = runners(folder, kernel, problem), problem.operands(0)
    errors = {c: checking.check(problem, one.compute, operands).error for c, one in both.items()}
    results = [one.compute(problem, operands).tobytes() for one in both.values()]
    splits = kernel in (*kernels.SPLIT_K, *kernels.TENSOR_CORE_SPLIT_K, *kernels.HOPPER_SPLIT_K)
    timed = usual(kernel, LONG if splits else TIMED)
    pair = runners(folder, kernel, timed)
    for one in pair.values():
        one.matrices.load(timed, timed.operands(1))
        one.sample()
    samples: dict[str, list[float]] = {c: [] for c in pair}
    for _ in range(SAMPLES):
        for compiler, one in pair.items():
            samples[compiler].append(one.sample())
    medians = {c: statistics.median(s) for c, s in samples.items()}
    first, second = medians.values()
    return {
        "rung": kernel.name, "sizes": [timed.m, timed.n, timed.k], "same": results[0] == results[1],
        "errors": errors, "resources": {c: one.resources for c, one in pair.items()},
        "seconds": medians, "ratio": second / first, "samples": samples,
    }  # fmt: skip


def some(folder: Path, names: list[str]) -> None:
    """Write a line for each of these rungs."""
    for name in names:
        try:
            line = rung(folder, kernels.get(name))
        except Exception as error:
            line = {"rung": name, "failed": one_line(error, 400)}
        print(json.dumps(line), flush=True)


def main(folder: Path, file: Path) -> None:
    """Run all rungs in processes of their own; the next begins where one hangs."""
    left = [kernel.name for kernel in RUNGS]
    head = stamp("date", "driver", "numba_cuda") | {"gpu": gpu_status().name}
    with file.open("w", encoding="utf-8") as lines:
        print(json.dumps(head), file=lines, flush=True)
        while left:
            command = [sys.executable, "-m", __spec__.name, str(folder), *left[:7]]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=PATIENCE * len(left[:7])
                )
                said = done.stdout
                print(done.stderr[-1500:], file=sys.stderr)
            except subprocess.TimeoutExpired as error:
                said = (error.stdout or b"").decode()
            found = [line for line in said.splitlines() if line.startswith("{")]
            lines.writelines(f"{line}\n" for line in found)
            lines.flush()
            if len(found) < len(left[:7]):  # the one after the last hangs, or kills its process
                hung = left[len(found)]
                print(json.dumps({"rung": hung, "failed": "it hangs"}), file=lines, flush=True)
                found.append(hung)
            left = left[len(found) :]


if __name__ == "__main__":
    if sys.argv[2] in {kernel.name for kernel in RUNGS}:
        some(Path(sys.argv[1]), sys.argv[2:])
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
