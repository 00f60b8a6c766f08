"""Images: points, neighbourhoods, fractals, lines, colours, distances."""

import math

import numpy as np
from numpy import float32, float64, int32, uint8

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
def julia(width, height, c, limit, out):
    x, y = cuda.grid(2)
    if x < width and y < height:
        z = complex(3.0 * x / width - 1.5, 2.0 * y / height - 1.0)
        n = 0
        while abs(z) <= 2.0 and n < limit:
            z = z * z + c
            n += 1
        out[y, x] = n


def set_of_julia(launch):
    out, expected = np.full(SHAPE, -1), np.zeros(SHAPE, int)
    launch(julia, GRID, BLOCK, 30, 21, complex(-0.4, 0.6), 25, out)
    for y, x in np.ndindex(SHAPE):
        z, n = complex(3 * x / 30 - 1.5, 2 * y / 21 - 1), 0
        while abs(z) <= 2 and n < 25:
            z, n = z * z + complex(-0.4, 0.6), n + 1
        expected[y, x] = n
    return out, expected


@cuda.jit(device=True)
def escape(cx, cy, limit):
    x = y = 0.0
    for i in range(limit):
        if x * x + y * y > 4.0:
            return i
        x, y = x * x - y * y + cx, 2 * x * y + cy
    return limit


@cuda.jit
def mandelbrot(left, right, top, bottom, limit, out):
    start_x, start_y = cuda.grid(2)
    step_x, step_y = cuda.gridsize(2)
    height, width = out.shape
    for px in range(start_x, width, step_x):
        for py in range(start_y, height, step_y):
            cx = left + px * (right - left) / width
            cy = top + py * (bottom - top) / height
            out[py, px] = escape(cx, cy, limit)


def set_of_mandelbrot(launch):
    out = np.full(SHAPE, -1)
    launch(mandelbrot, (2, 2), BLOCK, -2.0, 1.0, -1.0, 1.0, 30, out)
    y, x = np.mgrid[:21, :30]
    c = (-2 + x * 3 / 30) + 1j * (-1 + y * 2 / 21)
    z, expected = np.zeros_like(c), np.full(SHAPE, 30)
    for i in range(30):
        out_now = (np.abs(z) > 2) & (expected == 30)
        expected[out_now] = i
        z = np.where(np.abs(z) > 2, z, z * z + c)
    return out, expected


@cuda.jit
def resize(source, target):
    x, y = cuda.grid(2)
    h, w = target.shape
    if x < w and y < h:
        sy = (y + 0.5) * source.shape[0] / h - 0.5
        sx = (x + 0.5) * source.shape[1] / w - 0.5
        y0, x0 = int(math.floor(sy)), int(math.floor(sx))
        fy, fx = sy - y0, sx - x0
        y1, x1 = min(y0 + 1, source.shape[0] - 1), min(x0 + 1, source.shape[1] - 1)
        y0, x0 = max(y0, 0), max(x0, 0)
        upper = source[y0, x0] * (1 - fx) + source[y0, x1] * fx
        lower = source[y1, x0] * (1 - fx) + source[y1, x1] * fx
        target[y, x] = upper * (1 - fy) + lower * fy


def resize_with_two_weights(launch):
    source, target = np.random.default_rng(8).random((13, 17)), np.full(SHAPE, np.nan)
    launch(resize, GRID, BLOCK, source, target)
    sy, sx = (np.arange(21) + 0.5) * 13 / 21 - 0.5, (np.arange(30) + 0.5) * 17 / 30 - 0.5
    rows = np.array([np.interp(sx, np.arange(17), row) for row in source])
    return target, np.array([np.interp(sy, np.arange(13), column) for column in rows.T]).T


@cuda.jit
def rotate(source, target, angle):
    x, y = cuda.grid(2)
    h, w = source.shape
    if x < w and y < h:
        s, c = math.sin(angle), math.cos(angle)
        u = round(c * (x - w / 2) + s * (y - h / 2) + w / 2)
        v = round(-s * (x - w / 2) + c * (y - h / 2) + h / 2)
        target[y, x] = source[v, u] if 0 <= u < w and 0 <= v < h else 0


def rotation_to_the_nearest_pixel(launch):
    source, target = image(9), np.full(SHAPE, 77, uint8)
    launch(rotate, GRID, BLOCK, source, target, 0.3)
    expected = np.zeros(SHAPE, int)
    for y, x in np.ndindex(SHAPE):
        place = complex(x - 15, y - 10.5) * np.exp(-0.3j)
        u, v = round(place.real + 15), round(place.imag + 10.5)
        if 0 <= u < 30 and 0 <= v < 21:
            expected[y, x] = source[v, u]
    return target, expected


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
def draw_lines(ends, canvas):
    line = cuda.grid(1)
    if line >= ends.shape[0]:
        return
    x, y, x1, y1 = ends[line, 0], ends[line, 1], ends[line, 2], ends[line, 3]
    dx, dy = abs(x1 - x), -abs(y1 - y)
    sx = 1 if x < x1 else -1
    sy = 1 if y < y1 else -1
    error = dx + dy
    while True:
        cuda.atomic.add(canvas, (y, x), 1)
        if x == x1 and y == y1:
            break
        twice = 2 * error
        if twice >= dy:
            error += dy
            x += sx
        if twice <= dx:
            error += dx
            y += sy


def _nearest(value, direction):
    """The whole number next to a value; of two, the one farther along, or nearer the start."""
    return math.floor(value + 0.5) if direction >= 0 else math.ceil(value - 0.5)


def lines_of_bresenham(launch):
    rng = np.random.default_rng(11)
    ends = rng.integers(0, 21, (12, 4))
    canvas, expected = np.zeros((21, 21), int32), np.zeros((21, 21), int)
    launch(draw_lines, 1, 32, ends, canvas)
    for x, y, u, v in ends.tolist():
        steps = max(abs(u - x), abs(v - y))
        for k in range(steps + 1):  # to the nearest pixel; halves go on from the start
            along, up = (x, y) if steps == 0 else (x + (u - x) * k / steps, y + (v - y) * k / steps)
            expected[_nearest(up, v - y), _nearest(along, u - x)] += 1
    return canvas, expected


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
    import colorsys

    rgb = np.random.default_rng(12).integers(0, 256, (100, 3)).astype(uint8)
    rgb[:5] = rgb[:5, :1]
    hsv = np.full((100, 3), np.nan)
    launch(to_hsv, 4, 32, rgb, hsv)
    return hsv, np.array([colorsys.rgb_to_hsv(*(p / 255)) for p in rgb]), 1e-12


@cuda.jit
def nearest_seed(seeds, owner, distance):
    x, y = cuda.grid(2)
    if x < owner.shape[1] and y < owner.shape[0]:
        best, place = math.inf, -1
        for s in range(seeds.shape[0]):
            d = math.hypot(x - seeds[s, 0], y - seeds[s, 1])
            if d < best:
                best, place = d, s
        owner[y, x], distance[y, x] = place, best


def cells_of_voronoi(launch):
    seeds = np.random.default_rng(13).random((9, 2)) * 30
    owner, distance = np.full(SHAPE, -1), np.zeros(SHAPE)
    launch(nearest_seed, GRID, BLOCK, seeds, owner, distance)
    y, x = np.mgrid[:21, :30]
    away = np.abs((x + 1j * y)[..., None] - seeds @ np.array([1, 1j]))
    return [(owner, away.argmin(axis=2)), (distance, away.min(axis=2))]


@cuda.jit
def trace_spheres(spheres, depth):
    px, py = cuda.grid(2)
    h, w = depth.shape
    if px >= w or py >= h:
        return
    dx, dy, dz = (px - w / 2) / w, (py - h / 2) / w, 1.0
    norm = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz)
    dx, dy, dz = dx * norm, dy * norm, dz * norm
    nearest = float64(1e9)
    for s in range(spheres.shape[0]):
        cx, cy, cz, radius = spheres[s, 0], spheres[s, 1], spheres[s, 2], spheres[s, 3]
        b = dx * cx + dy * cy + dz * cz
        inside = b * b - (cx * cx + cy * cy + cz * cz) + radius * radius
        if inside >= 0:
            t = b - math.sqrt(inside)
            if 0 < t < nearest:
                nearest = t
    depth[py, px] = nearest


def spheres_by_ray_tracing(launch):
    rng = np.random.default_rng(14)
    spheres = np.column_stack([rng.uniform(-2, 2, (8, 2)), rng.uniform(5, 8, 8), np.full(8, 0.8)])
    depth = np.zeros(SHAPE)
    launch(trace_spheres, GRID, BLOCK, spheres, depth)
    y, x = np.mgrid[:21, :30]
    rays = np.stack([(x - 15) / 30, (y - 10.5) / 30, np.ones(SHAPE)], axis=2)
    rays /= np.linalg.norm(rays, axis=2, keepdims=True)
    along = rays @ spheres[:, :3].T
    inside = along**2 - (spheres[:, :3] ** 2).sum(axis=1) + 0.64
    return depth, np.where(inside >= 0, along - np.sqrt(np.maximum(inside, 0)), 1e9).min(axis=2)
