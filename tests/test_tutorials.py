"""Kernels as tutorials on Numba-CUDA write them give what NumPy and plain Python give."""

import math

import numpy as np
import pytest
from numpy import float32, float64, int32, uint8, uint32

from gemmlab import simulate
from gemmlab.simt.cuda.stand_in import stand_in as cuda

RNG = np.random.default_rng(7)
THREADS = 64
HALO = THREADS + 2
TILE, PADDED = 8, 9
FULL = 0xFFFFFFFF


# ------------------------------------------------------------------------------- element by element


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


# ------------------------------------------------------------------------------------ shared memory


@cuda.jit
def histogram(data, bins):
    local = cuda.shared.array(16, dtype=int32)
    t = cuda.threadIdx.x
    if t < 16:
        local[t] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    while i < data.size:
        cuda.atomic.add(local, data[i] // 16, 1)
        i += cuda.gridsize(1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(bins, t, local[t])


def test_histogram():
    data, bins = RNG.integers(0, 256, 5000).astype(uint8), np.zeros(16, int32)
    histogram[4, 64](data, bins)
    np.testing.assert_array_equal(bins, np.bincount(data // 16, minlength=16))


@cuda.jit
def hillis_steele(x, out):
    buffer = cuda.shared.array((2, THREADS), float64)
    t = cuda.threadIdx.x
    source, target = 0, 1
    buffer[source, t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        if t >= step:
            buffer[target, t] = buffer[source, t] + buffer[source, t - step]
        else:
            buffer[target, t] = buffer[source, t]
        source, target = target, source
        cuda.syncthreads()
        step *= 2
    out[t] = buffer[source, t]


@cuda.jit
def blelloch(x, out):
    temp = cuda.shared.array(shape=THREADS, dtype=float64)
    t = cuda.threadIdx.x
    n = THREADS
    temp[2 * t] = x[2 * t]
    temp[2 * t + 1] = x[2 * t + 1]
    offset = 1
    d = n >> 1
    while d > 0:
        cuda.syncthreads()
        if t < d:
            ai = offset * (2 * t + 1) - 1
            bi = offset * (2 * t + 2) - 1
            temp[bi] += temp[ai]
        offset *= 2
        d >>= 1
    if t == 0:
        temp[n - 1] = 0
    d = 1
    while d < n:
        offset >>= 1
        cuda.syncthreads()
        if t < d:
            ai = offset * (2 * t + 1) - 1
            bi = offset * (2 * t + 2) - 1
            swapped = temp[ai]
            temp[ai] = temp[bi]
            temp[bi] += swapped
        d *= 2
    cuda.syncthreads()
    out[2 * t] = temp[2 * t]
    out[2 * t + 1] = temp[2 * t + 1]


def test_scans():
    x, out = RNG.integers(0, 9, THREADS).astype(float), np.zeros(THREADS)
    hillis_steele[1, THREADS](x, out)
    np.testing.assert_array_equal(out, np.cumsum(x))
    blelloch[1, THREADS // 2](x, out)
    np.testing.assert_array_equal(out, np.cumsum(x) - x)


@cuda.jit
def stencil(x, out):
    tile = cuda.shared.array(HALO, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    n = x.size
    tile[t + 1] = x[i] if i < n else 0
    if t == 0:
        tile[0] = x[i - 1] if 0 < i <= n else 0
    if t == cuda.blockDim.x - 1:
        tile[t + 2] = x[i + 1] if i + 1 < n else 0
    cuda.syncthreads()
    if 0 < i < n - 1:
        out[i] = 0.25 * tile[t] + 0.5 * tile[t + 1] + 0.25 * tile[t + 2]


def test_stencil_with_a_halo():
    x = RNG.random(200).astype(float32)
    out = np.zeros_like(x)
    stencil[4, THREADS](x, out)
    np.testing.assert_allclose(out[1:-1], (x[:-2] + 2 * x[1:-1] + x[2:]) / 4, rtol=1e-6)


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((TILE, PADDED), a.dtype)
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.x * TILE + cuda.threadIdx.y
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def test_transpose():
    a = RNG.random((19, 30))
    out = np.zeros((30, 19))
    transpose[(4, 3), (TILE, TILE)](a, out)
    np.testing.assert_array_equal(out, a.T)


@cuda.jit
def dot(a, b, out):
    cache = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    total = 0.0
    while i < len(a):
        total += a[i] * b[i]
        i += cuda.blockDim.x * cuda.gridDim.x
    cache[t] = total
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half != 0:
        if t < half:
            cache[t] += cache[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, cache[0])


def test_dot_product():
    a, b = RNG.random((2, 1000))
    out = np.zeros(1)
    dot[3, THREADS](a, b, out)
    assert out[0] == pytest.approx(a @ b)


@cuda.jit
def bitonic(x):
    shared = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    cuda.syncthreads()
    k = 2
    while k <= x.size:
        j = k >> 1
        while j > 0:
            other = t ^ j
            if other > t:
                up = (t & k) == 0
                if (shared[t] > shared[other]) == up:
                    shared[t], shared[other] = shared[other], shared[t]
            cuda.syncthreads()
            j >>= 1
        k <<= 1
    x[t] = shared[t]


def test_bitonic_sort_in_dynamic_shared_memory():
    x = RNG.integers(0, 1000, 128).astype(int32)
    expected = np.sort(x)
    bitonic[1, 128, 0, 512](x)
    np.testing.assert_array_equal(x, expected)


@cuda.jit
def several_views(x, out):
    keys = cuda.shared.array(0, int32)[:32]
    values = cuda.shared.array(0, int32)[32:64]
    t = cuda.threadIdx.x
    keys[t] = x[t]
    values[t] = t
    cuda.syncthreads()
    rank = 0
    for j in range(32):
        if keys[j] < keys[t] or (keys[j] == keys[t] and j < t):
            rank += 1
    out[rank] = values[t]


def test_dynamic_shared_memory_in_parts():
    x, out = RNG.integers(0, 9, 32).astype(int32), np.zeros(32, int32)
    several_views[1, 32, cuda.stream(), 256](x, out)
    np.testing.assert_array_equal(out, np.argsort(x, kind="stable"))


MASK = RNG.random((3, 3)).astype(float32)


@cuda.jit
def convolve(result, image):
    mask = cuda.const.array_like(MASK)
    i, j = cuda.grid(2)
    rows, cols = image.shape
    if (i >= rows) or (j >= cols):
        return
    delta_rows = mask.shape[0] // 2
    delta_cols = mask.shape[1] // 2
    s = 0
    for k in range(mask.shape[0]):
        for l in range(mask.shape[1]):  # noqa: E741
            i_k = i - k + delta_rows
            j_l = j - l + delta_cols
            if (i_k >= 0) and (i_k < rows) and (j_l >= 0) and (j_l < cols):
                s += mask[k, l] * image[i_k, j_l]
    result[i, j] = s


def test_convolution():
    image = RNG.random((20, 17)).astype(float32)
    result = np.zeros_like(image)
    convolve[(3, 3), (8, 8)](result, image)
    wide = np.pad(image, 1)
    expected = sum(
        MASK[k, l] * wide[2 - k : 22 - k, 2 - l : 19 - l]
        for k in range(3)
        for l in range(3)  # noqa: E741
    )
    np.testing.assert_allclose(result, expected, rtol=1e-5)


# -------------------------------------------------------------------------------- warps and atomics


@cuda.jit(device=True)
def warp_sum(value):
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(FULL, value, offset)
        offset //= 2
    return value


@cuda.jit
def block_sum(x, out):
    parts = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    lane, warp = t % 32, t // 32
    i = cuda.grid(1)
    value = warp_sum(x[i] if i < x.size else float32(0))
    if lane == 0:
        parts[warp] = value
    cuda.syncthreads()
    if warp == 0:
        value = parts[lane] if lane < cuda.blockDim.x // 32 else float32(0)
        value = warp_sum(value)
        if lane == 0:
            cuda.atomic.add(out, 0, value)


def test_sum_by_shuffles():
    x, out = RNG.integers(0, 9, 1000).astype(float32), np.zeros(1, float32)
    block_sum[4, 256](x, out)
    assert out[0] == x.sum()


@cuda.jit
def warp_prefix(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    value = x[i]
    delta = 1
    while delta < cuda.warpsize:
        other = cuda.shfl_up_sync(FULL, value, delta)
        if lane >= delta:
            value += other
        delta <<= 1
    out[i] = value


@cuda.jit
def matvec(a, x, y):
    row = cuda.grid(1) // 32
    lane = cuda.threadIdx.x & 31
    if row >= a.shape[0]:
        return
    total = float32(0)
    for j in range(lane, a.shape[1], 32):
        total += a[row, j] * x[j]
    for shift in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(-1, total, shift)
    if lane == 0:
        y[row] = total


def test_warps():
    x, out = RNG.integers(0, 9, 128), np.zeros(128, np.int64)
    warp_prefix[2, 64](x, out)
    np.testing.assert_array_equal(out.reshape(4, 32), np.cumsum(x.reshape(4, 32), 1))
    a, v = RNG.integers(0, 9, (13, 50)).astype(float32), np.arange(50, dtype=float32)
    y = np.zeros(13, float32)
    matvec[4, 128](a, v, y)
    np.testing.assert_array_equal(y, a @ v)


@cuda.jit
def extremes(x, low, high):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.min(low, 0, x[i])
        cuda.atomic.max(high, 0, x[i])


@cuda.jit
def atomic_max_by_cas(x, high):
    i = cuda.grid(1)
    if i >= x.size:
        return
    old = cuda.atomic.add(high, 0, 0)
    while x[i] > old:
        found = cuda.atomic.cas(high, 0, old, x[i])
        if found == old:
            break
        old = found


def test_extremes():
    x = RNG.permutation(1000)
    low, high, again = np.full(1, 10**6), np.full(1, -1), np.full(1, -1)
    extremes[8, 128](x, low, high)
    atomic_max_by_cas[8, 128](x, again)
    assert (low[0], high[0], again[0]) == (0, 999, 999)


# ---------------------------------------------------------------------------------------- language


@cuda.jit(device=True)
def polar(x, y=0.0):
    return math.hypot(x, y), math.atan2(y, x)


@cuda.jit
def to_polar(points, out):
    i = cuda.grid(1)
    if i < points.shape[0]:
        (out[i, 0], angle), flat = polar(points[i, 0], points[i, 1]), polar(points[i, 0])
        out[i, 1] = angle + 0 * flat[0]


def test_device_functions_that_return_tuples():
    points = RNG.standard_normal((40, 2))
    out = np.zeros((40, 2))
    to_polar[2, 32](points, out)
    np.testing.assert_allclose(out[:, 0], np.hypot(*points.T))
    np.testing.assert_allclose(out[:, 1], np.arctan2(points[:, 1], points[:, 0]))


def smallest_factor(n):
    i = 2
    while i * i <= n:
        if n % i == 0:
            break
        i += 1
    else:
        i = n
    return i


@cuda.jit
def factors(numbers, out, found):
    t = cuda.grid(1)
    if t >= numbers.size:
        return
    n = numbers[t]
    i = 2
    while i * i <= n:
        if n % i == 0:
            break
        i += 1
    else:
        i = n
    out[t] = i
    for k, prime in enumerate((2, 3, 5, 7), 1):
        if n == 12:
            return
        if n == 13:
            continue
        if n % prime == 0:
            found[t] = k
            break
    else:
        found[t] = -1


def test_loops_with_break_continue_return_and_else():
    numbers = np.arange(2, 100)
    out, found = np.zeros((2, 98), int)
    factors[2, 64](numbers, out, found)
    assert out.tolist() == [smallest_factor(n) for n in numbers]
    ranks = {2: 1, 3: 2, 5: 3, 7: 4}
    expected = [next((r for p, r in ranks.items() if n % p == 0), -1) for n in numbers.tolist()]
    expected[12 - 2], expected[13 - 2] = 0, -1
    assert found.tolist() == expected


@cuda.jit
def side_by_side(a, b, out):
    total = 0
    for i, (x, y) in enumerate(zip(a, b)):  # noqa: B905
        total += i * x * y
    for size in a.shape:
        total += size
    out[()] = total


def test_zip_and_enumerate():
    a, b, out = np.arange(5), np.arange(1, 7), np.zeros((), int)
    side_by_side[1, 1](a, b, out)
    assert out == sum(i * x * y for i, (x, y) in enumerate(zip(a, b, strict=False))) + 5


@cuda.jit
def without_dimensions(factor, out):
    out[cuda.grid(1)] = factor[()]


def test_an_array_without_dimensions():
    out = np.zeros(64)
    without_dimensions[2, 32](np.array(3.0), out)
    assert (out == 3).all()


@cuda.jit
def special(x, out):
    i = cuda.grid(1)
    if i < x.size:
        mantissa, exponent = math.frexp(x[i])
        fraction, whole = math.modf(x[i])
        out[0, i] = math.ldexp(mantissa, exponent)
        out[1, i] = fraction + whole
        out[2, i] = math.erf(x[i]) + math.erfc(x[i])
        out[3, i] = math.lgamma(x[i])
        out[4, i] = abs(complex(x[i], 1.0))


def test_functions_of_math_that_numpy_has_not():
    x, out = RNG.random(40) * 5, np.zeros((5, 40))
    special[2, 32](x, out)
    lgamma = [math.lgamma(v) for v in x]
    np.testing.assert_allclose(out, [x, x, np.ones(40), lgamma, np.hypot(x, 1)])


# ---------------------------------------------------------------------------------- the host's half


def scaled(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= FACTOR * OFFSETS[i]


FACTOR, OFFSETS = 2.0, np.array([1.0, 2.0, 3.0])


def test_names_are_those_of_the_first_launch(monkeypatch):
    kernel = cuda.jit("void(float64[:])")(scaled)
    results = []
    for _ in range(2):
        x, y = cuda.to_device(np.ones((2, 3)))
        kernel.forall(3)(x)
        simulate(scaled, 1, 3, y)
        results.append((x.copy_to_host().tolist(), y.tolist()))
        monkeypatch.setitem(globals(), "FACTOR", 10.0)
        OFFSETS[0] = 5.0
    OFFSETS[0] = 1.0
    assert results == [([2, 4, 6], [2, 4, 6]), ([2, 4, 6], [50, 20, 30])]


def test_arrays_are_copied_to_the_device_and_back():
    x = np.arange(4.0)
    on_device = cuda.to_device(x)
    twice = cuda.device_array_like(on_device)
    again = cuda.device_array(4, dtype=np.float64)

    @cuda.jit((float64, float64))
    def double(x, y):
        y[cuda.grid(1)] = 2 * x[cuda.grid(1)]

    double[1, 4, cuda.stream()](on_device, twice)
    cuda.synchronize()
    host = cuda.pinned_array(4)
    assert twice.copy_to_host(host) is host
    assert host.tolist() == [0, 2, 4, 6]
    assert x.tolist() == [0, 1, 2, 3]
    again.copy_to_device(host)
    cuda.to_device(x, to=twice)
    assert (again.tolist(), twice.tolist()) == (host.tolist(), x.tolist())
    with pytest.raises(TypeError, match=r"use \[grid, block\]"):
        double[4](on_device, twice)


@cuda.jit
def talk(x):
    i = cuda.grid(1)
    if x[i] > 1:
        print("thread", i, "has", x[i], (i, i > 2))


def test_print_writes_a_line_for_each_thread(capsys):
    talk[2, 2](np.array([1, 2, 3, 0.5]))
    assert capsys.readouterr().out.splitlines() == [
        "thread 1 has 2.000000 (1, False)",
        "thread 2 has 3.000000 (2, False)",
    ]
