"""Once a program has ended, its launches are predicted for a GPU, from compiled code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gemmlab.compiled.sass.execution.machine import Dim, dim
from gemmlab.measure.backends.stopping import limited
from gemmlab.measure.backends.trial import told
from gemmlab.simt.cuda.kernels import Call

SECONDS = 60.0  # of the processor, for one forecast; most take a few
OPTIONS = (
    "fastmath",
    "launch_bounds",
    "max_registers",
)  # of `cuda.jit`, where they change the code


@dataclass(frozen=True)
class LaunchForecast:
    """The predicted time of one launch.

    seconds : None where there is none [s]
    text : what it waits for, or why there is no time
    """

    kernel: str
    grid: Dim
    block: Dim
    seconds: float | None
    text: str


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


def _forecast(call: Call, device: str) -> LaunchForecast:
    from gemmlab.compiled.forecast.kernel import (
        predict_time,  # loads Numba, which the program has done
    )
    from gemmlab.compiled.forecast.words import sentence

    chosen = call.kernel.targetoptions
    options = {name: chosen[name] for name in OPTIONS if chosen.get(name)}
    name, grid, block = call.kernel.__name__, dim(call.grid), dim(call.block)
    try:
        with limited(SECONDS, "the prediction"):
            found = predict_time(
                call.kernel, grid, block, *call.arguments,
                device=device, shared_bytes=call.shared_bytes, **options,
            )  # fmt: skip
    except Exception as error:
        return LaunchForecast(name, grid, block, None, " ".join(told(error).split()))
    return LaunchForecast(name, grid, block, found.seconds, sentence(found))
