"""Images: colours, blurs, edges, filters of neighbourhoods, histograms."""

import colorsys
import math

import numpy as np
from numpy import float32, int32, uint8

from gemmlab import cuda

BLOCK = (8, 8)
GRID = (4, 3)  # 32 x 24 pixels
SHAPE = (21, 30)
RADIUS = 2


def image(seed, *channels):
    return np.random.default_rng(seed).integers(0, 256, (*SHAPE, *channels)).astype(uint8)


@cuda.jit
def grayscale(rgb, gray):
    x, y = cuda.grid(2)
    if x < rgb.shape[1] and y < rgb.shape[0]:
        r, g, b = rgb[y, x, 0], rgb[y, x, 1], rgb[y, x, 2]
        gray[y, x] = (299 * r + 587 * g + 114 * b) // 1000


def gray_from_colours(launch):
    rgb, gray = image(1, 3), np.zeros(SHAPE, uint8)
    launch(grayscale, GRID, BLOCK, rgb, gray)
    return gray, rgb.astype(int) @ np.array([299, 587, 114]) // 1000


@cuda.jit
def box_blur(source, target):
    x, y = cuda.grid(2)
    height, width = source.shape
    if x >= width or y >= height:
        return
    total = 0
    count = 0
    for dy in range(-RADIUS, RADIUS + 1):
        for dx in range(-RADIUS, RADIUS + 1):
            if 0 <= y + dy < height and 0 <= x + dx < width:
                total += source[y + dy, x + dx]
                count += 1
    target[y, x] = total // count


def blur_with_a_box(launch):
    source, target = image(2), np.zeros(SHAPE, uint8)
    launch(box_blur, GRID, BLOCK, source, target)
    expected = np.zeros(SHAPE, int)
    for y, x in np.ndindex(SHAPE):
        part = source[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3]
        expected[y, x] = part.sum(dtype=int) // part.size
    return target, expected


@cuda.jit
def blur_rows(source, weights, target):
    row = cuda.shared.array(36, float32)
    t = cuda.threadIdx.x
    y = cuda.blockIdx.y
    x = cuda.grid(1)
    left = cuda.blockIdx.x * cuda.blockDim.x - RADIUS
    for i in range(t, cuda.blockDim.x + 2 * RADIUS, cuda.blockDim.x):
        clamped = min(max(left + i, 0), source.shape[1] - 1)
        row[i] = source[y, clamped]
    cuda.syncthreads()
    if x < source.shape[1]:
        total = float32(0)
        for k in range(2 * RADIUS + 1):
            total += weights[k] * row[t + k]
        target[y, x] = total


def gaussian_blur_by_rows_and_columns(launch):
    source = np.random.default_rng(3).random(SHAPE).astype(float32)
    weights = np.array([1, 4, 6, 4, 1], float32) / float32(16)
    once, twice = np.zeros(SHAPE, float32), np.zeros(SHAPE[::-1], float32)
    launch(blur_rows, (1, 21), 32, source, weights, once)
    launch(blur_rows, (1, 30), 32, np.ascontiguousarray(once.T), weights, twice)
    padded = np.pad(source.astype(float), 2, mode="edge")
    window = np.lib.stride_tricks.sliding_window_view(padded, (5, 5))
    kernel = np.outer(weights, weights).astype(float)
    return twice.T, np.einsum("yxij,ij->yx", window, kernel).astype(float32)


@cuda.jit
def sobel(source, magnitude):
    tile = cuda.shared.array((10, 10), int32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    height, width = source.shape
    for i in range(ty, 10, 8):
        for j in range(tx, 10, 8):
            row = cuda.blockIdx.y * 8 + i - 1
            column = cuda.blockIdx.x * 8 + j - 1
            if 0 <= row < height and 0 <= column < width:
                tile[i, j] = source[row, column]
            else:
                tile[i, j] = 0
    cuda.syncthreads()
    if x < width and y < height:
        gx = tile[ty, tx + 2] + 2 * tile[ty + 1, tx + 2] + tile[ty + 2, tx + 2]
        gx -= tile[ty, tx] + 2 * tile[ty + 1, tx] + tile[ty + 2, tx]
        gy = tile[ty + 2, tx] + 2 * tile[ty + 2, tx + 1] + tile[ty + 2, tx + 2]
        gy -= tile[ty, tx] + 2 * tile[ty, tx + 1] + tile[ty, tx + 2]
        magnitude[y, x] = min(255, int(math.sqrt(gx * gx + gy * gy)))


def edges_of_sobel(launch):
    source, magnitude = image(4) // 4, np.zeros(SHAPE, uint8)
    launch(sobel, GRID, BLOCK, source, magnitude)
    window = np.lib.stride_tricks.sliding_window_view(np.pad(source.astype(int), 1), (3, 3))
    smooth, slope = np.array([1, 2, 1]), np.array([-1, 0, 1])
    gx = np.einsum("yxij,i,j->yx", window, smooth, slope)
    gy = np.einsum("yxij,i,j->yx", window, slope, smooth)
    return magnitude, np.minimum(255, np.sqrt(gx**2 + gy**2).astype(int))


@cuda.jit
def bilateral(source, target, spread, contrast):
    x, y = cuda.grid(2)
    h, w = source.shape
    if x < w and y < h:
        own = source[y, x]
        total = 0.0
        weights = 0.0
        for v in range(max(0, y - RADIUS), min(h, y + RADIUS + 1)):
            for u in range(max(0, x - RADIUS), min(w, x + RADIUS + 1)):
                distance = (v - y) ** 2 + (u - x) ** 2
                difference = source[v, u] - own
                weight = math.exp(-distance / spread - difference * difference / contrast)
                total += weight * source[v, u]
                weights += weight
        target[y, x] = total / weights


def bilateral_filter(launch):
    source, target = np.random.default_rng(5).random(SHAPE), np.zeros(SHAPE)
    launch(bilateral, GRID, BLOCK, source, target, 4.0, 0.5)
    expected = np.zeros(SHAPE)
    for y, x in np.ndindex(SHAPE):
        rows, columns = slice(max(0, y - 2), y + 3), slice(max(0, x - 2), x + 3)
        v, u = np.mgrid[rows, columns]
        v, u = np.mgrid[max(0, y - 2) : min(21, y + 3), max(0, x - 2) : min(30, x + 3)]
        part = source[rows, columns]
        weight = np.exp(-((v - y) ** 2 + (u - x) ** 2) / 4 - (part - source[y, x]) ** 2 / 0.5)
        expected[y, x] = (weight * part).sum() / weight.sum()
    return target, expected


@cuda.jit
def median(source, target):
    x, y = cuda.grid(2)
    if 0 < x < source.shape[1] - 1 and 0 < y < source.shape[0] - 1:
        window = cuda.local.array(9, uint8)
        n = 0
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                window[n] = source[y + dy, x + dx]
                n += 1
        for i in range(5):
            least = i
            for j in range(i + 1, 9):
                if window[j] < window[least]:
                    least = j
            window[i], window[least] = window[least], window[i]
        target[y, x] = window[4]


def median_of_nine(launch):
    source, target = image(6), np.zeros(SHAPE, uint8)
    launch(median, GRID, BLOCK, source, target)
    windows = np.lib.stride_tricks.sliding_window_view(source, (3, 3))
    return target[1:-1, 1:-1], np.median(windows, axis=(2, 3))


@cuda.jit
def count_levels(source, counts):
    own = cuda.shared.array(256, int32)
    t = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    for i in range(t, 256, cuda.blockDim.x * cuda.blockDim.y):
        own[i] = 0
    cuda.syncthreads()
    x, y = cuda.grid(2)
    if x < source.shape[1] and y < source.shape[0]:
        cuda.atomic.add(own, source[y, x], 1)
    cuda.syncthreads()
    for i in range(t, 256, cuda.blockDim.x * cuda.blockDim.y):
        cuda.atomic.add(counts, i, own[i])


@cuda.jit
def look_up(source, table, target):
    x, y = cuda.grid(2)
    if x < source.shape[1] and y < source.shape[0]:
        target[y, x] = table[source[y, x]]


def equalisation_of_the_histogram(launch):
    source, target = image(7) // 3 + 40, np.zeros(SHAPE, uint8)
    counts = np.zeros(256, int32)
    launch(count_levels, GRID, BLOCK, source, counts)
    table = (255 * np.cumsum(counts) // source.size).astype(uint8)
    launch(look_up, GRID, BLOCK, source, table, target)
    ranks = np.array([[np.count_nonzero(source <= value) for value in row] for row in source])
    return target, 255 * ranks // source.size


@cuda.jit
def erode(source, target):
    x, y = cuda.grid(2)
    h, w = source.shape
    if x < w and y < h:
        keep = True
        for v in range(max(y - 1, 0), min(y + 2, h)):
            for u in range(max(x - 1, 0), min(x + 2, w)):
                keep = keep and source[v, u]
        target[y, x] = keep


def erosion(launch):
    source = image(10) > 20
    target, expected = np.zeros(SHAPE, np.bool_), np.zeros(SHAPE, bool)
    launch(erode, GRID, BLOCK, source, target)
    for y, x in np.ndindex(SHAPE):
        expected[y, x] = source[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2].all()
    return target, expected


@cuda.jit
def to_hsv(rgb, hsv):
    i = cuda.grid(1)
    if i < rgb.shape[0]:
        r, g, b = rgb[i, 0] / 255, rgb[i, 1] / 255, rgb[i, 2] / 255
        high, low = max(r, g, b), min(r, g, b)
        span = high - low
        hue = 0.0
        if span > 0:
            if high == r:
                hue = ((g - b) / span) % 6
            elif high == g:
                hue = (b - r) / span + 2
            else:
                hue = (r - g) / span + 4
        hsv[i, 0] = hue / 6
        hsv[i, 1] = span / high if high > 0 else 0.0
        hsv[i, 2] = high


def colours_as_hue_saturation_value(launch):
    rgb = np.random.default_rng(12).integers(0, 256, (100, 3)).astype(uint8)
    rgb[:5] = rgb[:5, :1]
    hsv = np.full((100, 3), np.nan)
    launch(to_hsv, 4, 32, rgb, hsv)
    return hsv, np.array([colorsys.rgb_to_hsv(*(p / 255)) for p in rgb]), 1e-12
