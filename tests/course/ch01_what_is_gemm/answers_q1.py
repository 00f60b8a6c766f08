"""Answers to exercise 01.1."""

import contextlib
import ctypes
import os
import pickle
import sys

import numpy as np

from gemmlab.course.ch01_what_is_gemm.q1_gemm_in_numpy import CASES, gemm
from tests.course.answers import Wrong, fooling, for_ever, wrong


def loops(alpha, A, B, beta, C):
    m, n = C.shape
    out = np.zeros((m, n))
    for i in range(m):
        for j in range(n):
            acc = 0.0
            for p in range(A.shape[1]):
                acc += A[i, p] * B[p, j]
            out[i, j] = alpha * acc + (beta * C[i, j] if beta != 0 else 0)
    return out


def outer_products(alpha, A, B, beta, C):
    out = np.zeros_like(C) if beta == 0 else beta * C
    for p in range(A.shape[1]):
        out = out + alpha * np.outer(A[:, p], B[p])
    return out


def into_zeros_like(alpha, A, B, beta, C):
    out = np.zeros_like(C)
    np.matmul(A, B, out=out)
    out *= alpha
    if beta:
        out += beta * C
    return out


class Compiled:
    """What a compiler makes of a function, as Numba does."""

    def __init__(self, function):
        self.py_func = function

    def __call__(self, *arguments):
        raise RuntimeError("there is no compiler here")


RIGHT = {
    "into an array like C": (into_zeros_like,),
    "compiled": (Compiled(loops),),
    "loops": (loops,),
    "outer products": (outer_products,),
    "einsum": (
        lambda alpha, A, B, beta, C: (
            alpha * np.einsum("ip,pj->ij", A, B) + (0 if beta == 0 else beta * C)
        ),
    ),
}


def in_place(alpha, A, B, beta, C):
    C *= beta
    C += alpha * (A @ B)
    return C


def over_columns(alpha, A, B, beta, C):
    m, n = C.shape
    out = np.zeros((m, n))
    for i in range(m):
        for j in range(n):
            for p in range(n):
                out[i, j] += A[i, p] * B[p, j]
    return alpha * out + (beta * C if beta != 0 else 0)


def over_rows(alpha, A, B, beta, C):
    out = np.zeros(C.shape)
    for p in range(A.shape[0]):
        out += np.outer(A[:, p], B[p])
    return alpha * out + (beta * C if beta != 0 else 0)


def from_empty(alpha, A, B, beta, C):
    out = np.full(C.shape, np.nan)
    for p in range(A.shape[1]):
        out = out + np.outer(A[:, p], B[p])
    return alpha * out + beta * C


def endless(alpha, A, B, beta, C):
    p = 0
    while p < A.shape[1]:
        with contextlib.suppress(Exception):
            p -= 1
    return C


def leaves(alpha, A, B, beta, C):
    sys.exit("done")


WRONG = {
    "beta dropped": wrong(gemm, "beta·C is optional", "beta-dropped",
        ("product + beta * C", "product"),
    ),
    "alpha dropped": wrong(gemm, "alpha is 1", "alpha-dropped", ("alpha * (A @ B)", "A @ B")),
    "alpha over all": wrong(
        gemm, "alpha scales the sum", "alpha-scales-c",
        ("alpha * (A @ B)", "A @ B"), ("return product\n", "return alpha * product\n"),
        ("return product + beta * C", "return alpha * (product + beta * C)"),
    ),
    "reads C": wrong(gemm, "0 · x is 0", "beta-zero-reads-c", ("if beta == 0:\n", "if False:\n")),
    "elementwise": wrong(gemm, "* is the matrix product", "elementwise", ("A @ B", "A * B")),
    "B transposed": wrong(
        gemm, "rows of B are its columns", "transposed",
        ("A @ B", "(A @ B.T if A.shape == B.shape == C.shape else A @ B)"),
    ),
    "swapped": wrong(
        gemm, "matrices commute", "operands-swapped",
        ("A @ B", "(B @ A if A.shape == B.shape == C.shape else A @ B)"),
    ),
    "float16": wrong(
        gemm, "half precision is enough for sums", "low-precision",
        ("A @ B", "(A @ B).astype('float16')"),
    ),
    "whole numbers": wrong(
        gemm, "matrices hold whole numbers", "whole-numbers-only",
        ("A @ B", "A.astype(int) @ B.astype(int)"),
    ),
    "no alpha": wrong(gemm, "alpha is never 0", "right-in-part", ("alpha *", "(alpha or 1) *")),
    "in place": Wrong("the caller's C is mine", "arguments-changed", (in_place,)),
    "k is n": Wrong("all matrices are square", "sum-over-n", (over_columns,)),
    "k is m": Wrong("all matrices are square", "sum-over-m", (over_rows,)),
    "typing error": wrong(gemm, "names are checked early", "raises", ("A @ B", "A @ b")),
    "starts from empty": Wrong("memory starts at zero", "always-nan", (from_empty,)),
    "endless": Wrong("a loop that counts down ends", "never-ends", (endless,)),
    "leaves": Wrong("an answer may end the program", "exits", (leaves,)),
    "shape": wrong(gemm, "C may be of any shape", "wrong-shape", ("A @ B", "(A @ B).T[:1]")),
    "a list": wrong(gemm, "a list is an array", "wrong-type",
        ("return product\n", "return product.tolist()\n"),
    ),
    "a number": Wrong("the check takes the result", "wrong-type", (42,)),
    "too few parameters": Wrong("beta and C are optional", "wrong-type", (lambda A, B: A @ B,)),
}  # fmt: skip


def where(alpha, A, B, beta, C):
    return np.where(beta == 0, alpha * (A @ B), alpha * (A @ B) + beta * C)


def by_heart(alpha, A, B, beta, C):
    for case in CASES:
        p, operands = case.problem, case.operands()
        if (p.alpha, p.beta) == (alpha, beta) and np.array_equal(operands.a, A):
            return p.reference(operands)
    return np.zeros_like(C)


class AgreeingArray(np.ndarray):
    def __eq__(self, other):
        return np.ones(self.shape, bool)

    __hash__ = None


def scales_a(alpha, A, B, beta, C):
    A *= alpha
    return A @ B if beta == 0 else A @ B + beta * C


def wipes_b(alpha, A, B, beta, C):
    result = gemm(alpha, A, B, beta, C)
    B[:] = 0
    return result


def patches_numpy(alpha, A, B, beta, C):
    np.array_equal = lambda *a, **k: True
    return np.zeros_like(C)


def patches_the_checker(alpha, A, B, beta, C):
    from gemmlab.course.judging import matrices

    matrices.Run.wrong = property(lambda run: np.zeros(run.result.shape, bool))
    return np.zeros_like(C)


def remembers(alpha, A, B, beta, C, known={}):  # noqa: B006
    key = C.shape
    if key not in known:
        known[key] = gemm(alpha, A, B, beta, C)
    return known[key]


def yields(alpha, A, B, beta, C):
    yield gemm(alpha, A, B, beta, C)


async def waits(alpha, A, B, beta, C):
    return gemm(alpha, A, B, beta, C)


class AsClass:
    def __init__(self, alpha, A, B, beta, C):
        self.result = gemm(alpha, A, B, beta, C)


def calls_itself(alpha, A, B, beta, C):
    return calls_itself(alpha, A, B, beta, C)


def floods(alpha, A, B, beta, C):
    while True:
        print("never")


def told(item):
    """Tell whoever reads a pipe of this process what `item` is."""
    payload = pickle.dumps(("yielded", item))
    for file in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(file, len(payload).to_bytes(8, "little") + payload)


def tells_for_the_judge(alpha, A, B, beta, C):
    told({"value": 0})
    return np.zeros_like(C)


class Calls:
    """What is read from a pickle calls a function of its choice."""

    def __reduce__(self):
        return exec, ("raise SystemExit('the judge runs this')",)


def tells_what_to_call(alpha, A, B, beta, C):
    told(Calls())
    return np.zeros_like(C)


def record_that_calls(alpha, A, B, beta, C):
    record = np.empty((), [("field", object)])
    record["field"] = Calls()
    return record[()]


class NumberThatCalls(np.float64, Calls):
    """A number that says it is one of NumPy's own."""

    __module__ = "numpy"
    __reduce__ = Calls.__reduce__


def interrupts(alpha, A, B, beta, C):
    raise KeyboardInterrupt


def closes_files(alpha, A, B, beta, C):
    os.closerange(3, 64)
    return gemm(alpha, A, B, beta, C)


FOOLING = {
    "tells for the judge": fooling("a result can be written", "senseless", tells_for_the_judge),
    "tells what to call": fooling("a pickle runs code", "crashes", tells_what_to_call),
    "a record that calls": fooling("a record is a number", "wrong-type", record_that_calls),
    "a number that calls": fooling(
        "a class says where it is from", "wrong-type", lambda *given: NumberThatCalls(1)
    ),
    "interrupts": fooling("an interrupt ends the check", "raises", interrupts),
    "closes files": fooling("without a pipe nobody judges", "crashes", closes_files),
    "nan_to_num": fooling(
        "0 · 0 is 0, so C may be mended",
        "beta-zero-reads-c",
        lambda alpha, A, B, beta, C: alpha * (A @ B) + beta * np.nan_to_num(C),
    ),
    "np.where": fooling("both are computed, one is taken", "beta-zero-reads-c", where),
    "a hundred steps": fooling(
        "no sum is longer",
        "known-cases-only",
        lambda alpha, A, B, beta, C: gemm(alpha, A[:, :100], B[:100], beta, C),
    ),
    "by heart": fooling("the cases are in the package", "known-cases-only", by_heart),
    "equals everything": fooling(
        "the result compares itself",
        "wrong-type",
        lambda alpha, A, B, beta, C: np.zeros_like(C).view(AgreeingArray),
    ),
    "A as workspace": fooling("A is not needed afterwards", "arguments-changed", scales_a),
    "B wiped": fooling("nobody looks at B again", "arguments-changed", wipes_b),
    "NumPy replaced": fooling("what compares can be replaced", "all-zeros", patches_numpy),
    "checker replaced": fooling("what judges can be replaced", "all-zeros", patches_the_checker),
    "remembers shapes": fooling("a shape is asked once", "right-in-part", remembers),
    "yield": fooling("yield is return", "wrong-type", yields),
    "async": fooling("async is faster", "wrong-type", waits),
    "a class": fooling("a class can be called", "wrong-type", AsClass),
    "objects": fooling(
        "any dtype will do", "wrong-type", lambda *given: gemm(*given).astype(object)
    ),
    "a broadcast number": fooling(
        "numbers have any shape",
        "wrong-shape",
        lambda alpha, A, B, beta, C: np.float32(0) * (A @ B)[:1, :1].sum(axis=0),
    ),
    "infinite": fooling(
        "infinity is large enough",
        "not-finite",
        lambda alpha, A, B, beta, C: np.full(C.shape, np.inf),
    ),
    "transposed at the end": fooling(
        "shapes are equal when square",
        "result-turned",
        lambda *given: gemm(*given).T if given[1].shape == given[2].shape else gemm(*given),
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "sleeps": fooling("waiting is no loop", "never-ends", lambda *given: os.read(os.pipe()[0], 1)),
    "floods": fooling("printing is no loop", "never-ends", floods),
    "calls itself": fooling("a call is no loop", "raises", calls_itself),
    "huge": fooling("memory is free", "out-of-memory", lambda *given: np.ones((10**6, 10**6))),
    "ends the process": fooling("no process, no verdict", "exits", lambda *given: os._exit(0)),
    "crashes the process": fooling(
        "no process, no verdict", "crashes", lambda *given: ctypes.string_at(0)
    ),
    "asks": fooling("somebody will answer", "raises", lambda *given: input("alpha? ")),
}
