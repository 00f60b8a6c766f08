"""A kernel of one's own as a rung: a function, or what builds one, with its tile and its launch."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gemmlab import Gemm, Tiling
from gemmlab.kernels.kernel import Dim, Kernel, threads_in_a_plane

PARAMETERS = ("alpha", "A", "B", "beta", "C")
ACCEPTED = (
    "use a function kernel(alpha, A, B, beta, C), a function build(tiling) that returns one, or a "
    "Kernel"
)
SIDE = 16  # of the block tile where none is given
OWN = " (yours)"  # ends the name: rungs of the ladder have none like it


def own(
    kernel: Callable | Kernel,
    tile: int | Tiling | None = None,
    *,
    grid: Dim | Callable[[int, int], Dim] | None = None,
    block: Dim | None = None,
) -> Kernel:
    """A rung of the ladder made of `kernel`, to run in `explorers.KernelLab` beside the others.

    kernel : a function (alpha, A, B, beta, C), with `cuda.jit` or without; a function build(tiling)
        that returns one; or a `Kernel`
    tile : its tiling, or the side of a square block tile; 16 where None. A function that is given
        as it is has its tile frozen into its source: it takes no other.
    grid : blocks along x and y: two sizes, or a function (m, n) that gives them
    block : threads along x and y. Where None, as of `grid`: a thread for each thread tile of C, x
        along the columns

    Raises TypeError for anything else, quoting it.

    >>> def mine(alpha, A, B, beta, C): ...
    >>> own(mine, 8).name, own(mine, 8).default.block
    ('mine (yours)', (8, 8, 8))
    """
    if isinstance(kernel, Kernel):
        made = kernel if tile is None else replace(kernel, default=kernel.choose(_tiling(tile)))
        return replace(
            made,
            name=kernel.name.removesuffix(OWN) + OWN,
            configure=_configure(made, grid, block),
            persistent=made.persistent and grid is None,
        )
    function = getattr(kernel, "py_func", kernel)
    if not inspect.isfunction(function):
        raise TypeError(f"kernel={kernel!r} is not a function; {ACCEPTED}")
    builds = len(inspect.signature(function).parameters) == 1
    if not builds:
        _check_parameters(function)

    def build(tiling: Tiling) -> Callable:
        """Return the function itself, or what it builds for a tiling."""
        return _check_parameters(function(tiling) if builds else function)

    def check(tiling: Tiling) -> None:
        """Raise ValueError for another tiling than the one that is frozen into the function."""
        if not builds and tiling != chosen:
            raise ValueError(
                f"tiling {tiling} does not fit {function.__name__}, whose own is {chosen}; give "
                "build(tiling) to try several"
            )

    chosen = _tiling(SIDE if tile is None else tile)
    made = Kernel(function.__name__ + OWN, "your own", chosen, build, check=check)
    return replace(made, configure=_configure(made, grid, block))


def _check_parameters(made: Any) -> Callable:
    """The plain function of a kernel; TypeError unless it takes what the course's kernels take."""
    function = getattr(made, "py_func", made)
    if not inspect.isfunction(function):
        raise TypeError(f"build(tiling) returned {made!r}, which is not a function; {ACCEPTED}")
    names = tuple(inspect.signature(function).parameters)
    if names != PARAMETERS:
        raise TypeError(f"{function.__name__}({', '.join(names)}) is not a kernel; {ACCEPTED}")
    return function


def _tiling(tile: int | Tiling) -> Tiling:
    return tile if isinstance(tile, Tiling) else Tiling.square(tile)


def _configure(
    kernel: Kernel, grid: Any, block: Any
) -> Callable[[Gemm, Tiling], tuple[Dim, Dim]]:  # fmt: skip
    """Give `configure` of `kernel`, with the grid or the block that is given instead of its own."""
    if grid is not None and not callable(grid):
        grid = _two("grid", grid)
    if block is not None:
        block = _two("block", block)
    usual = kernel.configure or threads_in_a_plane

    def configure(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
        blocks, threads = usual(problem, tiling)
        given = _two("grid", grid(problem.m, problem.n)) if callable(grid) else grid
        return given or blocks, block or threads

    return configure


def _two(name: str, sizes: Any) -> Dim:
    whole = isinstance(sizes, (tuple, list)) and all(isinstance(s, int) for s in sizes)
    if not whole or len(sizes) not in (1, 2) or min(sizes) < 1:
        raise TypeError(f"{name}={sizes!r} is not a pair of sizes; use (x, y)")
    return (*sizes, 1)[:2]
