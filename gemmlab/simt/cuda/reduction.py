"""`cuda.reduce`: a function of two values made into the reduction of an array."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gemmlab.simt.cuda import names as cuda
from gemmlab.simt.cuda.arrays import device_array
from gemmlab.simt.cuda.kernels import DeviceFunction, SimulatedKernel, jit

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
        """The reduction of the first `size` elements of `arr`, and of `init`.

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
    """The kernel that reduces to one partial result a block."""

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
