"""What is queued on a stream, by the driver itself: Numba's own launches take ten times as long.

Source: CUDA Driver API, sections Execution Control and Memory Management.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

from gemmlab.driver import numba_cuda


@contextmanager
def current(device: int) -> Iterator[None]:
    """Make a GPU the one where memory is taken and launches are queued, in this thread."""
    driver = _driver()
    _check("be used", *driver.cuCtxPushCurrent(_context(device)))
    try:
        yield
    finally:
        driver.cuCtxPopCurrent()


def launch(function: Any, size: tuple[int, ...], stream: int, pointers: int) -> None:
    """Queue a kernel; size : of the grid and of a block, and shared memory [B].

    pointers : the address of the addresses of its arguments
    """
    _check("launch a kernel", *_driver().cuLaunchKernel(function, *size, stream, pointers, 0))


def fill(address: int, size: int, stream: int) -> None:
    """Queue zeros for so many bytes."""
    _check("fill memory", *_driver().cuMemsetD8Async(address, 0, size, stream))


def copy(address: int, held: bytes, stream: int) -> None:
    """Queue a copy of bytes of the host, which the driver has read when this returns."""
    _check("copy memory", *_driver().cuMemcpyHtoDAsync(address, held, len(held), stream))


@lru_cache(maxsize=512)
def maps_of(matrices: tuple[tuple[int, tuple[int, int], str, int], ...]) -> bytes:
    """The tensor maps of matrices without gaps: of each the address, shape, dtype, rows of a box.

    A map says where a matrix is and what shape it has, nothing of what is in it.
    """
    return b"".join(_described(*each) for each in matrices)


def _described(address: int, shape: tuple[int, int], dtype: str, rows: int) -> bytes:
    from gemmlab.instructions.numba_cuda.tensor_maps import described

    return described(address, shape, dtype, rows)


def function_of(compiled: Any) -> Any:
    """A kernel that Numba compiled, as `launch` takes it, loaded on the current GPU."""
    compiled.bind()
    return _driver().CUfunction(int(compiled.library.get_cufunc().handle))


def _check(what: str, status: Any, *_: Any) -> None:
    if status:
        raise RuntimeError(f"the GPU would not {what}: {status.name}")


@cache
def _driver() -> Any:
    from cuda.bindings import driver

    return driver


@cache
def _context(device: int) -> Any:
    """The context of a GPU that its libraries share."""
    return numba_cuda().gpus[device].get_primary_context().handle
