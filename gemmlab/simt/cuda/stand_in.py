"""The names that kernels are written with: `numba.cuda` where it is installed, else a stand-in.

Both give the same kernel source a meaning: `numba.cuda` compiles it for a GPU, and the simulator
runs it whichever of the two it was written with.
"""

from __future__ import annotations

from typing import Any

from gemmlab.driver import numba_cuda
from gemmlab.simt.cuda.host import HOST, SimulatedKernel
from gemmlab.simt.syntax.names import Names


class StandIn(Names):
    """The names of `numba.cuda` that kernels and tutorials use, for machines without it."""

    def __init__(self) -> None:
        super().__init__()
        vars(self).update(HOST)

    @staticmethod
    def jit(function: Any = None, **options: object) -> Any:
        """Mark a kernel; a device function (`device=True`) is left as it is.

        In the place of the function may be a signature, as in `jit("void(float32[:])")`; types
        are those of the arguments here, whatever it says.
        """
        wrap = (lambda f: f) if options.get("device") else SimulatedKernel
        return wrap(function) if callable(function) else wrap

    @staticmethod
    def is_available() -> bool:
        """False: there is no GPU behind the stand-in."""
        return False


def _real() -> Any:
    """The module `numba.cuda`, or None where it is missing or cannot be loaded."""
    try:
        cuda = numba_cuda()
        return cuda if callable(cuda.jit) else None
    except Exception:  # a broken CUDA install can fail in any way; `gemmlab doctor` says how
        return None


stand_in = StandIn()
cuda = _real() or stand_in
