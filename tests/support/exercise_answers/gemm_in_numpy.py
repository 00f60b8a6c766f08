"""Answers to exercise 01.1."""

import contextlib
import sys

import numpy as np

from gemmlab.exercises.gemm_in_numpy import gemm
from tests.support.exercise_answers.edits import Wrong, wrong


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


RIGHT = {
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
