"""Pictures computed: fractals, resizing, rotation, lines, cells, spheres."""

import math

import numpy as np
from numpy import float64, int32, uint8

from gemmlab import cuda

BLOCK = (8, 8)
GRID = (4, 3)  # 32 x 24 pixels
SHAPE = (21, 30)


def image(seed, *channels):
    return np.random.default_rng(seed).integers(0, 256, (*SHAPE, *channels)).astype(uint8)


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
        y0, x0 = int32(math.floor(sy)), int32(math.floor(sx))
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
