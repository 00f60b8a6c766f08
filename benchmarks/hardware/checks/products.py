"""Whole products made of warp instructions: the bits of C on the GPU and on the simulator."""

from collections.abc import Mapping

from benchmarks.hardware import machine
from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.hardware.probes.products import gemms, simulated
from gemmlab.device import Device
from gemmlab.simt import UnsupportedError


def pieces(device: Device) -> Mapping[str, str]:
    return {name: refusal(name, device) for name in gemms()}


def refusal(name: str, device: Device) -> str:
    """Why a GPU cannot run a product, as the simulator says it; "" if it can."""
    if machine.tensor_core(device) is None:
        return machine.unknown_arithmetic(device)
    try:
        simulated(gemms()[name], device)
    except UnsupportedError as error:
        return str(error).split(":")[0]
    return ""


def measure(piece: str, device: Device) -> Measured:
    one = gemms()[piece]
    return {"C": machine.launch(one.kernel, one.grid, one.threads, one.operands)[-1]}


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    found.equal("C", measured["C"], simulated(gemms()[piece], device))
    return found


CHECK = Check(
    "products",
    "matrix products by warp instructions: the GPU's bits and the simulator's",
    pieces,
    measure,
    compare,
    quick=("pipelined", "corrected"),
)
