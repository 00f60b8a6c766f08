"""Arguments of a launch become parameters where a cubin says that they lie: C's layout."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.memory import Memory
from gemmlab.compiled.sass.listing import Parameters

HIDDEN = 2  # pointers that Triton puts behind the arguments: memory that its launcher provides
_POINTER = 8
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def as_c(arguments: Sequence[Any], parameters: Parameters, memory: Memory) -> bytes:
    """Write arguments as C passes them: of an array its address, of a number its bytes.

    NumPy's numbers and records have their own size; Python's numbers take that of the parameter.
    Raises ValueError for another number of arguments, or one that does not fit.
    """
    places = parameters.places
    if len(arguments) > len(places) or not _are_hidden(places[len(arguments) :], parameters):
        raise ValueError(
            f"the kernel takes {len(places)} parameters of {', '.join(str(s) for _, s in places)} "
            f"bytes; {len(arguments)} were given"
        )
    out = bytearray(max((offset + size for offset, size in places), default=0))
    for i, (argument, (offset, size)) in enumerate(zip(arguments, places, strict=False)):
        found = _bytes(argument, size, memory)
        if len(found) != size:
            raise ValueError(
                f"argument {i + 1} has {len(found)} bytes ({_told(argument)}), the kernel's "
                f"parameter {size}"
            )
        out[offset : offset + size] = found
    return bytes(out)


def _are_hidden(more: Sequence[tuple[int, int]], parameters: Parameters) -> bool:
    """Say whether parameters may be left out: none, or those of a kernel that Triton made."""
    sizes = [size for _, size in more]
    return not more or (parameters.block is not None and sizes == HIDDEN * [_POINTER])


def _bytes(argument: Any, size: int, memory: Memory) -> bytes:
    if isinstance(argument, np.ndarray) and argument.ndim:
        return struct.pack("<Q", memory.add(argument))
    if isinstance(argument, (np.generic, np.ndarray)):
        return argument.tobytes()
    if isinstance(argument, (bool, int)):
        return _whole(argument, size)
    if isinstance(argument, float) and size in _FLOATS:
        return struct.pack(_FLOATS[size], argument)
    raise ValueError(f"{argument!r} is no array and no number, and cannot be a parameter")


def _whole(argument: int, size: int) -> bytes:
    try:
        return argument.to_bytes(size, "little", signed=argument < 0)
    except OverflowError:
        raise ValueError(f"{argument} does not fit into a parameter of {size} bytes") from None


def _told(argument: Any) -> str:
    if isinstance(argument, np.ndarray) and argument.ndim:
        return "an array, whose address is passed"
    return f"{argument!r}"
