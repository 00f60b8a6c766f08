"""Chance: generators of their own, areas, prices of options, walks, spins, shuffles."""

import math

import numpy as np
from numpy import float32, int32, uint32, uint64

from gemmlab import cuda

STEPS, LEAVES = 20, 21
CARDS = 12


@cuda.jit(device=True)
def lcg(state):
    return (state * 1103515245 + 12345) % 2147483648


@cuda.jit
def pi_by_lcg(seeds, hits, samples):
    t = cuda.grid(1)
    state = seeds[t]
    inside = 0
    for _ in range(samples):
        state = lcg(state)
        x = state / 2147483648
        state = lcg(state)
        y = state / 2147483648
        if x * x + y * y < 1.0:
            inside += 1
    cuda.atomic.add(hits, 0, inside)


def pi_with_a_linear_congruential_generator(launch):
    seeds, hits = np.arange(1, 65), np.zeros(1, np.int64)
    launch(pi_by_lcg, 2, 32, seeds, hits, 25)
    expected = 0
    for state in range(1, 65):
        for _ in range(25):
            first = (state * 1103515245 + 12345) % 2**31
            state = (first * 1103515245 + 12345) % 2**31
            expected += (first / 2**31) ** 2 + (state / 2**31) ** 2 < 1
    return hits[0], expected


@cuda.jit
def xorshift(states, out):
    t = cuda.grid(1)
    if t < states.size:
        x = states[t]
        for i in range(out.shape[1]):
            x = uint32(x ^ (x << 13))
            x = uint32(x ^ (x >> 17))
            x = uint32(x ^ (x << 5))
            out[t, i] = x
        states[t] = x


def numbers_of_xorshift(launch):
    states, out = np.arange(1, 50, dtype=uint32), np.zeros((49, 6), uint32)
    launch(xorshift, 2, 32, states, out)
    expected = np.zeros((49, 6), int)
    for t in range(49):
        x = t + 1
        for i in range(6):
            x ^= x << 13 & 0xFFFFFFFF
            x ^= x >> 17
            x ^= x << 5 & 0xFFFFFFFF
            expected[t, i] = x
    return [(out, expected), (states, expected[:, -1])]


@cuda.jit
def splitmix(out):
    i = cuda.grid(1)
    if i < out.size:
        z = uint64(i + 1) * uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
        out[i] = z ^ (z >> uint64(31))


def numbers_of_splitmix(launch):
    out, whole = np.zeros(70, uint64), 2**64 - 1
    launch(splitmix, 3, 32, out)
    expected = []
    for i in range(1, 71):
        z = i * 0x9E3779B97F4A7C15 & whole
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & whole
        z = (z ^ z >> 27) * 0x94D049BB133111EB & whole
        expected.append(z ^ z >> 31)
    return out, np.array(expected, uint64)


@cuda.jit
def price_paths(normal, spot, strike, rate, sigma, dt, payoffs):
    path = cuda.grid(1)
    if path < normal.shape[0]:
        s = spot
        for step in range(normal.shape[1]):
            s *= math.exp((rate - 0.5 * sigma**2) * dt + sigma * math.sqrt(dt) * normal[path, step])
        payoffs[path] = max(s - strike, 0.0)


def european_option_by_paths(launch):
    normal, payoffs = np.random.default_rng(1).standard_normal((150, STEPS)), np.zeros(150)
    launch(price_paths, 3, 64, normal, 100.0, 95.0, 0.03, 0.2, 1 / STEPS, payoffs)
    growth = (0.03 - 0.02) / STEPS + 0.2 * math.sqrt(1 / STEPS) * normal
    return payoffs, np.maximum(100 * np.exp(growth.sum(axis=1)) - 95, 0), 1e-12


@cuda.jit(device=True)
def normal_cdf(d):
    return 0.5 * (1.0 + math.erf(d / math.sqrt(2.0)))


@cuda.jit
def black_scholes(call, put, price, strike, years, riskless, volatility):
    i = cuda.grid(1)
    if i >= price.size:
        return
    sqrt_t = math.sqrt(years[i])
    d1 = (
        math.log(price[i] / strike[i]) + (riskless + 0.5 * volatility * volatility) * years[i]
    ) / (volatility * sqrt_t)
    d2 = d1 - volatility * sqrt_t
    discounted = strike[i] * math.exp(-riskless * years[i])
    call[i] = price[i] * normal_cdf(d1) - discounted * normal_cdf(d2)
    put[i] = discounted * (1.0 - normal_cdf(d2)) - price[i] * (1.0 - normal_cdf(d1))


def prices_of_black_and_scholes(launch):
    rng = np.random.default_rng(2)
    price, strike, years = rng.uniform(5, 30, 90), rng.uniform(1, 100, 90), rng.uniform(0.25, 9, 90)
    call, put = np.zeros(90), np.zeros(90)
    launch(black_scholes, 3, 32, call, put, price, strike, years, 0.02, 0.3)
    expected = []
    for s, k, t in zip(price, strike, years, strict=True):
        d1 = (math.log(s / k) + (0.02 + 0.045) * t) / (0.3 * math.sqrt(t))
        upper, lower = (math.erfc(-d / math.sqrt(2)) / 2 for d in (d1, d1 - 0.3 * math.sqrt(t)))
        expected.append(s * upper - k * math.exp(-0.02 * t) * lower)
    parity = price - strike * np.exp(-0.02 * years)
    return [(call, np.array(expected), 1e-12), (call - put, parity, 1e-12)]


@cuda.jit
def binomial_tree(spot, strike, up, probability, discount, out):
    t = cuda.grid(1)
    if t < spot.size:
        values = cuda.local.array(LEAVES, float32)
        for i in range(STEPS + 1):
            price = spot[t] * up ** (2 * i - STEPS)
            values[i] = max(strike[t] - price, 0)
        for step in range(STEPS):
            for i in range(STEPS - step):
                hold = discount * (probability * values[i + 1] + (1 - probability) * values[i])
                exercise = strike[t] - spot[t] * up ** (2 * i - (STEPS - step - 1))
                values[i] = max(hold, exercise)
        out[t] = values[0]


def american_option_by_a_tree(launch):
    rng = np.random.default_rng(3)
    spot, strike, out = rng.uniform(80, 120, 40), rng.uniform(80, 120, 40), np.zeros(40, float32)
    launch(binomial_tree, 2, 32, spot, strike, 1.05, 0.51, 0.999, out)
    prices = [spot[:, None] * 1.05 ** (2 * np.arange(n + 1) - n) for n in range(STEPS + 1)]
    values = np.maximum(strike[:, None] - prices[STEPS], 0)
    for n in range(STEPS - 1, -1, -1):
        hold = 0.999 * (0.51 * values[:, 1:] + 0.49 * values[:, :-1])
        values = np.maximum(hold, strike[:, None] - prices[n])
    return out, values[:, 0].astype(float32), 1e-5


@cuda.jit
def walk(directions, ends, farthest):
    w = cuda.grid(1)
    if w < directions.shape[0]:
        x = y = 0
        far = 0
        for i in range(directions.shape[1]):
            d = directions[w, i]
            if d == 0:
                x += 1
            elif d == 1:
                x -= 1
            elif d == 2:
                y += 1
            else:
                y -= 1
            far = max(far, abs(x) + abs(y))
        ends[w, 0], ends[w, 1] = x, y
        farthest[w] = far


def random_walks_on_a_grid(launch):
    directions = np.random.default_rng(4).integers(0, 4, (50, 30)).astype(np.int8)
    ends, farthest = np.full((50, 2), 99), np.zeros(50, int32)
    launch(walk, 2, 32, directions, ends, farthest)
    places = np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])[directions].cumsum(axis=1)
    return [(ends, places[:, -1]), (farthest, np.abs(places).sum(axis=2).max(axis=1))]


@cuda.jit
def flip(spins, chance, colour, weights):
    i, j = cuda.grid(2)
    n, m = spins.shape
    if i < n and j < m and (i + j) & 1 == colour:
        around = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % m] + spins[i, j - 1]
        energy = 2 * spins[i, j] * around
        if energy <= 0 or chance[i, j] < weights[energy >> 2]:
            spins[i, j] = -spins[i, j]


def spins_of_ising_in_two_colours(launch):
    rng = np.random.default_rng(5)
    spins, chance = rng.choice([-1, 1], (12, 14)).astype(np.int8), rng.random((2, 12, 14))
    expected, weights = spins.astype(int), np.exp(-0.8 * 4 * np.arange(3) / 4)
    for colour in (0, 1):
        launch(flip, (2, 2), (8, 8), spins, chance[colour], colour, weights)
        around = sum(np.roll(expected, s, a) for a in (0, 1) for s in (-1, 1))
        energy = 2 * expected * around
        odds = np.where(energy <= 0, 2, weights[np.maximum(energy, 0) // 4])
        here = np.add.outer(range(12), range(14)) % 2 == colour
        expected[here & (chance[colour] < odds)] *= -1
    return spins, expected


@cuda.jit
def fisher_yates(randoms, decks):
    t = cuda.grid(1)
    if t < decks.shape[0]:
        deck = cuda.local.array(CARDS, int32)
        for i in range(CARDS):
            deck[i] = i
        for i in range(CARDS - 1, 0, -1):
            j = randoms[t, i] % (i + 1)
            deck[i], deck[j] = deck[j], deck[i]
        for i in range(CARDS):
            decks[t, i] = deck[i]


def decks_shuffled(launch):
    randoms = np.random.default_rng(6).integers(0, 1 << 30, (40, CARDS))
    decks, expected = np.full((40, CARDS), -1), []
    launch(fisher_yates, 2, 32, randoms, decks)
    for row in randoms:
        deck = list(range(CARDS))
        for i in reversed(range(1, CARDS)):
            j = row[i] % (i + 1)
            deck[i], deck[j] = deck[j], deck[i]
        expected.append(deck)
    return decks, np.array(expected)


@cuda.jit
def halton(out, base):
    i = cuda.grid(1)
    if i < out.size:
        fraction, value, n = 1.0, 0.0, i + 1
        while n > 0:
            fraction /= base
            value += fraction * (n % base)
            n //= base
        out[i] = value


def numbers_of_halton(launch):
    out, expected = np.zeros(100), []
    launch(halton, 4, 32, out, 3)
    for i in range(1, 101):
        digits = [int(d) for d in np.base_repr(i, 3)][::-1]
        expected.append(sum(d / 3.0 ** (k + 1) for k, d in enumerate(digits)))
    return out, np.array(expected)


@cuda.jit
def box_muller(u, out):
    i = cuda.grid(1)
    if 2 * i + 1 < out.size:
        radius = math.sqrt(-2.0 * math.log(u[2 * i]))
        angle = 2.0 * math.pi * u[2 * i + 1]
        out[2 * i] = radius * math.cos(angle)
        out[2 * i + 1] = radius * math.sin(angle)


def normal_numbers_of_box_and_muller(launch):
    u = np.random.default_rng(7).random(120)
    out = np.zeros(120)
    launch(box_muller, 2, 32, u, out)
    pairs = np.sqrt(-2 * np.log(u[::2])) * np.exp(2j * np.pi * u[1::2])
    return out, pairs.view(float), 1e-12
