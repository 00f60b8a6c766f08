"""A dot product in one launch: blocks leave partial sums, and all wait for each other."""

import numpy as np
from numba import cuda, float64

THREADS = 64


@cuda.jit
def dot(a, b, partial, out):
    cache = cuda.shared.array(THREADS, float64)
    grid = cuda.cg.this_grid()
    t = cuda.threadIdx.x
    total = 0.0
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        total += a[i] * b[i]
    cache[t] = total
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            cache[t] += cache[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        partial[cuda.blockIdx.x] = cache[0]
    grid.sync()
    if cuda.grid(1) == 0:
        total = 0.0
        for i in range(partial.size):
            total += partial[i]
        out[0] = total


rng = np.random.default_rng(6)
a, b = rng.integers(-9, 10, 5000).astype(float), rng.integers(-9, 10, 5000).astype(float)
signature = (float64[::1], float64[::1], float64[::1], float64[::1])
most = dot.compile(signature).max_cooperative_grid_blocks(THREADS)
blocks = min(20, most)
partial, out = cuda.device_array(blocks), cuda.device_array(1)
dot[blocks, THREADS](cuda.to_device(a), cuda.to_device(b), partial, out)
assert out.copy_to_host()[0] == a @ b
print("a · b =", out[0])
