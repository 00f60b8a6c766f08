"""A product as a chain of one matrix instruction gives it, to the bit: the reference of kernels."""

from gemmlab import numerics


def chained(a, b, c, instruction="m16n8k16.f32.f16"):
    """c + a·b, tile by tile along k; a (…, m, k), b (…, k, n), c (…, m, n) of whole tiles."""
    i = numerics.MMAS[instruction]
    out = c.copy()
    for row in range(0, out.shape[-2], i.m):
        for column in range(0, out.shape[-1], i.n):
            rows, columns = slice(row, row + i.m), slice(column, column + i.n)
            for first in range(0, a.shape[-1], i.k):
                along = slice(first, first + i.k)
                left, right = a[..., rows, along], b[..., along, columns]
                at = (..., rows, columns)
                out[at] = numerics.mma(left, right, out[at], instruction, "sm_90")
    return out
