"""What is queued on a stream, by the driver itself: Numba's own launches take ten times as long.

Source: CUDA Driver API, sections Execution Control and Memory Management.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from gemmlab.here.driver import numba_cuda


class Call(NamedTuple):
    """A call of the driver: what it is to do, in words, its function and arguments."""

    what: str
    function: Callable
    arguments: tuple


class Current:
    """The GPU where memory is taken and launches are queued meanwhile, in this thread.

    A class, because a generator of `contextlib` takes three times as long, and calls are short.
    """

    def __init__(self, device: int) -> None:
        self.device = device

    def __enter__(self) -> None:
        go([Call("be used", _driver().cuCtxPushCurrent, (_context(self.device),))])

    def __exit__(self, *_: object) -> None:
        _driver().cuCtxPopCurrent()


def go(calls: Iterable[Call]) -> None:
    """Make the calls; RuntimeError tells which one the driver refuses."""
    for what, function, arguments in calls:
        (status,) = function(*arguments)
        if status:
            raise RuntimeError(f"the GPU would not {what}: {status.name}")


def launching(name: str, function: Any, size: tuple[int, ...], stream: int, pointers: int) -> Call:
    """A launch of a kernel; size : of the grid and of a block, and shared memory [B].

    pointers : the address of the addresses of its arguments, which a launch reads before it returns
    """
    driver = _driver()
    arguments = (function, *size, driver.CUstream(stream), pointers, 0)
    return Call(f"launch {name}", driver.cuLaunchKernel, arguments)


def filling(address: int, size: int, stream: int) -> Call:
    """Zeros for so many bytes."""
    driver = _driver()
    return Call("fill memory", driver.cuMemsetD8Async, (address, 0, size, driver.CUstream(stream)))


def copying(address: int, held: bytes, stream: int) -> Call:
    """A copy of bytes of the host, which the driver has read when it returns."""
    driver = _driver()
    arguments = (address, held, len(held), driver.CUstream(stream))
    return Call("copy memory", driver.cuMemcpyHtoDAsync, arguments)


def function_of(compiled: Any) -> Any:
    """A kernel that Numba compiled, as `launch` takes it, loaded on the current GPU."""
    compiled.bind()
    return _driver().CUfunction(int(compiled.library.get_cufunc().handle))


@cache
def _driver() -> Any:
    from cuda.bindings import driver

    return driver


@cache
def _context(device: int) -> Any:
    """The context of a GPU that its libraries share."""
    return numba_cuda().gpus[device].get_primary_context().handle
