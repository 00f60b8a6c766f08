"""Stencils in one, two and three dimensions: halos, iterations, neighbours that alternate."""

import numpy as np
from numpy import float32, float64, int32

from gemmlab import cuda

THREADS = 32
RADIUS = 3
HALO = THREADS + 2 * RADIUS
TILE = 8
SIDE = TILE + 2


@cuda.jit
def stencil_1d(x, y):
    temp = cuda.shared.array(HALO, float64)
    g = cuda.grid(1)
    s = cuda.threadIdx.x + RADIUS
    temp[s] = x[g] if g < x.size else 0.0
    if cuda.threadIdx.x < RADIUS:
        temp[s - RADIUS] = x[g - RADIUS] if g >= RADIUS else 0.0
        temp[s + THREADS] = x[g + THREADS] if g + THREADS < x.size else 0.0
    cuda.syncthreads()
    if g < y.size:
        total = 0.0
        for offset in range(-RADIUS, RADIUS + 1):
            total += temp[s + offset]
        y[g] = total


def window_sums_with_a_halo(launch):
    x, y = np.random.default_rng(1).random(200), np.zeros(200)
    launch(stencil_1d, 7, THREADS, x, y)
    return y, np.convolve(x, np.ones(2 * RADIUS + 1), "same")


@cuda.jit
def heat(old, new, alpha):
    i, j = cuda.grid(2)
    rows, columns = old.shape
    if 0 < i < rows - 1 and 0 < j < columns - 1:
        laplacian = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - 4 * old[i, j]
        new[i, j] = old[i, j] + alpha * laplacian


def laplacian(u):
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def heat_equation_in_steps(launch):
    u = np.random.default_rng(2).random((21, 30))
    expected, v = u.copy(), u.copy()
    for _ in range(6):
        launch(heat, (3, 4), (8, 8), u, v, 0.1)
        u, v = v, u
        expected[1:-1, 1:-1] += 0.1 * laplacian(expected)
    return u, expected


@cuda.jit
def heat_tiled(old, new, alpha):
    tile = cuda.shared.array((SIDE, SIDE), float32)
    j, i = cuda.grid(2)
    ty, tx = cuda.threadIdx.y + 1, cuda.threadIdx.x + 1
    rows, columns = old.shape
    inside = i < rows and j < columns
    if inside:
        tile[ty, tx] = old[i, j]
        if ty == 1 and i > 0:
            tile[0, tx] = old[i - 1, j]
        if ty == TILE and i + 1 < rows:
            tile[TILE + 1, tx] = old[i + 1, j]
        if tx == 1 and j > 0:
            tile[ty, 0] = old[i, j - 1]
        if tx == TILE and j + 1 < columns:
            tile[ty, TILE + 1] = old[i, j + 1]
    cuda.syncthreads()
    if i > 0 and j > 0 and i < rows - 1 and j < columns - 1:
        new[i, j] = tile[ty, tx] + alpha * (
            tile[ty - 1, tx]
            + tile[ty + 1, tx]
            + tile[ty, tx - 1]
            + tile[ty, tx + 1]
            - float32(4) * tile[ty, tx]
        )


def heat_equation_with_tiles(launch):
    u = np.random.default_rng(3).random((27, 20), float32)
    v, expected = u.copy(), u.astype(float)
    launch(heat_tiled, (3, 4), (TILE, TILE), u, v, float32(0.2))
    expected[1:-1, 1:-1] += 0.2 * laplacian(expected)
    return v, expected.astype(float32)


@cuda.jit
def seven_points(u, v, c0, c1):
    k, j, i = cuda.grid(3)
    if 1 <= i < u.shape[0] - 1 and 1 <= j < u.shape[1] - 1 and 1 <= k < u.shape[2] - 1:
        v[i, j, k] = c0 * u[i, j, k] + c1 * (
            u[i - 1, j, k]
            + u[i + 1, j, k]
            + u[i, j - 1, k]
            + u[i, j + 1, k]
            + u[i, j, k - 1]
            + u[i, j, k + 1]
        )


def seven_points_in_space(launch):
    u = np.random.default_rng(4).random((9, 10, 12))
    v = np.zeros_like(u)
    launch(seven_points, (3, 3, 3), (4, 4, 4), u, v, 0.4, 0.1)
    expected, c = np.zeros_like(u), slice(1, -1)
    expected[c, c, c] = 0.4 * u[c, c, c] + 0.1 * sum(
        np.roll(u, shift, axis)[c, c, c] for axis in range(3) for shift in (-1, 1)
    )
    return v, expected


@cuda.jit
def marching(u, v):
    i, j = cuda.grid(2)
    if i >= u.shape[1] or j >= u.shape[2]:
        return
    behind = u[0, i, j]
    current = u[1, i, j]
    for z in range(1, u.shape[0] - 1):
        front = u[z + 1, i, j]
        v[z, i, j] = behind - 2.0 * current + front
        behind, current = current, front


def second_difference_marching_through_planes(launch):
    u = np.random.default_rng(5).random((12, 6, 9))
    v = np.zeros_like(u)
    launch(marching, (2, 3), (4, 4), u, v)
    expected = np.zeros_like(u)
    expected[1:-1] = np.diff(u, 2, axis=0)
    return v, expected


@cuda.jit
def laplace(old, new, error):
    j, i = cuda.grid(2)
    if 0 < i < old.shape[0] - 1 and 0 < j < old.shape[1] - 1:
        new[i, j] = 0.25 * (old[i, j - 1] + old[i, j + 1] + old[i - 1, j] + old[i + 1, j])
        cuda.atomic.max(error, 0, abs(new[i, j] - old[i, j]))


def laplace_until_it_rests(launch):
    a = np.zeros((10, 10))
    a[0] = 1.0
    b, steps = a.copy(), 0
    error = np.ones(1)
    while error[0] > 1e-3 and steps < 200:
        error[0] = 0
        launch(laplace, (1, 1), (16, 16), a, b, error)
        a, b, steps = b, a, steps + 1
    expected, count = np.zeros((10, 10)), 0
    expected[0] = 1.0
    change = 1.0
    while change > 1e-3:
        before = expected.copy()
        expected[1:-1, 1:-1] += 0.25 * laplacian(before)
        change, count = np.abs(expected - before).max(), count + 1
    return [(a, expected), (steps, count)]


@cuda.jit
def life(old, new):
    row, column = cuda.grid(2)
    rows, columns = old.shape
    if row < rows and column < columns:
        neighbours = 0
        for dr in range(-1, 2):
            for dc in range(-1, 2):
                if dr != 0 or dc != 0:
                    neighbours += old[(row + dr) % rows, (column + dc) % columns]
        new[row, column] = 1 if neighbours == 3 or (neighbours == 2 and old[row, column]) else 0


def game_of_life(launch):
    board = (np.random.default_rng(6).random((20, 17)) < 0.4).astype(np.uint8)
    expected, other = board.copy(), np.zeros_like(board)
    for _ in range(4):
        launch(life, (3, 3), (8, 8), board, other)
        board, other = other, board
        around = sum(
            np.roll(expected, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b
        )
        expected = ((around == 3) | ((around == 2) & (expected == 1))).astype(np.uint8)
    return board, expected


@cuda.jit
def rule(old, new, number):
    i = cuda.grid(1)
    n = len(old)
    if i < n:
        pattern = old[(i - 1 + n) % n] << 2 | old[i] << 1 | old[(i + 1) % n]
        new[i] = (number >> pattern) & 1


def cellular_automaton_of_wolfram(launch):
    cells = np.zeros(64, int32)
    cells[30] = 1
    expected, other = cells.tolist(), np.zeros_like(cells)
    for _ in range(20):
        launch(rule, 2, 32, cells, other, 110)
        cells, other = other, cells
        expected = [
            110 >> (4 * expected[i - 1] + 2 * expected[i] + expected[(i + 1) % 64]) & 1
            for i in range(64)
        ]
    return cells, np.array(expected)


@cuda.jit
def wave(before, now, after, c):
    i = cuda.grid(1)
    if i == 0 or i == now.size - 1:
        after[i] = 0.0
    elif i < now.size:
        after[i] = 2 * now[i] - before[i] + c**2 * (now[i - 1] - 2 * now[i] + now[i + 1])


def wave_on_a_string(launch):
    x = np.linspace(0, np.pi, 100)
    fields = [np.sin(x), np.sin(x), np.full(100, np.nan)]
    before, now = np.sin(x), np.sin(x)
    for _ in range(10):
        launch(wave, 4, 32, *fields, 0.5)
        fields = [fields[1], fields[2], fields[0]]
        after = np.zeros(100)
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + 0.25 * np.diff(now, 2)
        before, now = now, after
    return fields[1], now, 1e-12


@cuda.jit
def relax(u, f, colour):
    i, j = cuda.grid(2)
    n, m = u.shape
    if 0 < i < n - 1 and 0 < j < m - 1 and (i + j) % 2 == colour:
        u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j]) / 4


def gauss_seidel_in_red_and_black(launch):
    rng = np.random.default_rng(7)
    u, f = rng.random((12, 14)), rng.random((12, 14))
    expected = u.copy()
    for colour in (0, 1, 0, 1):
        launch(relax, (2, 2), (8, 8), u, f, colour)
        for i in range(1, 11):
            for j in range(1, 13):
                if (i + j) % 2 == colour:
                    around = expected[i - 1, j] + expected[i + 1, j]
                    around += expected[i, j - 1] + expected[i, j + 1]
                    expected[i, j] = (around - f[i, j]) / 4
    return u, expected


@cuda.jit
def reaction(u, v, next_u, next_v, du, dv, feed, kill):
    x, y = cuda.grid(2)
    h, w = u.shape
    if y >= h or x >= w:
        return
    up, down, left, right = (y - 1) % h, (y + 1) % h, (x - 1) % w, (x + 1) % w
    own_u, own_v = u[y, x], v[y, x]
    lap_u = u[up, x] + u[down, x] + u[y, left] + u[y, right] - 4 * own_u
    lap_v = v[up, x] + v[down, x] + v[y, left] + v[y, right] - 4 * own_v
    uvv = own_u * own_v * own_v
    next_u[y, x] = own_u + du * lap_u - uvv + feed * (1 - own_u)
    next_v[y, x] = own_v + dv * lap_v + uvv - (feed + kill) * own_v


def reaction_and_diffusion_of_gray_and_scott(launch):
    u, v = np.random.default_rng(8).random((2, 16, 20))
    a, b = np.zeros_like(u), np.zeros_like(v)
    launch(reaction, (3, 2), (8, 8), u, v, a, b, 0.16, 0.08, 0.035, 0.065)

    def periodic(w):
        return sum(np.roll(w, s, axis) for axis in (0, 1) for s in (-1, 1)) - 4 * w

    uvv = u * v * v
    return [
        (a, u + 0.16 * periodic(u) - uvv + 0.035 * (1 - u)),
        (b, v + 0.08 * periodic(v) + uvv - 0.1 * v),
    ]


@cuda.jit
def diffuse_in_one_launch(u, v, steps):
    i = cuda.grid(1)
    grid = cuda.cg.this_grid()
    for step in range(steps):
        if 0 < i < u.size - 1:
            if step % 2 == 0:
                v[i] = (u[i - 1] + u[i] + u[i + 1]) / 3
            else:
                u[i] = (v[i - 1] + v[i] + v[i + 1]) / 3
        grid.sync()


def diffusion_with_a_grid_that_waits(launch):
    u = np.random.default_rng(9).random(128)
    v, expected = u.copy(), u.copy()
    launch(diffuse_in_one_launch, 4, 32, u, v, 6)
    for _ in range(6):
        expected[1:-1] = (expected[:-2] + expected[1:-1] + expected[2:]) / 3
    return u, expected


@cuda.jit
def differences(left, right, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = right[i] - left[i]


def differences_of_overlapping_views(launch):
    x = np.random.default_rng(10).random(100)
    out = np.zeros(99)
    launch(differences, 4, 32, x[:-1], x[1:], out)
    return out, np.diff(x)
