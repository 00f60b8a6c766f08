"""Compiled code: what ptxas makes of a kernel, what an SM does with it, and how long that takes.

`sass` reads and executes it, `sm` simulates the cycles of one streaming multiprocessor, and
`forecast` makes of these the time on a whole GPU. What others need of all three is here:

predict_time(kernel, grid, block, *arguments, device="h200") -> Forecast
    any Numba-CUDA kernel, as it is launched
predict_rung(problem, device, kernel, tiling) -> Forecast
    a rung of the ladders, with its further launches
count_rung(problem, device, kernel, tiling)
    what the code of a rung asks of each part of an SM [cycles], without simulating one
predict_library(problem, device) -> LibraryForecast
    cuBLAS, of which there is no code, by its tiles' recorded times
"""

from importlib import import_module
from typing import Any

# They load NumPy-heavy tables, and Numba where it is installed, so that each loads when it is used.
_HOMES = {
    "Forecast": "kernel",
    "LibraryForecast": "library",
    "count_rung": "rungs",
    "predict_library": "library",
    "predict_rung": "rungs",
    "predict_time": "kernel",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gemmlab.compiled' has no attribute {name!r}")
    return getattr(import_module(f"gemmlab.compiled.forecast.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
