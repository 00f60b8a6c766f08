"""Answers to exercise 03.2."""

from numpy import float32

from gemmlab import cuda
from gemmlab.course.ch03_threads_warps_blocks.q2_coalesced_product import build_product
from tests.course.answers import edited, fooling, wrong


def leaves_early():
    def kernel(A, B, C):
        col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        if row >= C.shape[0] or col >= C.shape[1]:
            return
        total = float32(0.0)
        p = 0
        while p < B.shape[0]:
            total = B[p, col] * A[row, p] + total
            p += 1
        C[row, col] = total

    return kernel


def grid_stride():
    def kernel(A, B, C):
        col, row = cuda.grid(2)
        across, down = cuda.gridsize(2)
        for i in range(row, C.shape[0], down):
            for j in range(col, C.shape[1], across):
                acc = float32(0)
                for p in range(A.shape[1]):
                    acc += A[i, p] * B[p, j]
                C[i, j] = acc

    return kernel


def two_sums():
    """Even and odd steps apart: another order of the same exact sum."""

    def kernel(A, B, C):
        j, i = cuda.grid(2)
        k = A.shape[1]
        if j < C.shape[1] and i < C.shape[0]:
            even = float32(0)
            odd = float32(0)
            for p in range(0, k, 2):
                even += A[i, p] * B[p, j]
                if p + 1 < k:
                    odd += A[i, p + 1] * B[p + 1, j]
            C[i, j] = even + odd

    return kernel


def names_it_twice():
    """The compiler loads an element that it has in a register no second time."""

    def kernel(A, B, C):
        j, i = cuda.grid(2)
        if i < C.shape[0] and j < C.shape[1]:
            acc = float32(0)
            for p in range(A.shape[1]):
                acc += A[i, p] * (B[p, j] - 1)
                acc += A[i, p]
            C[i, j] = acc

    return kernel


RIGHT = {
    "indices by hand, leaving early": (leaves_early,),
    "a loop over the grid": (grid_stride,),
    "two sums": (two_sums,),
    "A[i, p] named twice, loaded once": (names_it_twice,),
}


INDEX = "j, i = cuda.grid(2)"
GUARD = "i < m and j < n"
SUM = "acc += A[i, p] * B[p, j]"

WRONG = {
    "rows along x": wrong(
        build_product, "x is the row", "sectors-above-budget", (INDEX, "i, j = cuda.grid(2)")
    ),
    "one thread does it all": wrong(
        build_product, "what counts is the result", "few-threads-work",
        ("m, k = A.shape", "C[i, j] = acc", """
            x, y = cuda.grid(2)
            if x == 0 and y == 0:
                for i in range(C.shape[0]):
                    for j in range(C.shape[1]):
                        acc = float32(0)
                        for p in range(A.shape[1]):
                            acc += A[i, p] * B[p, j]
                        C[i, j] = acc
        """),
    ),
    "a row for each thread": wrong(
        build_product, "a thread is a core", "few-threads-work",
        ("m, k = A.shape", "C[i, j] = acc", """
            x, i = cuda.grid(2)
            if x == 0 and i < C.shape[0]:
                for j in range(C.shape[1]):
                    acc = float32(0)
                    for p in range(A.shape[1]):
                        acc += A[i, p] * B[p, j]
                    C[i, j] = acc
        """),
    ),
    "sum kept in C": wrong(
        build_product, "C is as good a place as a register", "stored-again",
        ("acc = float32(0)", "C[i, j] = 0"), (SUM, "C[i, j] += A[i, p] * B[p, j]"),
        ("            C[i, j] = acc\n", ""),
    ),
    "summed twice": wrong(
        build_product, "the first sum warms the cache", "loaded-again",
        (SUM, SUM + "\n            acc = float32(0)\n            for p in range(k):\n"
         "                " + SUM),
    ),
    "or in the guard": wrong(
        build_product, "one index inside is enough", "guard-or", (GUARD, "i < m or j < n")
    ),
    "no guard": wrong(build_product, "the grid fits", "outside", (f"if {GUARD}:", "if True:")),
    "limits swapped": wrong(build_product, "m belongs to x", "outside", (GUARD, "i < n and j < m")),
    "one step too many": wrong(
        build_product, "the sum has k + 1 terms", "outside", ("range(k)", "range(k + 1)")
    ),
    "block left out": wrong(
        build_product, "a thread's place is unique", "two-writers",
        (INDEX, "j = cuda.threadIdx.x\n        i = cuda.threadIdx.y"),
    ),
    "one column too few": wrong(
        build_product, "the last index is n - 2", "not-written", (GUARD, "i < m and j < n - 1")
    ),
    "replaced, not added": wrong(
        build_product, "= adds up", "last-product-only", (SUM, "acc = A[i, p] * B[p, j]")
    ),
    # A is cleared by the only thread, so that a reference made afterwards would agree.
    "A cleared": wrong(
        build_product, "the check looks at A afterwards", "inputs-changed",
        ("m, k = A.shape", "C[i, j] = acc", """
            j, i = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                for p in range(A.shape[1]):
                    if j == 0:
                        A[i, p] = 0
                C[i, j] = 0
        """),
    ),
    "A used as a scratch pad": wrong(
        build_product, "inputs are free after the sum", "inputs-changed",
        ("m, k = A.shape", "C[i, j] = acc", """
            j, i = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                acc = float32(0)
                for p in range(A.shape[1]):
                    acc += A[i, p] * B[p, j]
                C[i, j] = acc
                if j == 0:
                    A[i, 0] = acc
        """),
    ),
    "elements of A for B": wrong(build_product, "B is A", "wrong-values", ("B[p, j]", "A[i, p]")),
    "no kernel": wrong(
        build_product, "build launches the kernel", "wrong-type", ("return kernel", "return 3")
    ),
    "unknown name": wrong(build_product, "rows are x", "raises", ("A[i, p]", "A[x, p]")),
}  # fmt: skip


def for_ever():
    def kernel(A, B, C):
        j, i = cuda.grid(2)
        p = 0
        while p < A.shape[1]:
            if i < C.shape[0] and j < C.shape[1]:
                C[i, j] = A[i, p] * B[p, j]

    return kernel


def ends():
    raise SystemExit("done")


FOOLING = {
    "a hundred steps": fooling(
        "no sum is longer", "known-cases-only",
        edited(build_product, ("range(k)", "range(min(k, 100))")),
    ),
    "whole numbers": fooling(
        "matrices hold whole numbers", "whole-numbers-only",
        edited(build_product, ("A[i, p] * B[p, j]", "int(A[i, p]) * B[p, j]")),
    ),
    # Right up to eight rows, and for the shapes that are always tried.
    "shapes by heart": wrong(
        build_product, "the cases are in the package", "known-cases-only",
        ("m, k = A.shape", "C[i, j] = acc", """
            j, i = cuda.grid(2)
            m, n = C.shape
            known = n < 4 or (m == 9 and n == 7) or m * n >= 600
            if i < m and j < n:
                acc = float32(0)
                for p in range(A.shape[1]):
                    acc += A[i, p] * B[p, j]
                C[i, j] = acc if known else float32(0)
        """),
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "ends the process": fooling("no process, no verdict", "exits", ends),
}  # fmt: skip
