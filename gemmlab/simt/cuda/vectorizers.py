"""Kernels that are made of a function: by `vectorize` of numbers, by `reduce` of two values."""

import inspect
import linecache
import re
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gemmlab.simt.cuda import names as cuda
from gemmlab.simt.cuda.arrays import as_cuda_array, device_array, is_cuda_array, to_device
from gemmlab.simt.cuda.kernels import DeviceFunction, SimulatedKernel, jit
from gemmlab.simt.cuda.signatures import declared, evaluated
from gemmlab.simt.races.hazards import Note
from gemmlab.simt.report.report import Origin

__all__ = ["Reduce", "reduce", "vectorize"]

TEXT = """\
def {name}({parameters}):
    i = cuda.grid(1)
    if i < {count}:
        {body}
"""


def made(name: str, parameters: list[str], count: str, body: str, function: Any) -> SimulatedKernel:
    """Return a kernel that has a thread for each call of `function`, with a text of its own."""
    text = TEXT.format(name=name, parameters=", ".join(parameters), count=count, body=body)
    file = f"<{name} with {len(parameters)} arguments: {body}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict[str, Any] = {"cuda": cuda, "function": function}
    exec(compile(text, file, "exec"), scope)
    kernel = jit(scope[name])
    kernel.origin = Origin.of(plain(function))
    return kernel


def plain(function: Any) -> Callable:
    """Return the function of Python in what `jit` made of it, or itself."""
    return getattr(function, "py_func", function)


def signatures_of(given: Any) -> list[Any]:
    """Return signatures as a list, of one or several."""
    return given if isinstance(given, (list, tuple)) else [given]


class Vectorized:
    """A function of arrays, element by element, with NumPy's broadcasting; one thread each.

    types : (of the arguments, of the result) for each signature; arrays must have exactly the
        types of one, and numbers become those of its arguments, as in Numba
    """

    def __init__(self, function: Callable, types: list[tuple[tuple, np.dtype]]) -> None:
        self.function, self.types = DeviceFunction(function, {"device": True}), types
        self.__name__, self.nin = function.__name__, len(inspect.signature(function).parameters)
        names = [f"x{i}" for i in range(self.nin)]
        elements = ", ".join(f"{name}[i]" for name in names)
        name = f"vectorized_{re.sub('[^0-9a-zA-Z_]', '', self.__name__)}"
        body = f"out[i] = function({elements})"
        self.kernel = made(name, [*names, "out"], "out.size", body, self.function)

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0, **others: Any) -> Any:
        """Return the result for arrays or numbers: on the device if an argument is."""
        if others:
            warnings.warn("unrecognized keywords: " + ", ".join(others), stacklevel=2)
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arguments, not {len(args)}")
        given = [as_cuda_array(a) if is_cuda_array(a) else a for a in args]
        types, of_result = self._types(given)
        on_device = any(is_cuda_array(a) for a in given)
        whole = np.broadcast_arrays(
            *(np.asarray(a, None if _has_type(a) else t) for a, t in zip(given, types, strict=True))
        )
        shape = whole[0].shape if any(np.ndim(a) for a in given) else (1,)
        flat = [np.ravel(a).astype(t, copy=False) for a, t in zip(whole, types, strict=True)]
        result = device_array(whole[0].size, of_result)
        self.kernel.forall(result.size, stream=stream)(*flat, result)
        result = result.reshape(shape)
        if out is not None:
            out = as_cuda_array(out) if is_cuda_array(out) else out
            if out.shape != shape or out.dtype != of_result:
                raise TypeError(
                    f"out is {out.dtype} of shape {out.shape}; {self.__name__} gives {of_result} "
                    f"of shape {shape}"
                )
            out[...] = np.asarray(result)
            return out
        return result if on_device else result.copy_to_host()

    def reduce(self, arg: Any, stream: Any = 0) -> Any:
        """Return the function of all elements of an array of one dimension, two at a time."""
        if self.nin != 2 or np.ndim(arg) != 1:
            raise TypeError("reduce is of functions of two numbers, over one dimension")
        if arg.size == 0:
            raise TypeError("Reduction on an empty array.")
        left = to_device(arg)
        while left.size > 1:
            half = left.size // 2
            pairs = self(left[:half], left[half : 2 * half], stream=stream)
            if left.size % 2:
                pairs[:1] = self(pairs[:1], left[2 * half :], stream=stream)
            left = pairs
        return left[0]

    def _types(self, given: list[Any]) -> tuple[tuple, np.dtype]:
        arrays = [np.asarray(a).dtype if _has_type(a) else None for a in given]
        whole = [np.asarray(a).dtype for a in given]
        fits = [t for t in self.types if list(t[0]) == whole]
        fits = fits or [
            t for t in self.types
            if all(a is None or a == b for a, b in zip(arrays, t[0], strict=True))
        ]  # fmt: skip
        known = "; ".join(", ".join(map(str, types)) for types, _ in self.types)
        names = ", ".join("number" if a is None else str(a) for a in arrays)
        if not fits:
            raise TypeError(
                f"No matching version. GPU ufunc requires array arguments to have the exact types: "
                f"{self.__name__} is declared for ({known}), not for ({names})"
            )
        if len(fits) > 1:
            raise TypeError(
                f"ambiguous signature, too many untyped scalars: {self.__name__} is declared for "
                f"({known}), and given ({names}); make one of the numbers an np.float32, say"
            )
        return fits[0]


def _has_type(value: Any) -> bool:
    """Say whether an argument's type must be that of a signature: not so that of a number."""
    return not isinstance(value, (int, float, complex, np.number))


OPTIONS = "nopython", "identity", "cache"  # what `vectorize` takes beside the signatures


def vectorize(ftylist_or_function: Any = (), target: str = "cuda", **options: Any) -> Any:
    """Make a function of numbers one of arrays, as in ``vectorize(["float32(float32)"])``.

    Raises TypeError without signatures, which a GPU needs; KeyError for an option of others.
    """
    check_options("vectorize", options, OPTIONS)
    if callable(ftylist_or_function) or not ftylist_or_function:
        raise TypeError('a GPU needs signatures: write vectorize(["float32(float32)"])')
    types = [_types(signature) for signature in signatures_of(ftylist_or_function)]
    return lambda function: Vectorized(plain(function), types)


def check_options(name: str, options: dict[str, Any], known: tuple[str, ...]) -> None:
    """KeyError for an option that there is not, TypeError for a cache, as Numba has it."""
    for option in options:
        if option not in known:
            raise KeyError(
                f"Unrecognized options. cuda {name} target does not support option: '{option}'"
            )
    if options.get("cache"):
        raise TypeError("caching is not supported")


def _types(signature: Any) -> tuple[tuple, np.dtype]:
    """Give the types of arguments and of the result; TypeError for a signature without a result."""
    [arguments] = declared(signature)
    [[of_result]] = declared((result_of(signature),))
    return tuple(a.dtype for a in arguments), of_result.dtype


def result_of(signature: Any) -> Any:
    """Return the type that a signature returns; TypeError where it has none."""
    given = evaluated(signature)
    result = getattr(given, "return_type", None)
    if result is None or str(result) == "none":
        raise TypeError(f"{signature!r} does not say what it returns; write 'float32(float32)'")
    return result


THREADS = 128  # of a block: a power of two
BLOCKS = 64  # at most, of the first launch; the second one has a block


class Reduce:
    """The reduction of one-dimensional arrays by an associative function of two values.

    >>> total = Reduce(lambda a, b: a + b)
    """

    def __init__(self, functor: Callable) -> None:
        self.function = DeviceFunction(plain(functor), {"device": True})

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
        kernel.origin = Origin.of(self.function.py_func)
        kernel.notes = depends_on_order(self.function.py_func, values)
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
TRIED = 16  # triples of elements
NEAR = 1e-3  # of the largest float in two sums: so far rounding may bring them apart


def depends_on_order(function: Callable, values: Any) -> tuple[Note, ...]:
    """Note that a function gives other results in another order, with elements that show it.

    A function that cannot be called on the host, because it asks for its thread, is not judged.
    """
    ways: dict[tuple[str, str], Callable] = {
        ("f(f(a, b), c)", "f(a, f(b, c))"): lambda f, a, b, c: (f(f(a, b), c), f(a, f(b, c))),
        ("f(a, b)", "f(b, a)"): lambda f, a, b, c: (f(a, b), f(b, a)),
    }
    host = np.asarray(values)
    places = np.random.default_rng(0).integers(0, len(host), (TRIED, 3))
    for names, both in ways.items():
        for a, b, c in host[places]:
            try:
                with np.errstate(all="ignore"):
                    one, other = np.array(both(function, a, b, c)).astype(host.dtype)
                    differ = one != other
                    if host.dtype.kind in "fc":
                        differ = abs(one - other) > NEAR * max(map(abs, (a, b, c, one, other)))
            except Exception:
                return ()
            if differ:
                return (_order_note(function, names, (one, other), (a, b, c)),)
    return ()


def _order_note(function: Callable, names: tuple, results: tuple, values: tuple) -> Note:
    code, origin = function.__code__, (0, 0, 0)
    (first, second), (one, other) = names, results
    given = ", ".join(f"{n} = {v}" for n, v in zip("abc", values, strict=True) if f"{n}" in first)
    text = (
        f"{function.__name__} is not what a reduction needs: {first} is {one}, and {second} is "
        f"{other}, for {given}; the threads of a GPU take the elements in another order"
    )
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return Note(
        code.co_firstlineno, line, origin, origin, text, "order-of-reduction", code.co_filename
    )


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
