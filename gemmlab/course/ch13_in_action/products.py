"""Ways to multiply two matrices of a network: by a rung of the ladders, or in a number format.

Each function here returns a `network.Product`, (a, b) -> their product in float32.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from gemmlab import Gemm, Tiling
from gemmlab.device import RECORDED
from gemmlab.formats import round_to
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.backends import choose, simulator
from gemmlab.numerics import split
from gemmlab.problem import Operands

Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


def by(kernel: Kernel, tiling: Tiling | None = None, backend: str = "auto") -> Product:
    """Multiply with a rung of the ladders that takes float32, or with a kernel of one's own.

    It runs where `run` would have it: on the GPU that is here, or on the simulated one. An operand
    that is a transposed view stays as it lies in memory, where the rung takes that; others are
    copied first. Raises what the rung raises.
    """
    chosen = choose(kernel, backend)

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        problem, a, b = as_stored(kernel, a, b)
        c = np.zeros((problem.m, problem.n), np.float32)
        if chosen == "gpu":
            return _runner(kernel, problem, tiling).compute(problem, Operands(a, b, c))
        alpha, beta = problem.scalars()
        tiles = kernel.choose(tiling, problem, RECORDED)
        simulator.launches(kernel, problem, tiles, (alpha, a, b, beta, c))
        return c

    return product


def as_stored(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> tuple[Gemm, np.ndarray, np.ndarray]:
    """Return a product as the rung is asked for it: sizes and layout, and the stored operands."""
    letters = [_letter(x) for x in (a, b)]
    if "".join(letters) not in kernel.layouts:
        letters = ["n", "n"]
    problem = Gemm(a.shape[0], b.shape[1], a.shape[1], layout="".join(letters))
    a, b = (x.T if letter == "t" else x for x, letter in zip((a, b), letters, strict=True))
    return problem, np.ascontiguousarray(a), np.ascontiguousarray(b)


def _letter(x: np.ndarray) -> str:
    """Tell how BLAS calls the layout: "t" for the view of a matrix that is stored transposed."""
    return "n" if x.flags.c_contiguous or not x.flags.f_contiguous else "t"


@lru_cache(maxsize=32)
def _runner(kernel: Kernel, problem: Gemm, tiling: Tiling | None) -> Any:
    """Compile a rung for the GPU that is here, and give it memory there."""
    from gemmlab.measure.backends import gpu

    return gpu.Runner(
        kernel, problem, kernel.choose(tiling, problem, gpu.detect()), gpu.Matrices(problem)
    )


def rounded_to(dtype: str) -> Product:
    """Round operands to a format and sum in float32, as a Tensor Core does but for its last bits.

    NumPy multiplies, so that a whole training takes seconds; `float32` rounds nothing.
    """

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return _narrow(a, dtype) @ _narrow(b, dtype)

    return product


def _narrow(x: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(over="ignore"):  # what is too large becomes infinite, as on a GPU
        return round_to(x, dtype).astype(np.float32)


def corrected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply by three products of float16 parts: chapter 12's TCEC, by NumPy."""
    a, b = split(a), split(b)
    (ah, al), (bh, bl) = ([x.high.astype(np.float32), x.low.astype(np.float32)] for x in (a, b))
    return ah @ bh + (al @ bh + ah @ bl) / np.float32(a.scale)
