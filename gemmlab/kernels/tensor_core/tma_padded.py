"""Padded rows: a launch before copies A and B into rows that the TMA can copy.

The TMA takes rows that begin at multiples of 16 bytes. Where k is 4100, those of A do not, and in
*tma_multicast* threads carry elements one by one then, once for every tile that needs them. Here
they are carried once: a launch before writes each row anew, with zeros up to the next multiple, at
the speed of memory. Of A and B it copies what needs it, and what does not is left where it is.
Counter to watch: loads of elements, one for each of A and B in place of one for each tile.

C is stored by the TMA where it can be, else by threads, as in *warp_specialised*.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import gcd
from typing import Any

from gemmlab.formats import number_format
from gemmlab.instructions import load_v2, load_v4, store_v8, tensor_map
from gemmlab.instructions.tensor_copies import STEP
from gemmlab.kernels.kernel import Dim, Launch, Workspace, on_device
from gemmlab.kernels.tensor_core import tma_multicast as multicast
from gemmlab.kernels.tensor_core.shared import tma_tiles
from gemmlab.kernels.tensor_core.shared.accumulators import WARP_ROWS
from gemmlab.kernels.tensor_core.shared.shared_layouts import PIECE, inside, reading, zero_of
from gemmlab.kernels.tensor_core.tma_stored import check
from gemmlab.model import traffic
from gemmlab.model.transactions import SECTOR
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling

THREADS = 128
WIDTH = PIECE * THREADS  # elements of a row that a block copies
MOST = 65535  # blocks of a grid along y


def build(
    tiling: Tiling, layout: str = "nt", padded: tuple[bool, bool] = (True, True),
    paired: bool = True, dtype: str = "float16", out_dtype: str = "float32", boxed: bool = True,
) -> Callable:  # fmt: skip
    """Return the kernel, whose launches take A and B, their maps, and copies with maps of these.

    padded : whether A is copied before, and B; boxed : the TMA stores C
    layout, paired, dtype, out_dtype : as in *tma_stored*
    """
    multiply = on_device(multicast.build(tiling, layout, True, paired, dtype, out_dtype, boxed))

    @on_device
    def as_it_is(own, copy):
        return own

    @on_device
    def copied(own, copy):
        return copy

    of_a, of_b = (copied if is_copied else as_it_is for is_copied in padded)

    def tma_padded(alpha, A, B, of_A, of_B, k, beta, D, C, A_rows, B_rows, in_A, in_B):
        multiply(alpha, of_a(of_A, in_A), of_b(of_B, in_B), k, beta, D, C)

    def by_threads(alpha, A, B, of_A, of_B, k, beta, D, C, A_rows, B_rows, in_A, in_B):
        multiply(alpha, of_a(of_A, in_A), of_b(of_B, in_B), k, beta, C)

    return tma_padded if boxed else by_threads


def build_pad(
    tiling: Tiling, together: tuple[int, int] = (1, 1), dtype: str = "float16"
) -> Callable:
    """Return the function that copies rows of A, in blocks whose z is 0, and those of B.

    together : elements of A, and of B, that an access may load; those of a PIECE are not copied
    """
    copy_a, copy_b = (copying_rows(elements, dtype) for elements in together)

    def pad(alpha, A, B, of_A, of_B, k, beta, D, C, A_rows, B_rows, in_A, in_B):
        if cuda.blockIdx.z == 0:
            copy_a(A, A_rows)
        else:
            copy_b(B, B_rows)

    return pad


def copying_rows(together: int, dtype: str) -> Callable:
    """Return the device function (X, its copy) that copies rows, a piece in each thread."""

    @on_device
    def leave(X, copy):
        pass

    if together == PIECE:
        return leave
    read = reading_piece(together, dtype)

    @on_device
    def copy_rows(X, copy):
        rows, length = copy.shape
        col = (cuda.blockIdx.x * THREADS + cuda.threadIdx.x) * PIECE
        for row in range(cuda.blockIdx.y, rows, cuda.gridDim.y):
            if col < length:
                store_v8(copy, row, col, read(X, row, col))

    return copy_rows


def reading_piece(together: int, dtype: str) -> Callable:
    """Return the device function (X, i, j) -> the piece at X[i, j], zeros outside of X.

    together : of its elements, 1, 2 or 4, that lie inside of X or outside as a whole
    """
    if together == 1:
        return reading(False, dtype)
    zero = zero_of(dtype)

    @on_device
    def two(X, i, j):
        return load_v2(X, i, j) if inside(X, i, j) else (zero(), zero())

    @on_device
    def four(X, i, j):
        return load_v4(X, i, j) if inside(X, i, j) else (zero(), zero(), zero(), zero())

    @on_device
    def read_twos(X, i, j):
        v, w, x, y = two(X, i, j), two(X, i, j + 2), two(X, i, j + 4), two(X, i, j + 6)
        return v[0], v[1], w[0], w[1], x[0], x[1], y[0], y[1]

    @on_device
    def read_fours(X, i, j):
        v, w = four(X, i, j), four(X, i, j + 4)
        return v[0], v[1], v[2], v[3], w[0], w[1], w[2], w[3]

    return read_twos if together == 2 else read_fours


def together(problem: Gemm) -> tuple[int, int]:
    """Count the elements of A, and of B, that an access may have: rows consist of such parts."""
    of_a, of_b = (gcd(columns, PIECE) for _, columns in problem.shapes[:2])
    return of_a, of_b


def to_pad(problem: Gemm) -> tuple[bool, bool]:
    """Say whether the TMA cannot copy rows of A, and of B, as they are stored."""
    of_a, of_b = (elements < PIECE for elements in together(problem))
    return of_a, of_b


def workspace(problem: Gemm, tiling: Tiling) -> tuple[Workspace, ...]:
    """Rows of A and of B in whole pieces, where they are copied; else nothing to speak of."""
    shapes = [
        (rows, -(-columns // PIECE) * PIECE) if copied else (1, PIECE)
        for (rows, columns), copied in zip(problem.shapes, to_pad(problem), strict=False)
    ]
    return tuple(Workspace(shape, problem.dtype) for shape in shapes)


def boxes(problem: Gemm, tiling: Tiling) -> tuple[int, int]:
    """Give the rows of the boxes of A, and of B, of which each block of a cluster sends half."""
    of_a, of_b = tma_tiles.box_rows(tiling, problem.layout)
    halved = is_boxed(problem) and tma_tiles.along_k(problem.layout)[1]
    return of_a, of_b // multicast.CLUSTER if halved else of_b


def operands(problem: Gemm, tiling: Tiling, A: Any, B: Any) -> tuple:
    """Return A and B, the maps of those that are left where they are, and k."""
    maps = (
        X if copied else tensor_map(X, rows)
        for X, copied, rows in zip((A, B), to_pad(problem), boxes(problem, tiling), strict=True)
    )
    return (A, B, *maps, problem.k)


def result(problem: Gemm, tiling: Tiling, C: Any) -> tuple:
    """Return the map of C, where the TMA stores it, and C."""
    return tensor_map(C, WARP_ROWS) if is_boxed(problem) else C, C


def scratch(problem: Gemm, tiling: Tiling, *copies: Any) -> tuple:
    """Return the copies of A and B, and the map of each."""
    maps = (tensor_map(X, rows) for X, rows in zip(copies, boxes(problem, tiling), strict=True))
    return (*copies, *maps)


def is_boxed(problem: Gemm) -> bool:
    """Say whether the TMA can store rows of C."""
    return problem.n * number_format(problem.out_dtype).bytes % STEP == 0


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
    """Keyword arguments of `build` for a problem."""
    return {
        "layout": problem.layout, "padded": to_pad(problem), "paired": problem.n % 2 == 0,
        "dtype": problem.dtype, "out_dtype": problem.out_dtype, "boxed": is_boxed(problem),
    }  # fmt: skip


def pad_variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
    """Keyword arguments of `build_pad` for a problem."""
    return {"together": together(problem), "dtype": problem.dtype}


def configure_pad(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): across rows and down them, as far as copies go, and A and B."""
    rows, columns = map(max, zip(*(one.shape for one in workspace(problem, tiling)), strict=True))
    return (-(-columns // WIDTH), min(rows, MOST), 2), (THREADS, 1)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the copies, and the work of *tma_multicast* where k is a multiple of 8."""
    aligned = replace(problem, layout="nt", k=-(-problem.k // PIECE) * PIECE)
    multiplied = multicast.work if is_boxed(problem) else multicast.work_by_threads
    return traffic.together(pad_work(problem, tiling), multiplied(aligned, tiling))


def pad_work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the transactions of the launch that copies: a row of a block at a time."""
    size, counters = number_format(problem.dtype).bytes, Counter()
    pieces, tile = traffic.in_turn(THREADS, 1, WIDTH, PIECE), (1, WIDTH)
    copies = zip(problem.shapes, workspace(problem, tiling), together(problem), strict=False)
    for shape, copy, wide in copies:
        if wide < PIECE:
            parts = pieces.repeated([0], range(0, PIECE, wide))
            counters += traffic.of_matrix("load", size, parts, shape, tile, wide=wide)
            counters += traffic.of_matrix("store", size, pieces, copy.shape, tile, wide=PIECE)
    counters.pop("lane_bytes", 0)
    cycles = counters.pop("l1_cycles", 0)
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    return traffic.Work(
        counters=counters, flops={}, l2_bytes=SECTOR * sectors, l1_wavefronts=cycles, chain=(1, 0)
    )


tma_padded = replace(
    multicast.tma_multicast,
    name="tma_padded",
    idea="rows that the TMA cannot copy are copied once before",
    build=build,
    operands=operands,
    result=result,
    variant=variant,
    work=work,
    check=partial(check, kernel="tma_padded", widths=multicast.WIDTHS),
    before=(Launch(build_pad, configure_pad, variant=pad_variant),),
    workspace=workspace,
    scratch=scratch,
)
