"""Whole numbers and their bits: codes, primes, divisors, powers, boards."""

import math
from datetime import date, timedelta
from itertools import permutations

import numpy as np
from numpy import int32, uint32, uint64

from gemmlab import cuda

FULL = 0xFFFFFFFF
QUEENS = 6


@cuda.jit
def bits(x, ones, reverse, leading, first):
    i = cuda.grid(1)
    if i < x.size:
        ones[i] = cuda.popc(x[i])
        reverse[i] = cuda.brev(x[i])
        leading[i] = cuda.clz(x[i])
        first[i] = cuda.ffs(x[i])


def bits_counted_and_turned(launch):
    x = np.random.default_rng(1).integers(1, 1 << 32, 70).astype(uint32)
    ones, reverse, leading, first = (np.zeros(70, uint32) for _ in range(4))
    launch(bits, 3, 32, x, ones, reverse, leading, first)
    text = [f"{v:032b}" for v in x.tolist()]
    return [
        (ones, np.array([t.count("1") for t in text])),
        (reverse, np.array([int(t[::-1], 2) for t in text])),
        (leading, np.array([t.index("1") for t in text])),
        (first, np.array([t[::-1].index("1") + 1 for t in text])),
    ]


@cuda.jit
def gray(codes, back):
    i = cuda.grid(1)
    if i < codes.size:
        code = i ^ (i >> 1)
        codes[i] = code
        shift = 1
        while shift < 32:
            code ^= code >> shift
            shift <<= 1
        back[i] = code


def code_of_gray(launch):
    codes, back = np.full(64, -1), np.full(64, -1)
    launch(gray, 2, 32, codes, back)
    expected = [0]
    for bit in range(6):
        expected += [value + (1 << bit) for value in reversed(expected)]
    return [(codes, np.array(expected)), (back, np.arange(64))]


@cuda.jit(device=True)
def spread(x):
    x = (x | (x << 8)) & 0x00FF00FF
    x = (x | (x << 4)) & 0x0F0F0F0F
    x = (x | (x << 2)) & 0x33333333
    return (x | (x << 1)) & 0x55555555


@cuda.jit
def morton(codes):
    x, y = cuda.grid(2)
    if x < codes.shape[1] and y < codes.shape[0]:
        codes[y, x] = spread(x) | (spread(y) << 1)


def code_of_morton(launch):
    codes = np.full((20, 30), -1)
    launch(morton, (4, 3), (8, 8), codes)
    expected = [
        [
            int("".join(a + b for a, b in zip(f"{y:08b}", f"{x:08b}", strict=True)), 2)
            for x in range(30)
        ]
        for y in range(20)
    ]
    return codes, np.array(expected)


@cuda.jit
def transpose_bits(words, out):
    lane = cuda.threadIdx.x
    own = words[lane]
    for bit in range(32):
        votes = cuda.ballot_sync(FULL, (own >> uint32(bit)) & uint32(1) != 0)
        if lane == bit:
            out[lane] = votes


def matrix_of_bits_transposed(launch):
    words = np.random.default_rng(2).integers(0, 1 << 32, 32).astype(uint32)
    out = np.zeros(32, uint32)
    launch(transpose_bits, 1, 32, words, out)
    square = np.array([[w >> b & 1 for b in range(32)] for w in words.tolist()])
    return out, square.T @ (1 << np.arange(32))


@cuda.jit
def strike(composite, prime):
    i = cuda.grid(1) + prime
    if i * prime < composite.size:
        composite[i * prime] = True


def sieve_of_eratosthenes(launch):
    composite = np.zeros(200, np.bool_)
    composite[:2] = True
    for prime in range(2, 15):
        if not composite[prime]:
            launch(strike, 4, 32, composite, prime)
    return composite, np.array([n < 2 or any(n % d == 0 for d in range(2, n)) for n in range(200)])


@cuda.jit(device=True)
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@cuda.jit
def divisors(a, b, greatest, least):
    i = cuda.grid(1)
    if i < a.size:
        d = gcd(a[i], b[i])
        greatest[i] = d
        least[i] = a[i] // d * b[i]


def divisors_of_euclid(launch):
    a, b = np.random.default_rng(3).integers(1, 500, (2, 100))
    greatest, least = np.zeros((2, 100), np.int64)
    launch(divisors, 4, 32, a, b, greatest, least)
    return [(greatest, np.gcd(a, b)), (least, np.lcm(a, b))]


@cuda.jit(device=True)
def modpow(base, exponent, modulus):
    result = 1
    base %= modulus
    while exponent > 0:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result


@cuda.jit(device=True)
def is_probable_prime(n):
    if n < 2:
        return False
    if n % 2 == 0:
        return n == 2
    d, s = n - 1, 0
    while d % 2 == 0:
        d //= 2
        s += 1
    for base in (2, 3, 5, 7):
        if base % n == 0:
            continue
        x = modpow(base, d, n)
        if x == 1 or x == n - 1:
            continue
        composite = True
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                composite = False
                break
        if composite:
            return False
    return True


@cuda.jit
def primes(first, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = is_probable_prime(first + i)


def primes_of_miller_and_rabin(launch):
    out = np.zeros(150, np.bool_)
    launch(primes, 5, 32, 10_000, out)
    return out, np.array([all(n % d for d in range(2, 101)) for n in range(10_000, 10_150)])


@cuda.jit
def powers(bases, exponents, modulus, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = modpow(bases[i], exponents[i], modulus)


def powers_modulo_a_prime(launch):
    bases, exponents = np.random.default_rng(4).integers(1, 10**9, (2, 60))
    out = np.zeros(60, np.int64)
    launch(powers, 2, 32, bases, exponents, 1_000_000_007, out)
    pairs = zip(bases.tolist(), exponents.tolist(), strict=True)
    return out, np.array([pow(b, e, 1_000_000_007) for b, e in pairs])


@cuda.jit
def collatz(steps, peaks):
    i = cuda.grid(1)
    if i < steps.size:
        n = i + 1
        count, peak = 0, n
        while n != 1:
            if n % 2:
                n = 3 * n + 1
            else:
                n //= 2
            peak = max(peak, n)
            count += 1
        steps[i], peaks[i] = count, peak


def steps_of_collatz(launch):
    steps, peaks, expected = np.full(100, -1), np.zeros(100, np.int64), []
    launch(collatz, 4, 32, steps, peaks)
    for n in range(1, 101):
        path = [n]
        while path[-1] != 1:
            path.append(3 * path[-1] + 1 if path[-1] % 2 else path[-1] // 2)
        expected.append((len(path) - 1, max(path)))
    return np.column_stack([steps, peaks]), np.array(expected)


@cuda.jit
def queens(count):
    first = cuda.threadIdx.x
    if first >= QUEENS:
        return
    columns = cuda.local.array(QUEENS, int32)
    columns[0] = first
    row = 1
    columns[1] = -1
    found = 0
    while row > 0:
        columns[row] += 1
        if columns[row] >= QUEENS:
            row -= 1
            continue
        safe = True
        for r in range(row):
            if columns[r] == columns[row] or abs(columns[r] - columns[row]) == row - r:
                safe = False
                break
        if safe:
            if row == QUEENS - 1:
                found += 1
            else:
                row += 1
                columns[row] = -1
    cuda.atomic.add(count, 0, found)


def queens_on_a_board(launch):
    count = np.zeros(1, int32)
    launch(queens, 1, 32, count)
    boards = permutations(range(QUEENS))
    safe = [
        len({c + r for r, c in enumerate(b)}) == len({c - r for r, c in enumerate(b)}) == QUEENS
        for b in boards
    ]
    return count[0], sum(safe)


@cuda.jit(device=True)
def double(a, b):
    return a * (uint64(2) * b - a), a * a + b * b


@cuda.jit
def fibonacci(out):
    n = cuda.grid(1)
    if n < out.size:
        a, b = uint64(0), uint64(1)
        for bit in range(6, -1, -1):
            a, b = double(a, b)
            if (n >> bit) & 1:
                a, b = b, a + b
        out[n] = a


def numbers_of_fibonacci(launch):
    out = np.full(90, 7, uint64)
    launch(fibonacci, 3, 32, out)
    expected = [0, 1]
    while len(expected) < 90:
        expected.append(expected[-1] + expected[-2])
    return out, np.array(expected, uint64)


@cuda.jit
def weekday(year, month, day, out):
    i = cuda.grid(1)
    if i < out.size:
        y, m = year[i], month[i]
        if m < 3:
            m += 12
            y -= 1
        century, k = y // 100, y % 100
        out[i] = (day[i] + 13 * (m + 1) // 5 + k + k // 4 + century // 4 + 5 * century) % 7


def weekdays_of_zeller(launch):
    days = [date(1999, 12, 1) + timedelta(37 * i) for i in range(90)]
    parts = np.array([(d.year, d.month, d.day) for d in days]).T.copy()
    out = np.full(90, -1)
    launch(weekday, 3, 32, *parts, out)
    return out, np.array([(d.isoweekday() + 1) % 7 for d in days])


@cuda.jit
def roots(x, out):
    i = cuda.grid(1)
    if i < x.size:
        guess = max(x[i], 1)
        following = (guess + x[i] // guess) // 2
        while following < guess:
            guess, following = following, (following + x[i] // following) // 2
        out[i] = guess if x[i] > 0 else 0


def whole_roots_of_newton(launch):
    x = np.random.default_rng(5).integers(0, 10**12, 80)
    x[:4] = range(4)
    out = np.full(80, -1)
    launch(roots, 3, 32, x, out)
    return out, np.array([math.isqrt(v) for v in x.tolist()])
