"""The memories of a launch: arrays at addresses of their own, shared and local bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SEGMENT = 40  # bits of an address below the number of its array
LOCAL = 1 << 20  # the number in generic addresses of local memory
SHARED_START = 0x400  # of a block on Hopper: what lies below belongs to the system [B]


class Memory:
    """Bytes by space, and the accesses that turn addresses into elements of them."""

    def __init__(self, blocks: np.ndarray, shared_bytes: int, local_bytes: int) -> None:
        """`blocks` is, for each lane, the number of its block among those that run."""
        self.segments: list[np.ndarray] = []
        self.touched: set[int] = set()  # numbers of segments that were accessed
        self.blocks = blocks
        self.mbarriers: dict[tuple[int, int], Any] = {}  # by block and address
        self.completed: Callable[[tuple[int, int]], None] = lambda place: None
        count = int(blocks.max()) + 1
        self.spaces = {
            "shared": np.zeros(count * shared_bytes, np.uint8),
            "local": np.zeros(blocks.size * local_bytes, np.uint8),
        }
        self.starts = {
            "shared": blocks.astype(np.int64) * shared_bytes,
            "local": np.arange(blocks.size, dtype=np.int64) * local_bytes,
        }
        self.sizes = {"shared": shared_bytes, "local": local_bytes}

    def change(self, place: tuple[int, int], arrivals: int, bytes_: int) -> None:
        """Let an mbarrier count, and `completed` know where that completes a phase."""
        if self.mbarriers[place].add(arrivals, bytes_):
            self.completed(place)

    def add(self, array: np.ndarray) -> int:
        """The address at which `array`, with all that lies between its elements, is from now on."""
        low, high = np.lib.array_utils.byte_bounds(array)
        owner = _owner(array)
        start = owner.__array_interface__["data"][0]
        memory = np.ndarray(high - low, np.uint8, buffer=_flat(owner), offset=low - start)
        self.segments.append(memory)
        return (len(self.segments) << SEGMENT) + array.__array_interface__["data"][0] - low

    @property
    def footprint(self) -> int:
        """Bytes of all arrays that were accessed, whole."""
        return sum(self.segments[number - 1].size for number in self.touched)

    def place(self, space: str, address: np.ndarray, lanes: Any, width: int) -> tuple:
        """The elements, of `width` bytes, at addresses of `lanes`: (array, indices)."""
        if space == "global":
            if address.size and int(address[0] >> np.uint64(SEGMENT)) == LOCAL:
                space, address = "local", address & np.uint64((1 << SEGMENT) - 1)
            else:
                return self._global(address, width)
        size = self.sizes[space]
        if address.size and int(address.max()) + width > size:
            raise IndexError(
                f"address {int(address.max()):#x} is beyond {size} B of {space} memory"
            )
        at = self.starts[space][lanes] + address.astype(np.int64)
        return self.spaces[space].view(f"u{width}"), at // width

    def _global(self, address: np.ndarray, width: int) -> tuple:
        number = (address >> np.uint64(SEGMENT)).astype(np.int64)
        first = int(number[0])
        if (number != first).any():
            raise LookupError("one access to several arrays")
        if not 0 < first <= len(self.segments):
            raise IndexError(f"address {int(address[0]):#x} is in no array")
        segment = self.segments[first - 1]
        self.touched.add(first)
        at = (address & np.uint64((1 << SEGMENT) - 1)).astype(np.int64)
        if int(at.max()) + width > segment.size:
            raise IndexError(f"byte {int(at.max())} is beyond an array of {segment.size} B")
        whole = segment.size // width * width
        return segment[:whole].view(f"u{width}"), at // width


def _owner(array: np.ndarray) -> np.ndarray:
    """The array that owns the bytes."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _flat(owner: np.ndarray) -> np.ndarray:
    """The same bytes in the order in which they lie."""
    return owner if owner.flags.c_contiguous else owner.T
