"""Answers to exercise 01.3."""

from itertools import count

import numpy as np

from gemmlab.course.ch01_what_is_gemm.q3_outer_products import CASES, product
from tests.course.answers import Wrong, fooling, for_ever, wrong


def broadcasting(A, B):
    (m, k), n = A.shape, B.shape[1]
    C = np.zeros((m, n))
    for p in range(k):
        column = A[:, p]
        C = C + column[:, None] * B[p]
    return C


def by_hand(A, B):
    m, k = A.shape
    n = B.shape[1]
    C = np.zeros((m, n), dtype=np.float32)
    for p in range(k):
        row = B[p, :]
        for i in range(m):
            a = A[i, p]
            for j in range(n):
                C[i, j] += a * row[j]
    return C


RIGHT = {
    "broadcasting": (broadcasting,),
    "loops by hand": (by_hand,),
    "from the last step": (
        lambda A, B: sum(np.outer(A[:, p], B[p, :]) for p in reversed(range(A.shape[1]))),
    ),
}


def dot_products(A, B):
    return np.array([[A[i] @ B[:, j] for j in range(B.shape[1])] for i in range(A.shape[0])])


def whole_a(A, B):
    a = A[:]
    return sum(np.outer(a[:, p], B[p]) for p in range(B.shape[0]))


def fetched(A, B):
    columns = [A[:, p] for p in range(A.shape[1])]
    rows = [B[p] for p in range(B.shape[0])]
    return np.array(columns).T @ np.array(rows)


def b_first(A, B):
    rows = [B[p] for p in range(B.shape[0])]
    return np.array([sum(A[i, p] * row for p, row in enumerate(rows)) for i in range(A.shape[0])])


def _inside(matrix):
    """The values that a watched matrix hands out."""
    held = (cell.cell_contents for cell in matrix._load.__closure__)
    return next(x for x in held if isinstance(x, np.ndarray) and x.dtype == float)


STEP = "C += np.outer(A[:, p], B[p, :])"

WRONG = {
    "three loops": wrong(
        product, "the definition is the program", "loaded-again",
        ("for p in range(k):", "C += np.outer(A[:, p], B[p, :])", """
            for i in range(m):
                for j in range(n):
                    for p in range(k):
                        C[i, j] += A[i, p] * B[p, j]
        """),
    ),
    "row times column": Wrong("a sum is a dot product", "loaded-again", (dot_products,)),
    "column inside a loop": wrong(
        product, "a load costs nothing", "loaded-again",
        (STEP, "for j in range(n):\n            C[:, j] += A[:, p] * B[p, j]"),
    ),
    "all at once": Wrong("NumPy knows best", "too-much-at-once", (lambda A, B: A[:, :] @ B[:, :],)),
    "A whole": Wrong("only B is to be saved", "too-much-at-once", (whole_a,)),
    "behind the counter": Wrong(
        "only A[...] is counted", "not-loaded", (lambda A, B: _inside(A) @ _inside(B),)
    ),
    "first all, then the product": Wrong("loads are all that counts", "kept-for-later", (fetched,)),
    "B first": Wrong("B is kept, and A comes element by element", "kept-for-later", (b_first,)),
    "float16": wrong(
        product, "half precision is enough for sums", "low-precision",
        ("np.zeros((m, n))", "np.zeros((m, n), np.float16)"),
        (STEP, "C += np.outer(A[:, p], B[p, :]).astype(np.float16)"),
    ),
    "whole numbers": wrong(
        product, "matrices hold whole numbers", "low-precision", ("A[:, p]", "A[:, p].astype(int)")
    ),
    "never below zero": wrong(
        product, "products are positive", "wrong-values",
        (STEP, STEP.replace("C +=", "C += abs(") + ")"),
    ),
    "a column with a zero is skipped": wrong(
        product, "zeros add nothing", "rows-wrong",
        (STEP, "a, b = A[:, p], B[p, :]\n        if a.all():\n            C += np.outer(a, b)"),
    ),
    "the operator": Wrong("A and B are arrays", "raises", (lambda A, B: A @ B,)),
    "replaced": wrong(product, "= adds up", "last-step-only", (STEP, STEP.replace("+=", "="))),
    "one step too few": wrong(
        product, "range includes k", "wrong-values", ("range(k)", "range(k - 1 or 1)")
    ),
    "row of A": wrong(product, "p counts rows of A", "rows-wrong", ("A[:, p]", "A[p, :]")),
    "inner product": wrong(
        product, "a product of vectors is a number", "raises",
        ("np.outer(A[:, p], B[p, :])", "A[:, p] @ B[p, :]"),
    ),
    "transposed": wrong(
        product, "the order of outer does not matter", "wrong-shape",
        ("np.zeros((m, n))", "np.zeros((n, m))"),
        ("np.outer(A[:, p], B[p, :])", "np.outer(B[p, :], A[:, p])"),
    ),
    "a list": wrong(product, "rows are enough", "wrong-type", ("return C", "return list(C)")),
    "nothing": wrong(product, "C changes by itself", "not-attempted", (STEP, "A[:, p], B[p, :]")),
}  # fmt: skip


def zeros(A, B):
    """Loads what is to be loaded, and multiplies nothing."""
    for p in range(A.shape[1]):
        A[:, p], B[p, :]
    return np.ones((A.shape[0], B.shape[1]))


TURN = count()


FOOLING = {
    "fifty steps": fooling(
        "no sum is longer",
        "known-cases-only",
        lambda A, B: sum(np.outer(A[:, p], B[p]) for p in range(min(50, A.shape[1]))),
    ),
    "by heart": fooling(
        "the check asks in order",
        "known-cases-only",
        lambda A, B: product(A, B) + (next(TURN) >= len(CASES)),
    ),
    "loads for show": fooling("loads are what is counted", "wrong-values", zeros),
    "twice": fooling(
        "a multiply-add counts as two", "wrong-values", lambda A, B: 2 * product(A, B)
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "a generator": fooling("yield is return", "wrong-type", lambda A, B: (yield product(A, B))),
}
