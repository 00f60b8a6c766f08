"""Heat in a rod: each step reads a tile with its two neighbours from shared memory."""

import numpy as np
from numba import cuda, float64

THREADS = 64
TILE = THREADS + 2
STEPS = 50


@cuda.jit
def step(u, after, k):
    tile = cuda.shared.array(TILE, dtype=float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x + 1
    if i < u.size:
        tile[t] = u[i]
        if t == 1 and i > 0:
            tile[0] = u[i - 1]
        if t == THREADS and i + 1 < u.size:
            tile[t + 1] = u[i + 1]
    cuda.syncthreads()
    if i > 0 and i < u.size - 1:
        after[i] = tile[t] + k * (tile[t - 1] - 2 * tile[t] + tile[t + 1])
    elif i < u.size:
        after[i] = u[i]


rod = np.zeros(500)
rod[200:300] = 1.0
now, after = cuda.to_device(rod), cuda.device_array_like(rod)
blocks = -(-rod.size // THREADS)
for _ in range(STEPS):
    step[blocks, THREADS](now, after, 0.25)
    now, after = after, now

expected = rod.copy()
for _ in range(STEPS):
    inner = expected[:-2] - 2 * expected[1:-1] + expected[2:]
    expected[1:-1] = expected[1:-1] + 0.25 * inner
np.testing.assert_allclose(now.copy_to_host(), expected, rtol=1e-12, atol=1e-12)
print("heat that is left:", round(float(now.copy_to_host().sum()), 6))
