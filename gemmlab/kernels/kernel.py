"""What a rung of the ladder is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmlab.model.traffic import Work
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

Dim = tuple[int, int]


def any_tiling(tiling: Tiling) -> None:
    """Accept every tiling."""


def one_element_a_thread(tiling: Tiling) -> None:
    """Raise ValueError unless each thread computes one element and nothing is staged."""
    if tiling.thread != (1, 1) or tiling.stages != 1:
        raise ValueError(
            f"tiling {tiling} does not fit a kernel whose threads compute one element each: it "
            "needs thread=(1, 1) and stages=1, such as Tiling(block=(16, 16, 1))"
        )


def along_columns(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """(grid, block), both with x along the columns of C."""
    bm, bn, _ = tiling.block
    return tiling.grid(problem), (bn, bm)


@dataclass(frozen=True)
class Kernel:
    """One rung: its source, how it is launched and what it is predicted to do.

    build : tiling -> the function (alpha, A, B, beta, C) that computes C ← αAB + βC
    launch : (problem, tiling) -> (grid, block)
    work : (problem, tiling) -> what the launch asks of the machine
    check : raises ValueError for a tiling that the kernel cannot use
    dtypes : formats of A, B and C that it computes
    machine : "gpu", for Numba-CUDA kernels, or "cpu"
    library : True where `build` gives a library's routine: it runs, but cannot be simulated
    """

    name: str
    idea: str
    default: Tiling | None
    build: Callable[[Tiling | None], Callable]
    launch: Callable[[Gemm, Tiling], tuple[Dim, Dim]] | None = None
    work: Callable[[Gemm, Tiling], Work] | None = None
    check: Callable[[Tiling], None] = any_tiling
    dtypes: tuple[str, ...] = ("float32",)
    machine: str = "gpu"
    tensor_cores: bool = False
    library: bool = False

    def choose(self, tiling: Tiling | None) -> Tiling | None:
        """The tiling to use: `tiling`, once it is checked, or the kernel's own.

        Raises TypeError for something else and ValueError for one that the kernel cannot use.
        """
        if tiling is None:
            return self.default
        if not isinstance(tiling, Tiling):
            raise TypeError(f"tiling={tiling!r} is not a Tiling; use Tiling(block=(bm, bn, bk))")
        if self.default is None:
            raise ValueError(f"{self.name} chooses its own tiles; leave out tiling={tiling}")
        self.check(tiling)
        return tiling
