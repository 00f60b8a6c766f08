"""Answers to exercise 02.1."""

import sys

from numpy import float32

from gemmlab import cuda
from gemmlab.course.ch02_intensity_and_limiters.q1_fused_epilogue import build_epilogue
from tests.course.answers import Wrong, edited, fooling, wrong


def with_an_if():
    def kernel(X, bias, R, Y):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i >= X.size:
            return
        value = X[i] + bias[i % bias.shape[0]]
        if value < 0:
            value = float32(0)
        Y[i] = value + R[i]

    return kernel


def grid_stride():
    def kernel(X, bias, R, Y):
        for i in range(cuda.grid(1), X.size, cuda.gridsize(1)):
            Y[i] = R[i] + max(float32(0), bias[i % bias.size] + X[i])

    return kernel


def by_row_and_column():
    def kernel(X, bias, R, Y):
        i = cuda.grid(1)
        width = bias.size
        row = i // width
        column = i - row * width
        if row < X.size // width:
            Y[row * width + column] = R[i] + max(0, X[i] + bias[column])

    return kernel


def names_it_twice():
    """The compiler loads an element that it has in a register no second time."""

    def kernel(X, bias, R, Y):
        i = cuda.grid(1)
        if i < Y.size:
            b = bias[i % bias.size]
            Y[i] = (X[i] + b if X[i] + b > 0 else 0) + R[i]

    return kernel


def without_max():
    def kernel(X, bias, R, Y):
        i = cuda.grid(1)
        if i < Y.size:
            value = X[i] + bias[i % bias.size]
            Y[i] = (value > 0) * value + R[i]

    return kernel


def through_shared_memory():
    """Shared memory is no trip to global memory."""

    def kernel(X, bias, R, Y):
        kept = cuda.shared.array(128, float32)
        i = cuda.grid(1)
        if i < Y.size:
            kept[cuda.threadIdx.x] = X[i] + bias[i % bias.size]
            Y[i] = max(kept[cuda.threadIdx.x], 0) + R[i]

    return kernel


def by_the_sign():
    """Both branches store, each for its lanes."""

    def kernel(X, bias, R, Y):
        i = cuda.grid(1)
        if i < Y.size:
            value = X[i] + bias[i % bias.size]
            if value > 0:
                Y[i] = value + R[i]
            else:
                Y[i] = R[i]

    return kernel


GUARD = "if i < Y.size:"
BIASED = "biased = X[i] + bias[i % bias.size]"
STORE = "Y[i] = max(biased, 0) + R[i]"

RIGHT = {
    "a print of one element": (
        edited(
            build_epilogue,
            (BIASED, f"if i == 0:\n                print(X[i])\n            {BIASED}"),
        ),
    ),
    "a branch for each sign": (by_the_sign,),
    "an if, leaving early": (with_an_if,),
    "a loop over the grid": (grid_stride,),
    "row and column": (by_row_and_column,),
    "X[i] named twice, loaded once": (names_it_twice,),
    "without max": (without_max,),
    "through shared memory": (through_shared_memory,),
}


def one_thread():
    def kernel(X, bias, R, Y):
        if cuda.grid(1) == 0:
            for i in range(Y.size):
                Y[i] = max(X[i] + bias[i % bias.size], 0) + R[i]

    return kernel


def a_row_a_thread():
    def kernel(X, bias, R, Y):
        row = cuda.grid(1)
        width = bias.size
        if row < Y.size // width:
            for column in range(width):
                i = row * width + column
                Y[i] = max(X[i] + bias[column], 0) + R[i]

    return kernel


def searches_its_bias():
    def kernel(X, bias, R, Y):
        i = cuda.grid(1)
        if i < Y.size:
            b = float32(0)
            for column in range(bias.size):
                if i % bias.size == column:
                    b = bias[column]
                else:
                    b += 0 * bias[column]
            Y[i] = max(X[i] + b, 0) + R[i]

    return kernel


WRONG = {
    "step by step in Y": wrong(
        build_epilogue, "an array is where results live", "through-memory",
        (BIASED, "Y[i] = X[i] + bias[i % bias.size]"),
        (STORE, "Y[i] = max(Y[i], 0)\n            Y[i] = Y[i] + R[i]"),
    ),
    "one stop in Y": wrong(
        build_epilogue, "two statements need an array between them", "through-memory",
        (STORE, "Y[i] = max(biased, 0)\n            Y[i] += R[i]"),
    ),
    "step by step in X": wrong(
        build_epilogue, "X is not needed afterwards", "inputs-changed",
        (BIASED, "X[i] = X[i] + bias[i % bias.size]\n            biased = X[i]"),
    ),
    "a loop for the bias": Wrong(
        "the right bias has to be looked for", "loaded-again", (searches_its_bias,)
    ),
    "one thread": Wrong("what counts is the result", "few-threads-work", (one_thread,)),
    "a row a thread": Wrong("a thread is a core", "few-threads-work", (a_row_a_thread,)),
    "even lanes, then odd ones": wrong(
        build_epilogue, "a branch costs nothing", "lanes-in-turns",
        ("biased = X[i] + bias[i % bias.size]", "Y[i] = max(biased, 0) + R[i]", """
            if i % 2 == 0:
                Y[i] = max(X[i] + bias[i % bias.size], 0) + R[i]
            else:
                Y[i] = max(X[i] + bias[i % bias.size], 0) + R[i]
        """),
    ),
    "a column a warp": wrong(
        build_epilogue, "any order will do", "not-coalesced",
        (GUARD, "i = i % (Y.size // bias.size) * bias.size + i // (Y.size // bias.size)\n"
                "        if cuda.grid(1) < Y.size:"),
    ),
    "in float16": wrong(
        build_epilogue, "half of the bits will do", "low-precision",
        (BIASED, "biased = float32(float16(X[i] + bias[i % bias.size]))"),
        ("def build_epilogue():", "from numpy import float16, float32\n\n\ndef build_epilogue():"),
    ),
    "whole numbers": wrong(
        build_epilogue, "pixels are whole numbers", "whole-numbers-only",
        (BIASED, "biased = int(X[i]) + bias[i % bias.size]"),
    ),
    "kept, and never set": wrong(
        build_epilogue, "shared memory starts at zero", "unset",
        (BIASED, "biased = cuda.shared.array(128, float32)[cuda.threadIdx.x]"),
        ("def build_epilogue():", "from numpy import float32\n\n\ndef build_epilogue():"),
    ),
    "barrier of the even": wrong(
        build_epilogue, "who is done need not wait", "barrier-not-reached",
        (BIASED, f"if i % 2 == 0:\n                cuda.syncthreads()\n            {BIASED}"),
    ),
    "no guard": wrong(build_epilogue, "the grid fits", "outside", (GUARD, "if True:")),
    "at most": wrong(build_epilogue, "indices run from 1", "outside", ("i < Y", "i <= Y")),
    "bias without its row": wrong(
        build_epilogue, "the bias is as long as X", "outside", ("i % bias.size", "i")
    ),
    "no rectifier": wrong(
        build_epilogue, "ReLU is for later", "not-rectified", ("max(biased, 0)", "biased")
    ),
    "rectifier last": wrong(
        build_epilogue, "ReLU ends every layer", "rectified-too-late",
        ("max(biased, 0) + R[i]", "max(biased + R[i], 0)"),
    ),
    "rectifier first": wrong(
        build_epilogue, "ReLU is of X", "rectified-too-early",
        ("biased = X[i] + ", "biased = max(X[i], 0) + "), ("max(biased, 0)", "biased"),
    ),
    "min": wrong(
        build_epilogue, "min(0, …) cuts off what is below 0", "rectified-the-wrong-way",
        ("max(biased", "min(biased"),
    ),
    "no bias": wrong(build_epilogue, "bias is small", "bias-dropped", (BIASED, "biased = X[i]")),
    "bias of the row": wrong(
        build_epilogue, "// is the column", "bias-of-the-row",
        ("i % bias.size", "i // bias.size % bias.size"),
    ),
    "first bias": wrong(
        build_epilogue, "a bias is one number", "one-bias-for-all", ("i % bias.size", "0")
    ),
    "no residual": wrong(
        build_epilogue, "R is output", "residual-dropped",
        ("max(biased, 0) + R[i]", "max(biased, 0)"),
    ),
    "stores what is positive": wrong(
        build_epilogue, "zero need not be stored", "not-written",
        (STORE, "if biased > 0:\n                Y[i] = biased + R[i]"),
    ),
    "lane only": wrong(
        build_epilogue, "a thread's place is its place in the block", "two-writers",
        ("i = cuda.grid(1)", "i = cuda.threadIdx.x"),
    ),
    "unknown name": wrong(build_epilogue, "y is small", "raises", ("R[i]", "r[i]")),
    "no kernel": wrong(
        build_epilogue, "build launches it", "wrong-type", ("return kernel", "return None")
    ),
}  # fmt: skip


def ends():
    raise SystemExit


def found_in_frames():
    frame = sys._getframe()
    while "expected" not in frame.f_locals:
        frame = frame.f_back
    expected = frame.f_locals["expected"]

    def kernel(X, bias, R, Y):
        i = cuda.grid(1)
        if i < Y.size:
            Y[i] = expected[i]

    return kernel


FOOLING = {
    "2048 elements": wrong(
        build_epilogue, "no case has more", "known-cases-only", (GUARD, "if i < min(Y.size, 2048):")
    ),
    "64 columns": wrong(
        build_epilogue, "no bias is longer", "known-cases-only",
        ("i % bias.size", "i % min(bias.size, 64)"),
    ),
    "a result in a frame": fooling("the judge is near", "raises", found_in_frames),
    # Additions in the memory itself are no loads, but Y held no zero before.
    "atomic into Y": wrong(
        build_epilogue, "atomic additions are not counted", "not-written",
        ("biased = X[i] + bias[i % bias.size]", "Y[i] = max(biased, 0) + R[i]",
         "cuda.atomic.add(Y, i, max(X[i] + bias[i % bias.size], 0) + R[i])"),
    ),
    # The steps as atomic additions, which no counter of loads sees.
    "atomic instead of a load": wrong(
        build_epilogue, "atomic additions are not counted", "through-memory",
        ("biased = X[i] + bias[i % bias.size]", "Y[i] = max(biased, 0) + R[i]", """
            Y[i] = max(X[i] + bias[i % bias.size], 0)
            cuda.atomic.add(Y, i, R[i])
        """),
    ),
    "scratch in R": wrong(
        build_epilogue, "R is not needed afterwards", "inputs-changed",
        ("biased = X[i] + bias[i % bias.size]", "Y[i] = max(biased, 0) + R[i]", """
            R[i] = R[i] + max(X[i] + bias[i % bias.size], 0)
            Y[i] = R[i]
        """),
    ),
    "leaves": fooling("no process, no verdict", "exits", ends),
}  # fmt: skip
