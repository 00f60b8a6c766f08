"""Launches around *tcec_batched*: tensor maps before it, behind it sums of parts and lone lines."""

from collections.abc import Callable

from numpy import float32, int32

from gemmlab.instructions import store_v4
from gemmlab.kernels.kernel import Dim, on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR, reading
from gemmlab.simt import cuda
from gemmlab.tiling import WARP

GROUP = 4  # words that a device function names


def build_words(count: int) -> Callable:
    """Return the kernel (out, words) that writes so many words, whole groups; out (count,) int64.

    A copy from the host is recorded by a CUDA graph with the host's address, and reads it anew
    whenever the graph runs. Arguments of a launch are recorded with their values.
    """

    @on_device
    def nothing(out, words):
        pass

    def writing(n):
        """A device function that writes from word n on; an index into arguments is a constant."""
        others = writing(n + GROUP) if n + GROUP < count else nothing
        n1, n2, n3 = n + 1, n + 2, n + 3

        @on_device
        def write(out, words):
            out[n] = words[n]
            out[n1] = words[n1]
            out[n2] = words[n2]
            out[n3] = words[n3]
            others(out, words)

        return write

    write_all = writing(0)

    def write_words(out, words):
        if cuda.threadIdx.x == 0:
            write_all(out, words)

    return write_words


def launch_words() -> tuple[Dim, Dim]:
    """Return (grid, block): a single thread writes."""
    return (1, 1, 1), (WARP, 1)


ROWS = 8  # of a block, a warp each, which has 128 columns


def build_sum(aligned: bool) -> Callable:
    """The kernel (planes, parts, C), for planes (batch·parts, m, n) and C (batch, m, n).

    An element is the sum of what the parts of k gave, in their order, which depends on nothing but
    their number: the bits of C are the same every time.

    aligned : rows of both begin at multiples of 16 bytes, and their elements are neighbours
    """
    read_four = reading(aligned)

    def add_parts(planes, parts, C):
        matrix, (_, m, n) = cuda.blockIdx.z, C.shape
        row = cuda.blockIdx.x * ROWS + cuda.threadIdx.y
        col = (cuda.blockIdx.y * WARP + cuda.threadIdx.x) * FOUR
        if row < m and col < n:
            first = matrix * parts
            t0, t1, t2, t3 = read_four(planes[first], row, col)
            for part in range(int32(1), int32(parts)):
                v = read_four(planes[first + part], row, col)
                t0 += v[0]
                t1 += v[1]
                t2 += v[2]
                t3 += v[3]
            if aligned:
                store_v4(C[matrix], row, col, (t0, t1, t2, t3))
            else:
                C[matrix, row, col] = t0
                if col + 1 < n:
                    C[matrix, row, col + 1] = t1
                if col + 2 < n:
                    C[matrix, row, col + 2] = t2
                if col + 3 < n:
                    C[matrix, row, col + 3] = t3

    return add_parts


def launch_sum(batch: int, m: int, n: int) -> tuple[Dim, Dim]:
    """Return (grid, block): rows, columns, and matrices."""
    return (-(-m // ROWS), -(-n // (WARP * FOUR)), batch), (WARP, ROWS)


SIDE = 256  # of a block's tile of C
THREADS = 2 * SIDE


def build_lone(scaled: bool) -> Callable:
    """Return the kernel (A, B, C, back_a, back_b) that sums what no scale brings into FP16's range.

    An infinity or a NaN in a row of A makes that row of C what IEEE arithmetic says, and leaves the
    others alone. Blocks look whether there is such a line in their tile; there seldom is one. It is
    for A (batch, m, k), B (batch, k, n), C (batch, m, n).

    back_a, back_b : what undoes the scales of rows of A and of columns of B, 0 for lone lines
    scaled : C is of the scaled operands, which is undone, too
    """

    def sum_lone_lines(A, B, C, back_a, back_b):
        matrix, (_, m, n), k = cuda.blockIdx.z, C.shape, A.shape[2]
        across, line = (n + SIDE - 1) // SIDE, cuda.threadIdx.x % SIDE
        top, left = cuda.blockIdx.x // across * SIDE, cuda.blockIdx.x % across * SIDE
        row, col = top + line, left + line
        if cuda.threadIdx.x < SIDE:
            lone = row < m and back_a[matrix, row] == 0
        else:
            lone = col < n and back_b[matrix, col] == 0
        if cuda.syncthreads_or(int32(lone)) != 0 or scaled:
            for i in range(top + cuda.threadIdx.x // SIDE, min(top + SIDE, m), 2):
                if col < n:
                    back = back_a[matrix, i] * back_b[matrix, col]
                    if back == 0:
                        total = float32(0)
                        for p in range(k):
                            total += A[matrix, i, p] * B[matrix, p, col]
                        C[matrix, i, col] = total
                    elif scaled:
                        C[matrix, i, col] *= back

    return sum_lone_lines


def launch_lone(batch: int, m: int, n: int) -> tuple[Dim, Dim]:
    """Return (grid, block): tiles of C, and matrices."""
    return (-(-n // SIDE) * -(-m // SIDE), 1, batch), (THREADS, 1)
