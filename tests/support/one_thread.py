"""A second, obvious interpreter of kernels: plain Python, a real thread for each of a block."""

import inspect
import itertools
import threading
import types

import numpy as np


class _Thread:
    """`cuda` as one thread of a real launch sees it."""

    def __init__(self, position, block_position, block, grid, shared, barrier):
        self.threadIdx, self.blockIdx, self.blockDim, self.gridDim = (
            types.SimpleNamespace(**dict(zip("xyz", v, strict=True)))
            for v in (position, block_position, block, grid)
        )
        self.warpsize = 32
        linear = position[0] + block[0] * (position[1] + block[1] * position[2])
        self.laneid = linear % 32
        self._position = [
            b * d + t for b, d, t in zip(block_position, block, position, strict=True)
        ]
        self._extent = [b * d for b, d in zip(block, grid, strict=True)]
        self.syncthreads = barrier.wait
        self._shared, self._count = shared, itertools.count()
        self.shared = types.SimpleNamespace(array=self._shared_array)
        self.local = types.SimpleNamespace(array=lambda shape, dtype: np.zeros(shape, dtype))

    def grid(self, ndim):
        return self._position[0] if ndim == 1 else tuple(self._position[:ndim])

    def gridsize(self, ndim):
        return self._extent[0] if ndim == 1 else tuple(self._extent[:ndim])

    def _shared_array(self, shape, dtype):
        # Threads allocate in one and the same order.
        return self._shared.setdefault(next(self._count), np.zeros(shape, dtype))


def _three(sizes):
    return (*(sizes if isinstance(sizes, (tuple, list)) else (sizes,)), 1, 1)[:3]


def _positions(sizes):
    return [p[::-1] for p in itertools.product(*(range(s) for s in sizes[::-1]))]


def _as_seen_by(function, view):
    """`function`, and the device functions that it calls, with `cuda` replaced."""
    function = getattr(function, "py_func", function)
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = getattr(scope.get(name), "py_func", scope.get(name))
        if isinstance(value, types.FunctionType) and value.__module__ == function.__module__:
            scope[name] = _as_seen_by(value, view)
    scope["cuda"] = view
    return types.FunctionType(
        function.__code__, scope, function.__name__, None, function.__closure__
    )


def one_by_one(kernel, grid, block, *args):
    """Run `kernel` as CUDA defines it: one Python thread for each thread of a block."""
    grid, block = _three(grid), _three(block)
    positions = _positions(block)
    for block_position in _positions(grid):
        shared, barrier = {}, threading.Barrier(len(positions))
        runs = [
            _as_seen_by(kernel, _Thread(p, block_position, block, grid, shared, barrier))
            for p in positions
        ]
        if "syncthreads" not in inspect.getsource(getattr(kernel, "py_func", kernel)):
            for run in runs:
                run(*args)
            continue
        threads = [threading.Thread(target=run, args=args) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
