"""Laplace's equation on a plate, step by step until it changes no more."""

import numpy as np
from numba import cuda

SIZE, TPB = 24, 8


@cuda.jit
def relax(u, after, change):
    x, y = cuda.grid(2)
    if x > 0 and x < u.shape[1] - 1 and y > 0 and y < u.shape[0] - 1:
        value = 0.25 * (u[y, x - 1] + u[y, x + 1] + u[y - 1, x] + u[y + 1, x])
        cuda.atomic.max(change, 0, abs(value - u[y, x]))
        after[y, x] = value


plate = np.zeros((SIZE, SIZE))
plate[0] = 100.0
u, after = cuda.to_device(plate), cuda.to_device(plate)
blocks = (SIZE // TPB, SIZE // TPB)
change = cuda.device_array(1)
steps = 0
while True:
    change[:] = 0.0
    for _ in range(20):
        relax[blocks, (TPB, TPB)](u, after, change)
        u, after = after, u
        steps += 1
    if steps >= 60 or change.copy_to_host()[0] < 1e-3:
        break

expected = plate.copy()
for _ in range(steps):
    inner = expected[1:-1, :-2] + expected[1:-1, 2:] + expected[:-2, 1:-1] + expected[2:, 1:-1]
    expected[1:-1, 1:-1] = 0.25 * inner
np.testing.assert_allclose(u.copy_to_host(), expected, rtol=1e-12)
print("in the middle after", steps, "steps:", round(float(u[SIZE // 2, SIZE // 2]), 4))
