"""Random tiles for a matrix instruction, in families that each aim at one rule of arithmetic."""

from __future__ import annotations

import numpy as np

from gemmlab.numerics import Mma, encode, number_format, round_to


class Draw:
    """Random tiles A (T, m, k), B (T, k, n), C (T, m, n) as float64, for one case and seed."""

    def __init__(self, case: Mma, tiles: int, seed: list[int]):
        self.case, self.rng = case, np.random.default_rng(seed)
        self.a = (tiles, case.m, case.k)
        self.b = (tiles, case.k, case.n)
        self.c = (tiles, case.m, case.n)
        self.source, self.target = number_format(case.dtype), number_format(case.out_dtype)

    def numbers(self, shape: tuple, form, low, high) -> np.ndarray:
        """±(1 + fraction)·2^e, e uniform in [low, high], to be rounded where e is below emin."""
        e = self.rng.integers(low, high, shape, endpoint=True)
        fraction = self.rng.integers(0, 2**form.fraction_bits, shape)
        plain = self.rng.random(shape) < 0.15  # powers of two, and ones that are nearly so
        fraction = np.where(
            plain, self.rng.choice([0, 1, 2**form.fraction_bits - 1], shape), fraction
        )
        sign = self.rng.choice([-1.0, 1.0], shape)
        return sign * np.ldexp(1 + fraction / 2.0**form.fraction_bits, e)

    def some(self, values: np.ndarray, share: float, replacements: object) -> np.ndarray:
        """`values`, a share of them replaced."""
        picks = self.rng.choice(np.asarray(replacements, np.float64), values.shape)
        return np.where(self.rng.random(values.shape) < share, picks, values)

    def products(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """A·B of the rounded operands, in float64."""
        a, b = (round_to(x, self.case.dtype).astype(np.float64) for x in (a, b))
        with np.errstate(all="ignore"):
            return a @ b

    # Each family gives A, B and C.

    def normal(self):
        c = self.rng.standard_normal(self.c) * self.case.k**0.5
        return self.rng.standard_normal(self.a), self.rng.standard_normal(self.b), c

    def near(self):
        return (
            self.numbers(self.a, self.source, -3, 3),
            self.numbers(self.b, self.source, -3, 3),
            self.numbers(self.c, self.target, -6, 9),
        )

    def finite(self):
        """Any exponent."""
        s, t = self.source, self.target
        return (
            self.numbers(self.a, s, s.emin - s.fraction_bits, s.emax),
            self.numbers(self.b, s, s.emin - s.fraction_bits, s.emax),
            self.numbers(self.c, t, t.emin - t.fraction_bits, t.emax),
        )

    def gaps(self):
        """Terms as far apart as the bits that alignment keeps, a few more or less."""
        top = self.rng.integers(-2, 3, (self.a[0], 1, 1))
        far = self.rng.integers(0, 33, (self.a[0], 1, self.a[2]))
        far[self.rng.random(far.shape) < 0.3] = 0
        one = far // 2
        a = self.numbers(self.a, self.source, 0, 1) * 2.0 ** (top - one)
        b = self.numbers(self.b, self.source, 0, 1) * 2.0 ** (one - far).transpose(0, 2, 1)
        c = self.numbers(self.c, self.target, -33, 6) * 2.0**top
        return a, b, c

    def cancellation(self):
        """Products that cancel in pairs but for a few bits, and C that cancels the rest."""
        a, b = self.near()[:2]
        a[:, :, 1::2] = -a[:, :, 0::2]
        b[:, 1::2, :] = b[:, 0::2, :]
        step = self.rng.choice([0, 0, 1, -1], b[:, 1::2, :].shape) * 2.0**-self.source.fraction_bits
        b[:, 1::2, :] *= 1 + step
        a, b = (round_to(x, self.case.dtype).astype(np.float64) for x in (a, b))
        c = self.some(-self.products(a, b), 0.6, [0.0, -0.0, 1.0, -1.0, 64.0, -0.125])
        return a, b, c

    def subnormal(self):
        s, t = self.source, self.target
        a = self.numbers(self.a, s, s.emin - s.fraction_bits - 1, s.emin + 1)
        reach = 30 if s.emax > 15 else 15
        b = self.numbers(self.b, s, -4, reach)
        low = max(t.emin - t.fraction_bits, s.emin - 30)
        return a, self.some(b, 0.1, [0.0, s.smallest]), self.numbers(self.c, t, low, s.emin + reach)

    def underflow(self):
        """Results about the smallest numbers of the output."""
        s, t = self.source, self.target
        bottom = t.emin - t.fraction_bits
        least = max(bottom - 14, 2 * (s.emin - s.fraction_bits))
        goal = self.rng.integers(least, max(least, bottom + 4) + 1, (self.a[0], 1, 1))
        half = goal // 2
        a = self.numbers(self.a, s, -1, 1) * 2.0**half
        b = self.numbers(self.b, s, -1, 1) * 2.0 ** (goal - half)
        a, b = self.some(a, 0.4, [0.0, -0.0]), self.some(b, 0.2, [0.0, -0.0])
        c = self.numbers(self.c, t, bottom - 1, bottom + 3)
        return a, b, self.some(c, 0.5, [0.0, -0.0, t.smallest, -t.smallest])

    def overflow(self):
        """Sums about the largest number of the output, from C or from the products."""
        s, t = self.source, self.target
        goal = min(t.emax, 2 * s.emax)
        half = goal // 2
        a = self.numbers(self.a, s, -3, 0) * 2.0**half
        b = self.numbers(self.b, s, -3, 0) * 2.0 ** (goal - half)
        same = self.rng.random((self.a[0], 1, 1)) < 0.3
        a, b = np.where(same, np.abs(a), a), np.where(same, np.abs(b), b)
        c = self.numbers(self.c, t, t.emax - 2, t.emax)
        return self.some(a, 0.3, [0.0]), b, self.some(c, 0.5, [t.largest, -t.largest, 0.0])

    def special(self):
        s, t = self.source, self.target
        a, b, c = self.near()
        odd = [0.0, -0.0, np.inf, -np.inf, np.nan, s.largest, -s.smallest, s.smallest_normal]
        share = self.rng.choice([0.01, 0.05, 0.2], (self.a[0], 1, 1))
        c = self.some(c, 0.15, [0.0, -0.0, np.inf, -np.inf, np.nan, t.largest, t.smallest])
        return self.some(a, share, odd), self.some(b, share, odd), c

    def zeros(self):
        """Zeros against the largest numbers: does the exponent of a zero product count?"""
        s, t = self.source, self.target
        column = self.rng.random((self.a[0], 1, self.a[2]))
        huge, tiny = self.numbers(self.a, s, s.emax - 3, s.emax), self.numbers(self.a, s, -9, 0)
        zero = self.some(np.zeros(self.a), 0.5, [-0.0])
        a = np.where(column < 0.3, huge, np.where(column < 0.6, zero, tiny))
        column = column.transpose(0, 2, 1)
        huge, tiny = self.numbers(self.b, s, s.emax - 3, s.emax), self.numbers(self.b, s, -9, 0)
        zero = self.some(np.zeros(self.b), 0.5, [-0.0])
        b = np.where(column < 0.3, zero, np.where(column < 0.6, huge, tiny))
        c = self.some(self.numbers(self.c, t, -12, 0), 0.5, [0.0, -0.0, t.smallest])
        return a, b, c

    def signed_zeros(self):
        """Nothing but zeros, of either sign, and C as small as it can be."""
        t = self.target
        a = self.some(np.zeros(self.a), 0.5, [-0.0])
        b = self.some(self.numbers(self.b, self.source, -2, 2), 0.5, [0.0, -0.0])
        same = self.rng.random((self.a[0], 1, 1)) < 0.5
        a, b = np.where(same, -np.abs(a), a), np.where(same, np.abs(b), b)
        return a, b, self.some(np.zeros(self.c), 0.6, [-0.0, t.smallest, -t.smallest])

    def ties(self):
        """Sums halfway between two numbers of the output, and next to it."""
        t = self.target
        a = self.rng.integers(-8, 9, self.a) / 4.0
        b = self.rng.integers(-8, 9, self.b) / 4.0
        c = self.rng.integers(-(2**t.precision), 2**t.precision, self.c)
        return a, b, c * 2.0 ** self.rng.integers(-4, 2, self.c)

    def words(self, family: str) -> list[np.ndarray]:
        """A, B and C as bits."""
        case = self.case
        if family == "bits":  # any pattern; of TF32 with low bits that are not read
            out = []
            for shape, form in (
                (self.a, self.source),
                (self.b, self.source),
                (self.c, self.target),
            ):
                top = 2 ** (8 * form.words.itemsize)
                out.append(self.rng.integers(0, top, shape).astype(form.words))
            return out
        a, b, c = getattr(self, family)()
        dtypes = case.dtype, case.dtype, case.out_dtype
        out = [encode(round_to(x, t), t) for x, t in zip((a, b, c), dtypes, strict=True)]
        if case.dtype == "tf32" and family == "near":  # low bits that are not read
            for words in out[:2]:
                words |= self.rng.integers(0, 2**13, words.shape, np.uint32)
        return out


FAMILIES = [
    "normal",
    "near",
    "finite",
    "gaps",
    "cancellation",
    "subnormal",
    "underflow",
    "overflow",
    "special",
    "zeros",
    "signed_zeros",
    "ties",
    "bits",
]
