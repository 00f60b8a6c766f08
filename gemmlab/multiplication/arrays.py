"""Arrays of NumPy, CuPy, PyTorch and Numba: where they are, and new ones of the same kind there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.multiplication.stacks import ITEM, Stack

ACCEPTED = "NumPy and CuPy arrays, PyTorch tensors and Numba's device arrays"


@dataclass(frozen=True)
class Place:
    """Where an array is.

    library : "numpy", "cupy", "torch" or "numba"; device : number of a GPU, None for the host
    stream : the address of the library's current stream, 0 for the default one
    allocate : (shape, dtype) -> a new array there
    """

    library: str
    device: int | None
    stream: int
    allocate: Callable[[tuple[int, ...], str], Any]


def place_of(name: str, x: Any) -> Place:
    """Where an operand is; TypeError for what is no array of a library that is known."""
    library = type(x).__module__.partition(".")[0].removesuffix("_cuda")
    if library == "numpy" and isinstance(x, np.ndarray):
        return Place("numpy", None, 0, np.empty)
    if library == "cupy":
        cupy = sys.modules["cupy"]
        device = x.device.id
        return Place("cupy", device, cupy.cuda.get_current_stream(device).ptr, cupy.empty)
    if library == "torch" and x.device.type in ("cpu", "cuda"):
        return _of_tensor(sys.modules["torch"], x)
    if library == "numba" and hasattr(x, "__cuda_array_interface__"):
        cuda = sys.modules["numba.cuda"]
        return Place("numba", cuda.get_current_device().id, 0, cuda.device_array)
    where = f" on {x.device}" if library == "torch" else ""
    raise TypeError(f"{name} is a {type(x).__module__}.{type(x).__name__}{where}; use {ACCEPTED}")


def _of_tensor(torch: Any, x: Any) -> Place:
    def allocate(shape: tuple[int, ...], dtype: str) -> Any:
        return torch.empty(shape, dtype=getattr(torch, dtype), device=x.device)

    if x.device.type == "cpu":
        return Place("torch", None, 0, allocate)
    return Place("torch", x.device.index, torch.cuda.current_stream(x.device).cuda_stream, allocate)


def stack_of(x: Any) -> Stack:
    """The matrices of an array, where they are; copied if neither rows nor columns have neighbours.

    x : (rows, columns) or (batch, rows, columns) float32
    """
    x = x.resolve_neg() if hasattr(x, "resolve_neg") else x  # a tensor may hold -x, and a note
    stack = Stack.of(x, *_seen(x))
    if ITEM in stack.strides[1:]:
        return stack
    x = _contiguous(x)
    return Stack.of(x, *_seen(x))


def _seen(x: Any) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Address, shape and strides [B] of an array."""
    if hasattr(x, "data_ptr"):  # a tensor, which counts in elements
        return x.data_ptr(), tuple(x.shape), tuple(ITEM * stride for stride in x.stride())
    if hasattr(x.data, "ptr"):  # CuPy's
        return x.data.ptr, x.shape, x.strides
    return address_of(x), x.shape, x.strides


def address_of(x: Any) -> int:
    """Where an array begins, in its memory."""
    if hasattr(x, "data_ptr"):
        return x.data_ptr()
    told = getattr(x, "__cuda_array_interface__", None) or x.__array_interface__
    return told["data"][0]


def _contiguous(x: Any) -> Any:
    """A copy, row by row, by its own library."""
    if hasattr(x, "contiguous"):
        return x.contiguous()
    if not hasattr(x, "__cuda_array_interface__"):
        return np.ascontiguousarray(x)
    if "cupy" in sys.modules:
        return sys.modules["cupy"].ascontiguousarray(x)
    raise ValueError(
        f"strides of {x.strides} B leave gaps between all elements; use a contiguous array"
    )


def on_host(x: Any) -> np.ndarray:
    """An array or tensor of the host as NumPy's."""
    return x.detach().numpy() if hasattr(x, "detach") else x


def as_kind(result: np.ndarray, place: Place) -> Any:
    """NumPy's result as an array of the caller's library."""
    return sys.modules["torch"].from_numpy(result) if place.library == "torch" else result


def check(a: Any, b: Any) -> tuple[Place, tuple[int, int, int, int]]:
    """Where both operands are, and batch, m, n and k; TypeError or ValueError quotes what is wrong.

    Both have two dimensions or three, and are float32 arrays of one library on one device.
    """
    place, other = place_of("a", a), place_of("b", b)
    for name, x in (("a", a), ("b", b)):
        if x.dtype != "float32" and str(x.dtype) != "torch.float32":
            dtype = str(x.dtype).removeprefix("torch.")
            raise TypeError(f"{name} has dtype {dtype}; use float32")
    if (place.library, place.device) != (other.library, other.device):
        raise ValueError(f"a is {_told(place)} and b {_told(other)}; use two arrays of one place")
    left, right = tuple(a.shape), tuple(b.shape)
    fits = len(left) == len(right) in (2, 3) and left[:-2] == right[:-2] and left[-1] == right[-2]
    if not fits or 0 in (*left, *right):
        raise ValueError(
            f"a has shape {left} and b {right}; use (m, k) and (k, n), or (batch, m, k) and "
            "(batch, k, n), of one element or more"
        )
    batch = left[0] if len(left) == 3 else 1
    return place, (batch, left[-2], right[-1], left[-1])


def _told(place: Place) -> str:
    return f"{place.library}'s on " + (
        "the host" if place.device is None else f"GPU {place.device}"
    )
