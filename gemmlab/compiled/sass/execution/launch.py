"""Launch a listing as a GPU launches a kernel: parameters, constants, memory, blocks."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.machine import Machine
from gemmlab.compiled.sass.execution.memory import LOCAL, SEGMENT, SHARED_START, Memory
from gemmlab.compiled.sass.execution.special import Dim
from gemmlab.compiled.sass.listing import Listing
from gemmlab.tiling import WARP

PARAMETERS = {"sm_90": 0x210}  # of constant bank 0: where a kernel's parameters begin [B]
# Of constant bank 0: where generic addresses of local memory begin, the end of a thread's local
# memory, and the dynamic shared memory [B].
LOCAL_WINDOW, STACK, DYNAMIC = 0x20, 0x28, 0x2C


def dim(size: int | Sequence[int]) -> Dim:
    """Three sizes of a grid or a block from one, two or three."""
    sizes = (size,) if isinstance(size, int) else tuple(size)
    return (*map(int, sizes), 1, 1)[:3]


def launch(
    listing: Listing,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *arguments: Any,
    shared_bytes: int = 0,
    blocks: Iterable[Dim] | None = None,
) -> Machine:
    """A machine that is ready to run `listing` with arguments as Numba-CUDA passes them.

    arguments : arrays, whose elements change in place, and numbers
    shared_bytes : dynamic, of a block
    blocks : the places in the grid of those that run; all by default
    """
    grid, block = dim(grid), dim(block)
    chosen = list(blocks) if blocks is not None else _all(grid)
    room = -(-int(np.prod(block)) // WARP) * WARP
    places = np.repeat(np.arange(len(chosen)), room)
    local = -(-listing.local_bytes // 16) * 16 + 16
    memory = Memory(places, SHARED_START + listing.shared_bytes + shared_bytes, local)
    data = memory.add(np.frombuffer(bytearray(listing.data or bytes(16)), np.uint8))
    values = [v for argument in arguments for v in _flat(argument, memory)]
    start = PARAMETERS[listing.architecture]
    head = bytearray(start)
    struct.pack_into("<6I", head, 0, *block, *grid)
    struct.pack_into("<Q", head, LOCAL_WINDOW, LOCAL << SEGMENT)
    struct.pack_into("<I", head, STACK, local)
    struct.pack_into("<I", head, DYNAMIC, shared_bytes)
    banks = {bank: bytearray(text) for bank, text in listing.constants.items()}
    for offset, place in listing.pointers:
        struct.pack_into("<Q", banks[4], offset, data + place)
    constants = {0: bytes(head + _packed(values)), **{b: bytes(t) for b, t in banks.items()}}
    return Machine(listing, grid, block, chosen, constants, memory, places)


def _all(grid: Dim) -> list[Dim]:
    return [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]


def _flat(argument: Any, memory: Memory) -> list[Any]:
    """The parameters that Numba makes of an argument: of an array nine for two dimensions."""
    if isinstance(argument, np.ndarray):
        address = memory.add(argument)
        if argument.ndim == 0 and argument.dtype.names:  # a record
            return [np.uint64(address)]
        sizes = (argument.size, argument.itemsize, address, *argument.shape, *argument.strides)
        return [np.uint64(0), np.uint64(0), *(np.int64(size) for size in sizes)]
    if isinstance(argument, tuple):
        return [v for part in argument for v in _flat(part, memory)]
    if isinstance(argument, (bool, np.bool_)):
        return [np.uint8(argument)]
    if isinstance(argument, int):
        return [np.int64(argument)]
    if isinstance(argument, float):
        return [np.float64(argument)]
    if isinstance(argument, (complex, np.complexfloating)):
        part = np.float32 if isinstance(argument, np.complex64) else np.float64
        return [part(argument.real), part(argument.imag)]
    return [argument]


def _packed(values: list[Any]) -> bytes:
    """Parameters one after the other, each at a multiple of its size."""
    out = bytearray()
    for value in values:
        out += bytes(-len(out) % value.dtype.itemsize) + value.tobytes()
    return bytes(out)
