"""Answers to exercise 12.4."""

import numpy as np

from gemmlab.course.ch12_tcec.q4_range_kept import MATRICES, PRODUCTS, restored, scaled
from tests.course.answers import Wrong, edited, fooling, table

LARGEST = "largest = np.abs(X).max(axis=1)"
E = "e = np.where(largest > 0, np.frexp(largest)[1] - 1, 0)"
Y = "np.ldexp(X, -e[:, None])"
BACK = "np.ldexp(X, -e[:, None]), e"
SUM = "rows[:, None] + columns[None, :]"


def _row_by_row(X):
    Y, e = X.copy(), []
    for i, row in enumerate(X):
        top = max(abs(float(v)) for v in row)
        power = int(np.floor(np.log2(top))) if top else 0
        Y[i] = [float(v) * 2.0**-power for v in row]
        e.append(power)
    return Y, np.array(e)


def _in_float64(P, rows, columns):
    wide = P.astype(np.float64) * 2.0 ** rows[:, None].astype(float)
    return (wide * 2.0 ** columns.astype(float)).astype(np.float32)


RIGHT = {
    "row by row": (_row_by_row, _in_float64),
    "mixed": (scaled, _in_float64),
}


def of_scaled(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (edited(scaled, *edits), restored))


def of_restored(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (scaled, edited(restored, *edits)))


WRONG = {
    "one exponent": of_scaled(
        "one scale is enough", "one-for-all",
        (LARGEST, "largest = np.abs(X).max() + np.zeros(len(X), X.dtype)"),
    ),
    "a number": of_scaled(
        "one scale is enough", "one-for-all",
        (LARGEST, "largest = np.abs(X).max()"), (BACK, "np.ldexp(X, -e), int(e)"),
    ),
    "columns": of_scaled(
        "axis 0 is the rows", "columns-scaled",
        (LARGEST, "largest = np.abs(X).max(axis=0)"), (BACK, "np.ldexp(X, -e), e"),
    ),
    "no zeros": of_scaled(
        "there is always a number", "zero-row",
        (E, "e = np.floor(np.log2(largest))"), (Y, "X * 2.0 ** -e[:, None]"),
    ),
    "e negated": of_scaled(
        "e is what is multiplied by", "exponents-negated", (BACK, "np.ldexp(X, -e[:, None]), -e")
    ),
    "divided": of_scaled(
        "the largest is to be 1", "not-a-power-of-two",
        ("np.ldexp(X, -e[:, None])", "X / np.where(largest > 0, largest, 1)[:, None]"),
    ),
    "signed": of_scaled("max is the largest", "sign-counts", (LARGEST, "largest = X.max(axis=1)"),
                        ("largest > 0, np.frexp(largest)", "largest != 0, np.frexp(largest)")),
    "frexp's range": of_scaled("frexp has the exponent", "another-range", (" - 1, 0)", ", 0)")),
    "Y alone": of_scaled("the exponents are in Y", "wrong-type", (BACK, Y)),
    "again": of_restored("scaling is scaling", "scaled-again", (SUM, "-rows[:, None] - columns")),
    "A alone": of_restored("C has A's rows", "rows-alone", (SUM, "rows[:, None]")),
    "a logarithm": of_scaled(
        "log2 is exact", "another-range",
        (E, "with np.errstate(divide='ignore'):\n"
            "        logs = np.floor(np.log2(largest))\n"
            "    e = np.where(largest > 0, logs, 0).astype(int)"),
    ),
    "in float64": of_restored(
        "wider is safer", "wrong-type", ("return ", "return np.float64(1) * ")
    ),
    "B alone": of_restored("C has B's columns", "columns-alone", (SUM, "columns[None, :]")),
    "as it is": of_restored(
        "P is the product", "not-restored", (f"np.ldexp(P, {SUM})", "P.copy()")
    ),
    "subtracted": of_restored(
        "exponents of a quotient", "difference", (SUM, "rows[:, None] - columns[None, :]")
    ),
    "one after the other": of_restored(
        "multiplication is associative", "lost-on-the-way",
        (f"np.ldexp(P, {SUM})", "np.ldexp(np.ldexp(P, rows[:, None]), columns[None, :])"),
    ),
    "zeros have exponent -1": of_scaled(
        "frexp knows what to do", "zero-row", (E, "e = np.frexp(largest)[1] - 1")
    ),
    "small ones cleared": of_scaled(
        "what is below 2^-24 does not count", "small-lost",
        (BACK, "np.where(np.abs(X) < 2.0**-24 * largest[:, None], np.float32(0), "
               "np.ldexp(X, -e[:, None])), e"),
    ),
    "clipped": of_restored(
        "float32 has exponents of -126 to 127", "exponent-cut",
        (SUM, "np.clip(rows[:, None] + columns, -126, 127)"),
    ),
    "a gap": of_restored("one of two is enough", "not-attempted", (f"np.ldexp(P, {SUM})", "...")),
}  # fmt: skip


def _found(X):
    for known in MATRICES:
        if np.array_equal(known, X):
            return scaled(X)
    return X, np.zeros(len(X), int)


FOOLING = {
    "matrices by heart": fooling(
        "the cases are in the package", "known-cases-only", _found, restored
    ),
    "products by heart": fooling(
        "the cases are in the package", "known-cases-only",
        scaled, table(restored, PRODUCTS, np.zeros((4, 6), np.float32)),
    ),
    "X changed": fooling(
        "X is mine", "arguments-changed",
        edited(scaled, ("return np.ldexp(X, -e[:, None]), e",
                        "np.ldexp(X, -e[:, None], out=X)\n    return X, e")), restored,
    ),
}  # fmt: skip
