"""Two vectors are added, with copies made by hand and by the launch."""

import numpy as np
from numba import cuda


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


n = 100_000
rng = np.random.default_rng(1)
a, b = rng.random(n), rng.random(n)

d_a = cuda.to_device(a)
d_b = cuda.to_device(b)
d_c = cuda.device_array_like(d_a)
threads = 128
blocks = (n + threads - 1) // threads
add[blocks, threads](d_a, d_b, d_c)
c = d_c.copy_to_host()
np.testing.assert_array_equal(c, a + b)

host = np.zeros(n)
add.forall(n)(a, b, host)
np.testing.assert_array_equal(host, a + b)
print("sum of", n, "elements:", round(float(c.sum()), 3))
