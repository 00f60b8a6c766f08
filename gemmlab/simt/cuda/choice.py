"""A program that asks gemmlab for `cuda` gets Numba's where a GPU works, else the stand-in."""

import sys
from types import ModuleType

from gemmlab.here.driver import gpu_status
from gemmlab.instructions import host
from gemmlab.simt import cuda as stand_in


def chosen() -> ModuleType:
    """`numba.cuda` where a GPU works, else the stand-in; and the stand-in where it took its place.

    Only the driver is asked where there is none; where it finds a GPU, Numba runs a kernel on it,
    once a process.
    """
    if sys.modules.get("numba.cuda") is stand_in:  # a program under `gemmlab simulate`
        return stand_in
    return host.cuda() if gpu_status().works else stand_in


def __getattr__(name: str) -> ModuleType:
    """`cuda`, chosen anew each time: a program may be simulated in a process that had a GPU."""
    if name != "cuda":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return chosen()
