"""Kernels that are made of a function: by `vectorize` of numbers, by `reduce` of two values."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gemmlab.simt.cuda import names as cuda
from gemmlab.simt.cuda.arrays import DeviceArray, device_array
from gemmlab.simt.cuda.kernels import DeviceFunction, SimulatedKernel, declared, jit
from gemmlab.simt.numbers.types import TYPES

__all__ = ["Reduce", "guvectorize", "reduce", "vectorize"]

TEXT = """\
def {name}({parameters}, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = function({elements})
"""


class Vectorized:
    """A function of arrays, element by element, with NumPy's broadcasting; one thread each.

    types : (of the arguments, of the result) for each signature; the first one to which the
        arguments can be cast safely is used, as by NumPy's ufuncs
    """

    def __init__(self, function: Callable, types: list[tuple[tuple, np.dtype]]) -> None:
        self.function, self.types = DeviceFunction(function, {"device": True}), types
        self.__name__, self.nin = function.__name__, len(inspect.signature(function).parameters)
        self.kernel = self._kernel()

    def _kernel(self) -> SimulatedKernel:
        """Return the kernel, with a text of its own where `inspect` finds it."""
        names = [f"x{i}" for i in range(self.nin)]
        text = TEXT.format(
            name=f"vectorized_{self.__name__.strip('<>')}",
            parameters=", ".join(names),
            elements=", ".join(f"{name}[i]" for name in names),
        )
        file = f"<vectorize {self.__name__} with {self.nin} arguments>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope: dict[str, Any] = {"cuda": cuda, "function": self.function}
        exec(compile(text, file, "exec"), scope)
        [kernel] = [v for k, v in scope.items() if k.startswith("vectorized_")]
        return jit(kernel)

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0) -> Any:
        """Return the result for arrays or numbers: on the device if an argument is."""
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arguments, not {len(args)}")
        given = [np.asarray(a) for a in args]
        types, of_result = self._types(given)
        whole = np.broadcast_arrays(*given)
        shape = whole[0].shape
        flat = [np.ravel(a).astype(t) for a, t in zip(whole, types, strict=True)]
        result = device_array(whole[0].size, of_result)
        self.kernel.forall(result.size, stream=stream)(*flat, result)
        result = result.reshape(shape)
        if out is not None:
            out[...] = np.asarray(result)
            return out
        if any(isinstance(a, DeviceArray) for a in args):
            return result
        return result.copy_to_host() if shape else result.copy_to_host()[()]

    def _types(self, given: list[np.ndarray]) -> tuple[tuple, np.dtype]:
        for types, of_result in self.types:
            if all(np.can_cast(a.dtype, t) for a, t in zip(given, types, strict=True)):
                return types, of_result
        known = "; ".join(", ".join(map(str, types)) for types, _ in self.types)
        names = ", ".join(str(a.dtype) for a in given)
        raise TypeError(f"{self.__name__} is declared for ({known}), not for ({names})")


def vectorize(ftylist_or_function: Any = (), target: str = "cuda", **options: Any) -> Any:
    """Make a function of numbers one of arrays, as in ``vectorize(["float32(float32)"])``.

    Raises TypeError without signatures, which a GPU needs.
    """
    if callable(ftylist_or_function) or not ftylist_or_function:
        raise TypeError('a GPU needs signatures: write vectorize(["float32(float32)"])')
    given = ftylist_or_function if isinstance(ftylist_or_function, list) else [ftylist_or_function]
    types = [_types(signature) for signature in given]
    return lambda function: Vectorized(getattr(function, "py_func", function), types)


def _types(signature: Any) -> tuple[tuple, np.dtype]:
    """Give the types of arguments and of the result; TypeError for a signature without a result."""
    [arguments] = declared(signature)
    made = (
        eval(signature, {"__builtins__": {}}, dict(TYPES)) if isinstance(signature, str) else None
    )
    result = getattr(made or signature, "return_type", None)
    if result is None:
        raise TypeError(f"{signature!r} does not say what it returns; write 'float32(float32)'")
    [[of_result]] = declared((result,))
    return tuple(a.dtype for a in arguments), of_result.dtype


def guvectorize(*args: Any, **options: Any) -> Any:
    """Refuse generalised functions, which are not simulated."""
    raise NotImplementedError(
        "guvectorize is not simulated; write a kernel with cuda.jit that has a thread for each "
        "element of the outer dimensions"
    )


THREADS = 128  # of a block: a power of two
BLOCKS = 64  # at most, of the first launch; the second one has a block


class Reduce:
    """The reduction of one-dimensional arrays by an associative function of two values.

    >>> total = Reduce(lambda a, b: a + b)
    """

    def __init__(self, functor: Callable) -> None:
        self.function = DeviceFunction(getattr(functor, "py_func", functor), {"device": True})

    def __call__(
        self, arr: Any, size: int | None = None, res: Any = None, init: Any = 0, stream: Any = 0
    ) -> Any:
        """Return the reduction of the first `size` elements of `arr`, and of `init`.

        In the first element of `res`, where that is given. Raises TypeError for an array that has
        not one dimension.
        """
        if arr.ndim != 1:
            raise TypeError(f"an array of {arr.ndim} dimensions cannot be reduced; ravel() it")
        values = arr if size is None else arr[:size]
        init = arr.dtype.type(init)
        if values.size == 0:
            return init
        kernel = _kernel(self.function, arr.dtype.type)
        blocks = min(-(-values.size // THREADS), BLOCKS)
        partials = device_array(blocks, arr.dtype)
        kernel[blocks, THREADS, stream](values, partials, init, blocks == 1)
        if blocks > 1:
            kernel[1, THREADS, stream](partials, result := device_array(1, arr.dtype), init, True)
            partials = result
        if res is None:
            return partials[0]
        res[:1].copy_to_device(partials[:1])
        return None


reduce = Reduce


@cache
def _kernel(function: DeviceFunction, number: type) -> SimulatedKernel:
    """Return the kernel that reduces to one partial result a block."""

    @jit
    def reduce_blocks(values, partials, init, last):
        shared = cuda.shared.array(THREADS, number)
        thread, first = cuda.threadIdx.x, cuda.grid(1)
        if first < values.size:
            result = values[first]
            for i in range(first + cuda.gridsize(1), values.size, cuda.gridsize(1)):
                result = function(result, values[i])
            shared[thread] = result
        cuda.syncthreads()
        count = min(THREADS, values.size - cuda.blockIdx.x * THREADS)
        half = THREADS // 2
        while half > 0:
            if thread < half and thread + half < count:
                shared[thread] = function(shared[thread], shared[thread + half])
            cuda.syncthreads()
            half //= 2
        if thread == 0:
            partials[cuda.blockIdx.x] = function(shared[0], init) if last else shared[0]

    return reduce_blocks
