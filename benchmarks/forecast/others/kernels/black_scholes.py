"""Prices of European options by Black and Scholes, in float64: logarithm, root, error function."""

import math

import numpy as np
from numpy import float64

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

THREADS = 256
RATE, VOLATILITY = 0.02, 0.3
LOOKED_AT = 1000  # options


def normal(x):
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


normal_on_gpu = cuda.jit(device=True)(normal)


def black_scholes(price, strike, years, call, put):
    i = cuda.grid(1)
    if i < price.size:
        spread = VOLATILITY * math.sqrt(years[i])
        drift = (RATE + 0.5 * VOLATILITY * VOLATILITY) * years[i]
        high = (math.log(price[i] / strike[i]) + drift) / spread
        low = high - spread
        later = strike[i] * math.exp(-RATE * years[i])
        call[i] = price[i] * normal_on_gpu(high) - later * normal_on_gpu(low)
        put[i] = later * normal_on_gpu(-low) - price[i] * normal_on_gpu(-high)


def launch(size):
    rng = np.random.default_rng(8)
    given = (rng.uniform(*limits, size) for limits in ((5, 30), (1, 100), (0.25, 10)))
    return Launch(-(-size // THREADS), THREADS, (*given, *np.zeros((2, size))))


def check(price, strike, years, call, put):
    some = np.unique(np.linspace(0, price.size - 1, LOOKED_AT).astype(int))
    of_normal = np.vectorize(normal, otypes=[float64])
    s, k, t = price[some], strike[some], years[some]
    spread = VOLATILITY * np.sqrt(t)
    high = (np.log(s / k) + (RATE + VOLATILITY**2 / 2) * t) / spread
    later = k * np.exp(-RATE * t)
    yield call[some], s * of_normal(high) - later * of_normal(high - spread)
    yield put[some], later * of_normal(spread - high) - s * of_normal(-high)


CASE = Case(black_scholes, launch, check, size=20_000_000, small=300)
