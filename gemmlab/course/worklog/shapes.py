"""The shapes that a work log is kept for, and the small cases that stand for each of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab.course.judging import drawing
from gemmlab.course.judging.kernels_on_trial import Form
from gemmlab.course.judging.matrices import Case
from gemmlab.device import Device
from gemmlab.problem import Gemm, Operands
from gemmlab.tiling import Tiling

UNIT = 4  # n and k are multiples, so that groups of four words are aligned
APART = 40  # numbers from one row to the next, whole sectors
FEW, DRAWN = 3, (2, 4, 5)  # matrices of a small batch, and of one that is drawn


@dataclass(frozen=True)
class Shape:
    """A product to be made fast.

    problem : what is multiplied; of a batch with the rows of all A and of all C, one below the
        other, and the k and n of each. A kernel gets B as (batch·k, n)
    beside : the product whose recorded or predicted times stand beside; a batch has none of its
        own, and is set beside one product with as many tiles
    """

    name: str
    title: str
    problem: Gemm
    batch: int = 1

    def __str__(self) -> str:
        p = self.problem
        one = f"{p.m // self.batch}×{p.n}×{p.k}"
        return f"{self.name}, {self.batch} times {one}" if self.batch > 1 else f"{self.name}, {one}"

    def bound(self, gpu: Device) -> dict[str, float]:
        """The times [s] that no FP32 kernel beats: of its FMAs, and of moving A, B and C once."""
        return {
            "the FMAs": self.problem.flops / gpu.peak_of("float32"),
            "moving A, B and C": self.bytes / gpu.dram_bandwidth,
        }

    @property
    def bytes(self) -> int:
        """The bytes of A, B and C together, each moved once."""
        a, b, c = self.problem.array_bytes
        return a + self.batch * b + c


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("square", "4096×4096×4096: the product of every benchmark", Gemm(4096, 4096, 4096)),
        Shape("skinny", "8192×128×8192: one layer, 128 tokens", Gemm(8192, 128, 8192)),
        Shape("batched", "128 times 256×256×64: attention's scores", Gemm(128 * 256, 256, 64), 128),
    )
}


def shape_called(name: Any) -> Shape:
    """The shape of a name; ValueError, with those that there are, for another."""
    if not isinstance(name, str) or name not in SHAPES:
        raise ValueError(f"shape={name!r} is not known; use one of {', '.join(SHAPES)}")
    return SHAPES[name]


def stacked(b: np.ndarray, batch: int) -> np.ndarray:
    """All B of a batch, one below the other: each is the one before, a column further on."""
    return rolled(np.concatenate([b] * batch), batch, 1)


def rolled(x: np.ndarray, batch: int, by: int) -> np.ndarray:
    """The matrices of a batch, the i-th with its columns moved by i·`by`."""
    parts = np.split(x, batch)
    return np.concatenate([np.roll(part, by * i, axis=1) for i, part in enumerate(parts)])


@dataclass(frozen=True)
class Product(Case):
    """A small case of a shape, with several matrices where it is a batch.

    zeros : half of all elements are 0, and whole rows and columns of A among them
    """

    batch: int = 1
    zeros: bool = False

    def operands(self) -> Operands:
        """A, B and C; B is the first of the batch, from which `stacked` makes the others."""
        a, b, c = super().operands()
        if self.zeros:
            rng = np.random.default_rng(self.seed + 1)
            for x in (a, b):
                x[rng.random(x.shape) < 0.5] = 0
            a[::3, 0] = a[1::3] = 0
        return Operands(a, b, c)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """α, A, B, β and C, as a kernel takes them."""
        p, (a, b, c) = self.problem, self.operands()
        c = rolled(c, self.batch, 1)
        return c.dtype.type(p.alpha), a, stacked(b, self.batch), c.dtype.type(p.beta), c


def form(tiling: Tiling, block: tuple[int, ...]) -> Form:
    """The form of an entry's launches: what builds it takes the tiling."""
    return Form(
        sizes=lambda case: (tiling,),
        arguments=lambda case: case.arguments,
        result=lambda case, after: rolled(after[-1], case.batch, -1),
        block=block,
    )


def cases(shape: Shape, tiling: Tiling) -> tuple[Product, ...]:
    """Cases of a shape that fill no tile, but for the rows of a batch: those are whole tiles."""
    bm, bn, bk = tiling.block
    n, k = bn + UNIT, _units(2 * bk + 1)
    batch = FEW if shape.batch > 1 else 1
    m = batch * bm if shape.batch > 1 else bm + bm // 2 + 1
    made = _maker(bk, batch)
    return (
        made(Gemm(m, n, k)),
        made(Gemm(m, n, k, 2, -3)),
        made(Gemm(m, n, k), zeros=True),
        made(Gemm(m, n, _units(8 * bk + 3), 0.5, 0.5), large=True),
    )


def anew(shape: Shape, tiling: Tiling) -> tuple[Product, ...]:
    """A case that nobody can know before: sizes, factors, operands and the batch are drawn."""
    rng = drawing.generator()
    bm, bn, bk = tiling.block
    batch = int(rng.choice(DRAWN)) if shape.batch > 1 else 1
    m = batch * bm if shape.batch > 1 else bm + int(rng.integers(1, bm + 1))
    n, k = bn + UNIT * int(rng.integers(2, 8)), _units(3 * bk + int(rng.integers(1, 40)))
    alpha, beta = (int(x) + 0.5 for x in rng.integers(3, 8, 2))
    case = _maker(bk, batch)(Gemm(m, n, k, alpha, beta))
    return (replace(case, seed=int(rng.integers(1 << 30)), anew=True),)


def _maker(bk: int, batch: int) -> Callable[..., Product]:
    return lambda problem, **how: Product(problem, tile=bk, batch=batch, **how)


def _units(size: int) -> int:
    return UNIT * -(-size // UNIT)


def filled(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """A large matrix of random numbers, none of them 0, in little memory.

    A row has most numbers of the row before it, `APART` places further on. Whoever needs them one
    row behind the other, as a compiler does, makes a copy.
    """
    rows, columns = shape
    some = rng.standard_normal((rows - 1) * APART + columns, np.float32)
    some[some == 0] = 1
    return np.lib.stride_tricks.as_strided(some, shape, (4 * APART, 4), writeable=False)
