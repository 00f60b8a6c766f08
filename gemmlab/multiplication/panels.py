"""Panels: products, rows and columns of C that are computed at a time, so that memory is enough.

k is never cut: the result has the same bits, whatever the panels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

SIDE = 128  # rows and columns of panels are multiples of it, where they are not all
MOST = 32_768  # products of one launch: a grid has 65,535 blocks along z


def fitting(
    sizes: tuple[int, int, int], workspace: Callable[[int, int, int], int], budget: int | None
) -> tuple[int, int, int]:
    """Products, rows and columns of a panel whose workspace [B] is within the budget.

    sizes : batch, m and n; workspace : (products, rows, columns) -> bytes
    Raises ValueError for a budget that is too small for any panel.
    """
    batch, rows, columns = min(sizes[0], MOST), *sizes[1:]
    while budget is not None and workspace(batch, rows, columns) > budget:
        if batch > 1:
            batch = -(-batch // 2)
        elif max(rows, columns) <= SIDE:
            raise ValueError(
                f"workspace_bytes={budget} is too little; the smallest panel takes "
                f"{workspace(batch, rows, columns)} B"
            )
        elif rows >= columns:
            rows = _half(rows)
        else:
            columns = _half(columns)
    return batch, rows, columns


def _half(size: int) -> int:
    """Half of it, in whole sides."""
    return max(SIDE, -(-size // (2 * SIDE)) * SIDE)


def steps(size: int, each: int) -> Iterator[tuple[int, int]]:
    """Begin and end of the parts of a size.

    >>> list(steps(300, 128))
    [(0, 128), (128, 256), (256, 300)]
    """
    for begin in range(0, size, each):
        yield begin, min(begin + each, size)
