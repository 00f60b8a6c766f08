"""Points and clusters, convolutions, layers of networks."""

import math

import numpy as np
from numpy import float32, float64, int32

from gemmlab import cuda

THREADS = 32
NEIGHBOURS = 3
WEIGHTS = np.array([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
FULL = 0xFFFFFFFF


@cuda.jit
def convolve(signal, kernel, out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0.0
        for j in range(max(0, i - signal.size + 1), min(kernel.size, i + 1)):
            total += kernel[j] * signal[i - j]
        out[i] = total


def convolution_in_full(launch):
    rng = np.random.default_rng(6)
    signal, kernel, out = rng.random(90), rng.random(7), np.zeros(96)
    launch(convolve, 3, 32, signal, kernel, out)
    return out, np.convolve(signal, kernel)


@cuda.jit
def convolve_2d(image, out):
    weights = cuda.const.array_like(WEIGHTS)
    j, i = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        total = 0.0
        for di in range(3):
            for dj in range(3):
                total += weights[di, dj] * image[i + di, j + dj]
        out[i, j] = total


def convolution_with_constant_weights(launch):
    image, out = np.random.default_rng(7).random((20, 19)), np.zeros((18, 17))
    launch(convolve_2d, (3, 3), (8, 8), image, out)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    return out, np.einsum("yxij,ij->yx", windows, WEIGHTS)


@cuda.jit
def nearest_centre(points, centres, labels, sums, counts):
    i = cuda.grid(1)
    if i < points.shape[0]:
        best, least = 0, math.inf
        for c in range(centres.shape[0]):
            d = 0.0
            for k in range(points.shape[1]):
                d += (points[i, k] - centres[c, k]) ** 2
            if d < least:
                best, least = c, d
        labels[i] = best
        cuda.atomic.add(counts, best, 1)
        for k in range(points.shape[1]):
            cuda.atomic.add(sums, (best, k), points[i, k])


def k_means(launch):
    points = np.random.default_rng(8).random((100, 2))
    centres, expected = points[:4].copy(), points[:4].copy()
    for _ in range(3):
        labels, sums, counts = np.zeros(100, int32), np.zeros((4, 2)), np.zeros(4, int32)
        launch(nearest_centre, 4, 32, points, centres, labels, sums, counts)
        centres = sums / np.maximum(counts, 1)[:, None]
        away = np.linalg.norm(points[:, None] - expected, axis=2)
        near = away.argmin(axis=1)
        expected = np.array([points[near == c].mean(axis=0) for c in range(4)])
    return [(labels, near), (centres, expected)]


@cuda.jit
def nearest_neighbours(points, queries, out):
    q = cuda.grid(1)
    if q >= queries.shape[0]:
        return
    distances = cuda.local.array(NEIGHBOURS, float64)
    places = cuda.local.array(NEIGHBOURS, int32)
    distances[:] = math.inf
    places[:] = -1
    for i in range(points.shape[0]):
        d = (points[i, 0] - queries[q, 0]) ** 2 + (points[i, 1] - queries[q, 1]) ** 2
        if d < distances[-1]:
            k = NEIGHBOURS - 1
            while k > 0 and distances[k - 1] > d:
                distances[k] = distances[k - 1]
                places[k] = places[k - 1]
                k -= 1
            distances[k], places[k] = d, i
    for k in range(NEIGHBOURS):
        out[q, k] = places[k]


def nearest_neighbours_of_points(launch):
    points, queries = np.random.default_rng(9).random((2, 60, 2))
    out = np.full((60, NEIGHBOURS), -9)
    launch(nearest_neighbours, 2, 32, points, queries, out)
    away = np.linalg.norm(points - queries[:, None], axis=2)
    return out, np.argsort(away, axis=1)[:, :NEIGHBOURS]


@cuda.jit(device=True)
def hamilton(p, q):
    return (
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    )


@cuda.jit
def turn_points(points, axis_x, axis_y, axis_z, angle):
    i = cuda.grid(1)
    if i < points.shape[0]:
        s = math.sin(angle / 2)
        q = (math.cos(angle / 2), axis_x * s, axis_y * s, axis_z * s)
        back = (q[0], -q[1], -q[2], -q[3])
        turned = hamilton(hamilton(q, (0.0, points[i, 0], points[i, 1], points[i, 2])), back)
        for k in range(3):
            points[i, k] = turned[k + 1]


def points_turned_by_quaternions(launch):
    points, axis = np.random.default_rng(10).random((40, 3)), np.array([2.0, -1, 2]) / 3
    c, s = math.cos(0.7), math.sin(0.7)
    expected = c * points + s * np.cross(axis, points)
    expected += (1 - c) * (points @ axis)[:, None] * axis
    launch(turn_points, 2, 32, points, *axis, 0.7)
    return points, expected, 1e-13


@cuda.jit
def softmax(x, out):
    row = cuda.blockIdx.x
    lane = cuda.threadIdx.x
    largest = float32(-math.inf)
    for j in range(lane, x.shape[1], 32):
        largest = max(largest, x[row, j])
    for k in range(5):
        largest = max(largest, cuda.shfl_xor_sync(FULL, largest, 1 << k))
    total = float32(0)
    for j in range(lane, x.shape[1], 32):
        total += math.exp(x[row, j] - largest)
    for k in range(5):
        total += cuda.shfl_xor_sync(FULL, total, 1 << k)
    for j in range(lane, x.shape[1], 32):
        out[row, j] = math.exp(x[row, j] - largest) / total


def softmax_of_rows(launch):
    x = np.random.default_rng(11).standard_normal((9, 75)).astype(float32)
    out = np.zeros_like(x)
    launch(softmax, 9, 32, x, out)
    e = np.exp(x.astype(float))
    return out, (e / e.sum(axis=1, keepdims=True)).astype(float32)


@cuda.jit(device=True)
def relu(x):
    return x if x > 0 else 0.0


@cuda.jit(device=True)
def neuron(x, weights, bias, row, unit):
    total = bias[unit]
    for k in range(x.shape[1]):
        total += x[row, k] * weights[k, unit]
    return relu(total)


@cuda.jit
def dense_layer(x, weights, bias, out):
    unit, row = cuda.grid(2)
    if row < out.shape[0] and unit < out.shape[1]:
        out[row, unit] = neuron(x, weights, bias, row, unit)


def dense_layer_with_relu(launch):
    rng = np.random.default_rng(12)
    x, w, b = rng.standard_normal((13, 20)), rng.standard_normal((20, 9)), rng.standard_normal(9)
    out = np.full((13, 9), np.nan)
    launch(dense_layer, (2, 2), (8, 8), x, w, b, out)
    return out, np.maximum(x @ w + b, 0)


@cuda.jit
def layer_norm(x, gain, out):
    part = cuda.shared.array((2, THREADS), float64)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    total = square = 0.0
    for j in range(t, x.shape[1], THREADS):
        total += x[row, j]
        square += x[row, j] ** 2
    part[0, t], part[1, t] = total, square
    cuda.syncthreads()
    s = THREADS // 2
    while s:
        if t < s:
            part[0, t] += part[0, t + s]
            part[1, t] += part[1, t + s]
        cuda.syncthreads()
        s //= 2
    mean = part[0, 0] / x.shape[1]
    scale = 1.0 / math.sqrt(part[1, 0] / x.shape[1] - mean * mean + 1e-5)
    for j in range(t, x.shape[1], THREADS):
        out[row, j] = (x[row, j] - mean) * scale * gain[j]


def normalisation_of_layers(launch):
    rng = np.random.default_rng(13)
    x, gain, out = rng.random((6, 70)), rng.random(70), np.zeros((6, 70))
    launch(layer_norm, 6, THREADS, x, gain, out)
    spread = np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return out, (x - x.mean(axis=1, keepdims=True)) / spread * gain, 1e-12


@cuda.jit
def attention(q, k, v, out):
    row = cuda.grid(1)
    if row < q.shape[0]:
        largest, total = -math.inf, 0.0
        for d in range(v.shape[1]):
            out[row, d] = 0.0
        for j in range(k.shape[0]):
            score = 0.0
            for d in range(q.shape[1]):
                score += q[row, d] * k[j, d]
            score /= math.sqrt(q.shape[1])
            before, largest = largest, max(largest, score)
            shrink, weight = math.exp(before - largest), math.exp(score - largest)
            total = total * shrink + weight
            for d in range(v.shape[1]):
                out[row, d] = out[row, d] * shrink + weight * v[j, d]
        for d in range(v.shape[1]):
            out[row, d] /= total


def attention_in_one_pass(launch):
    q, k, v = np.random.default_rng(14).standard_normal((3, 20, 8))
    out = np.full((20, 8), np.nan)
    launch(attention, 1, 32, q, k, v, out)
    weights = np.exp(q @ k.T / math.sqrt(8))
    return out, weights / weights.sum(axis=1, keepdims=True) @ v, 1e-12


@cuda.jit
def max_pool(x, out):
    j, i = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        window = x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        best = window[0, 0]
        for a in range(window.shape[0]):
            for b in range(window.shape[1]):
                best = max(best, window[a, b])
        out[i, j] = best


def maxima_of_windows(launch):
    x, out = np.random.default_rng(15).random((17, 22)), np.zeros((9, 11))
    launch(max_pool, (2, 2), (8, 8), x, out)
    parts = [x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max() for i in range(9) for j in range(11)]
    return out, np.array(parts).reshape(9, 11)
