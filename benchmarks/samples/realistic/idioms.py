"""Idioms of Numba: records, tuples, dynamic shared memory, inner functions, states with names."""

import math
import operator
from collections import namedtuple
from enum import IntEnum

import numpy as np
from numpy import float32, float64, int8, int32, int64, uint8, uint64

from gemmlab import cuda

PARTICLE = np.dtype([("x", float64), ("v", float64), ("kind", int32)], align=True)
AROUND = ((0, 1), (1, 0), (0, -1), (-1, 0))
Box = namedtuple("Box", ["left", "right"])
THREADS = 32


class State(IntEnum):
    """States of matter."""

    SOLID = 0
    LIQUID = 1
    GAS = 2


@cuda.jit
def move_particles(particles, dt):
    i = cuda.grid(1)
    if i < particles.size:
        p = particles[i]
        p.x += p.v * dt
        if p.x < 0.0 or p.x > 1.0:
            p.v = -p.v
            p.kind += 1


def particles_in_records(launch):
    rng = np.random.default_rng(1)
    particles = np.zeros(50, PARTICLE)
    particles["x"], particles["v"] = rng.random(50), rng.uniform(-3, 3, 50)
    x, v = particles["x"] + 0.2 * particles["v"], particles["v"].copy()
    launch(move_particles, 2, 32, particles, 0.2)
    out = (x < 0) | (x > 1)
    return [
        (particles["x"], x),
        (particles["v"], np.where(out, -v, v)),
        (particles["kind"], out.astype(int)),
    ]


@cuda.jit
def move_parallel_arrays(x, y, vx, vy, box, dt):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += vx[i] * dt
        y[i] += vy[i] * dt
        x[i] = min(max(x[i], box[0]), box[1])
        y[i] = min(max(y[i], box[0]), box[1])


def particles_in_parallel_arrays_and_a_tuple(launch):
    x, y, vx, vy = np.random.default_rng(2).random((4, 50))
    expected = np.clip(np.stack([x + 2 * vx, y + 2 * vy]), 0.5, 1.5)
    launch(move_parallel_arrays, 2, 32, x, y, vx, vy, (0.5, 1.5), 2.0)
    return np.stack([x, y]), expected


@cuda.jit
def inside_of_box(x, box, inside):
    i = cuda.grid(1)
    if i < x.size:
        inside[i] = box.left <= x[i] < box.right


def box_with_names(launch):
    x, inside = np.random.default_rng(3).random(60), np.zeros(60, np.bool_)
    launch(inside_of_box, 2, 32, x, Box(0.25, 0.5), inside)
    return inside, np.array([0.25 <= v < 0.5 for v in x.tolist()])


@cuda.jit
def melt(states, heat):
    i = cuda.grid(1)
    if i < states.size:
        if states[i] == State.SOLID and heat[i] > 10:
            states[i] = State.LIQUID
        elif states[i] == State.LIQUID and heat[i] > 50:
            states[i] = State.GAS


def states_with_names(launch):
    rng = np.random.default_rng(4)
    states, heat = rng.integers(0, 3, 70).astype(int8), rng.integers(0, 100, 70)
    rise = ((states == 0) & (heat > 10)) | ((states == 1) & (heat > 50))
    expected = states + rise
    launch(melt, 3, 32, states, heat)
    return states, expected


@cuda.jit
def two_dynamic_arrays(x, y, out):
    n = cuda.blockDim.x
    left = cuda.shared.array(0, float32)[:n]
    right = cuda.shared.array(0, float32)[n : 2 * n]
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    left[t] = x[i]
    right[t] = y[i]
    cuda.syncthreads()
    out[i] = left[n - 1 - t] - right[(t + 1) % n]


def dynamic_shared_memory_in_two_parts(launch):
    x, y = np.random.default_rng(5).random((2, 96), float32)
    out = np.zeros(96, float32)
    launch(two_dynamic_arrays, 3, 32, x, y, out, shared_bytes=2 * 32 * 4)
    return out, (x.reshape(3, 32)[:, ::-1] - np.roll(y.reshape(3, 32), -1, axis=1)).ravel()


@cuda.jit
def neighbour_sums(x, out):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        total = 0
        for di, dj in AROUND:
            if 0 <= i + di < x.shape[0] and 0 <= j + dj < x.shape[1]:
                total += x[i + di, j + dj]
        out[i, j] = total


def neighbours_from_a_tuple(launch):
    x, out = np.random.default_rng(6).integers(0, 9, (20, 17)), np.zeros((20, 17), int64)
    launch(neighbour_sums, (3, 3), (8, 8), x, out)
    p = np.pad(x, 1)
    return out, p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]


@cuda.jit
def with_inner_function(x, out):
    def polynomial(v):
        return (v - 1.0) * (v + 2.0)

    i = cuda.grid(1)
    if i < x.size:
        out[i] = polynomial(x[i]) + polynomial(-x[i])


def function_within_a_kernel(launch):
    x, out = np.random.default_rng(7).random(50), np.zeros(50)
    launch(with_inner_function, 2, 32, x, out)
    return out, 2 * x**2 - 4


@cuda.jit
def rotate_complex(z, w):
    i = cuda.grid(1)
    if i < z.size:
        z[i] = z[i] * w + z[i].conjugate()


def numbers_in_the_plane(launch):
    re, im = np.random.default_rng(8).random((2, 40))
    z = re + 1j * im
    expected = z * (0.6 + 0.8j) + np.conj(z)
    launch(rotate_complex, 2, 32, z, 0.6 + 0.8j)
    return z, expected


@cuda.jit
def shift_right(source, target):
    i = cuda.grid(1)
    value = source[i] if i < source.size else 0
    cuda.syncthreads()
    if i < target.size:
        target[i] = value


def shift_within_one_array(launch):
    x = np.arange(60)
    launch(shift_right, 1, 64, x[:-1], x[1:])
    return x, np.array([0, *range(59)])


@cuda.jit(device=True)
def maybe_scaled(value, weight):
    if weight is None:
        return value
    return value * weight


@cuda.jit
def scaled_and_plain(x, weights, plain, scaled):
    i = cuda.grid(1)
    if i < x.size:
        plain[i] = maybe_scaled(x[i], None)
        scaled[i] = maybe_scaled(x[i], weights[i])


def weights_that_may_be_missing(launch):
    x, w = np.random.default_rng(9).random((2, 40))
    plain, scaled = np.zeros(40), np.zeros(40)
    launch(scaled_and_plain, 2, 32, x, w, plain, scaled)
    return [(plain, x.copy()), (scaled, x * w)]


@cuda.jit
def checked_roots(x, out):
    i = cuda.grid(1)
    if i < x.size:
        assert x[i] >= 0.0
        if math.isnan(x[i]):
            raise ValueError("not a number")
        out[i] = math.sqrt(x[i])


def roots_with_assertions(launch):
    x, out = np.random.default_rng(10).random(40), np.zeros(40)
    launch(checked_roots, 2, 32, x, out)
    return out, x**0.5


@cuda.jit
def with_operators(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = operator.add(x[i], operator.mul(y[i], 2))


def operators_as_functions(launch):
    x, y = np.random.default_rng(11).integers(0, 99, (2, 40))
    out = np.zeros(40, int64)
    launch(with_operators, 2, 32, x, y, out)
    return out, x + 2 * y


@cuda.jit
def flat_of_cube(x, out):
    k, j, i = cuda.grid(3)
    flat = x.reshape(x.size)
    if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
        out[i, j, k] = flat[(i * x.shape[1] + j) * x.shape[2] + k] * x.ndim


def cube_as_a_row(launch):
    x = np.random.default_rng(12).random((5, 6, 7))
    out = np.zeros_like(x)
    launch(flat_of_cube, (2, 2, 2), (4, 4, 4), x, out)
    return out, 3 * x


@cuda.jit
def typed_constants(x, out):
    i = cuda.grid(1)
    if i < x.size:
        one = x.dtype.type(1)
        out[i] = (x[i] + one) / (x[i] - one)


def constants_of_the_type_of_an_array(launch):
    x, out = np.random.default_rng(13).random(40).astype(float32) + 2, np.zeros(40, float32)
    launch(typed_constants, 2, 32, x, out)
    return out, ((x.astype(float) + 1) / (x.astype(float) - 1)).astype(float32)


@cuda.jit
def pack(digits, words):
    i = cuda.grid(1)
    if i < words.size:
        word = uint64(0)
        for k in range(16):
            word |= uint64(digits[i, k]) << uint64(4 * k)
        words[i] = word


def digits_packed_into_words(launch):
    digits = np.random.default_rng(14).integers(0, 16, (40, 16)).astype(uint8)
    words = np.zeros(40, uint64)
    launch(pack, 2, 32, digits, words)
    text = ["".join(f"{d:x}" for d in row[::-1]) for row in digits]
    return words, np.array([int(t, 16) for t in text], uint64)


@cuda.jit
def chosen_rows(use_second, out):
    first = cuda.local.array(4, int32)
    second = cuda.local.array(4, int32)
    i = cuda.grid(1)
    for k in range(4):
        first[k] = k
        second[k] = 10 * k
    row = first
    if i < out.shape[0] and use_second[i]:
        row = second
    row[0] = -1
    if i < out.shape[0]:
        for k in range(4):
            out[i, k] = row[k] + first[k]


def local_arrays_chosen_by_each_thread(launch):
    use, out = np.random.default_rng(15).random(50) < 0.5, np.zeros((50, 4), int32)
    launch(chosen_rows, 2, 32, use, out)
    one, other = [-2, 2, 4, 6], [-1, 11, 22, 33]
    return out, np.where(use[:, None], np.array([other]), np.array([one]))


@cuda.jit
def to_the_power(x, e, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] ** e[i] + x[i] ** -2 + 2.0**-1


def powers_with_negative_exponents(launch):
    x, e = np.random.default_rng(16).random(40) + 1, np.arange(-20, 20)
    out = np.zeros(40)
    launch(to_the_power, 2, 32, x, e, out)
    return out, np.array([v ** int(k) + v**-2 + 0.5 for v, k in zip(x, e, strict=True)]), 1e-13
