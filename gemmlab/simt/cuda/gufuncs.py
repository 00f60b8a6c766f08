"""`guvectorize`: a function of arrays, called for each place of their outer dimensions.

The signature, such as ``(m, n), (n, p)->(m, p)``, says which dimensions the function sees; a
kernel calls it with one thread for each place of those before. Source of the rules: Numba-CUDA,
`numba.cuda.deviceufunc`.
"""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gemmlab.simt.cuda.arrays import DeviceArray, as_cuda_array, device_array, is_cuda_array
from gemmlab.simt.cuda.kernels import DeviceFunction, SimulatedKernel
from gemmlab.simt.cuda.signatures import declared, evaluated
from gemmlab.simt.cuda.vectorizers import made, plain, signatures_of
from gemmlab.simt.numbers.values import several

__all__ = ["guvectorize"]

Core = tuple[str, ...]  # the names of the dimensions that the function sees of an argument


def parsed(signature: str) -> tuple[list[Core], list[Core]]:
    """Return the dimensions of inputs and of outputs; NameError for one that no input has.

    >>> parsed("(m, n), (n)->(m), ()")
    ([('m', 'n'), ('n',)], [('m',), ()])
    """
    sides = []
    for side in signature.partition("->")[::2]:
        groups = re.findall(r"\(([^()]*)\)", side)
        sides.append([tuple(n.strip() for n in g.split(",") if n.strip()) for g in groups])
        rest = re.sub(r"\([\w\s,]*\)|[\s,]", "", side)
        if rest or not groups:
            raise ValueError(f"bad token in signature {signature!r}: {rest!r}")
    inputs, outputs = sides
    unknown = {n for core in outputs for n in core} - {n for core in inputs for n in core}
    if unknown:
        raise NameError(f"undefined output symbols: {','.join(sorted(unknown))}")
    return inputs, outputs


class Form(NamedTuple):
    """A form of the function: types of its inputs and outputs, and the kernel that calls it."""

    inputs: tuple[np.dtype, ...]
    outputs: tuple[np.dtype, ...]
    kernel: SimulatedKernel


class Generalized:
    """A function of arrays by a signature of their dimensions."""

    def __init__(self, function: Callable, given: list[Any], signature: str) -> None:
        self.__name__, self.signature = function.__name__, signature
        self.inputs, self.outputs = parsed(signature)
        self.nin, self.nout = len(self.inputs), len(self.outputs)
        self.forms = [self._form(function, one) for one in given]

    def _form(self, function: Callable, given: Any) -> Form:
        result = getattr(evaluated(given), "return_type", None)
        if result is not None and str(result) != "none":
            raise TypeError(
                f"guvectorized functions cannot return values: signature {given} specifies "
                f"{result} return type"
            )
        [arguments] = declared(given)
        cores = [*self.inputs, *self.outputs]
        if len(arguments) != len(cores):
            raise TypeError(
                f"{given!r} has {several(len(arguments), 'argument')}, and {self.signature!r} has "
                f"{len(cores)}"
            )
        names = [f"x{i}" for i in range(len(cores))]
        parts = []
        for name, argument, core in zip(names, arguments, cores, strict=True):
            if argument.ndim == 0 and core:
                raise ValueError("gufunc signature mismatch: ndim>0 for scalar")
            whole = "i" + ", :" * len(core)
            parts.append(f"{name}[{whole if core or not argument.ndim else 'i : i + 1'}]")
        name = f"gufunc_{re.sub('[^0-9a-zA-Z_]', '', self.__name__)}"
        called = DeviceFunction(function, {"device": True})
        body = f"function({', '.join(parts)})"
        kernel = made(name, names, f"{names[-1]}.shape[0]", body, called)
        types = [a.dtype for a in arguments]
        return Form(tuple(types[: self.nin]), tuple(types[self.nin :]), kernel)

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0) -> Any:
        """Return the outputs: on the device if an argument is; those given are filled."""
        if out is None and len(args) not in (self.nin, self.nin + self.nout):
            raise TypeError(
                f"This gufunc accepts {several(self.nin, 'positional argument')} (when providing "
                f"input only) or {several(self.nin + self.nout, 'positional argument')} (when "
                f"providing input and output). Got {several(len(args), 'positional argument')}."
            )
        if out is not None and len(args) > self.nin:
            raise ValueError("cannot specify argument 'out' as both positional and keyword")
        given = [as_cuda_array(a) if is_cuda_array(a) else np.asarray(a) for a in args]
        outputs = given[self.nin :] or (list(out) if isinstance(out, tuple) else [out] * self.nout)
        outputs = [as_cuda_array(o) if is_cuda_array(o) else o for o in outputs]
        on_device = any(isinstance(a, DeviceArray) for a in (*given, *outputs))
        inputs = given[: self.nin]
        outer, cores = self._shapes([a.shape for a in inputs])
        form = self._chosen([a.dtype for a in inputs])
        shapes = [outer + core for core in cores]
        for shape, output in zip(shapes, outputs, strict=True):
            if output is not None and output.shape != shape:
                raise ValueError("output shape mismatch")
        results = [
            o if isinstance(o, DeviceArray) else device_array(s, t)
            for o, s, t in zip(outputs, shapes, form.outputs, strict=True)
        ]
        self._launch(form, outer, inputs, results, stream)
        if on_device and all(o is None or isinstance(o, DeviceArray) for o in outputs):
            return results[0] if self.nout == 1 else tuple(results)
        found = [r.copy_to_host(o) for r, o in zip(results, outputs, strict=True)]
        return found[0] if self.nout == 1 else tuple(found)

    def _shapes(self, given: list[tuple]) -> tuple[tuple, list[tuple]]:
        """Return the outer dimensions, and the core ones of each output."""
        sizes: dict[str, int] = {}
        outer = []
        for i, (shape, core) in enumerate(zip(given, self.inputs, strict=True), 1):
            if len(shape) < len(core):
                raise ValueError(f"arg #{i}: insufficient inner dimension")
            first = len(shape) - len(core)
            for axis, (name, size) in enumerate(zip(core, shape[first:], strict=True), first):
                if sizes.setdefault(name, size) != size:
                    raise ValueError(f"arg #{i}: shape[{axis}] mismatch argument")
            outer.append(tuple(shape[:first]))
        whole = max(outer, key=lambda shape: (math.prod(shape), -outer.index(shape)))
        for i, shape in enumerate(outer, 1):
            if shape not in (whole, (1,), ()):
                raise ValueError(f"arg #{i}: outer dimension mismatch")
        return whole, [tuple(sizes[name] for name in core) for core in self.outputs]

    def _chosen(self, types: list[np.dtype]) -> Form:
        exact = [form for form in self.forms if list(form.inputs) == types]
        for form in exact or self.forms:
            # This way round, as Numba asks: an argument's type must be the wider one.
            if all(np.can_cast(own, t) for t, own in zip(types, form.inputs, strict=True)):
                return form
        raise TypeError("no matching signature")

    def _launch(self, form: Form, outer: tuple, inputs: list, results: list, stream: Any) -> None:
        count = math.prod(outer)
        if count == 0:
            raise AssertionError("zero looping dimension")
        arguments = []
        for array, core, dtype in zip(inputs, self.inputs, form.inputs, strict=True):
            inner = array.shape[array.ndim - len(core) :]
            if array.dtype != dtype:
                array = np.asarray(array).astype(dtype)
            if array.size == math.prod(outer + inner):
                arguments.append(array.reshape((count, *inner)))
            else:  # one for all places
                whole = np.broadcast_to(np.asarray(array), outer + inner)
                arguments.append(np.ascontiguousarray(whole).reshape((count, *inner)))
        arguments += [r.reshape((count, *r.shape[len(outer) :])) for r in results]
        form.kernel.forall(count, stream=stream)(*arguments)


OPTIONS = "target", "identity", "is_dynamic"


def guvectorize(
    ftylist: Any, signature: str | None = None, nopython: bool = True, cache: bool = False,
    writable_args: tuple = (), **options: Any,
) -> Any:  # fmt: skip
    """Make a function of arrays one of arrays of more dimensions, called for each place of these.

    As in ``guvectorize(["(float32[:], float32[:])"], "(n)->()")``. Raises TypeError for options
    that Numba-CUDA does not take.
    """
    if cache or writable_args:
        raise TypeError("caching is not supported" if cache else "writable_args are not supported")
    if not nopython:
        raise TypeError("nopython flag must be True")
    unknown = [repr(name) for name in options if name not in OPTIONS]
    if unknown:
        raise TypeError(f"The following target options are not supported: {', '.join(unknown)}")
    if signature is None:
        raise TypeError('a GPU needs types: write guvectorize(["(f4[:], f4[:])"], "(n)->()")')
    return lambda function: Generalized(plain(function), signatures_of(ftylist), signature)
