"""Answers to exercise 03.3."""

from gemmlab import cuda
from gemmlab.course.ch03_threads_warps_blocks.q3_coalesced_pieces import build_axpy
from tests.course.answers import edited, fooling, wrong


def strip_of_a_block(T):
    def kernel(a, X, Y):
        start = cuda.blockIdx.x * cuda.blockDim.x * T
        for step in range(T):
            i = start + step * cuda.blockDim.x + cuda.threadIdx.x
            if i < Y.shape[0]:
                Y[i] += a * X[i]

    return kernel


def grid_stride(T):
    def kernel(a, X, Y):
        for i in range(cuda.grid(1), X.size, cuda.gridsize(1)):
            Y[i] = Y[i] + a * X[i]

    return kernel


def from_the_end(T):
    def kernel(a, X, Y):
        i = X.size - 1 - cuda.grid(1)
        while i >= 0:
            Y[i] = a * X[i] + Y[i]
            i -= cuda.gridsize(1)

    return kernel


def names_it_twice(T):
    """The compiler loads an element that it has in a register no second time."""

    def kernel(a, X, Y):
        for i in range(cuda.grid(1), X.size, cuda.gridsize(1)):
            Y[i] = Y[i] + (a - 1) * X[i] + X[i]

    return kernel


RIGHT = {
    "each block has a strip": (strip_of_a_block,),
    "a loop over the grid": (grid_stride,),
    "backwards": (from_the_end,),
    "X[i] named twice, loaded once": (names_it_twice,),
}

STEP = "i = first + step * cuda.gridsize(1)"

WRONG = {
    "pieces, written otherwise": wrong(
        build_axpy, "each thread needs its own piece", "sectors-above-budget",
        (STEP, "i = step + T * first"),
    ),
    "pieces of two": wrong(
        build_axpy, "two neighbours do no harm", "sectors-above-budget",
        (STEP, "i = 2 * first + step % 2 + step // 2 * 2 * cuda.gridsize(1)"
         " if T % 2 == 0 else first"),
    ),
    "every other lane": wrong(
        build_axpy, "lanes may leave gaps that others fill later", "sectors-above-budget",
        (STEP, "i = first * T + (step + cuda.threadIdx.x) % T"),
    ),
    "blocks overlap": wrong(
        build_axpy, "a block's elements are as many as its threads", "two-writers",
        (STEP, "i = first + step * cuda.blockDim.x"),
    ),
    "steps of T": wrong(build_axpy, "the step is T", "two-writers", (STEP, "i = first + step * T")),
    "steps of one": wrong(
        build_axpy, "a thread's elements are neighbours", "two-writers", (STEP, "i = first + step")
    ),
    "no guard": wrong(build_axpy, "the grid fits", "outside", ("if i < X.size:", "if True:")),
    "at most": wrong(build_axpy, "indices run from 1", "outside", ("i < X.size", "i <= X.size")),
    "one element a thread": wrong(
        build_axpy, "a thread has one element", "not-written", ("range(T)", "range(1)")
    ),
    "one step too few": wrong(
        build_axpy, "range includes its end", "not-written", ("range(T)", "range(1, T)")
    ),
    "loaded twice": wrong(
        build_axpy, "the compiler will see it", "asked-twice",  # not across a store: Y may be X
        ("Y[i] = a * X[i] + Y[i]", "Y[i] += a * X[i]\n                Y[i] += X[i] - X[i]"),
    ),
    "stored twice": wrong(
        build_axpy, "two statements are clearer", "asked-twice",
        ("Y[i] = a * X[i] + Y[i]", "Y[i] += a * X[i] - X[i]\n                Y[i] += X[i]"),
    ),
    "Y not added": wrong(build_axpy, "Y is output only", "y-not-added", (" + Y[i]", "")),
    "a forgotten": wrong(build_axpy, "a is 1", "a-dropped", ("a * X[i]", "X[i]")),
    "no kernel": wrong(
        build_axpy, "build launches the kernel", "wrong-type", ("return kernel", "return T")
    ),
    "unknown name": wrong(build_axpy, "x is small", "raises", ("a * X[i]", "a * x[i]")),
}  # fmt: skip


def clears_x(T):
    def kernel(a, X, Y):
        for i in range(cuda.grid(1), X.size, cuda.gridsize(1)):
            Y[i] = a * X[i] + Y[i]
            X[i] = 0

    return kernel


def only_clears(T):
    def kernel(a, X, Y):
        for i in range(cuda.grid(1), X.size, cuda.gridsize(1)):
            X[i] = 0

    return kernel


def counts(T):
    def kernel(a, X, Y):
        for i in range(cuda.grid(1), X.size, cuda.gridsize(1)):
            Y[i] = a * (i + 1) + Y[i]

    return kernel


def leaves(T):
    raise SystemExit


FOOLING = {
    "2048 elements": fooling(
        "no array is longer", "known-cases-only",
        edited(build_axpy, ("i < X.size", "i < min(X.size, 2048)")),
    ),
    "eight elements": fooling(
        "T is 8 at most", "known-cases-only",
        edited(build_axpy, ("range(T)", "range(min(T, 8))")),
    ),
    "a is whole": fooling(
        "a is a count", "whole-numbers-only", edited(build_axpy, ("a * X[i]", "int(a) * X[i]"))
    ),
    "one thread": wrong(
        build_axpy, "the result is what counts", "few-threads-work",
        ("first = cuda.grid(1)", "if i < X.size:", """
            if cuda.grid(1) == 0:
                for i in range(X.size):
        """),
    ),
    "one warp": wrong(
        build_axpy, "a warp is coalesced", "few-threads-work",
        ("for step in range(T):", "if i < X.size:", """
            if first < 32:
                for i in range(first, X.size, min(32, cuda.gridsize(1))):
        """),
    ),
    "X cleared": fooling("X is not needed afterwards", "inputs-changed", clears_x),
    "nothing but X cleared": fooling("a · 0 + Y is Y", "inputs-changed", only_clears),
    "X not read": fooling("X counts from 1", "wrong-values", counts),
    "leaves": fooling("no process, no verdict", "exits", leaves),
    "sizes by heart": wrong(
        build_axpy, "the cases are in the package", "known-cases-only",
        ("first = cuda.grid(1)", "if i < X.size:", """
            for i in range(cuda.grid(1), X.size, cuda.gridsize(1)):
                if X.size <= 100 or X.size == 2048:
        """),
    ),
}  # fmt: skip
