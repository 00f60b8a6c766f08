"""Exercise 12.4: operands of any size, brought into the range of float16 and back."""

from typing import Any

import numpy as np

from gemmlab.course.judging import DRAWN_ANEW, FAILING, Diagnosis, Finding, Task, drawing, guard
from gemmlab.course.judging.source import short

Pair = tuple[np.ndarray, np.ndarray]


def scaled(X):
    """X with each row multiplied by 2^-e, and e: whole numbers, one for each row."""
    # [answer] return ...
    largest = np.abs(X).max(axis=1)
    e = np.where(largest > 0, np.frexp(largest)[1] - 1, 0)
    return np.ldexp(X, -e[:, None]), e
    # [end]


def restored(P, rows, columns):
    """The product A·B, from P, that of the scaled operands, and their exponents."""
    # [answer] return ...
    return np.ldexp(P, rows[:, None] + columns[None, :])
    # [end]


def _matrix(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, np.float32)


MATRICES = (
    _matrix((1.5, -1.0)),
    _matrix((3.0, 5.0), (0.5, -0.25)),
    _matrix((1.0, 2.0, -7.5), (0.1, -0.7, 0.3)),
    _matrix((-9.0, 1.0), (2.0, -0.001)),
    _matrix((1e30, 3e29), (1e-30, -2e-31), (1.0, 1.9)),
    _matrix((0.0, 0.0), (6e4, 7e4)),
    _matrix((7.9999995, 1.0), (3e38, 1e38)),
    _matrix((1e-40, -3e-41), (1.0, 0.5)),  # below 2^-126
    _matrix((1.0, 3e-9, -2e-14, 5e-20), (-7e15, 2.0, 0.0, 1e-6)),  # of many sizes in one row
)
PRODUCTS = tuple(
    (np.array(p, np.float32), np.array(r), np.array(c))
    for p, r, c in (
        ([[1.5, -2.0]], [2], [1, -1]),
        ([[1.0, 0.5], [0.25, 3.0]], [3, -2], [1, 0]),
        ([[1.0, 2.0, 3.0], [0.0, -1.0, 1.5]], [10, -20], [5, 0, -7]),
        ([[1e9, 0.0], [0.0, 3e-5]], [120, -120], [-125, 125]),
        ([[1.0], [2.0]], [127, -126], [0]),
        ([[3.0, 0.5]], [126], [-140, -133]),
        ([[1.5e6], [-3e5]], [-70, -64], [-70]),  # exponents beyond float32's, results within
        ([[2e-12, 3e-20]], [66], [69, 80]),
        ([[1e-40]], [120], [120]),
    )
)


def judge(of_scaled: Any, of_restored: Any) -> Finding:
    """Both functions on every case, and on some that are drawn anew."""
    rng = drawing.generator()
    sizes = 2.0 ** rng.integers(-90, 90, (3, 5, 1))
    drawn = [(x.astype(np.float32),) for x in rng.standard_normal((3, 5, 4)) * sizes]
    fresh = [
        (
            rng.standard_normal((4, 6)).astype(np.float32),
            rng.integers(-90, 90, 4),
            rng.integers(-20, 20, 6),
        )
        for _ in range(3)
    ]
    with np.errstate(all="ignore"):  # of what mistakes give
        return (
            _judge(scaled.__name__, of_scaled, [(x,) for x in MATRICES], drawn, _why_scaled)
            or _judge(restored.__name__, of_restored, list(PRODUCTS), fresh, _why_restored)
            or Finding(
                "passed", (("Checked", f"{len(MATRICES)} matrices, {len(PRODUCTS)} products"),)
            )
        )


def _judge(name: str, answer: Any, cases: list, fresh: list, why: Any) -> Finding | None:
    """Find the first case in which a function is wrong, and say why."""
    every = [*cases, *fresh]
    for i, outcome in enumerate(guard.attempts(answer, every)):
        anew = i >= len(cases)
        facts = ((DRAWN_ANEW if anew else FAILING, f"{name}({', '.join(map(_text, every[i]))})"),)
        details = {"case": every[i], "function": name}
        if outcome.fault:
            fault = outcome.fault
            found = Finding(fault.diagnosis, facts + fault.facts, details | dict(fault.details))
            return found.anew if anew else found
        value = outcome.value
        if value is Ellipsis:
            return Finding("not-attempted", ((name, "still returns ..."),), details)
        diagnosis = why(value, *every[i])
        if diagnosis:
            facts += (("Result", f"it returned {_text(value)}"),)
            found = Finding(diagnosis, facts, details | {"got": value})
            return found.anew if anew and diagnosis != "wrong-type" else found
    return None


def _why_scaled(value: Any, x: np.ndarray) -> str:
    """The diagnosis of a wrong matrix, or wrong exponents, of X; "" where both are right."""
    pair = _pair(value, x)
    if pair is None:
        return "wrong-type"
    y, e = pair
    if e.shape != x.shape[:1]:
        return "columns-scaled" if e.shape == x.shape[1:] else "one-for-all"
    largest = np.abs(x).max(axis=1)
    if not np.isfinite(y).all() or e[largest == 0].any():
        return "zero-row" if (largest == 0).any() else "not-finite"
    if (y[x != 0] == 0).any():
        return "small-lost"
    if not np.array_equal(np.ldexp(y.astype(np.float64), e[:, None]), x.astype(np.float64)):
        back = np.ldexp(y.astype(np.float64), -e[:, None])
        if np.array_equal(back, x.astype(np.float64)):
            return "exponents-negated"
        return "not-a-power-of-two"
    reached = np.abs(y).max(axis=1)[largest > 0]
    if ((reached >= 1) & (reached < 2)).all():
        return ""
    if len(set(e.tolist())) == 1 and len(e) > 1:
        return "one-for-all"
    if (x.max(axis=1) < largest).any() and _of_signed(x, e):
        return "sign-counts"
    return "another-range"


def _of_signed(x: np.ndarray, e: np.ndarray) -> bool:
    """Whether exponents are those of the largest number, which may be less than the magnitude."""
    top = x.max(axis=1)
    return bool((e[top > 0] == (np.frexp(top)[1] - 1)[top > 0]).all())


def _why_restored(value: Any, p: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> str:
    """The diagnosis of a wrong product; "" where it is right."""
    if not isinstance(value, np.ndarray) or value.shape != p.shape or value.dtype != p.dtype:
        return "wrong-type"
    exact = p.astype(np.float64)
    e = rows[:, None] + columns[None, :]
    if np.array_equal(value.astype(np.float64), np.ldexp(exact, e)):
        return ""
    for least, most in ((-126, 127), (-127, 127), (-128, 128), (-149, 127)):
        if np.array_equal(value.astype(np.float64), np.ldexp(exact, np.clip(e, least, most))):
            return "exponent-cut"
    for name, wrong in {
        "scaled-again": -e,
        "rows-alone": rows[:, None] + 0 * e,
        "columns-alone": columns[None, :] + 0 * e,
        "not-restored": 0 * e,
        "difference": rows[:, None] - columns[None, :],
    }.items():
        if np.array_equal(value.astype(np.float64), np.ldexp(exact, wrong)):
            return name
    right = value.astype(np.float64) == np.ldexp(exact, e)
    between = (np.abs(np.ldexp(exact, one)) for one in (rows[:, None] + 0 * e, columns + 0 * e))
    beyond = np.any([(x >= 2.0**128) | (x < 2.0**-126) for x in between], axis=0)
    return "lost-on-the-way" if (right | beyond).all() else "wrong-values"


def _pair(value: Any, x: np.ndarray) -> Pair | None:
    """A matrix of numbers and whole exponents, or None where the value is something else."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return None
    y, e = value[0], value[1]
    if np.isscalar(e) or isinstance(e, tuple | list):
        e = np.asarray(e)
    if not (isinstance(y, np.ndarray) and isinstance(e, np.ndarray)):
        return None
    if y.shape != x.shape or y.dtype != x.dtype or e.dtype.kind not in "iuf":
        return None
    if e.ndim == 2 and 1 in e.shape:
        e = e.reshape(-1)
    if e.ndim > 1 or (np.isfinite(e).all() and (e != np.round(e)).any()):
        return None
    whole = np.where(np.isfinite(e), np.clip(e, -(10**6), 10**6), 10**6)
    return y, whole.astype(np.int64)


def _text(value: Any) -> str:
    """A matrix as lists of numbers with a few digits; pairs of them in brackets."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.size <= 24:
        return str(np.vectorize(lambda v: float(f"{v:.4g}"), [float])(value).tolist())
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    return short(value)


TASK = Task(
    name="12.4",
    title="Any range",
    section="chapter 12, Which numbers get through?",
    asked="scaled(X) returns X with rows brought to [1, 2), and their exponents; restored(P, rows, "
    "columns) undoes that for a product.",
    prompt="""
    Two float16 carry a float32 as long as its size is that of a float16. Physics and gradients have
    rows of 10³⁰ and of 10⁻³⁰. A power of two changes no digit, and a row of A is a factor of a row
    of C:

    - `scaled(X)` returns `(Y, e)`: `e` has a whole number for each row, and each row of `Y` is that
      row of `X` times $2^{-e}$, with the largest magnitude in [1, 2). A row of zeros stays as it
      is, with e = 0. X is float32, and so is Y;
    - `restored(P, rows, columns)`: P is the product of the two scaled operands, `rows` the
      exponents of A's rows, `columns` those of B's columns (`scaled` of its transpose). It returns
      the product of the operands themselves, in float32.

    `np.frexp` takes a number apart, `np.ldexp` puts it together. An exponent may be beyond 127 on
    the way, while the result is an ordinary number.
    """,
    judge=judge,
    answers=(scaled, restored),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "np.frexp(6.0) is (0.75, 3). Which power of two brings 6 to [1, 2)?",
            "```python\ne = np.frexp(largest)[1] - ...\nreturn np.ldexp(X, ...), e\n```",
        ),
        "wrong-type": Diagnosis(
            "scaled returns a matrix like X and whole exponents, restored a matrix like P.",
            "What do your two functions return, in which order and shape?",
            "```python\nreturn Y, e\n```",
        ),
        "one-for-all": Diagnosis(
            "All rows have one exponent: a row of small numbers beside large ones is lost.",
            "What becomes of a row of 10^-30, if another has 10^30?",
            "```python\nlargest = np.abs(X).max(axis=...)\n```",
        ),
        "columns-scaled": Diagnosis(
            "Columns are scaled, not rows.",
            "Along which axis does a row run?",
            "```python\nnp.abs(X).max(axis=1)\n```",
        ),
        "zero-row": Diagnosis(
            "A row of zeros has no exponent of its own, as 0 has no logarithm; its e is to be 0.",
            "What is e for a row of zeros?",
            "```python\ne = np.where(largest > 0, ..., 0)\n```",
        ),
        "small-lost": Diagnosis(
            "Small elements of a row became 0, although a float32 has room for them.",
            "What does a power of two do to an element that is 10^-9 of the largest in its row?",
            "```python\nnp.ldexp(X, -e[:, None])    # of each element\n```",
        ),
        "exponent-cut": Diagnosis(
            "The exponents are cut to the range of float32, and the products lie within it.",
            "What is 1.5·10^6 times 2^-140, and can a float32 hold it?",
            "```python\nnp.ldexp(P, rows[:, None] + columns[None, :])    # whatever it is\n```",
        ),
        "exponents-negated": Diagnosis(
            "The exponents have the other sign: X is Y times 2^e, not 2^-e.",
            "What is e for a row whose largest magnitude is 1024?",
            "```python\nnp.ldexp(X, -e[:, None]), e\n```",
        ),
        "not-a-power-of-two": Diagnosis(
            "Y is not X times a power of two: dividing by the largest element rounds.",
            "Which divisions of a float32 are exact?",
            "```python\nnp.ldexp(X, -e[:, None])\n```",
        ),
        "sign-counts": Diagnosis(
            "The exponent is that of the largest number, not of the largest magnitude.",
            "What is the largest magnitude of (-9, 1)?",
            "```python\nnp.abs(X).max(axis=1)\n```",
        ),
        "another-range": Diagnosis(
            "The largest magnitude of a row is not in [1, 2).",
            "Between which bounds does np.frexp return its first number?",
            "```python\nnp.frexp(largest)[1] - 1\n```",
        ),
        "scaled-again": Diagnosis(
            "The product is scaled once more: exponents are subtracted where they should be added.",
            "scaled divides by 2^e. What does restored do?",
            "```python\nnp.ldexp(P, rows[:, None] + ...)\n```",
        ),
        "rows-alone": Diagnosis(
            "Only A's exponents come back.",
            "Which exponents belong to an element of C?",
            "```python\nrows[:, None] + columns[None, :]\n```",
        ),
        "columns-alone": Diagnosis(
            "Only B's exponents come back.",
            "Which exponents belong to an element of C?",
            "```python\nrows[:, None] + columns[None, :]\n```",
        ),
        "not-restored": Diagnosis(
            "P is returned as it is.",
            "A row of A was divided by 2^e. By how much is that row of P too small?",
            "```python\nnp.ldexp(P, ...)\n```",
        ),
        "difference": Diagnosis(
            "The exponents of the columns are subtracted.",
            "Both operands were divided. What happened to their product?",
            "```python\nrows[:, None] + columns[None, :]\n```",
        ),
        "lost-on-the-way": Diagnosis(
            "Some elements overflow or vanish on the way, and their results are ordinary numbers.",
            "What is 2^100 times 2^100 in float32, before 2^-110 comes?",
            "```python\nnp.ldexp(P, rows[:, None] + columns[None, :])    # one exponent\n```",
        ),
    },
    praise="Powers of two are free of rounding, so that range and precision are two problems.",
)
