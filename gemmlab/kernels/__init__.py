"""The ladder: each rung one idea, each rung one file. This is the only list of kernels."""

from __future__ import annotations

from gemmlab.kernels.cpu.blocked import cpu_blocked
from gemmlab.kernels.cpu.naive import cpu_naive
from gemmlab.kernels.cpu.numpy import cpu_numpy
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.library.cublas import cublas
from gemmlab.kernels.own import own
from gemmlab.kernels.simt.coalesced import coalesced
from gemmlab.kernels.simt.naive import naive
from gemmlab.kernels.simt.pipelined import pipelined
from gemmlab.kernels.simt.register_tiled import register_tiled
from gemmlab.kernels.simt.tiled import tiled
from gemmlab.kernels.simt.vectorised import vectorised
from gemmlab.kernels.simt.warp_tiled import warp_tiled
from gemmlab.kernels.tensor_core.warp_specialised import warp_specialised

# From the definition up, on a GPU or the simulator.
LADDER = (naive, coalesced, tiled, register_tiled, vectorised, warp_tiled, pipelined)
HOPPER = (warp_specialised,)  # by wgmma and the TMA, for compute capability 9.0
REFERENCE = cublas  # what the ladder is measured against
CPU = (cpu_naive, cpu_blocked, cpu_numpy)  # the same road on this machine's processor

__all__ = [
    "CPU",
    "HOPPER",
    "LADDER",
    "REFERENCE",
    "Kernel",
    "coalesced",
    "cpu_blocked",
    "cpu_naive",
    "cpu_numpy",
    "cublas",
    "get",
    "naive",
    "own",
    "pipelined",
    "register_tiled",
    "tiled",
    "vectorised",
    "warp_specialised",
    "warp_tiled",
]


def get(name: str) -> Kernel:
    """The kernel of this name; ValueError, listing all names, for another.

    >>> get("tiled").idea
    'tiles of A and B in shared memory'
    """
    known = {k.name: k for k in (*LADDER, *HOPPER, REFERENCE, *CPU)}
    if name not in known:
        raise ValueError(f"kernel {name!r} is not known; use one of {', '.join(known)}")
    return known[name]
