"""Operands of any exponents in the range of FP16, by powers of two, which change no digit.

What is scaled together is a *line*: a row of A or a column of B, because C[i, j] sums one line of
each. Most data needs the same power of two, so that the first launch takes it for granted: it
writes 2^GUESS·x and finds the largest exponent of each line on its way. The second launch writes
anew the lines for which that was wrong, mostly none. A line whose largest element is 0 or from
2^-48 to 2^77 can be scaled: no element is then wrong by more than 2^-22 of itself or 2^-39 of the
largest one. Others, such as those with an infinity or a NaN, are marked: `around.build_lone` sums
them.

Arrays: X (batch, rows, columns) float32 in any order of memory; found (batch, lines) int32, the
largest exponents, 0 before the first launch; back (batch, lines) float32, what undoes the scale, 0
for a line that has none; out, what is written: stacks, matrix below matrix.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy import float16, float32, int32

from gemmlab.instructions import store_v4
from gemmlab.kernels.kernel import Dim, on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR, reading
from gemmlab.kernels.tcec.shared.splitting import SCALE
from gemmlab.simt import cuda
from gemmlab.tiling import WARP

GUESS = 8  # 2^GUESS·x is what is written first
LEAST, MOST = 4, 15  # the largest element of a scaled line is at least 2^(LEAST-1), below 2^MOST
FARTHEST = 62  # exponents of scales go so far from 0: products of two are normal numbers
OFFSET = 200  # of exponents in `found`, so that 0 is a line of zeros
BEYOND = 200  # the exponent of an infinity or a NaN
LARGEST, INFINITY = np.finfo(float32).max, float32(np.inf)

FIRST = float32(2.0**GUESS)

HEIGHT = 4  # rows that a thread reads at a time
ROWS = 64  # of a block at most, so that few atomic operations tell exponents
LOOKED_AT = 256  # rows at most of which a block looks whether there is something to mend
THREADS = 256
BLOCKS = 512  # keep the memory of a GPU busy; where there were fewer, blocks have fewer rows


def parts() -> Callable:
    """The device function (out, row, col, v) that writes four numbers as FP16, high and low."""

    @on_device
    def split_one(x):
        high = float16(x)
        return high, float16((x - float32(high)) * SCALE)  # the difference is exact

    @on_device
    def write(out, row, col, v):
        h0, l0 = split_one(v[0])
        h1, l1 = split_one(v[1])
        h2, l2 = split_one(v[2])
        h3, l3 = split_one(v[3])
        store_v4(out[0], row, col, (h0, h1, h2, h3))
        store_v4(out[1], row, col, (l0, l1, l2, l3))

    return write


def highs() -> Callable:
    """Return the device function (out, row, col, v) that writes four numbers as FP16 has them."""

    @on_device
    def write(out, row, col, v):
        four = float16(v[0]), float16(v[1]), float16(v[2]), float16(v[3])
        store_v4(out[0], row, col, four)

    return write


def copies() -> Callable:
    """Return the device function (out, row, col, v) that writes four numbers as they are."""

    @on_device
    def write(out, row, col, v):
        store_v4(out[0], row, col, v)

    return write


@on_device
def magnitude(x):
    """|x|, and infinity for a NaN."""
    return abs(x) if abs(x) <= LARGEST else INFINITY


@on_device
def note(found, matrix, line, largest):
    """Tell the exponent x, of 2^(x-1) ≤ largest < 2^x; of zeros there is nothing to tell."""
    if largest > 0 and line < found.shape[1]:
        exponent = int32(math.frexp(largest)[1]) if largest <= LARGEST else int32(BEYOND)
        cuda.atomic.max(found, (matrix, line), exponent + int32(OFFSET))


@on_device
def scale_of(found):
    """The power of two for a line with this exponent; 0 where none will do."""
    exponent = found - OFFSET
    if found == 0 or LEAST <= exponent + GUESS <= MOST:
        return FIRST
    if abs(MOST - exponent) > FARTHEST:
        return float32(0)
    return float32(math.ldexp(float32(1), int32(MOST - exponent)))


@on_device
def rows_of_block(height):
    """Say where the rows of this block begin, and how many there are: whole groups of HEIGHT."""
    rows = (height + cuda.gridDim.x * HEIGHT - 1) // (cuda.gridDim.x * HEIGHT) * HEIGHT
    return cuda.blockIdx.x * rows, rows


@on_device
def first_column():
    """Say where the columns of this block begin."""
    return cuda.blockIdx.y * cuda.blockDim.x * FOUR


def build_first(along: bool, aligned: bool, writing: Callable) -> Callable:
    """Return the kernel (X, found, out) that writes 2^GUESS·X and finds exponents.

    along : lines are rows of X as it is stored, else columns
    aligned : rows of X begin at multiples of 16 bytes, and their elements are neighbours
    writing : `parts`, `highs` or `copies`
    """
    read_four, write = reading(aligned), writing()

    @on_device
    def of_four(v):
        return max(max(magnitude(v[0]), magnitude(v[1])), max(magnitude(v[2]), magnitude(v[3])))

    @on_device
    def of_column(largest, w, x, y, z):
        return max(largest, of_four((w, x, y, z)))

    @on_device
    def note_row(found, matrix, row, v):
        """Tell the largest element that a warp has of a row."""
        largest = of_four(v)
        for apart in (16, 8, 4, 2, 1):
            largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, apart))
        if cuda.threadIdx.x % WARP == 0:
            note(found, matrix, row, largest)

    @on_device
    def write_row(out, stacked, row, height, col, v):
        if row < height and col < out[0].shape[1]:
            scaled = v[0] * FIRST, v[1] * FIRST, v[2] * FIRST, v[3] * FIRST
            write(out, stacked + row, col, scaled)

    def scale_first(X, found, out):
        matrix, x = cuda.blockIdx.z, X[cuda.blockIdx.z]
        height = out[0].shape[0] // X.shape[0]  # of a matrix in the stack
        top, rows = rows_of_block(height)
        col, stacked = first_column() + cuda.threadIdx.x * FOUR, matrix * height
        l0, l1, l2, l3 = float32(0), float32(0), float32(0), float32(0)
        for down in range(cuda.threadIdx.y * HEIGHT, rows, cuda.blockDim.y * HEIGHT):
            row = top + down
            # Four loads that do not wait for each other.
            v0, v1 = read_four(x, row, col), read_four(x, row + 1, col)
            v2, v3 = read_four(x, row + 2, col), read_four(x, row + 3, col)
            write_row(out, stacked, row, height, col, v0)
            write_row(out, stacked, row + 1, height, col, v1)
            write_row(out, stacked, row + 2, height, col, v2)
            write_row(out, stacked, row + 3, height, col, v3)
            if along:
                note_row(found, matrix, row, v0)
                note_row(found, matrix, row + 1, v1)
                note_row(found, matrix, row + 2, v2)
                note_row(found, matrix, row + 3, v3)
            else:
                l0 = of_column(l0, v0[0], v1[0], v2[0], v3[0])
                l1 = of_column(l1, v0[1], v1[1], v2[1], v3[1])
                l2 = of_column(l2, v0[2], v1[2], v2[2], v3[2])
                l3 = of_column(l3, v0[3], v1[3], v2[3], v3[3])
        if not along:
            note(found, matrix, col, l0)
            note(found, matrix, col + 1, l1)
            note(found, matrix, col + 2, l2)
            note(found, matrix, col + 3, l3)

    return scale_first


def build_again(along: bool, aligned: bool, writing: Callable) -> Callable:
    """The kernel (X, found, back, out) that mends lines whose scale is another, and tells all."""
    read_four, write = reading(aligned), writing()

    @on_device
    def scale_at(found, matrix, line):
        return scale_of(found[matrix, line]) if line < found.shape[1] else FIRST

    @on_device
    def look(found, back, matrix, line, tells):
        """Whether the scale of a line is another than the first one; tell what undoes it."""
        scale = scale_at(found, matrix, line)
        if tells and line < back.shape[1]:
            back[matrix, line] = float32(1) / scale if scale > 0 else float32(0)  # exactly
        return scale != FIRST

    def scale_again(X, found, back, out):
        matrix, x = cuda.blockIdx.z, X[cuda.blockIdx.z]
        height = out[0].shape[0] // X.shape[0]
        top, rows = rows_of_block(height)
        left = first_column()
        thread, wrong = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x, False
        if along:
            if thread < rows:
                wrong = look(found, back, matrix, top + thread, left == 0)
        else:
            for line in range(thread, cuda.blockDim.x * FOUR, THREADS):
                wrong |= look(found, back, matrix, left + line, top == 0)
        if cuda.syncthreads_or(int32(wrong)) != 0:
            col = left + cuda.threadIdx.x * FOUR
            s0, s1, s2, s3 = FIRST, FIRST, FIRST, FIRST
            if not along:
                s0, s1 = scale_at(found, matrix, col), scale_at(found, matrix, col + 1)
                s2, s3 = scale_at(found, matrix, col + 2), scale_at(found, matrix, col + 3)
            for row in range(top + cuda.threadIdx.y, top + rows, cuda.blockDim.y):
                if along:
                    s0 = scale_at(found, matrix, row)
                    s1, s2, s3 = s0, s0, s0
                if row < height and col < out[0].shape[1]:
                    v = read_four(x, row, col)
                    scaled = v[0] * s0, v[1] * s1, v[2] * s2, v[3] * s3
                    write(out, matrix * height + row, col, scaled)

    return scale_again


def launch(shape: tuple[int, int], batch: int, most: int) -> tuple[Dim, Dim]:
    """Return (grid, block) for stacks whose matrices have this shape; most : rows of a block.

    Blocks down and across a matrix, and matrices.
    """
    height, length = shape
    warps = min(THREADS // WARP, -(-length // (FOUR * WARP)))
    across = WARP << (warps - 1).bit_length()
    down, tiles = THREADS // across, -(-length // (FOUR * across))
    rows = most
    while rows > HEIGHT * down and tiles * -(-height // rows) * batch < BLOCKS:
        rows //= 2
    return (-(-height // rows), tiles, batch), (across, down)
