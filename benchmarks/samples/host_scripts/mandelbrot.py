"""The Mandelbrot set: a kernel over an image, and a device function over its points."""

import numpy as np
from numba import cuda


@cuda.jit(device=True)
def turns(x, y, most):
    c = complex(x, y)
    z = 0.0j
    for i in range(most):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4:
            return i
    return most


@cuda.jit
def draw(left, right, bottom, top, image, most):
    height, width = image.shape
    startx, starty = cuda.grid(2)
    stepx, stepy = cuda.gridsize(2)
    for x in range(startx, width, stepx):
        real = left + x * (right - left) / width
        for y in range(starty, height, stepy):
            image[y, x] = turns(real, bottom + y * (top - bottom) / height, most)


image = np.zeros((48, 64), dtype=np.uint8)
d_image = cuda.to_device(image)
draw[(4, 3), (8, 8)](-2.0, 1.0, -1.0, 1.0, d_image, 30)
d_image.copy_to_host(image)

c = -2.0 + 3.0 / 64 * np.arange(64) + 1j * (-1.0 + 2.0 / 48 * np.arange(48))[:, None]
z, expected = np.zeros_like(c), np.full(c.shape, 30)
for i in range(30):
    z = np.where(expected == 30, z * z + c, z)
    expected[(expected == 30) & (abs(z) >= 2)] = i
assert np.mean(image == expected) > 0.99  # the borders may round otherwise
print("in the set:", int((image == 30).sum()), "of", image.size)
