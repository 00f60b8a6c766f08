"""Arrays of NumPy, CuPy, PyTorch and Numba: where they are, and new ones of the same kind there.

A `Stack` is matrices where they are: an address, a shape and strides, of any library's memory.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

ITEM = 4  # bytes of a float32
SECTOR = 16  # bytes of the widest access


@dataclass(frozen=True, eq=False)
class Stack:
    """Matrices of float32, (batch, rows, columns), as strides lead through memory.

    owner : what keeps the memory, or what the address counts from; address : of the first element
    strides : [B], of matrices, rows and columns; transposing and cutting change nothing else
    """

    owner: Any
    address: int
    shape: tuple[int, int, int]
    strides: tuple[int, int, int]

    @classmethod
    def of(
        cls, owner: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> Stack:
        """Return an array of two or three dimensions."""
        if len(shape) == 2:
            shape, strides = (1, *shape), (shape[0] * strides[0], *strides)
        return cls(owner, address, shape, strides)

    @property
    def transposed(self) -> Stack:
        (batch, rows, columns), (far, down, across) = self.shape, self.strides
        return replace(self, shape=(batch, columns, rows), strides=(far, across, down))

    @property
    def is_transposed(self) -> bool:
        """Whether neighbours in memory are neighbours in a column."""
        _, down, across = self.strides
        return 0 < abs(down) < abs(across) and self.shape[2] > 1

    @property
    def aligned(self) -> bool:
        """Whether rows begin at multiples of 16 bytes, and their elements are neighbours."""
        far, down, across = self.strides
        starts = self.address, down, far if self.shape[0] > 1 else 0
        return across == ITEM and all(s % SECTOR == 0 for s in starts) and (
            self.shape[2] * ITEM % SECTOR == 0
        )  # fmt: skip

    def cut(self, *parts: tuple[int, int]) -> Stack:
        """Return the part from `begin` to `end` along each of the three dimensions."""
        begins = [begin for begin, _ in parts]
        address = self.address + sum(b * s for b, s in zip(begins, self.strides, strict=True))
        return replace(self, address=address, shape=tuple(end - begin for begin, end in parts))

    @property
    def matrices(self) -> list[Stack]:
        whole = [(0, size) for size in self.shape[1:]]
        return [self.cut((i, i + 1), *whole) for i in range(self.shape[0])]

    def interface(self, dimensions: int) -> dict[str, Any]:
        """Return the array interface of it, version 3, of NumPy's kind and of CUDA's.

        dimensions : 3, or 2 of one matrix alone
        """
        return {
            "shape": self.shape[-dimensions:],
            "strides": self.strides[-dimensions:],
            "typestr": np.dtype(np.float32).str,
            "data": (self.address, False),
            "version": 3,
        }


def contiguous(shape: tuple[int, ...], itemsize: int = ITEM) -> tuple[int, ...]:
    """Strides of rows without gaps [B]."""
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


@dataclass(frozen=True, eq=False)
class Split:
    """An array B with its halves in FP16, for `matmul(a, b)`.

    array : B itself, which the library multiplies where it is faster
    halves : memory of the same library, as `products.prepare` lays it out; None where no kernel
        here reads it, and B is multiplied as it is
    """

    array: Any
    halves: Any = None

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def device(self) -> Any:
        return self.array.device

    @property
    def nbytes(self) -> int:
        """Bytes of the halves."""
        return 0 if self.halves is None else bytes_of(self.halves)


def whole(b: Any) -> Any:
    """Return B, whether it is split or not."""
    return b.array if isinstance(b, Split) else b


ACCEPTED = "NumPy and CuPy arrays, PyTorch tensors and Numba's device arrays"


class Place(NamedTuple):
    """A place is where an array is.

    library : "numpy", "cupy", "torch", "numba" or "numba_cuda_mlir"
    device : number of a GPU, None for the host
    """

    library: str
    device: int | None


def place_of(name: str, x: Any) -> Place:
    """Find where an operand is; TypeError for what is no array of a library that is known."""
    library = type(x).__module__.partition(".")[0].removesuffix("_cuda")
    masked = isinstance(x, np.ma.MaskedArray)  # a product would count what it hides
    if library == "numpy" and isinstance(x, np.ndarray) and not masked:
        return Place("numpy", None)
    if library == "cupy":
        return Place("cupy", x.device.id)
    if library == "torch" and x.device.type in ("cpu", "cuda"):
        return Place("torch", x.device.index if x.device.type == "cuda" else None)
    if library in MODULES and hasattr(x, "__cuda_array_interface__"):
        return Place(library, sys.modules[MODULES[library]].get_current_device().id)
    where = f" on {x.device}" if library == "torch" else ""
    raise TypeError(f"{name} is a {type(x).__module__}.{type(x).__name__}{where}; use {ACCEPTED}")


def multiplies(place: Place) -> bool:
    """Whether the library of a place multiplies on a GPU, and in FP32.

    PyTorch may be told to round operands to TF32 for speed, or to cast them to 16 bits, which is
    not what is asked for here.
    """
    if not may_multiply(place) or place.library == "cupy":
        return may_multiply(place)
    return keeping_to_fp32(library_of(place))()


def asking_for_tf32(torch: Any) -> Callable[[], bool]:
    """Return what tells whether PyTorch may round operands on a GPU to TF32 now.

    It raises RuntimeError where that was set by a newer name, `fp32_precision`, alone.
    """
    quick = getattr(getattr(torch, "_C", None), "_get_cublas_allow_tf32", None)
    return quick or (lambda: torch.get_float32_matmul_precision() != "highest")


def keeping_to_fp32(torch: Any) -> Callable[[], bool]:
    """Return what tells whether PyTorch multiplies float32 on a GPU in FP32 now."""
    rounds, casts = asking_for_tf32(torch), torch.is_autocast_enabled

    def keeps() -> bool:
        try:
            return not (rounds() or casts())
        except RuntimeError:
            return False

    return keeps


def may_multiply(place: Place) -> bool:
    """Whether the library of a place has a product of its own on a GPU."""
    return place.device is not None and place.library in ("cupy", "torch")


# Where a library makes arrays, if not in its first module.
MODULES = {"numba": "numba.cuda", "numba_cuda_mlir": "numba_cuda_mlir.cuda"}


def library_of(place: Place) -> Any:
    """The module of a place's library, which has made the arrays."""
    return sys.modules[place.library]


def by_library(place: Place, otherwise: Any) -> Any:
    """Return the product (a, b) -> A·B of the library of a place, which is a GPU.

    otherwise : multiplies where the library does not keep to FP32 now
    """
    library = library_of(place)
    matmul = library.matmul
    if place.library == "torch":
        keeps = keeping_to_fp32(library)

        def multiply_in_fp32(a: Any, b: Any) -> Any:
            return matmul(a, b) if keeps() else otherwise(a, b)

        return multiply_in_fp32
    # CuPy multiplies on the current GPU.
    current, there = library.cuda.runtime.getDevice, library.cuda.Device(place.device)

    def multiply(a: Any, b: Any) -> Any:
        if current() == place.device:
            return matmul(a, b)
        with there:
            return matmul(a, b)

    return multiply


def turned(x: Any) -> Any:
    """Return the transposed view of a matrix, or of those of a stack."""
    return x.transpose(-2, -1) if hasattr(x, "stride") else x.swapaxes(-2, -1)


def is_plain(x: Any) -> bool:
    """Whether an array has memory of its own, and does not stand for another one."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(x, torch.Tensor):
        return True
    return type(x) in (torch.Tensor, torch.nn.Parameter)


def where(x: Any) -> tuple[int, tuple[int, ...]] | None:
    """Return the address of an array and its strides, as its library counts them.

    None for a tensor that is noted as negative, whose memory holds something else.
    """
    if hasattr(x, "data_ptr"):
        return None if x.is_neg() else (x.data_ptr(), x.stride())
    return address_of(x), x.strides


def stream_of(place: Place) -> int:
    """Return the address of the stream that a library uses on a GPU, 0 for the default one."""
    if place.library == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream(place.device).ptr
    if place.library == "torch":
        return stream_of_torch(sys.modules["torch"])(place.device)
    return 0


@cache
def stream_of_torch(torch: Any) -> Callable[[int], int]:
    """Return the function (device) -> address of PyTorch's stream.

    The one that its own compiler calls takes a tenth of the time, because it makes no object.
    """
    quick = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    return quick or (lambda device: torch.cuda.current_stream(device).cuda_stream)


def empty(place: Place, shape: tuple[int, ...], dtype: str) -> Any:
    """Return a new array of a library on a GPU that is the current one."""
    return _maker(sys.modules[MODULES.get(place.library, place.library)], place, dtype)(shape)


@cache
def _maker(library: Any, place: Place, dtype: str) -> Any:
    """Return what makes arrays of a shape; calls are short, so that it is looked up once."""
    if place.library == "torch":
        there = library.device("cuda", place.device)
        return partial(library.empty, dtype=getattr(library, dtype), device=there)
    return partial(library.empty if place.library == "cupy" else library.device_array, dtype=dtype)


class Seen(NamedTuple):
    """An array as its memory is; strides in bytes."""

    owner: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def kind(self) -> Kind:
        """A plan depends on this of an array: the place within 16 bytes, the shape and strides."""
        return self.address % SECTOR, self.shape, self.strides


Kind = tuple[int, tuple[int, ...], tuple[int, ...]]


def seen(x: Any) -> Seen:
    """Return an array where it is; copied if neither rows nor columns have neighbours."""
    found = _seen(x)
    return found if ITEM in found.strides[-2:] else _seen(_contiguous(x))


def _seen(x: Any) -> Seen:
    if hasattr(x, "resolve_neg"):  # a tensor, which may be noted as negative
        x = x.resolve_neg()
        return Seen(x, x.data_ptr(), x.shape, strides_of(x))
    return Seen(x, address_of(x), x.shape, strides_of(x))


def strides_of(x: Any) -> tuple[int, ...]:
    """Find the strides of an array [B]; a tensor counts in elements."""
    return tuple([ITEM * s for s in x.stride()]) if hasattr(x, "stride") else x.strides


def is_transposed(x: Any) -> bool:
    """Whether the columns of what is `seen` are in one piece; nothing is copied to know that."""
    strides = strides_of(x)
    return ITEM in strides[-2:] and Stack.of(x, 0, tuple(x.shape), strides).is_transposed


def address_of(x: Any) -> int:
    """Find where the memory of an array begins."""
    if hasattr(x, "data_ptr"):  # PyTorch's
        return x.data_ptr()
    if hasattr(getattr(x, "data", None), "ptr"):  # CuPy's
        return x.data.ptr
    told = getattr(x, "__cuda_array_interface__", None) or x.__array_interface__
    return told["data"][0]


def bytes_of(x: Any) -> int:
    """Count the bytes of an array that is one piece of memory."""
    return x.numel() * x.element_size() if hasattr(x, "numel") else x.nbytes


def _contiguous(x: Any) -> Any:
    """Return a copy, row by row, by its own library."""
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
    """Return an array or tensor of the host as NumPy's."""
    return x.detach().resolve_neg().numpy() if hasattr(x, "detach") else np.asarray(x)


def as_kind(result: np.ndarray, place: Place) -> Any:
    """NumPy's result as an array of the caller's library."""
    return sys.modules["torch"].from_numpy(result) if place.library == "torch" else result


def check(a: Any, b: Any) -> tuple[Place, tuple[int, int, int, int]]:
    """Find the place of both operands, and batch, m, n and k; an error quotes what is wrong.

    Both have two dimensions or three, and are float32 arrays of one library on one device.
    """
    place, other = place_of("a", a), place_of("b", b)
    for name, x in (("a", a), ("b", b)):
        if x.dtype != "float32" and str(x.dtype) != "torch.float32":
            dtype = str(x.dtype).removeprefix("torch.")
            raise TypeError(f"{name} has dtype {dtype}; use float32")
    if place != other:
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
