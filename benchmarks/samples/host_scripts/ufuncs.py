"""Functions of numbers made into functions of arrays, and kernels launched by `forall`."""

import math

import numpy as np
from numba import cuda, vectorize


@vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
def length(x, y):
    return math.sqrt(x * x + y * y)


@cuda.jit
def clip(x, low, high):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = min(max(x[i], low), high)


x = np.arange(12, dtype=np.float32).reshape(3, 4)
y = np.ones(4, dtype=np.float32)
np.testing.assert_allclose(length(x, y), np.hypot(x, y), rtol=1e-6)
assert length(x, y).dtype == np.float32

on_device = cuda.to_device(np.linspace(-2, 2, 1001))
clip.forall(on_device.size, tpb=64)(on_device, -1.0, 1.0)
np.testing.assert_array_equal(on_device.copy_to_host(), np.linspace(-2, 2, 1001).clip(-1, 1))
both = length(on_device, on_device)
assert cuda.is_cuda_array(both)
print("longest:", round(float(both.copy_to_host().max()), 6))
