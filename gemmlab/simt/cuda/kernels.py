"""Kernels and device functions as programs define and launch them, and who watches launches.

A kernel may be declared for types, as in ``cuda.jit("void(float32[:], int32)")``.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gemmlab.here import numbas
from gemmlab.instructions import typed
from gemmlab.simt.cuda import arrays, devices
from gemmlab.simt.cuda.overloads import Compilable, Compiled, Overloads
from gemmlab.simt.cuda.signatures import Argument, converted, declared, evaluated, type_of
from gemmlab.simt.launch import freeze, simulate
from gemmlab.simt.races.hazards import Note
from gemmlab.simt.report.report import Origin, Report

__all__ = ["In", "InOut", "Out", "declare_device", "jit"]


class Call(NamedTuple):
    """A launch as the program asks for it."""

    kernel: Any
    grid: Any
    block: Any
    arguments: tuple
    shared_bytes: int


class Watcher(NamedTuple):
    """A watcher is called with each launch: before it begins, and when it is done or has failed."""

    before: Callable[[Call], None]
    after: Callable[[Launched], None]
    failed: Callable[[], None] = lambda: None
    # Whether the first and last blocks of a large launch are enough; or which blocks of one are.
    sample: bool | Callable[[Call], bool | tuple[int, ...]] = False


@dataclass(frozen=True)
class Launched:
    """A launch that was watched: what it did, and how long this computer took to simulate it."""

    report: Report
    seconds: float


_watchers: list[Watcher] = []


@contextmanager
def watching(
    after: Callable[[Launched], None],
    before: Callable[[Call], None] = lambda call: None,
    sample: bool | Callable[[Call], bool | tuple[int, ...]] = False,
) -> Iterator[None]:
    """Call both with each launch in the body, in which hazards are collected, not raised."""
    with watched_by(Watcher(before, after, sample=sample)):
        yield


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Call a watcher with each launch in the body."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def launched(
    kernel: Any, grid: Any, block: Any, args: tuple, shared_bytes: int, cluster: Any = 1
) -> None:
    """Simulate a launch; HazardError at its first hazard, unless somebody watches."""
    __tracebackhide__ = True  # as in `told_at_the_kernel`
    call = Call(kernel, grid, block, args, shared_bytes)
    for watcher in _watchers:
        watcher.before(call)
    samples = (w.sample(call) if callable(w.sample) else w.sample for w in _watchers)
    start = time.perf_counter()
    try:
        report = simulate(
            kernel,
            grid,
            block,
            *args,
            shared_bytes=shared_bytes,
            cluster=cluster,
            on_hazard="collect" if _watchers else "raise",
            sample=next(filter(None, samples), False),
        )
    except Exception:  # not an interrupt, after which the launch has not ended
        for watcher in _watchers:
            watcher.failed()
        raise
    report.origin = kernel.origin or report.origin
    for note in kernel.notes:
        report.note(note)
    for watcher in _watchers:
        watcher.after(Launched(report, time.perf_counter() - start))


FORALL_THREADS = 256  # of a block where the caller leaves the choice

# Options of `cuda.jit` that change how Numba compiles, not what a kernel means.
OPTIONS = (
    *("cache", "debug", "device", "extensions", "fastmath", "forceinline", "inline"),
    *("launch_bounds", "lineinfo", "link", "lto", "max_registers", "nopython", "opt"),
    *("shared_memory_carveout", "cooperative", "abi", "abi_info"),
    *("opt_level", "capi", "chip", "features", "ptxas_options", "fast_math"),  # numba-cuda-mlir's
)


class DeviceFunction(Compilable):
    """A function that kernels call. The simulator runs it, Numba compiles it into a kernel."""

    def __init__(self, py_func: Callable, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func, self.targetoptions = py_func, options
        self.overloads = Overloads({})

    @functools.cached_property
    def compiled(self) -> Any:
        """The function as `numba.cuda` has it; kept, because Numba's types do not hold it."""
        with numbas.own() as cuda:
            return cuda.jit(**self.targetoptions)(self.py_func)

    # numba-cuda-mlir asks whatever a kernel calls for these two, by these names.
    __numba_cuda_mlir_jitable__ = True

    @functools.cached_property
    def _numba_cuda_mlir_device_dispatcher(self) -> Any:
        cuda, _ = numbas.typing(mlir=True)
        return cuda.jit(**self.targetoptions)(self.py_func)

    def compile(self, sig: Any) -> Compiled:
        """The function for the types of a signature."""
        [types] = declared(sig)
        return self.overloads.setdefault(types, Compiled(self, types))

    compile_device = compile

    def __getitem__(self, launch: Any) -> Any:
        raise RuntimeError(f"Cannot compile a device function as a kernel: {self.__name__}")

    @property
    def _numba_type_(self) -> Any:
        """The type by which a compiler knows it, when a kernel that it compiles calls it."""
        if typed.mlir_asks():
            return self._numba_cuda_mlir_device_dispatcher._numba_type_
        return self.compiled._numba_type_

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.py_func(*args, **keywords)


class SimulatedKernel(Compilable):
    """A kernel defined with the stand-in: launched as on a GPU, it runs on the simulator.

    Numbers and NumPy arrays of the scopes around it are those of its first launch, as Numba
    freezes them when it compiles; the memory of a `DeviceArray` is read anew.
    """

    def __init__(
        self, py_func: Callable, options: dict[str, Any], signatures: list[tuple[Argument, ...]]
    ) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func, self.targetoptions = py_func, options
        self.declared = signatures
        self.origin: Origin | None = None  # of what a program has written, where that is no kernel
        self.notes: tuple[Note, ...] = ()  # for the reports of its launches, from who made it
        self.program: dict = {}  # the function and its device functions, rewritten when first met
        self.overloads = Overloads({s: Compiled(self, s) for s in signatures})
        self.specialized = len(signatures) == 1  # as Numba has it: others are not compared
        self.specializations: dict[tuple, SimulatedKernel] = {}
        self.extensions = list(options.get("extensions") or ())
        if signatures:
            with suppress(Exception):  # which the launch tells
                freeze(py_func, self.program)

    @property
    def signatures(self) -> list[tuple[Argument, ...]]:
        """The types of arguments that it was declared for, or launched with."""
        return list(self.overloads)

    nopython_signatures = signatures

    def __getitem__(self, launch: tuple) -> Callable:
        """kernel[grid, block, stream, shared_bytes, cluster], to be called with the arguments.

        The last one is numba-cuda-mlir's. As of Numba's, the call returns nothing;
        `gemmlab.last_report()` says what it did.
        """
        if not isinstance(launch, tuple) or not 2 <= len(launch) <= 5:
            raise TypeError(
                f"{self.__name__}[{launch!r}] does not say how to launch; use [grid, block], or "
                "[grid, block, stream, shared_bytes], or with a cluster behind these"
            )
        return self.configure(*launch)

    def configure(
        self, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int | None = 0,
        cluster: Any = None,
    ) -> Callable:  # fmt: skip
        """Configure a launch as kernel[griddim, blockdim, stream, sharedmem, cluster] does."""
        if not (stream is None or isinstance(stream, devices.Stream) or stream == 0):
            raise TypeError(f"stream={stream!r} is no stream; use cuda.stream(), or 0")

        for name, sizes in (("griddim", griddim), ("blockdim", blockdim)):
            _check_sizes(name, sizes)

        def run(*args: object) -> None:
            __tracebackhide__ = True  # as in `told_at_the_kernel`
            after: list[Callable[[], None]] = []
            values = self._arguments(args, after)
            launched(self, griddim, blockdim, values, sharedmem or 0, cluster or 1)
            for give_back in after:
                give_back()
            types = tuple(map(type_of, values))
            self.overloads.setdefault(types, Compiled(self, types, "C"))

        return run

    def _arguments(self, args: tuple, after: list) -> tuple:
        """A launch hands over these values: arrays of `In`, `Out`, `InOut`, declared numbers."""
        values = list(args)
        for extension in reversed(self.extensions):
            prepared = [extension.prepare_args(None, v, stream=0, retr=after) for v in values]
            values = [value for _, value in prepared]
        values = [arg.handed_over() if isinstance(arg, Transfer) else arg for arg in values]
        values = [arrays.as_cuda_array(v) if _tells(v) else v for v in values]
        for value in values:
            if isinstance(value, np.ndarray) and not isinstance(value, arrays.DeviceArray):
                arrays.check_contiguous(value)
        return converted(self.__name__, self.declared, values) if self.declared else tuple(values)

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Callable:
        """A launch of at least `ntasks` threads, in blocks of `tpb`; none where there are none."""
        if ntasks < 0:
            raise ValueError(
                f"Can't create ForAll with negative task count: ntasks={ntasks} is negative; use "
                "the number of elements"
            )
        if ntasks == 0:
            return lambda *args: None
        threads = tpb or FORALL_THREADS
        return self[-(-ntasks // threads), threads, stream, sharedmem]

    def specialize(self, *args: Any) -> SimulatedKernel:
        """Return the kernel for arguments of these types alone."""
        if self.specialized:
            raise RuntimeError(f"Dispatcher already specialized: {self.__name__}")
        types = tuple(map(type_of, args))
        if types not in self.specializations:
            only = SimulatedKernel(self.py_func, self.targetoptions, [types])
            self.specializations[types] = only
        return self.specializations[types]

    def compile(self, sig: Any) -> Compiled:
        """The kernel for the types of a signature, as far as it is known without a compiler."""
        [types] = declared(sig)
        return self.overloads.setdefault(types, Compiled(self, types))

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """Blocks that can wait for each other; see `Compiled`."""
        return Compiled(self, ()).max_cooperative_grid_blocks(blockdim, dynsmemsize)

    def __getattr__(self, name: str) -> Any:
        if name == "__name__":
            raise AttributeError(name)
        raise AttributeError(f"kernel {self.__name__} has no attribute {name!r}")

    def __call__(self, *args: object) -> Any:
        raise ValueError(
            "Kernel launch configuration was not specified. Use the syntax:\n\n"
            "kernel_function[blockspergrid, threadsperblock](arg0, arg1, ..., argn)\n\n"
            f"launch it as {self.__name__}[grid, block](...)"
        )


def _check_sizes(name: str, sizes: Any) -> None:
    """ValueError for more than three sizes, TypeError for what is no whole number, as of Numba."""
    given = list(sizes) if isinstance(sizes, (tuple, list)) else [sizes]
    if not 1 <= len(given) <= 3:
        raise ValueError(f"{name} must be a sequence of 1, 2 or 3 integers, got {given!r}")
    if not all(isinstance(size, (int, np.integer)) for size in given):
        raise TypeError(f"{name} must be a sequence of integers, got {given!r}")


def _tells(value: Any) -> bool:
    """Say whether a value is no array, but tells of one on a GPU."""
    return not isinstance(value, np.ndarray) and arrays.is_cuda_array(value)


class Transfer:
    """An array of the host as an argument: `In` is copied to the GPU, `Out` and `InOut` back."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def handed_over(self) -> Any:
        return self.value


class In(Transfer):
    """An array that is copied to the GPU and not back: what a kernel writes to it is lost."""

    def handed_over(self) -> Any:
        """A copy; of memory of the GPU there is none to be made."""
        held = isinstance(self.value, arrays.DeviceArray) or _tells(self.value)
        return self.value if held else np.array(self.value)


class Out(Transfer):
    """An array that is copied back from the GPU."""


class InOut(Transfer):
    """An array that is copied to the GPU and back."""


def jit(func_or_sig: Any = None, device: bool = False, **options: Any) -> Any:
    """Mark a kernel, or with `device` a function that kernels call.

    In the place of the function may be a signature, as in `jit("void(float32[:])")`, or a list of
    them: numbers are then converted to its types, and other arrays refused, as by Numba. With
    debug=True a division by 0 raises, as there; other options on how to compile change nothing.

    Raises TypeError for an option that is none, NotImplementedError for code of another language.
    """
    if "fast_math" in options:
        options["fastmath"] = options.pop("fast_math")
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise TypeError(f"{unknown[0]!r} is no option of jit; use {', '.join(OPTIONS)}")
    if options.get("link"):
        raise NotImplementedError(
            f"link={options['link']!r}: code of another language cannot be simulated; write the "
            "function in Python with jit(device=True)"
        )
    plain = getattr(func_or_sig, "py_func", func_or_sig)  # of what `njit` made, too
    function = plain if hasattr(plain, "__code__") else None
    if device:
        given = {"device": True, **options}
        if isinstance(options.get("inline"), bool):  # as Numba turns them into what it reads
            given["inline"] = "always" if options["inline"] else "never"
        return _marked(function, lambda f: DeviceFunction(f, given))
    signatures = declared(func_or_sig) if function is None and func_or_sig is not None else []
    return _marked(function, lambda f: SimulatedKernel(f, options, signatures))


def _marked(function: Callable | None, mark: Callable) -> Any:
    return mark if function is None else mark(function)


class Foreign:
    """A device function that is written in another language: a kernel that calls it is refused."""

    def __init__(self, name: str, sig: Any) -> None:
        self.__name__ = self.name = name
        self.sig = evaluated(sig)
        self.instead = (
            "code of another language cannot be simulated; write it in Python with jit(device=True)"
        )


def declare_device(name: str, sig: Any, *args: Any, **options: Any) -> Foreign:
    """Declare a device function that is written in another language, which no kernel can call."""
    return Foreign(name, sig)
