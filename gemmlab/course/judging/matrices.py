"""Test cases for answers that compute C ← αAB + βC, and explanations of wrong results.

A wrong result is explained by a known mistake that gives exactly this result (`EXPLANATIONS`), or
else by the pattern of its wrong elements (`pattern`).
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab.course.judging import drawing
from gemmlab.course.judging.verdict import DRAWN_ANEW, FAILING
from gemmlab.problem import Gemm, Operands

SEED = 4


@dataclass(frozen=True)
class Case:
    """One problem with operands on which right float32 arithmetic is exact.

    tile : side T of the learner's tile, 1 where there is none
    large : A, B and C hold fractions of 12 significant bits, one more than float16 has; each
        product has a small whole number in it, so that its sums are exact in float32
    seed : of the operands
    anew : whether it was drawn for this check alone
    """

    problem: Gemm
    tile: int = 1
    large: bool = False
    seed: int = SEED
    anew: bool = False

    def __str__(self) -> str:
        p = self.problem
        text = f"m={p.m}, n={p.n}, k={p.k}, alpha={p.alpha:g}, beta={p.beta:g}"
        return text + (f", T={self.tile}" if self.tile > 1 else "")

    @property
    def fact(self) -> tuple[str, str]:
        """The case as a fact of a verdict."""
        return DRAWN_ANEW if self.anew else FAILING, str(self)

    def operands(self) -> Operands:
        """A, B and C, of whole numbers if not `large`; C is full of NaN where β = 0."""
        p = self.problem
        rng = np.random.default_rng(self.seed)
        # No zeros: each product matters.
        drawn = (rng.integers(1, 5, s) * rng.choice([-1.0, 1.0], s) for s in p.shapes)
        a, b, c = Operands(*drawn)
        if self.large:
            of_a, of_b, _ = p.oriented(Operands(a, b, c))  # views
            for fine in (of_a[:, ::2], of_b[1::2], c):
                fine[...] = (2 * rng.integers(1024, 2048, fine.shape) + 1) / 1024
        a, b, c = (x.astype(dtype) for x, dtype in zip((a, b, c), p.memory, strict=True))
        return Operands(a, b, p.poisoned(c))


def case(m: int, n: int, k: int, alpha: float = 1, beta: float = 0, tile: int = 1) -> Case:
    """A case with small whole numbers."""
    return Case(Gemm(m, n, k, alpha, beta), tile)


STEPS = 40  # along k, of a product that is long and thin
DRAWN = 7  # sizes to draw from
FAR = 130  # rows or columns, of a product that is tall or wide
LARGEST_TILE = 16  # side of a tile with a thread for each of its elements


def long_and_thin(tile: int) -> Case:
    """One tile of C and many steps along k, with factors and operands that are no whole numbers.

    It shows what goes wrong late in a sum, such as a buffer that is used again too early.
    """
    return Case(Gemm(tile, tile, STEPS * tile, 0.5, 0.5), tile, large=True)


def drawn_anew(cases: Sequence[Case]) -> Case:
    """A case that nobody can know before: sizes, factors and operands are drawn for each check.

    Its n and k are multiples of what those of all `cases` are multiples of. It has a larger m than
    any of them, a larger n and, but for those that are long and thin, a larger k: a rule that holds
    as far as the cases go is of no use. But where k is one tile at most in all of them, it is one
    here. Its factors end in a half.
    """
    rng = drawing.generator()
    known = [(c.problem.m, c.problem.n, c.problem.k) for c in cases]
    unit = math.gcd(*(size for _, n, k in known for size in (n, k)))
    compact = [sizes for sizes in known if sizes[2] < STEPS * sizes[0]]
    m, n, k = (
        of * (max(sizes) // of + further + int(rng.integers(1, DRAWN + 1)))
        for sizes, of, further in zip(
            zip(*(compact or known), strict=True), (1, unit, unit), (DRAWN, DRAWN, 0), strict=True
        )
    )
    if all(c.problem.k <= c.tile for c in cases):
        k = int(rng.integers(2, cases[-1].tile + 1))
    alpha, beta = (int(x) + 0.5 for x in rng.integers(3, 8, 2))
    last = cases[-1]
    problem = Gemm(m, n, k, alpha, beta, layout=last.problem.layout)
    return Case(problem, last.tile, seed=int(rng.integers(1 << 30)), anew=True)


def beyond(cases: Sequence[Case], steps: int = STEPS) -> tuple[Case, ...]:
    """Cases drawn anew, each of which goes beyond all others: in m and in steps, in n and the tile.

    Small tiles and few of them keep these cheap. Where k is one tile at most, it is one here.
    """
    rng = drawing.generator()
    largest = cases[-1].tile
    small = next((t for t in sorted({c.tile for c in cases}) if t >= 4), largest)
    unit = math.gcd(*(size for c in cases for size in (c.problem.n, c.problem.k)))
    short_sums = all(c.problem.k <= c.tile for c in cases)

    def drawn(m: int, n: int, k: int, tile: int, factor: float) -> Case:
        n, k = (unit * -(-size // unit) for size in (n, k))
        problem = Gemm(m, n, k, factor, factor - 1, layout=cases[-1].problem.layout)
        return Case(problem, tile, large=True, seed=int(rng.integers(1 << 30)), anew=True)

    tall, wide, more = (int(x) for x in rng.integers([FAR, FAR, 0], [2 * FAR, 2 * FAR, 5]))
    if short_sums:
        found = drawn(tall, small + 1, small, small, 2.5), drawn(small + 1, wide, small, small, 1.5)
        return drawn_anew(cases), *found
    larger = min(2 * largest, max(largest, LARGEST_TILE))
    long = (steps + more) * small
    found = (
        drawn(tall, small + 1, long, small, 0.5),
        drawn(larger + 1, wide, larger + 1, larger, 1.5),
    )
    return drawn_anew(cases), *found


# The result that a mistake gives: (case, A, B, C) -> an array, None where it is undefined.
Explanation = Callable[[Case, np.ndarray, np.ndarray, np.ndarray], Any]


def _product(x: np.ndarray, y: np.ndarray, shape: tuple[int, ...]) -> Any:
    return x @ y if x.shape[1] == y.shape[0] and (x.shape[0], y.shape[1]) == shape else None


def _scaled(case: Case, product: Any, c: np.ndarray) -> Any:
    p = case.problem
    if product is None:
        return None
    return p.alpha * product + (p.beta * c if p.beta != 0 else 0)


def _floor_steps(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    whole = case.problem.k // case.tile * case.tile
    return _scaled(case, a[:, :whole] @ b[:whole], c) if case.tile > 1 else None


def _products_missing(place: int) -> Explanation:
    """The sum without the product at `place` of each tile, 0 or the last."""

    def instead(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
        if case.tile == 1:
            return None
        kept = np.arange(case.problem.k) % case.tile != place % case.tile
        return _scaled(case, a[:, kept] @ b[kept], c)

    return instead


def _tiles_transposed(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    """A times B, of which each T×T tile was transposed where it stands."""
    tile, (k, n) = case.tile, b.shape
    if tile == 1:
        return None
    down, across = -(-k // tile), -(-n // tile)
    padded = np.pad(b, ((0, down * tile - k), (0, across * tile - n)))
    turned = padded.reshape(down, tile, across, tile).swapaxes(1, 3).reshape(padded.shape)
    return _scaled(case, np.pad(a, ((0, 0), (0, down * tile - k))) @ turned[:, :n], c)


def _cut_operands(*which: str) -> Explanation:
    """The result where elements of A, of B or of both are cut to whole numbers."""

    def instead(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
        a, b = np.trunc(a) if "A" in which else a, np.trunc(b) if "B" in which else b
        return _scaled(case, a @ b, c)

    return instead


def _cut_factors(*which: str) -> Explanation:
    """The result where α, β or both are cut to whole numbers."""

    def instead(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
        whole = {name: float(int(getattr(case.problem, name))) for name in which}
        return _scaled(Case(replace(case.problem, **whole)), a @ b, c)

    return instead


def _cut_products(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    """The result where each product is cut to a whole number before it is added."""
    return _scaled(case, np.trunc(a[:, :, None] * b).sum(axis=1), c)


def _sum_over(size: str) -> Explanation:
    def instead(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
        count = getattr(case.problem, size)
        return _scaled(case, a[:, :count] @ b[:count], c) if count <= case.problem.k else None

    return instead


EXPLANATIONS: dict[str, Explanation] = {
    "beta-dropped": lambda s, a, b, c: s.problem.alpha * (a @ b),
    "alpha-dropped": lambda s, a, b, c: _scaled(Case(_with(s.problem, alpha=1.0)), a @ b, c),
    "alpha-scales-c": lambda s, a, b, c: s.problem.alpha * _scaled(
        Case(_with(s.problem, alpha=1.0)), a @ b, c
    ),
    "beta-zero-reads-c": lambda s, a, b, c: s.problem.alpha * (a @ b) + s.problem.beta * c,
    "reads-a-for-b": lambda s, a, b, c: _scaled(s, _product(a, a, c.shape), c),
    "elementwise": lambda s, a, b, c: _scaled(s, a * b if a.shape == b.shape else None, c),
    "transposed": lambda s, a, b, c: _scaled(s, _product(a, b.T, c.shape), c),
    "tiles-transposed": _tiles_transposed,
    "sum-over-n": _sum_over("n"),
    "sum-over-m": _sum_over("m"),
    "operands-swapped": lambda s, a, b, c: _scaled(s, _product(b, a, c.shape), c),
    "floor-steps": _floor_steps,
    "products-missing": _products_missing(0),
    "products-missing, the last": _products_missing(-1),
    "whole-numbers-only, A": _cut_operands("A"),
    "whole-numbers-only, B": _cut_operands("B"),
    "whole-numbers-only, both": _cut_operands("A", "B"),
    "whole-numbers-only, alpha": _cut_factors("alpha"),
    "whole-numbers-only, beta": _cut_factors("beta"),
    "whole-numbers-only, factors": _cut_factors("alpha", "beta"),
    "whole-numbers-only, products": _cut_products,
    "whole-numbers-only, sums": lambda s, a, b, c: _scaled(s, np.trunc(a @ b), c),
    "whole-numbers-only, C": lambda s, a, b, c: np.trunc(_scaled(s, a @ b, c)),
    "always-nan": lambda s, a, b, c: np.full_like(c, np.nan),
}  # fmt: skip


def _with(p: Gemm, alpha: float) -> Gemm:
    return Gemm(p.m, p.n, p.k, alpha, p.beta, p.dtype, p.accumulate)


@dataclass(frozen=True)
class Run:
    """The result of an answer on a case."""

    case: Case
    operands: Operands
    result: np.ndarray

    @property
    def reference(self) -> np.ndarray:
        """αAB + βC, exact."""
        return self.case.problem.reference(self.operands)

    @property
    def wrong(self) -> np.ndarray:
        """The elements that are not exactly those of the reference, (m, n); NaN is always wrong."""
        return ~(self.result == self.reference)

    @property
    def steps(self) -> int:
        """Steps of a tile along k."""
        return -(-self.case.problem.k // self.case.tile)

    @property
    def ragged_k(self) -> bool:
        """Whether the last step along k is incomplete."""
        return bool(self.case.problem.k % self.case.tile)

    @property
    def fractional(self) -> bool:
        """Whether α or β is no whole number."""
        return bool(self.case.problem.alpha % 1 or self.case.problem.beta % 1)

    @property
    def edges(self) -> np.ndarray:
        """The elements of tiles that hang over the edge of C, (m, n)."""
        (m, n), tile = self.result.shape, self.case.tile
        rows, columns = np.arange(m) >= m // tile * tile, np.arange(n) >= n // tile * tile
        return rows[:, None] | columns

    @property
    def untouched(self) -> bool:
        """Whether each wrong element still is what C held before."""
        before, now = self.operands.c[self.wrong], self.result[self.wrong]
        return bool(np.array_equal(before, now, equal_nan=True))

    @property
    def slightly_wrong(self) -> bool:
        """Whether the error is that of a rounding to 11 bits of a few sums."""
        return bool(self.case.large and self.case.problem.error(self.result, self.operands) < 0.02)


def explain(runs: list[Run], known: Collection[str]) -> str:
    """Name the mistake in `known` that gives exactly these results, else a pattern in them."""
    failing = next(run for run in runs if run.wrong.any())
    for name, instead in EXPLANATIONS.items():
        diagnosis = name.partition(",")[0]
        if diagnosis not in known:
            continue
        matches = []
        for run in runs:
            operands = run.case.problem.oriented(run.operands)
            a, b, c = (x.astype(np.float64) for x in operands)
            expected = instead(run.case, a, b, c)
            if expected is not None:
                matches.append(_gives(expected, run))
            elif run is failing:
                matches.append(False)
        if all(matches):
            return diagnosis
    return "low-precision" if failing.slightly_wrong else _pattern_of_runs(runs)


def _gives(expected: np.ndarray, run: Run) -> bool:
    """Whether a mistake gives this result; elements that do not belong together round float32."""
    if run.case.large:
        largest = np.nan_to_num(np.abs(expected)).max()
        return np.allclose(expected, run.result, rtol=0, atol=1e-5 * largest, equal_nan=True)
    return np.array_equal(expected, run.result, equal_nan=True)


def first_wrong(run: Run) -> tuple[tuple[tuple[str, str], ...], dict[str, Any]]:
    """The failing case and its first wrong element, as facts and as details."""
    i, j = (int(v) for v in np.argwhere(run.wrong)[0])
    expected, got = float(run.reference[i, j]), float(run.result[i, j])
    p = run.case.problem
    facts = (
        run.case.fact,
        ("First wrong element", f"C[{i}, {j}]: expected {expected:g}, got {got:g}"),
    )
    details = {"shape": (p.m, p.n, p.k), "index": (i, j), "expected": expected, "got": got}
    return facts, details


# Of all results in the same way, or of none.
_THROUGHOUT = {"not-finite", "all-zeros", "by-a-factor", "result-turned", "places-mixed"}
ENOUGH = 4  # elements, to see a pattern in
HARDLY_ANY = 0.9  # of the elements are wrong: the rest may be right by chance


def _pattern_of_runs(runs: list[Run]) -> str:
    """The diagnosis of several results, of which one at least is wrong."""
    failing = [run for run in runs if run.wrong.any()]
    right = [run for run in runs if not run.wrong.any()]
    telling = [run for run in failing if run.result.size >= ENOUGH] or failing
    alike = {pattern(run.reference, run.result) for run in telling}
    if len(alike) == 1 and alike <= _THROUGHOUT:
        return alike.pop()
    if not any((run.wrong & ~run.edges).any() for run in failing) and any(
        not run.edges.all() for run in failing
    ):
        return "edges-only"
    known = max((run.steps for run in right), default=0)
    tiled = failing[0].case.tile > 1
    if tiled and 1 < known < min(run.steps for run in failing):  # of one step nothing follows
        return "late-steps"
    whole = [run for run in right if not run.fractional]
    if all(run.fractional for run in failing) and whole == right != []:
        return "fractional-factors"
    if all(run.ragged_k for run in failing) and not all(run.ragged_k for run in right):
        return "ragged-k"
    found = pattern(telling[-1].reference, telling[-1].result)
    return "right-in-part" if found == "wrong-values" and right else found


def pattern(reference: np.ndarray, result: np.ndarray) -> str:
    """The diagnosis of one result, (rows, columns)."""
    wrong = ~(result == reference)
    if not np.isfinite(result).all():
        return "not-finite"
    if not result.any() and reference.any():
        return "all-zeros"
    if _factor(reference, result):
        return "by-a-factor"
    if min(result.shape) > 1:
        if result.shape == reference.T.shape and np.array_equal(result, reference.T):
            return "result-turned"
        if np.array_equal(np.sort(result, axis=None), np.sort(reference, axis=None)):
            return "places-mixed"
        for axis, name in ((1, "rows-wrong"), (0, "columns-wrong")):
            lines = wrong.any(axis=axis)
            if wrong.all(axis=axis)[lines].all() and not lines.all():
                return name
    return "wrong-values" if wrong.mean() > HARDLY_ANY else "right-in-part"


def _factor(reference: np.ndarray, result: np.ndarray) -> float | None:
    """The factor between the result and the reference, if there is one for all elements."""
    there = reference != 0
    if there.sum() < 2 or result[~there].any():
        return None
    ratios = result[there] / reference[there]
    return float(ratios[0]) if np.allclose(ratios, ratios[0], rtol=1e-12, atol=0) else None
