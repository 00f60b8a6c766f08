"""A kernel of a cubin or of PTX is launched once on this machine's GPU, for a profiler to see.

    python -m gemmlab.programs.launched FILE[:KERNEL] --grid 64 --block 256 --arg 'float32[4096]'

The options are those of `gemmlab predict`, which starts this. It needs NVIDIA's driver and the
package cuda-bindings, which comes with numba-cuda.
"""

import argparse
import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.compiled.sass import cubins
from gemmlab.compiled.sass.execution.machine import dim
from gemmlab.device import name_of
from gemmlab.here.driver import answered
from gemmlab.programs import predicting


def launch(
    code: Path, kernel: str | None, grid: Sequence[int], block: Sequence[int] | None,
    arguments: Sequence[Any], shared_bytes: int,
) -> None:  # fmt: skip
    """Launch a kernel; RuntimeError with the driver's word for what fails."""
    from cuda.bindings import driver

    answered(driver.cuInit(0))
    device = answered(driver.cuDeviceGet(0))
    answered(driver.cuCtxSetCurrent(answered(driver.cuDevicePrimaryCtxRetain(device))))
    kind = driver.CUdevice_attribute
    capability = tuple(
        answered(driver.cuDeviceGetAttribute(one, device))
        for one in (
            kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    module = cubins.module(code, name_of(capability))
    name = module.one(kernel)
    known = cubins.parameters(module.cubin, name)
    function = answered(driver.cuModuleGetFunction(
        answered(driver.cuModuleLoadData(module.cubin)), name.encode()
    ))  # fmt: skip
    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    answered(driver.cuFuncSetAttribute(function, most, shared_bytes))

    def address(array: np.ndarray) -> int:
        there = answered(driver.cuMemAlloc(max(1, array.nbytes)))
        if array.nbytes:
            flat = np.ascontiguousarray(array)
            answered(driver.cuMemcpyHtoD(there, flat.ctypes.data, flat.nbytes))
        return int(there)

    passed = cubins.as_c(arguments, known, address)
    parts = [ctypes.create_string_buffer(passed[at : at + size], size) for at, size in known.places]
    pointers = (ctypes.c_void_p * len(parts))(*map(ctypes.addressof, parts))
    sizes = *dim(grid), *dim(block or known.block)
    places = ctypes.addressof(pointers)
    answered(driver.cuLaunchKernel(function, *sizes, shared_bytes, 0, places, 0))
    answered(driver.cuCtxSynchronize())


def main(argv: Sequence[str] | None = None) -> int:
    """Launch what the options say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    predicting.add_compiled(parser)
    parser.add_argument("target")
    asked = parser.parse_args(argv)
    target, kernel = predicting.parted(asked.target)
    grid, block = (text and predicting.sizes(text) for text in (asked.grid, asked.block))
    arguments = [predicting.argument(text) for text in asked.arg]
    launch(Path(target), kernel, grid, block, arguments, asked.shared or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
