"""Bodies, paths and signals that change in time."""

import math

import numpy as np
from numpy import complex128, float64

from gemmlab import cuda

THREADS = 32
POINTS = 64


@cuda.jit(device=True)
def attraction(x, y, z, ox, oy, oz, mass, ax, ay, az):
    dx, dy, dz = ox - x, oy - y, oz - z
    square = dx * dx + dy * dy + dz * dz + 1e-3
    strength = mass / (square * math.sqrt(square))
    return ax + strength * dx, ay + strength * dy, az + strength * dz


@cuda.jit(device=True)
def tile_of_attractions(x, y, z, tile, a):
    for k in range(THREADS):
        a = attraction(x, y, z, tile[k, 0], tile[k, 1], tile[k, 2], tile[k, 3], a[0], a[1], a[2])
    return a


@cuda.jit
def n_body(bodies, out):
    tile = cuda.shared.array((THREADS, 4), float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    x, y, z = bodies[i, 0], bodies[i, 1], bodies[i, 2]
    a = (0.0, 0.0, 0.0)
    for first in range(0, bodies.shape[0], THREADS):
        for k in range(4):
            tile[t, k] = bodies[first + t, k]
        cuda.syncthreads()
        a = tile_of_attractions(x, y, z, tile, a)
        cuda.syncthreads()
    out[i, 0], out[i, 1], out[i, 2] = a


def attractions_of_bodies(launch):
    bodies = np.random.default_rng(1).random((3 * THREADS, 4))
    out = np.zeros((3 * THREADS, 3))
    launch(n_body, 3, THREADS, bodies, out)
    away = bodies[None, :, :3] - bodies[:, None, :3]
    square = (away**2).sum(axis=2) + 1e-3
    return out, ((bodies[:, 3] / square**1.5)[..., None] * away).sum(axis=1), 1e-12


@cuda.jit(device=True)
def lorenz(x, y, z):
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z


@cuda.jit
def runge_kutta(states, h, steps):
    t = cuda.grid(1)
    if t < states.shape[0]:
        x, y, z = states[t]
        for _ in range(steps):
            k1 = lorenz(x, y, z)
            k2 = lorenz(x + h / 2 * k1[0], y + h / 2 * k1[1], z + h / 2 * k1[2])
            k3 = lorenz(x + h / 2 * k2[0], y + h / 2 * k2[1], z + h / 2 * k2[2])
            k4 = lorenz(x + h * k3[0], y + h * k3[1], z + h * k3[2])
            x += h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
            y += h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
            z += h / 6 * (k1[2] + 2 * k2[2] + 2 * k3[2] + k4[2])
        states[t, 0], states[t, 1], states[t, 2] = x, y, z


def paths_of_lorenz(launch):
    states = np.random.default_rng(2).random((40, 3))
    expected = states.copy()
    launch(runge_kutta, 2, 32, states, 0.01, 10)

    def slope(s):
        x, y, z = s.T
        return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], axis=1)

    for _ in range(10):
        k1 = slope(expected)
        k2 = slope(expected + 0.005 * k1)
        k3 = slope(expected + 0.005 * k2)
        expected += 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(expected + 0.01 * k3))
    return states, expected, 1e-12


@cuda.jit
def fft(signal):
    z = cuda.shared.array(POINTS, complex128)
    t = cuda.threadIdx.x
    z[cuda.brev(t) >> 26] = signal[t]
    cuda.syncthreads()
    half = 1
    while half < POINTS:
        if t < POINTS // 2:
            k = t % half
            i = 2 * (t - k) + k
            angle = -math.pi * k / half
            turned = z[i + half] * complex(math.cos(angle), math.sin(angle))
            z[i], z[i + half] = z[i] + turned, z[i] - turned
        cuda.syncthreads()
        half *= 2
    signal[t] = z[t]


def fourier_transform_with_two_roots(launch):
    real, imaginary = np.random.default_rng(3).random((2, POINTS))
    signal = real + 1j * imaginary
    expected = np.fft.fft(signal)
    launch(fft, 1, POINTS, signal)
    return signal, expected, 1e-13


@cuda.jit
def dft(real, out_real, out_imaginary):
    k = cuda.grid(1)
    n = real.size
    if k < n:
        re = im = 0.0
        for i in range(n):
            angle = -2 * math.pi * (i * k % n) / n
            re += real[i] * math.cos(angle)
            im += real[i] * math.sin(angle)
        out_real[k], out_imaginary[k] = re, im


def fourier_transform_from_its_definition(launch):
    x, re, im = np.random.default_rng(4).random(50), np.zeros(50), np.zeros(50)
    launch(dft, 2, 32, x, re, im)
    return re + 1j * im, np.fft.fft(x), 1e-12


@cuda.jit
def haar(x, out):
    s = cuda.shared.array(POINTS, float64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    s[t + 32] = x[t + 32]
    width = POINTS // 2
    while width > 0:
        cuda.syncthreads()
        if t < width:
            left, right = s[2 * t], s[2 * t + 1]
            out[width + t] = (left - right) / math.sqrt(2.0)
        cuda.syncthreads()
        if t < width:
            s[t] = (left + right) / math.sqrt(2.0)
        width >>= 1
    if t == 0:
        out[0] = s[0]


def wavelets_of_haar(launch):
    x, out = np.random.default_rng(5).random(POINTS), np.zeros(POINTS)
    launch(haar, 1, 32, x, out)
    rows, matrix = [np.ones(POINTS) / 8], np.eye(POINTS)
    for level in range(6):
        size = POINTS >> level
        for i in range(1 << level):
            sign = np.r_[np.ones(size // 2), -np.ones(size // 2)]
            rows.append(matrix[i * size : (i + 1) * size].T @ sign / math.sqrt(size))
    return out, np.array(rows) @ x, 1e-13
