"""A sum by `cuda.reduce`, a largest element, and a reduction of one's own by warps."""

import numpy as np
from numba import cuda, int32


@cuda.reduce
def total(a, b):
    return a + b


largest = cuda.reduce(lambda a, b: max(a, b))


@cuda.jit
def by_warps(values, out):
    partial = cuda.shared.array(32, int32)
    i = cuda.grid(1)
    value = values[i] if i < values.size else 0
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    if lane == 0:
        partial[warp] = value
    cuda.syncthreads()
    if warp == 0:
        value = partial[lane] if lane < cuda.blockDim.x // 32 else 0
        for offset in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
        if lane == 0:
            cuda.atomic.add(out, 0, value)


x = np.random.default_rng(3).integers(-1000, 1000, 12_345).astype(np.int32)
assert total(x) == x.sum()
assert total(cuda.to_device(x), init=7) == x.sum() + 7
assert largest(x) == x.max()
result = cuda.to_device(np.zeros(1, np.int32))
by_warps[-(-x.size // 256), 256](x, result)
assert result[0] == x.sum()
kept = cuda.device_array(1, np.int32)
total(x[:100], res=kept)
print("sums:", result[0], kept.copy_to_host()[0])
