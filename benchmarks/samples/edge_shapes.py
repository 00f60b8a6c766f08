"""Problems on which a kernel with tiles is most easily wrong."""

import itertools

SCALES = [(1, 0), (2, 0), (1, 1), (-0.5, 1), (1, -0.5), (0, 1)]  # (α, β)


def edge_shapes(tiling):
    """One less and one more than a tile, single rows and columns, k = 1, oblong and long.

    Every combination where a thread computes one element; for the others, which are slower to
    simulate, every value of m, n and k with some.
    """
    bm, bn, bk = tiling.block
    rows, cols = (1, bm - 1, bm, bm + 1), (1, bn - 1, bn, bn + 1)
    yield from [(2 * bm + 3, 5, max(1, bk - 1)), (3, 2 * bn + 2, 2 * bk + 1), (1, 1, 5 * bk)]
    if tiling.thread == (1, 1):
        yield from itertools.product(rows, cols, (1, bk + 1))
    else:
        yield from zip(rows, reversed(cols), (1, bk + 1, 3 * bk, 2), strict=True)
        yield (bm, bn, 4 * bk)
