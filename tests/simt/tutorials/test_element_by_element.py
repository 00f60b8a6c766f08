"""Tutorials: kernels that compute each element by itself give what NumPy and plain Python give."""

import math

import numpy as np
from numpy import float32, int32, uint8, uint32

from gemmlab.simt import cuda

RNG = np.random.default_rng(7)


@cuda.jit
def saxpy(a, x, y):
    start = cuda.grid(1)
    stride = cuda.gridsize(1)
    for i in range(start, x.shape[0], stride):
        y[i] += a * x[i]


def test_saxpy_in_strides_of_the_grid():
    x, y = RNG.random((2, 1000)).astype(float32)
    expected = y + 2 * x
    saxpy[3, 64](float32(2), x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


@cuda.jit(device=True)
def mandel(x, y, max_iters):
    c = complex(x, y)
    z = 0.0j
    for i in range(max_iters):
        z = z * z + c
        if (z.real * z.real + z.imag * z.imag) >= 4:
            return i
    return max_iters


@cuda.jit
def mandel_kernel(min_x, max_x, min_y, max_y, image, iters):
    height = image.shape[0]
    width = image.shape[1]
    pixel_size_x = (max_x - min_x) / width
    pixel_size_y = (max_y - min_y) / height
    startX, startY = cuda.grid(2)
    gridX = cuda.gridDim.x * cuda.blockDim.x
    gridY = cuda.gridDim.y * cuda.blockDim.y
    for x in range(startX, width, gridX):
        real = min_x + x * pixel_size_x
        for y in range(startY, height, gridY):
            imag = min_y + y * pixel_size_y
            image[y, x] = mandel(real, imag, iters)


def test_mandelbrot_with_complex_numbers():
    image, expected = np.zeros((2, 20, 30), uint8)
    mandel_kernel[(2, 2), (8, 4)](-2.0, 1.0, -1.0, 1.0, image, 20)
    for y in range(20):
        for x in range(30):
            expected[y, x] = mandel(-2 + x * 3 / 30, -1 + y * 2 / 20, 20)
    np.testing.assert_array_equal(image, expected)
    assert len(np.unique(image)) > 5


@cuda.jit
def life(now, then):
    x, y = cuda.grid(2)
    rows, cols = now.shape
    if x >= cols or y >= rows:
        return
    alive = 0
    for dy in (-1, 0, 1):
        for dx in range(-1, 2):
            if dx == 0 and dy == 0:
                continue
            alive += now[(y + dy) % rows, (x + dx) % cols]
    then[y, x] = 1 if alive == 3 or (now[y, x] and alive == 2) else 0


def test_game_of_life():
    now = RNG.integers(0, 2, (21, 33)).astype(int32)
    then = np.zeros_like(now)
    life[(5, 3), (8, 8)](now, then)
    shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    alive = sum(np.roll(now, s, (0, 1)) for s in shifts)
    np.testing.assert_array_equal(then, (alive == 3) | ((now == 1) & (alive == 2)))


@cuda.jit
def nbody(position, mass, force, softening):
    i = cuda.grid(1)
    if i >= position.shape[0]:
        return
    fx = fy = fz = 0.0
    x, y, z = position[i, 0], position[i, 1], position[i, 2]
    for j in range(position.shape[0]):
        dx, dy, dz = position[j, 0] - x, position[j, 1] - y, position[j, 2] - z
        inverse = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz + softening)
        s = mass[j] * inverse**3
        fx += s * dx
        fy += s * dy
        fz += s * dz
    force[i, 0] = fx
    force[i, 1] = fy
    force[i, 2] = fz


def test_nbody():
    position, mass = RNG.random((50, 3)), RNG.random(50)
    force = np.zeros((50, 3))
    nbody[2, 32](position, mass, force, 1e-3)
    d = position[None] - position[:, None]
    s = mass * ((d * d).sum(-1) + 1e-3) ** -1.5
    np.testing.assert_allclose(force, (s[..., None] * d).sum(1), rtol=1e-12)


@cuda.jit(device=True)
def cnd(d):
    k = 1.0 / (1.0 + 0.2316419 * math.fabs(d))
    poly = k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    value = 0.3989422804014327 * math.exp(-0.5 * d * d) * poly
    if d > 0:
        value = 1.0 - value
    return value


@cuda.jit
def black_scholes(call, put, s, x, t, r, v):
    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    if i >= s.shape[0]:
        return
    root = math.sqrt(t[i])
    d1 = (math.log(s[i] / x[i]) + (r + 0.5 * v * v) * t[i]) / (v * root)
    d2 = d1 - v * root
    discount = math.exp((-1.0 * r) * t[i])
    call[i] = s[i] * cnd(d1) - x[i] * discount * cnd(d2)
    put[i] = x[i] * discount * (1.0 - cnd(d2)) - s[i] * (1.0 - cnd(d1))


def test_black_scholes():
    s, x, t = RNG.uniform(5, 30, 100), RNG.uniform(1, 100, 100), RNG.uniform(0.25, 10, 100)
    call, put = np.zeros((2, 100))
    black_scholes[2, 64](call, put, s, x, t, 0.02, 0.3)
    d1 = (np.log(s / x) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
    phi = np.vectorize(lambda d: 0.5 * (1 + math.erf(d / math.sqrt(2))))
    expected = s * phi(d1) - x * np.exp(-0.02 * t) * phi(d1 - 0.3 * np.sqrt(t))
    np.testing.assert_allclose(call, expected, atol=1e-4)
    np.testing.assert_allclose(call - put, s - x * np.exp(-0.02 * t), atol=1e-9)


@cuda.jit
def lcg(states, out, draws):
    i = cuda.grid(1)
    if i < states.size:
        state = states[i]
        inside = 0
        for _ in range(draws):
            state = uint32(state * uint32(1664525) + uint32(1013904223))
            x = state / 4294967296.0
            state = uint32(state * uint32(1664525) + uint32(1013904223))
            y = float32(state) * float32(2.0**-32)
            if x * x + y * y <= 1.0:
                inside += 1
        states[i] = state
        out[i] = 4.0 * inside / draws


def test_random_numbers_of_ones_own():
    states, out = np.arange(1, 101, dtype=uint32), np.zeros(100)
    expected = states.astype(np.uint64)
    lcg[2, 64](states, out, 50)
    for _ in range(100):
        expected = (expected * 1664525 + 1013904223) % 2**32
    np.testing.assert_array_equal(states, expected)
    assert abs(out.mean() - math.pi) < 0.1
