"""Kernels: a rung's source, launch and predicted work, and the parts that rungs share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gemmlab import Device, Tiling, device as load_device
from gemmlab.formats import number_format
from gemmlab.model.traffic import Work
from gemmlab.problem import Arithmetic, Gemm
from gemmlab.simt import cuda

Dim = tuple[int, ...]  # x, y and, where there is one, z
ON_CPUS = tuple(Arithmetic(name, name, name) for name in ("float32", "float64"))
FLOAT = number_format("float32").bytes  # of an element of a SIMT kernel's tiles [B]


class Workspace(NamedTuple):
    """An array that the launches of a kernel share: its shape, and the format of its elements."""

    shape: tuple[int, ...]
    dtype: str


def on_device(function: Callable) -> Callable:
    """Return a device function that becomes a part of the kernel that calls it."""
    return cuda.jit(device=True, forceinline=True)(function)


def any_tiling(tiling: Tiling) -> None:
    """Accept every tiling."""


def check_fit(fits: bool, tiling: Tiling, kernel: str, usual: Tiling) -> None:
    """Raise ValueError for a tiling unless it fits: kernel : which one, and what it needs."""
    if not fits:
        raise ValueError(f"tiling {tiling} does not fit {kernel}, such as {usual!r}")


def no_options(*arguments: object) -> Mapping[str, Any]:
    """Give no keyword arguments."""
    return {}


def no_error(problem: Gemm) -> float:
    """Give 0: products are as exact as the problem's formats say."""
    return 0.0


def no_workspace(problem: Gemm, tiling: Tiling) -> tuple[Workspace, ...]:
    """Give no arrays beside A, B and C."""
    return ()


def as_they_are(problem: Gemm, tiling: Tiling | None, A: Any, B: Any) -> tuple:
    """Return A and B."""
    return A, B


def as_it_is(problem: Gemm, tiling: Tiling | None, C: Any) -> tuple:
    """Give C as it is."""
    return (C,)


def the_workspace(problem: Gemm, tiling: Tiling, *arrays: Any) -> tuple:
    """Return the arrays of the workspace."""
    return arrays


def one_round(tiling: Tiling) -> int:
    """Count the steps in which each stage is used once."""
    return max(1, tiling.stages)


def no_shared(problem: Gemm, tiling: Tiling) -> int:
    """Take no shared memory [B]."""
    return 0


def one_element_a_thread(tiling: Tiling) -> None:
    """Raise ValueError unless each thread computes one element and nothing is staged."""
    if tiling.thread != (1, 1) or tiling.stages != 1:
        raise ValueError(
            f"tiling {tiling} does not fit a kernel whose threads compute one element each: it "
            "needs thread=(1, 1) and stages=1, such as Tiling(block=(16, 16, 1))"
        )


def along_columns(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block), both with x along the columns of C."""
    bm, bn, _ = tiling.block
    return tiling.grid(problem), (bn, bm)


def threads_in_a_plane(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block) of threads with a tile each, x along the columns of C."""
    bm, bn, _ = tiling.block
    tm, tn = tiling.thread
    return tiling.grid(problem), (bn // tn, bm // tm)


def threads_in_a_row(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block) of threads that find their warps and lanes themselves."""
    return tiling.grid(problem), (tiling.threads, 1)


def resident(grid: Dim, device: Device, cluster: int = 1) -> Dim:
    """Return the grid of persistent blocks that take what `grid` has a block for: one for each SM.

    It is `grid` itself where that has fewer blocks. SMs that are too few for a cluster have none.
    """
    return min(grid[0], device.sms // cluster * cluster), *grid[1:]


class Launched:
    """The methods that `Launch` and `Kernel` have in common."""

    def launch(self, problem: Gemm, tiling: Tiling, device: Device) -> tuple[Dim, Dim]:
        """Give (grid, block) on `device`: of a persistent launch no more blocks than it has SMs."""
        grid, block = self.configure(problem, tiling)
        return resident(grid, device, self.cluster) if self.persistent else grid, block

    def function(
        self, problem: Gemm, tiling: Tiling | None, capability: tuple[int, int] | None = None
    ) -> Callable:
        """Return the function (alpha, A, B, beta, C, …) that is run on `problem`."""
        return self.build(tiling and tiling.unsplit, **self.variant(problem, capability))

    def dynamic_shared_bytes(self, problem: Gemm, tiling: Tiling) -> int:
        """Shared memory that a block is launched with [B]; 0 where the source states its size."""
        return self.shared_bytes(problem, tiling) if self.dynamic else 0


@dataclass(frozen=True)
class Launch(Launched):
    """A launch before or after the one that multiplies; its fields are named as in `Kernel`."""

    build: Callable[..., Callable]
    configure: Callable[[Gemm, Tiling], tuple[Dim, Dim]]
    shared_bytes: Callable[[Gemm, Tiling], int] = no_shared
    dynamic: bool = False
    variant: Callable[[Gemm, tuple[int, int] | None], Mapping[str, Any]] = no_options
    compile: Callable[[Tiling], Mapping[str, Any]] = no_options
    persistent: bool = False
    cluster: int = 1


@dataclass(frozen=True)
class Kernel(Launched):
    """One rung: its source, how it is launched and what it is predicted to do.

    idea : its one idea, in a few words; default : its own tiling, None where it takes none
    build : tiling -> the function (alpha, A, B, beta, C) that computes C ← αAB + βC; what `variant`
        gives are further arguments, with defaults. It freezes tiles, and never the split of k
    configure : (problem, tiling) -> (grid, block) that cover C, with a block for each tile, or for
        each part of one; what is launched on a device is what `launch` says
    persistent : True where blocks stay and take one tile, or part of one, after the other: then
        there is at most one for each SM
    cluster : blocks, neighbours in x, that begin together and reach each other's shared memory;
        the grid has whole clusters
    work : (problem, tiling) -> what all launches together ask of the machine
    check : raises ValueError for a tiling that the kernel cannot use
    before, after : further launches, one after the other around this one, where it needs them
    workspace : (problem, tiling) -> arrays that follow C in the arguments of every launch. They
        hold anything before the first one, and nobody reads them after the last
    scratch : (problem, tiling, those arrays) -> what follows C in their place, such as the arrays
        and tensor maps of them
    splits : whether it divides k among blocks, and takes tilings with a split
    period : tiling -> steps of bk along k after which its loop does the same again: the stages of
        its ring, where it has one
    suggest : (problem, device) -> the tiling where none is given; `default` where None
    shared_bytes : (problem, tiling) -> shared memory of a block [B]
    dynamic : True where a launch gives the block that shared memory, False where the source states
        its size; more than 48 KiB must be dynamic
    operands : (problem, tiling, A, B) -> what the function takes in place of A and B, such as
        tensor maps; made once for the same A and B
    result : (problem, tiling, C) -> what it takes in place of C
    variant : (problem, compute capability) -> keyword arguments of `build`: what the function
        freezes of a problem and a GPU; the capability is None on the simulator, which has every
        instruction
    compile : tiling -> keyword arguments of `cuda.jit`, such as launch_bounds=(threads, blocks per
        SM) or max_registers; without launch_bounds, the block that `configure` gives is the bound
    tilings : the tilings that are recorded, to be compared; its default alone where empty
    arithmetic : formats that go together: of A and B, of the sum, of C; see `Gemm.arithmetic`
    layouts : layouts of the operands that it takes, see `Gemm.layout`
    product_error : problem -> error of a product beyond `Gemm.tolerance`, relative to the sum of
        its magnitudes: where a kernel takes elements in parts, or sums with fewer bits
    machine : "gpu", for Numba-CUDA kernels, or "cpu"
    library : True where `build` gives a library's routine: it runs, but cannot be simulated
    """

    name: str
    idea: str
    default: Tiling | None
    build: Callable[..., Callable]
    configure: Callable[[Gemm, Tiling], tuple[Dim, Dim]] | None = None
    work: Callable[[Gemm, Tiling], Work] | None = None
    check: Callable[[Tiling], None] = any_tiling
    shared_bytes: Callable[[Gemm, Tiling], int] = no_shared
    dynamic: bool = False
    operands: Callable[..., tuple] = as_they_are
    result: Callable[..., tuple] = as_it_is
    variant: Callable[[Gemm, tuple[int, int] | None], Mapping[str, Any]] = no_options
    compile: Callable[[Tiling], Mapping[str, Any]] = no_options
    tilings: tuple[Tiling, ...] = ()
    arithmetic: tuple[Arithmetic, ...] = (Arithmetic("float32", "float32", "float32"),)
    layouts: tuple[str, ...] = ("nn",)
    machine: str = "gpu"
    library: bool = False
    before: tuple[Launch, ...] = ()
    after: tuple[Launch, ...] = ()
    workspace: Callable[[Gemm, Tiling], tuple[Workspace, ...]] = no_workspace
    scratch: Callable[..., tuple] = the_workspace
    splits: bool = False
    period: Callable[[Tiling], int] = one_round
    suggest: Callable[[Gemm, Device], Tiling] | None = None
    persistent: bool = False
    cluster: int = 1
    product_error: Callable[[Gemm], float] = no_error

    @property
    def launches(self) -> tuple[Launched, ...]:
        """All launches, in their order; the kernel itself is the one that multiplies."""
        return (*self.before, self, *self.after)

    def tolerance(self, problem: Gemm) -> float:
        """Give the error that this kernel cannot exceed if it is right, as `Gemm.tolerance` does.

        >>> from gemmlab import kernels
        >>> 2**24 * (kernels.tcec_split.tolerance(Gemm(8, 8, 1)) - Gemm(8, 8, 1).tolerance)
        12.0
        """
        return problem.tolerance + self.product_error(problem)

    def check_problem(self, problem: Gemm) -> None:
        """Raise ValueError unless the kernel computes in the problem's formats and layout."""
        if problem.arithmetic not in self.arithmetic:
            computes = " and ".join(map(str, self.arithmetic))
            raise ValueError(f"{self.name} computes {computes}, not {problem.arithmetic}")
        if problem.layout not in self.layouts:
            raise ValueError(
                f"{self.name} takes operands in layout {' and '.join(self.layouts)}, "
                f"not {problem.layout}"
            )

    def choose(
        self, tiling: Tiling | None, problem: Gemm | None = None, device: str | Device | None = None
    ) -> Tiling | None:
        """Return the tiling to use: `tiling`, once it is checked, or the kernel's own.

        That is what it suggests for a problem on a device, where both are given.

        Raises TypeError for something else and ValueError for one that the kernel cannot use.
        """
        if tiling is None and self.suggest and problem is not None and device is not None:
            return self.suggest(problem, load_device(device))
        if tiling is None:
            return self.default
        if not isinstance(tiling, Tiling):
            raise TypeError(f"tiling={tiling!r} is not a Tiling; use Tiling(block=(bm, bn, bk))")
        if self.default is None:
            raise ValueError(f"{self.name} chooses its own tiles; leave out tiling={tiling}")
        self.check(tiling)
        if tiling.split > 1 and not self.splits:
            raise ValueError(
                f"tiling {tiling} does not fit {self.name}, which takes k whole; leave out split, "
                "or use a kernel that divides k among blocks, such as split_k"
            )
        return tiling
