"""Every recorded tiling, compiled: blocks an SM holds by driver and model, and nothing spilled."""

from collections.abc import Mapping

from benchmarks.hardware.check import Check, Comparison, Measured
from gemmlab import Gemm, Tiling, kernels
from gemmlab.device import Device
from gemmlab.instructions import host
from gemmlab.instructions.typed import MLIR
from gemmlab.kernels import Kernel
from gemmlab.measure.backends import gpu

PROBLEM = Gemm(256, 256, 256)
# Bytes of local memory by numba-cuda-mlir, to which strides are arguments and take registers.
SPILLED = {kernels.pipelined.name: 8}


def tilings() -> dict[str, tuple[Kernel, Tiling]]:
    """Each rung with each of its own tilings, by name."""
    return {
        f"{kernel.name} {tiling}": (kernel, tiling)
        for kernel in kernels.LADDER
        for tiling in (kernel.default, *kernel.tilings)
    }


def pieces(device: Device) -> Mapping[str, str]:
    return dict.fromkeys(tilings(), "")


def measure(piece: str, device: Device) -> Measured:
    kernel, tiling = tilings()[piece]
    found = gpu.Runner(kernel, PROBLEM, tiling, gpu.Matrices(PROBLEM)).resources
    return found | ({"compiler": MLIR} if host.package() == MLIR else {})


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    found.equal("blocks an SM", measured["blocks_per_sm"], measured["predicted_blocks_per_sm"])
    kernel, tiling = tilings()[piece]
    its = SPILLED if measured.get("compiler") == MLIR and tiling == kernel.default else {}
    found.equal("bytes of local memory a thread", measured["local_bytes"], its.get(kernel.name, 0))
    return found


CHECK = Check(
    "resources",
    "blocks of each recorded tiling that an SM holds: the driver's and the model's",
    pieces,
    measure,
    compare,
    quick=tuple(f"{kernel.name} {kernel.default}" for kernel in kernels.LADDER),
)
