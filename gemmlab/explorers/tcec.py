"""The explorer of corrected products: the error of each policy, over k and over the operands.

`build` makes one warp's product by any policy a kernel; `bound` is the error that it cannot exceed.
"""

from collections.abc import Callable, Sequence
from functools import cache

import ipywidgets as widgets
import numpy as np
from numpy import float32, uint32

from gemmlab import numerics, plots
from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.explorers.shared.controls import NAMES, dropdown
from gemmlab.instructions import cvt_rn_f16x2_f32, layout, mma_m16n8k16_f32_f16, unpack_f16x2
from gemmlab.plots import number
from gemmlab.plots.shared import style
from gemmlab.simt import cuda, simulate

M, N, STEP = 16, 8, 16  # of C, and of one `mma` along k
UNIT = numerics.FORMATS["float32"].unit_roundoff
A_AT, B_AT, C_AT = (layout("m16n8k16", operand).element for operand in "ABC")


def build(policy: numerics.Policy) -> Callable:
    """Return the kernel (A, B, C) that stores A·B in C; all are float32, k a multiple of 16.

    One warp on Tensor Cores, a thread for each element on CUDA cores. It does what
    `numerics.emulated_matmul` says, in the same order: to the bit.
    """
    return _by_chains() if policy.mma is None else _by_products(policy)


def _by_chains() -> Callable:
    def chains(A, B, C):
        i, j = cuda.threadIdx.y, cuda.threadIdx.x
        total = float32(0)
        for p in range(A.shape[1]):
            total = cuda.fma(A[i, p], B[p, j], total)
        C[i, j] = total

    return chains


def _by_products(policy: numerics.Policy) -> Callable:
    SCALE, INVERSE = float32(policy.scale), float32(1 / policy.scale)
    CORRECTED, FOURTH = policy.products > 1, policy.products == 4
    OUTSIDE, ONE_SUM, OFTEN = policy.outside, policy.one_sum, policy.every * STEP
    ZERO = (float32(0), float32(0), float32(0), float32(0))
    mma = mma_m16n8k16_f32_f16

    @cuda.jit(device=True)
    def split_two(x, y):
        high = cvt_rn_f16x2_f32(x, y)
        u, v = unpack_f16x2(high)
        return high, cvt_rn_f16x2_f32((x - u) * SCALE, (y - v) * SCALE)

    def products(A, B, C):
        lane = cuda.threadIdx.x
        ah, al = cuda.local.array(4, uint32), cuda.local.array(4, uint32)
        bh, bl = cuda.local.array(2, uint32), cuda.local.array(2, uint32)
        main = cuda.local.array(4, float32)
        for x in range(4):
            main[x] = 0
        part = cross = lowest = ZERO
        k = A.shape[1]
        for p in range(0, k, STEP):
            for r in range(4):
                i, q = A_AT(lane, 2 * r)
                ah[r], al[r] = split_two(A[i, p + q], A[i, p + q + 1])
            for r in range(2):
                q, j = B_AT(lane, 2 * r)
                bh[r], bl[r] = split_two(B[p + q, j], B[p + q + 1, j])
            a_high, a_low = (ah[0], ah[1], ah[2], ah[3]), (al[0], al[1], al[2], al[3])
            b_high, b_low = (bh[0], bh[1]), (bl[0], bl[1])
            if ONE_SUM:
                cross = lowest = part
            if FOURTH:
                lowest = mma(a_low, b_low, lowest)
                if ONE_SUM:
                    cross = lowest
            if CORRECTED:
                cross = mma(a_low, b_high, cross)
                cross = mma(a_high, b_low, cross)
            if ONE_SUM:
                part = cross
            elif OUTSIDE and p % OFTEN == 0:
                part = ZERO
            part = mma(a_high, b_high, part)
            if OUTSIDE and ((p + STEP) % OFTEN == 0 or p + STEP == k):
                for x in range(4):
                    main[x] += part[x]
        for x in range(4):
            i, j = C_AT(lane, x)
            total = main[x] if OUTSIDE else part[x]
            if CORRECTED and not ONE_SUM:
                total += (cross[x] + lowest[x] * INVERSE) * INVERSE
            C[i, j] = total

    return products


def simulated(policy: numerics.Policy, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A·B, (16, 8), by the kernel on the simulator."""
    c = np.full((M, N), np.nan, np.float32)
    block = (N, M) if policy.mma is None else (32,)
    with np.errstate(all="ignore"):  # beyond the range of float16
        simulate(build(policy), (1,), block, a, b, c)
    return c


def bound(policy: numerics.Policy, a: np.ndarray, b: np.ndarray) -> float:
    """Bound |C − A·B| / |A||B| over all elements, while no sum is subnormal.

    What splits lose and what is left out is taken from A and B; for the sums, see
    `numerics.tensor_core_bound`: parts of `every` instructions in the Tensor Core, added outside.
    Infinity where an operand is beyond the format.
    """
    k = a.shape[1]
    if policy.mma is None:
        return numerics.fma_chain_bound(k)
    x, y = (numerics.split(v, policy.mma.dtype, policy.scale) for v in (a[:, None], b.T[None]))
    exact = a[:, None].astype(np.float64) * b.T[None]
    if not (np.isfinite(x.high).all() and np.isfinite(y.high).all()):
        return np.inf
    (ah, al, s), (bh, bl, _) = x, y
    ah, al, bh, bl = (part.astype(np.float64) for part in (ah, al, bh, bl))
    if not (np.isfinite(al).all() and np.isfinite(bl).all()):
        return np.inf if policy.products > 1 else _of_sums(policy, k)
    counted, cross = ah * bh, np.zeros_like(exact)
    if policy.products > 1:
        cross = np.abs(al * bh / s) + np.abs(ah * bl / s)
        counted = counted + (al * bh + ah * bl) / s
    if policy.products == 4:
        counted = counted + al * bl / s**2
    size = np.abs(exact).sum(-1)
    lost = (np.abs(exact - counted).sum(-1) / size).max()
    corrections = (cross.sum(-1) / size).max() * numerics.tensor_core_bound(3 * k)
    return float(lost + (1 + lost) * (_of_sums(policy, k) + corrections + 3 * UNIT))


def _of_sums(policy: numerics.Policy, k: int) -> float:
    """Return the bound of the main products' sum, relative to their magnitudes."""
    if policy.one_sum:
        return numerics.tensor_core_bound(policy.products * k)
    if not policy.outside:
        return numerics.tensor_core_bound(k)
    inside = min(k, policy.every * STEP)
    return float(
        np.expm1(np.log1p(numerics.tensor_core_bound(inside)) + -(-k // inside) * np.log1p(UNIT))
    )


UNITS = {"Tensor Cores, FP16": "m16n8k16.f32.f16", "FP32 units": "simt"}
PRODUCTS = {"1: not corrected": 1, "3: low·low left out": 3, "4: all": 4}
SUMS = {
    "outside, after each mma": 1,
    **{f"outside, after {n}": n for n in (2, 4, 8, 16)},
    "inside": 0,
}
VALUES = ("either sign", "positive")
LENGTHS = [2**i for i in range(4, 10)]  # where curves have points
RUN = LENGTHS[:4]  # k of the kernel: the simulator takes a moment
SCALES = (0, 4, 8, 10, 11, 12, 14, 16)  # exponents of the scale
SIZES = range(-32, 21, 4)  # exponents of the operands, where the curve has points
LEAST, MOST = 2.0**-28, 2.0  # errors that are shown; what is no number lies at the upper one
ROOM = 2.0**10  # above them, for the legend


def operands(k: int, size: int, values: str) -> tuple[np.ndarray, np.ndarray]:
    """Return A (16, k) and B (k, 8): normal numbers, or their magnitudes, times 2^size."""
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((M, k)), rng.standard_normal((k, N))
    if values == "positive":
        a, b = np.abs(a), np.abs(b)
    return (a * 2.0**size).astype(np.float32), (b * 2.0**size).astype(np.float32)


def policy(unit: str, products: int, scale: int, every: int) -> numerics.Policy:
    """Return the policy that the controls ask for: the scale is 2^scale, `every` 0 means inside."""
    if UNITS[unit] == "simt":
        return numerics.POLICIES["simt"]
    scale = scale if products > 1 else 0  # there is no low part
    return numerics.Policy(UNITS[unit], products, 2.0**scale, every > 0, max(1, every))


@cache
def emulated(chosen: numerics.Policy, k: int, size: int, values: str) -> float:
    """Return the error of the emulated product, as `error` has it."""
    a, b = operands(k, size, values)
    return error(numerics.emulated_matmul(a, b, chosen), a, b)


@cache
def ran(chosen: numerics.Policy, k: int, size: int, values: str) -> np.ndarray:
    """C of the kernel on the simulator."""
    return simulated(chosen, *operands(k, size, values))


@cache
def limit(chosen: numerics.Policy, k: int, size: int, values: str) -> float:
    """Bound the error, as `bound` does."""
    return bound(chosen, *operands(k, size, values))


def error(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest |C − A·B| / |A||B| of all elements."""
    return numerics.backward_error(c, a.astype(np.float64) @ b.astype(np.float64), a, b)


class Tcec(Explorer):
    """A warp's kernel runs at each change; its error lies on the emulated one, below its bound.

    unit : "Tensor Cores, FP16" or "FP32 units"; products : 1, 3 or 4
    scale : exponent of the factor of low parts, one of `SCALES`
    every : instructions after which a sum is added outside, 1, 2, 4, 8 or 16; 0: all inside
    k : products of each sum, a power of two from 16 to 128
    size : operands are normal numbers times 2^size, from -32 to 20 in steps of 4
    values : "either sign" or "positive"

    `found`, `expected` and `bound` are the kernel's error, the emulated one and what it cannot
    exceed. Raises ValueError for values that no control could show.

    >>> explorer = Tcec(k=64)
    >>> explorer.found == explorer.expected <= explorer.bound
    True
    """

    def __init__(
        self, unit: str = "Tensor Cores, FP16", products: int = 3, scale: int = 11, every: int = 1,
        k: int = 128, size: int = 0, values: str = "positive",
    ) -> None:  # fmt: skip
        for name, value, known in (
            ("unit", unit, UNITS), ("products", products, PRODUCTS.values()),
            ("scale", scale, SCALES), ("every", every, SUMS.values()), ("k", k, RUN),
            ("size", size, SIZES), ("values", values, VALUES),
        ):  # fmt: skip
            if value not in list(known):
                raise ValueError(f"{name}={value!r} is not offered; use one of {list(known)}")
        over_k, (self.left,) = plots.figure(4.1, 3.5, left=0.17, bottom=0.17)
        over_sizes, (self.right,) = plots.figure(4.1, 3.5, left=0.17, bottom=0.17)
        super().__init__(Picture(over_k, over_sizes))
        self.found = self.expected = self.bound = 0.0
        self.unit = dropdown("units", list(UNITS), unit)
        self.products = dropdown("products", list(PRODUCTS.items()), products)
        self.every = dropdown("sums", list(SUMS.items()), every)
        self.values = dropdown("values", VALUES, values)
        self.scale = _slider("low parts times", _powers(SCALES), scale)
        self.k = _slider("k", [(str(k), k) for k in RUN], k)
        self.size = _slider("operands times", _powers(SIZES), size)
        lists = self.unit, self.products, self.every, self.values
        sliders = self.scale, self.k, self.size
        self.arrange([row(*lists), row(*sliders)], watched=(*lists, *sliders))

    @property
    def policy(self) -> numerics.Policy:
        return policy(self.unit.value, self.products.value, self.scale.value, self.every.value)

    def _enable(self) -> None:
        """Let only be chosen what the policy has: FP32 units split nothing."""
        mma = UNITS[self.unit.value] != "simt"
        self.products.disabled = self.every.disabled = not mma
        self.scale.disabled = not (mma and self.products.value > 1)

    def show(self) -> str:
        self._enable()
        k, size, values = self.k.value, self.size.value, self.values.value
        c, (a, b) = ran(self.policy, k, size, values), operands(k, size, values)
        self.found = error(c, a, b)
        self.expected = emulated(self.policy, k, size, values)
        self.bound = limit(self.policy, k, size, values)
        with np.errstate(all="ignore"):
            norm = numerics.forward_error(c, a.astype(np.float64) @ b.astype(np.float64))
        told = values if size == 0 else f"{values}, times {style.power(2, size)}"
        self._draw(self.left, LENGTHS, [(n, size, values) for n in LENGTHS], k, told)
        self._draw(self.right, SIZES, [(k, e, values) for e in SIZES], size, f"{values}, k = {k}")
        cuda_cores = emulated(numerics.POLICIES["simt"], k, size, values)
        return "\n".join([
            f"{self._said()} {M}×{N}×{k}, {told}.",
            f"Largest error / Σ|a·b|: {_text(self.found)} (simulated), {_text(self.expected)} "
            f"(emulated), at most {_text(self.bound)} (predicted); FP32 units "
            f"{_text(cuda_cores)} (emulated). By norm: {_text(norm)}.",
        ])  # fmt: skip

    def _said(self) -> str:
        chosen = self.policy
        if chosen.mma is None:
            return (
                "FP32 units, one FMA after the other: they need no split, so that products, sums "
                "and the scale of low parts cannot be chosen."
            )
        least, largest = numerics.split_range(chosen.mma.dtype, chosen.scale)
        kept = f"Both parts keep 22 bits from {number(least)} to {number(largest)}."
        if least > largest:
            kept = "No number keeps 22 bits."
        rounded = "Operands are rounded to 11 bits, without low parts that could be scaled."
        return kept if chosen.products > 1 else rounded

    def _draw(self, ax, xs, cases, here: int, told: str) -> None:
        """Draw bounds, emulated errors and the run over `xs`, with FP32 units beside them."""
        ax.clear()
        over_k = ax is self.left
        style.prepare(ax, log="xy" if over_k else "y", base=2 if over_k else 10)
        lines = [
            ("FP32 units (emulated)", style.GREY, ":", numerics.POLICIES["simt"], emulated),
            ("bound (predicted)", style.BLUE, "--", self.policy, limit),
            ("emulated", style.BLUE, "-", self.policy, emulated),
        ]
        said = []
        for name, colour, dash, chosen, what in lines:
            ys = [_shown(what(chosen, *case)) for case in cases]
            ax.plot(xs, ys, dash, marker="", color=colour, linewidth=1.4, label=name)
            said.append(f"{name} {', '.join(map(_text, ys))}")
        ax.plot([here], [_shown(self.found)], style.MARKS["simulated"].marker, markersize=9,
                color=style.VERMILION, label="kernel (simulated)", zorder=5)  # fmt: skip
        if any(not np.isfinite(emulated(self.policy, *case)) for case in cases):
            ax.text(
                xs[-1], 1.3 * MOST, "no number", color=style.BLUE, fontsize=style.NOTE, ha="right"
            )
        ax.set(ylim=(LEAST, ROOM * MOST))
        ax.set_yticks([10.0**e for e in range(-8, 1, 2)])
        if over_k:
            ax.set_xticks(LENGTHS, LENGTHS)
        ax.set_xlabel(
            "products, k" if over_k else "size of the operands, power of two", fontsize=style.LABEL
        )
        ax.set_ylabel("largest error / Σ|a·b|", fontsize=style.LABEL)
        if over_k:
            style.legend(ax, *ax.get_legend_handles_labels(), loc="upper right", ncols=2)
        style.title(ax, "Error over k" if over_k else "Error over the size of operands")
        style.provenance(ax, told)
        plots.describe(
            ax, f"Errors over {'k' if over_k else 'sizes'} {', '.join(map(str, xs))}: "
            f"{'; '.join(said)}. Kernel at {here}: {_text(self.found)}."
        )  # fmt: skip


def _powers(exponents: Sequence[int]) -> list[tuple[str, int]]:
    return [(style.power(2, e), e) for e in exponents]


def _slider(name: str, options: Sequence[tuple[str, int]], value: int) -> widgets.SelectionSlider:
    return widgets.SelectionSlider(
        options=list(options), value=value, description=name,
        style=NAMES | {"description_width": "8em"}, layout={"width": "24em", "max_width": "100%"},
    )  # fmt: skip


def _shown(value: float) -> float:
    """Return an error as it is drawn: at the upper edge where there is no number."""
    return float(np.clip(value, LEAST, MOST))


def _text(value: float) -> str:
    return style.raised(f"{value:.1e}") if np.isfinite(value) else "no number"
