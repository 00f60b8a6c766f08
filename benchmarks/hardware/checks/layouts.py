"""Each fragment layout, read from the GPU by kernels that tell where every register belongs."""

from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.hardware import machine
from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.hardware.probes.instructions import WARP
from benchmarks.hardware.probes.layouts import read_layout
from gemmlab import simulate
from gemmlab.device import Device
from gemmlab.instructions.fragments import LAYOUTS, Layout
from gemmlab.numerics import tensor_core_of
from gemmlab.simt import UnsupportedError


def title(form: Layout) -> str:
    """Instruction, operand, formats and order of a layout."""
    return " ".join((form.instruction, form.operand, *form.formats, form.major)).strip()


def forms(device: Device) -> dict[str, Layout]:
    """The layouts of a GPU's instructions, by title."""
    arch = tensor_core_of(device.compute_capability).arch
    return {title(form): form for form in LAYOUTS if form.on(arch)}


def pieces(device: Device) -> Mapping[str, str]:
    """The layouts, each left out where the GPU lacks the instructions that read it."""
    return {name: refusal(form, device) for name, form in forms(device).items()}


def refusal(form: Layout, device: Device) -> str:
    """Why the kernels that read a layout cannot run, as the simulator says it; "" if they can."""

    def launch(kernel: Callable, arguments: list[np.ndarray]) -> np.ndarray:
        simulate(kernel, len(arguments[0]), WARP, *arguments, device=device)
        return arguments[-1]

    try:
        read_layout(form, launch)
    except UnsupportedError as error:
        return str(error).split(":")[0]
    return ""


def measure(piece: str, device: Device) -> Measured:
    def launch(kernel: Callable, arguments: list[np.ndarray]) -> np.ndarray:
        return machine.launch(kernel, len(arguments[0]), WARP, arguments)[-1]

    return {"table": read_layout(forms(device)[piece], launch).astype(np.int8)}


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    read, table = measured["table"].tolist(), forms(device)[piece].table.tolist()
    for lane, (places, known) in enumerate(zip(read, table, strict=True)):
        for register, (place, right) in enumerate(zip(places, known, strict=True)):
            found.equal(f"register {register} of lane {lane}", place, right)
    return found


CHECK = Check(
    "layouts",
    "(row, column) of every register of a fragment: the GPU's and the table's",
    pieces,
    measure,
    compare,
    quick=("m16n8k16 B f16 bf16", "ldmatrix.x2.trans A b16"),
)
