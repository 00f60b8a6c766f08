"""Groups of four neighbours in a row: read and updated at the edges of a matrix too, and counted.

A matrix is aligned if its rows begin at multiples of 16 bytes. A group then lies inside of it, or
outside, as a whole, and moves in one access of 128 bits. Else its elements are looked at one by
one. A thread's tile of C is made of groups too: four rows by four columns, and the next four some
distance further. Functions ending in -ing make device functions for the kernels that ask for them.
"""

from collections import Counter
from collections.abc import Callable

from numpy import float32

from gemmlab import Gemm, Tiling
from gemmlab.instructions import load_v4, store_v4
from gemmlab.kernels.kernel import FLOAT, on_device
from gemmlab.model import traffic

FOUR = 4  # elements of a group: 16 bytes
PAD = 4  # words after each row of a transposed tile, so that its groups stay aligned
ZEROS = (float32(0), float32(0), float32(0), float32(0))


def reading(aligned: bool) -> Callable:
    """The device function (X, i, j) -> X[i, j] and its three neighbours; zeros outside of X."""

    @on_device
    def read_one(X, i, j):
        return X[i, j] if i < X.shape[0] and j < X.shape[1] else float32(0)

    @on_device
    def read_four(X, i, j):
        if aligned:
            return load_v4(X, i, j) if i < X.shape[0] and j < X.shape[1] else ZEROS
        return (
            read_one(X, i, j), read_one(X, i, j + 1), read_one(X, i, j + 2), read_one(X, i, j + 3)
        )  # fmt: skip

    return read_four


def updating(aligned: bool, tm: int, tn: int) -> Callable:
    """Return the device function (C, i, j, down, across, alpha, acc, beta): C ← α·acc + β·C.

    A thread's tm×tn results stand in groups of four rows, `down` apart, and four columns, `across`
    apart, from C[i, j] on. Nothing is written outside of C, and C is not read where β = 0.
    """
    read_four = reading(aligned)

    @on_device
    def update_four(C, i, j, alpha, v, beta):
        c = ZEROS if beta == 0 else read_four(C, i, j)
        new = (
            alpha * v[0] + beta * c[0], alpha * v[1] + beta * c[1],
            alpha * v[2] + beta * c[2], alpha * v[3] + beta * c[3],
        )  # fmt: skip
        if aligned:
            if i < C.shape[0] and j < C.shape[1]:
                store_v4(C, i, j, new)
        else:
            for e in range(4):
                if i < C.shape[0] and j + e < C.shape[1]:
                    C[i, j + e] = new[e]

    @on_device
    def update_tile(C, i, j, down, across, alpha, acc, beta):
        for r in range(tm):
            for c in range(0, tn, 4):
                v = acc[0, c], acc[0, c + 1], acc[0, c + 2], acc[0, c + 3]
                update_four(C, i + r // 4 * down + r % 4, j + c // 4 * across, alpha, v, beta)
            # A register has no index that could vary: each row in turn moves up to be row 0.
            for y in range(tm - 1):
                for x in range(tn):
                    acc[y, x] = acc[y + 1, x]

    return update_tile


def tile_shapes(tiling: Tiling, layout: str = "nn") -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows and words of As and Bs, which hold `stages` tiles each, k from row to row.

    An operand whose rows do not run that way is transposed on its way, and its rows are padded.
    """
    bm, bn, bk = tiling.block
    rows = tiling.stages * bk
    return (rows, bm + PAD * (layout[0] == "n")), (rows, bn + PAD * (layout[1] == "t"))


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """As and Bs in float32 [B]."""
    return sum(FLOAT * rows * words for rows, words in tile_shapes(tiling, problem.layout))


# ------------------------------------------------------------------------------------- their counts


def moved(groups: traffic.Lanes, aligned: bool) -> tuple[traffic.Lanes, int]:
    """The accesses of groups in global memory, and the elements of each: one of 4, or four of 1."""
    return (groups, FOUR) if aligned else (groups.repeated([0], range(FOUR)), 1)


def update_c(
    problem: Gemm, tiling: Tiling, first: traffic.Lanes, apart: tuple[int, int], aligned: bool
) -> Counter[str]:
    """Return the epilogue of `updating`, over the whole grid.

    first : where each thread's first element is; apart : rows and columns between its groups
    """
    (tm, tn), (down, across) = tiling.thread, apart
    rows = [r // FOUR * down + r % FOUR for r in range(tm)]
    cols = [c // FOUR * across for c in range(0, tn, FOUR)]
    lanes, wide = moved(first.repeated(rows, cols), aligned)
    return traffic.update_c(problem, tiling, lanes, wide)


def fragment_loads(
    tiling: Tiling, words: tuple[int, int], first: traffic.Lanes, apart: tuple[int, int]
) -> tuple[Counter[str], Counter[str]]:
    """Loads by which the threads of a block read their parts of one row of As, and of Bs.

    words : from a row of As to its next, and of Bs; first, apart : as in `update_c`
    """
    (tm, tn), (down, across) = tiling.thread, apart
    of_a = first.row_alone().turned().repeated([0], range(0, tm // FOUR * down, down))
    of_b = first.col_alone().repeated([0], range(0, tn // FOUR * across, across))
    return (
        traffic.shared_access("load", FLOAT, of_a, words[0], FOUR),
        traffic.shared_access("load", FLOAT, of_b, words[1], FOUR),
    )
