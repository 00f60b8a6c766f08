"""Arrays of the simulated GPU and of the host, as programs of Numba-CUDA make and copy them."""

import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np

from gemmlab.here import numbas

__all__ = [
    "as_cuda_array", "device_array", "device_array_like", "from_cuda_array_interface",
    "is_cuda_array", "managed_array",
    "mapped", "mapped_array", "mapped_array_like", "pinned", "pinned_array", "pinned_array_like",
    "to_device",
]  # fmt: skip

CONTIGUOUS = "make it contiguous first, with np.ascontiguousarray(array)"


class Copies:
    """Arrays that a GPU can use are copied to and from the host by these methods."""

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Any = 0) -> np.ndarray:
        """A copy, in `ary` where that is given; TypeError, ValueError unless it is of its kind.

        An UnwrittenWarning says how many of its elements nobody has ever written.
        """
        missing = getattr(self, "unwritten", None)
        if missing is not None and missing.any():
            warnings.warn(
                f"{int(missing.sum()):,} of the {missing.size:,} elements that are copied to the "
                "host have never been written; a GPU has there whatever was there before",
                UnwrittenWarning,
                stacklevel=2,
            )
        if ary is None:
            return np.array(self, subok=False)
        _check_alike(self, ary)
        ary[...] = np.asarray(self).reshape(ary.shape)
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Take the values of `ary`; TypeError, ValueError unless it is of the same kind."""
        source = np.asanyarray(ary)
        _check_alike(self, source)
        self[...] = source.reshape(self.shape)


class UnwrittenWarning(UserWarning):
    """Memory is copied to the host that nobody has written."""


def _numpy_asks() -> bool:
    """Say whether a function of NumPy, and no program, is about to use an array's own method."""
    return sys._getframe(2).f_globals.get("__name__", "").startswith("numpy.")


class Told(NamedTuple):
    """Memory whose place a program was told: what holds it, and what of it nobody has written."""

    memory: weakref.ref
    size: int
    unwritten: np.ndarray | None


_told: dict[int, Told] = {}  # by address: kernels take this memory from any object, and no other


def _tell(array: np.ndarray) -> int:
    """Return the address of an array, which is known from now on."""
    address, memory = array.__array_interface__["data"][0], array
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    gone = weakref.ref(memory, lambda _: _told.pop(address, None))
    _told[address] = Told(gone, _span(array), getattr(array, "unwritten", None))
    return address


class Interface:
    """Arrays that tell other libraries where their memory is, as those of a GPU do."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        array: Any = self
        return {
            "shape": array.shape,
            "strides": None if array.flags.c_contiguous else array.strides,
            "data": (_tell(array) if array.size else 0, False),
            "typestr": array.dtype.str,
            "stream": None,
            "version": 3,
        }


class DeviceArray(Copies, Interface, np.ndarray):
    """An array of the simulated GPU, which kernels alone compute with.

    As of Numba's, one can take elements and slices of it, assign to them, and copy it; arithmetic
    and methods such as `sum` are for arrays of the host. NumPy's functions take it as a copy.

    unwritten : which elements nobody has written, as an array of its shape; None for none
    """

    unwritten: np.ndarray | None = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's function computes with a copy on the host."""
        if any(isinstance(out, DeviceArray) for out in options.get("out", ())):
            raise TypeError(f"{ufunc.__name__} cannot write to a device array; write a kernel")
        on_host = [np.asarray(i) if isinstance(i, DeviceArray) else i for i in inputs]
        return getattr(ufunc, method)(*on_host, **options)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        """NumPy's function works on a copy on the host, but where it asks for a method."""
        if function is np.transpose and isinstance(inputs[0], DeviceArray):
            return inputs[0].transpose(*inputs[1:], **options)
        return function(*_on_host(inputs), **_on_host(options))

    def _no_operator(self, *others: Any) -> Any:
        return NotImplemented

    __add__ = __radd__ = __iadd__ = __sub__ = __rsub__ = __isub__ = _no_operator
    __mul__ = __rmul__ = __imul__ = __matmul__ = __rmatmul__ = __imatmul__ = _no_operator
    __truediv__ = __rtruediv__ = __itruediv__ = __floordiv__ = __rfloordiv__ = _no_operator
    __ifloordiv__ = __mod__ = __rmod__ = __imod__ = __pow__ = __rpow__ = __ipow__ = _no_operator
    __and__ = __rand__ = __iand__ = __or__ = __ror__ = __ior__ = _no_operator
    __xor__ = __rxor__ = __ixor__ = __lt__ = __le__ = __gt__ = __ge__ = _no_operator

    def __getitem__(self, index: Any) -> Any:
        if _numpy_asks():
            return np.asarray(self)[index]
        _check_index(index)
        return self._with(super().__getitem__(index), lambda a: a[_elements(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        _check_index(index)
        super().__setitem__(index, np.asarray(value))
        if self.unwritten is not None:
            unwritten = getattr(value, "unwritten", None)
            self.unwritten[_elements(index)] = False if unwritten is None else unwritten

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """Assign to elements, as `array[key] = value` does."""
        self[key] = value

    def getitem(self, item: Any, stream: Any = 0) -> Any:
        """Return an element or a slice, as `array[item]` is."""
        return self[item]

    def _with(self, result: Any, same: Any) -> Any:
        """Return `result`, a view of this array, with the `same` view of what is unwritten."""
        if isinstance(result, DeviceArray) and self.unwritten is not None:
            part = same(self.unwritten)
            result.unwritten = part if part.shape == result.shape else None  # arrays in records
        return result

    def reshape(self, *shape: Any, order: str = "C") -> Self:
        """The memory is seen in another shape; NotImplementedError where that takes a copy."""
        result = self._with(super().reshape(*shape, order=order),
                            lambda a: a.reshape(*shape, order=order))  # fmt: skip
        if self.size and not np.shares_memory(result, self):
            raise NotImplementedError("this shape needs a copy; copy_to_host() first")
        return result

    def ravel(self, order: str = "C", stream: Any = 0) -> Self:
        """The memory is seen in one dimension; NotImplementedError where that takes a copy."""
        return self.reshape(-1, order=order)

    def squeeze(self, axis: Any = None, stream: Any = 0) -> Self:
        """The memory is seen without dimensions of 1."""
        return self._with(super().squeeze(axis), lambda a: a.squeeze(axis))

    def transpose(self, axes: Any = None) -> Self:
        """Return a copy with rows and columns swapped, of a matrix alone, as of Numba's."""
        if axes is not None and sorted(axes) != list(range(self.ndim)):
            raise ValueError(f"invalid axes list {axes!r}")
        if axes is not None and tuple(axes) == tuple(range(self.ndim)):
            return self
        if self.ndim != 2:
            raise NotImplementedError("transposing a non-2D DeviceNDArray isn't supported")
        result = np.array(np.asarray(self).T, order="C").view(DeviceArray)
        result.unwritten = None if self.unwritten is None else self.unwritten.T.copy()
        return result

    @property
    def T(self) -> Self:
        return self.transpose()

    def is_c_contiguous(self) -> bool:
        """Say whether the elements lie row by row without gaps."""
        return bool(self.flags.c_contiguous)

    def is_f_contiguous(self) -> bool:
        """Say whether the elements lie column by column without gaps."""
        return bool(self.flags.f_contiguous)

    @property
    def alloc_size(self) -> int:
        """Bytes from the first element to the end of the last one."""
        return _span(self) if self.size else 0

    @property
    def _numba_type_(self) -> Any:
        """The type by which Numba knows it in a kernel."""
        return numbas.part("typing.typeof").typeof(np.asarray(self))

    @property
    def is_cuda_ndarray(self) -> bool:
        return True

    __cuda_ndarray__, __cuda_memory__ = True, True
    stream = 0

    def view(self, *kind: Any, **options: Any) -> Any:
        """The memory is seen as elements of another type."""
        result = super().view(*kind, **options)
        if isinstance(result, DeviceArray) and result.shape == self.shape:
            result.unwritten = self.unwritten
        return result

    def split(self, section: int, stream: Any = 0) -> Iterator[Self]:
        """Views of `section` elements each, the last one perhaps shorter."""
        if self.ndim != 1:
            raise ValueError(f"an array of {self.ndim} dimensions cannot be split; ravel() it")
        return (self[begin : begin + section] for begin in range(0, self.size, section))

    def __bool__(self) -> bool:
        """Say whether there are elements: what they are is known to kernels alone."""
        return self.ndim == 0 or len(self) > 0

    def __reduce__(self) -> Any:
        raise TypeError("a device array cannot be pickled; copy_to_host() first")

    def __repr__(self) -> str:
        return f"<device array {self.shape} of {self.dtype}; copy_to_host() shows its values>"

    __str__ = __repr__


class _Missing:
    """A method of NumPy's arrays that an array of a GPU does not have."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, array: Any, owner: type) -> Any:
        if array is not None and _numpy_asks():
            return getattr(np.asarray(array), self.name)
        raise AttributeError(
            f"a device array has no {self.name}; copy_to_host() first, or write a kernel"
        )


OF_THE_HOST = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "byteswap", "choose"),
    *("clip", "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot"),
    *("fill", "flatten", "item", "max", "mean", "min", "nonzero", "partition", "prod", "put"),
    *("repeat", "resize", "round", "searchsorted", "sort", "std", "sum", "swapaxes", "take"),
    *("tobytes", "tofile", "tolist", "trace", "var"),
)
for method in OF_THE_HOST:
    setattr(DeviceArray, method, _Missing(method))


def _on_host(value: Any) -> Any:
    """Return arguments of a function of NumPy, with arrays of the host in place of a GPU's."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_on_host, value))
    if isinstance(value, dict):
        return {name: _on_host(item) for name, item in value.items()}
    return np.asarray(value) if isinstance(value, DeviceArray) else value


class SharedArray(Copies, Interface, np.ndarray):
    """An array of the host that kernels use in place: mapped, managed or pinned."""


def _check_alike(one: Any, other: np.ndarray) -> None:
    """A copy needs arrays of the same type and, but for dimensions of 1, of the same shape."""
    if one.dtype != other.dtype:
        raise TypeError(f"incompatible dtype: {one.dtype} vs. {other.dtype}")
    shapes = [tuple(n for n in array.shape if n != 1) for array in (one, other)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"incompatible shape: {one.shape} vs. {other.shape}")


def _check_index(index: Any) -> None:
    """Elements, slices and fields alone can be taken from memory that is not the host's."""
    for part in index if isinstance(index, tuple) else (index,):
        whole = isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_))
        if not (whole or isinstance(part, (slice, str)) or part is Ellipsis):
            raise NotImplementedError(
                f"a device array cannot be indexed with {part!r}; use integers and slices, or "
                "copy_to_host() first"
            )


def _elements(index: Any) -> Any:
    """Return the elements of an index: all of them where it is the name of a field."""
    return Ellipsis if isinstance(index, str) else index


def check_contiguous(array: np.ndarray) -> None:
    """ValueError for an array of the host that cannot be copied as one piece of memory."""
    if not (array.flags.c_contiguous or array.flags.f_contiguous or 0 in array.strides):
        raise ValueError(
            f"an array of shape {array.shape} and strides {array.strides} B is not contiguous and "
            f"cannot be copied to a GPU in one piece; {CONTIGUOUS}"
        )


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> DeviceArray:
    """Give a copy of an array, in `to` where that is given; ValueError unless it is contiguous."""
    array = np.asanyarray(obj)
    if not isinstance(array, DeviceArray):
        check_contiguous(array)
    if to is not None:
        to.copy_to_device(array)
        return to
    result = _unwritten_array(array.shape, array.dtype, "F" if _by_columns(array) else "C")
    if copy:
        result[...] = array
        result.unwritten = getattr(array, "unwritten", None)
    return result


def _by_columns(array: np.ndarray) -> bool:
    return array.flags.f_contiguous and not array.flags.c_contiguous


def _fresh(shape: Any, dtype: Any, order: str, strides: Any = None) -> np.ndarray:
    """Memory as nobody left it: all bits are one, which is NaN as a float."""
    if strides is not None:
        shape = shape if isinstance(shape, tuple) else (shape,)
        size = np.dtype(dtype).itemsize + sum(
            (n - 1) * s for n, s in zip(shape, strides, strict=True)
        )
        array = np.ndarray(shape, dtype, np.empty(size, np.uint8), 0, strides)
    else:
        array = np.empty(shape, dtype, order)
    if array.dtype == bool:
        array.fill(True)
    elif array.size and strides is None:
        array.ravel("K").view(np.uint8)[...] = 0xFF
    elif array.size:
        array.base[...] = 0xFF
    return array


def _unwritten_array(shape: Any, dtype: Any, order: str, strides: Any = None) -> DeviceArray:
    result = _fresh(shape, dtype, order, strides).view(DeviceArray)
    result.unwritten = np.ones(result.shape, bool, order)
    return result


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
) -> DeviceArray:
    """Return an array that nobody has written: its floats are NaN."""
    return _unwritten_array(shape, dtype, order, strides)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceArray:
    """Return an array that nobody has written, of the shape and the type of another one."""
    return _unwritten_array(ary.shape, ary.dtype, "F" if _by_columns(ary) else "C")


def mapped_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0,
    portable: bool = False, wc: bool = False,
) -> SharedArray:  # fmt: skip
    """Return an array of the host that kernels use in place; its floats are NaN."""
    return _fresh(shape, dtype, order, strides).view(SharedArray)


def mapped_array_like(ary: Any, stream: Any = 0, portable: bool = False, wc: bool = False) -> Any:
    """Return an array as `mapped_array` does, of the shape and the type of another one."""
    return mapped_array(ary.shape, ary.dtype, order="F" if _by_columns(ary) else "C")


def managed_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0,
    attach_global: bool = True,
) -> SharedArray:  # fmt: skip
    """Return an array that host and kernels both use; its floats are NaN."""
    return _fresh(shape, dtype, order, strides).view(SharedArray)


def pinned_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C"
) -> np.ndarray:
    """Return an array of the host, which a GPU would copy faster; its floats are NaN."""
    return _fresh(shape, dtype, order, strides)


def pinned_array_like(ary: Any) -> np.ndarray:
    """Return an array as `pinned_array` does, of the shape and the type of another one."""
    return pinned_array(ary.shape, ary.dtype, order="F" if _by_columns(ary) else "C")


@contextmanager
def pinned(*arylist: np.ndarray) -> Iterator[None]:
    """Arrays of the host that a GPU copies faster in the body."""
    yield


@contextmanager
def mapped(*arylist: np.ndarray, **options: Any) -> Iterator[Any]:
    """Arrays of the host that kernels use in place in the body; one, or a list of several."""
    views = [array.view(SharedArray) for array in arylist]
    yield views[0] if len(views) == 1 else views


def is_cuda_array(obj: Any) -> bool:
    """Say whether `obj` is an array of a GPU, or tells of one by its `__cuda_array_interface__`."""
    return hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceArray:
    """Give the memory of an array of the simulated GPU; TypeError for other libraries' GPUs."""
    if isinstance(obj, DeviceArray):
        return obj
    if not is_cuda_array(obj):
        raise TypeError(f"a {type(obj).__name__} is no array of the simulated GPU; use to_device")
    return from_cuda_array_interface(obj.__cuda_array_interface__, obj)


def from_cuda_array_interface(
    desc: dict[str, Any], owner: Any = None, sync: bool = True
) -> DeviceArray:
    """Give the memory that a description tells of; TypeError where it is not the simulated GPU's.

    Raises NotImplementedError for a mask, as Numba does.
    """
    if desc.get("mask") is not None:
        raise NotImplementedError("Masked arrays are not supported")
    shape, dtype = tuple(desc["shape"]), np.dtype(desc["typestr"])
    strides, address = desc.get("strides"), desc["data"][0]
    if 0 in shape:
        return np.empty(shape, dtype).view(DeviceArray)
    for start, told in _told.items():
        if address is not None and start <= address < start + told.size:
            memory: Any = told.memory()
            begin = memory.__array_interface__["data"][0]
            size, unit = _span(memory), memory.itemsize
            flat = np.lib.stride_tricks.as_strided(memory, (size // unit,), (unit,))
            view = np.ndarray(shape, dtype, flat.view(np.uint8), address - begin, strides)
            result = view.view(DeviceArray)
            result.unwritten = _same_part(told.unwritten, address - start, result)
            return result
    where = "None" if address is None else f"{address:#x}"  # None: ctypes' null pointer
    raise TypeError(
        f"the memory at {where} is not the simulated GPU's; copy the array to the host, and "
        "give that to to_device"
    )


def _same_part(unwritten: np.ndarray | None, offset: int, array: np.ndarray) -> Any:
    """Return what nobody has written of an array that begins so many bytes behind another one."""
    if unwritten is None or not unwritten.flags.c_contiguous:
        return None
    flat = unwritten.reshape(-1)[offset // array.itemsize :]
    steps = tuple(s // array.itemsize for s in array.strides)
    return np.lib.stride_tricks.as_strided(flat, array.shape, steps)


def _span(array: np.ndarray) -> int:
    """Return the bytes from the first element of an array to the end of the last one."""
    return array.itemsize + sum(
        (n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)
    )
