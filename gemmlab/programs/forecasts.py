"""The first launch of each kind is predicted for a GPU, from compiled code, after the program.

What its code says of why it may be slow is told beside: rules over what was compiled and simulated
of an SM, which `simt.report.why_slow` cannot know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gemmlab.compiled.sass.execution.machine import Dim, dim
from gemmlab.device import Device, device as device_called
from gemmlab.here import numbas
from gemmlab.measure.backends import stopping, trial
from gemmlab.model import occupancy
from gemmlab.model.transactions import WARP
from gemmlab.simt.cuda import random
from gemmlab.simt.cuda.kernels import Call
from gemmlab.simt.report.report import Origin

if TYPE_CHECKING:
    from gemmlab.compiled.forecast.kernel import Forecast

SECONDS = 60.0  # of the processor, for one forecast; most take a few
# The options of `cuda.jit` that change the code.
OPTIONS = "fastmath", "launch_bounds", "max_registers"


@dataclass(frozen=True)
class LaunchForecast:
    """The predicted time of one launch.

    place : the file and the line where the kernel is defined
    seconds : None where there is none [s]
    text : what it waits for, or why there is no time
    code : what its compiled code takes of an SM, and what of that may make it slow
    """

    kernel: str
    place: str
    grid: Dim
    block: Dim
    seconds: float | None
    text: str
    code: tuple[str, ...] = ()


class FirstCalls:
    """The first launch of each kernel with one grid and one block, its arguments as they were."""

    def __init__(self) -> None:
        self.calls: dict[tuple, Call] = {}

    def keep(self, call: Call) -> None:
        """Copy the arguments of a launch that is the first of its kind."""
        kind = call.kernel, dim(call.grid), dim(call.block)
        if kind not in self.calls:
            copies = (np.array(a) if isinstance(a, np.ndarray) else a for a in call.arguments)
            self.calls[kind] = call._replace(arguments=tuple(copies))


def forecasts(calls: Iterable[Call], device: str) -> list[LaunchForecast]:
    """Predict each launch, alone on the GPU."""
    return [_forecast(call, device) for call in calls]


def predicted(call: Call, device: str) -> Forecast:
    """Predict a launch that a program made.

    Raises NotImplementedError for a kernel that the simulated GPU has in place of Numba's, which
    Numba cannot compile.
    """
    # This loads Numba, which the program has done.
    from gemmlab.compiled.forecast.kernel import predict_time

    chosen = call.kernel.targetoptions
    options = {name: chosen[name] for name in OPTIONS if chosen.get(name)}
    try:
        with generators():
            return predict_time(
                call.kernel, dim(call.grid), dim(call.block), *call.arguments, device=device,
                shared_bytes=call.shared_bytes, **options,
            )  # fmt: skip
    except Exception as error:
        if call.kernel.origin is None or not type(error).__module__.startswith("numba"):
            raise
        raise NotImplementedError(
            "it stands for a kernel of Numba's own, as of cuda.reduce, whose code is another"
        ) from None


def _forecast(call: Call, device: str) -> LaunchForecast:
    from gemmlab.compiled.forecast.telling import sentence

    origin = call.kernel.origin or Origin.of(call.kernel.py_func)
    kind = origin.name, place(*origin[1:]), dim(call.grid), dim(call.block)
    try:
        with stopping.limited(SECONDS, "the prediction"):
            found = predicted(call, device)
    except NotImplementedError as error:
        return LaunchForecast(*kind, None, str(error))
    except Exception as error:
        return LaunchForecast(*kind, None, " ".join(trial.told(error).split()))
    return LaunchForecast(*kind, found.seconds, sentence(found), code_of(found, call, device))


@contextmanager
def generators() -> Iterator[None]:
    """Let a kernel that says `cuda.random.` be compiled with the generators that it ran with.

    Numba's own are for its CPU compiler, too, whose options not every version of both shares.
    """
    with numbas.own() as numba_cuda:
        names, before = vars(numba_cuda), vars(numba_cuda).get("random")
        names["random"] = random
        try:
            yield
        finally:
            names["random"] = before
            if before is None:
                del names["random"]


def place(file: str, line: int) -> str:
    """Return a line of a file as tables have room for it: without the folders."""
    return f"{Path(file).name}:{line}"


# ---------------------------------------------------------------------------------- compiled code

HALF = 0.5  # of an SM's warps: with fewer, others seldom fill the slots while one waits
PART_INTEGERS = 0.25  # of the issue slots: less is what any address and any loop takes
WIDE = {"X", "EX", "WIDE", "HI", "64"}  # words of instructions for halves of 64-bit integers


def code_of(found: Forecast, call: Call, name: str) -> tuple[str, ...]:
    """Say what compiled code takes of an SM, and what of that may make it slow."""
    gpu = device_called(name)
    registers = found.listing.registers
    takes = f"{registers} registers a thread; an SM holds {_held(found, call, gpu)}"
    if found.sampled < found.share.blocks:
        takes += f"; {found.sampled} blocks stand for all {math.prod(found.share.grid):,}"
    told = (rule(found, call, gpu) for rule in RULES)
    return takes, *filter(None, told)


def _resident(found: Forecast, call: Call, gpu: Device, shared: bool = True, registers: bool = True
              ) -> int:  # fmt: skip
    """Count the blocks that an SM holds at once; as if they took none of what is left out."""
    code = found.listing
    return occupancy.resident_blocks(
        gpu, math.prod(dim(call.block)), shared * (call.shared_bytes + code.shared_bytes),
        registers * code.registers,
    )  # fmt: skip


def _warps(found: Forecast, call: Call, gpu: Device) -> tuple[int, int]:
    """Count the warps that an SM holds at once, and those that it could."""
    warps = math.ceil(math.prod(dim(call.block)) / WARP)
    return _resident(found, call, gpu) * warps, (gpu.threads_per_sm or 0) // gpu.warp_size


def _held(found: Forecast, call: Call, gpu: Device) -> str:
    return "{} of {} warps".format(*_warps(found, call, gpu))


def spills(found: Forecast, call: Call, gpu: Device) -> str:
    """Registers that do not suffice, so that values go to memory and come back."""
    local = {i.opcode.split(".")[0] for i in found.listing.instructions} & {"STL", "LDL"}
    if not local or "local" in call.kernel.py_func.__code__.co_names:
        return ""
    return (
        f"spills: {found.listing.local_bytes} bytes of a thread's values do not fit into its "
        f"{found.listing.registers} registers, go to memory and come back"
    )


def few_warps(found: Forecast, call: Call, gpu: Device) -> str:
    """Registers or shared memory, of which a thread or a block takes so much that few fit."""
    resident, (warps, most) = _resident(found, call, gpu), _warps(found, call, gpu)
    if warps >= HALF * most or math.prod(dim(call.grid)) <= resident * (gpu.sms or 1):
        return ""
    if _resident(found, call, gpu, registers=False) > resident:
        takes = f"a thread takes {found.listing.registers} registers"
        takes += "; cuda.jit(max_registers=...) sets a limit"
    elif _resident(found, call, gpu, shared=False) > resident:
        takes = f"a block takes {call.shared_bytes + found.listing.shared_bytes:,} bytes of shared "
        takes += "memory"
    else:
        return ""
    return f"occupancy: an SM holds {_held(found, call, gpu)}, because {takes}"


def integers(found: Forecast, call: Call, gpu: Device) -> str:
    """Integer arithmetic that takes many of the slots: counters and indices of 64 bits, mostly."""
    result = found.result
    part = result.used.get("integer", 0) / result.slots
    if part < PART_INTEGERS:
        return ""
    wide = sum(
        int(count) for count, i in zip(result.issued, found.listing.instructions, strict=False)
        if WIDE & set(i.modifiers)
    ) / max(1, int(result.issued.sum()))  # fmt: skip
    return (
        f"integers: {part:.0%} of the issue slots issue integer arithmetic; {wide:.0%} of the "
        "instructions are for 64-bit integers, in which Numba counts and indexes"
    )


def few_blocks(found: Forecast, call: Call, gpu: Device) -> str:
    """SMs without a block, for longer than the launch itself takes."""
    blocks = math.prod(dim(call.grid))
    if not gpu.sms or blocks >= gpu.sms or found.times["sm"] < found.launch:
        return ""
    count = f"{gpu.sms - blocks} of the {gpu.sms} SMs have"
    return f"few blocks: {count} nothing to do"


RULES: tuple[Callable[[Forecast, Call, Device], str], ...] = (
    spills,
    few_warps,
    integers,
    few_blocks,
)
