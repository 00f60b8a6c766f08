"""Answers are made without running them, and what they are made of."""

import numpy as np
import pytest

from gemmlab.course.grading.computed import MOST, NoDataError, taken
from gemmlab.course.grading.definitions import Definitions, RefusedError
from gemmlab.course.grading.submission import read
from gemmlab.simt import cuda
from tests.course.grading.notebooks import cells

GET = "from gemmlab import exercises\nq = exercises.get('02.2')"


def made(*codes):
    found = read(cells(GET, *codes))
    return Definitions(found, found.checks["02.2"])


def answer(*codes):
    (found,) = made(*codes, "q.check(f)").answers()
    return found


@pytest.mark.parametrize(
    ("codes", "value"),
    [
        (["def f(a=1, *, b=(2, -3)):\n    return a, b"], (1, (2, -3))),
        (["import numpy as np, os", "def f(t=np.float32):\n    return t"], np.float32),
        (["from numba import cuda, float32", "def f():\n    return cuda"], cuda),
        (["import math", "SIDE = 4 * 8", "def f():\n    return SIDE * math.pi"], 32 * np.pi),
        (["SIDE: int = 4", "f = lambda n=SIDE: n"], 4),
        (["from functools import cache", "@cache\ndef f():\n    return 5"], 5),
        (["from numba import njit", "@njit(fastmath=True)\ndef f():\n    return 6"], 6),
        (["from gemmlab import Gemm", "P = Gemm(2, 3, 4)", "def f():\n    return P.m"], 2),
        (
            [
                "T = tuple(2 * i for i in range(3))",
                "a, b = (3 * i for i in (1, 2))",
                "f = lambda n=b: n",
            ],
            6,
        ),
        (["def g():\n    return 7", "def f():\n    return g()"], 7),
        (["T = {(1, 'n'): 4}", "def f(t=T[1, 'n']):\n    return t"], 4),
        (
            [
                "from gemmlab.instructions import WGMMA",
                "mul, n = WGMMA[32, 'nt'], 32",
                "def f():\n    return mul.name",
            ],
            "wgmma_m64n32k16_f32_f16",
        ),
        (["def f():\n    return 1", "def f():\n    return 8", "g = f", "f = g"], 8),
    ],
)
def test_an_answer_is_made_here(codes, value):
    defined = made(*codes, "q.check(f)")
    (found,) = defined.answers()
    assert not defined.missing
    assert found() == value


@pytest.mark.parametrize(
    ("codes", "value"),
    [
        (["T = [i * i for i in range(4) if i != 2]", "def f():\n    return T"], [0, 1, 9]),
        (["def g(n):\n    return {n: 1}", "T = g(3)", "def f():\n    return T"], {3: 1}),
        (["T = []\nfor i in range(3):\n    T.append(i)", "def f():\n    return T"], [0, 1, 2]),
        (["T = {}", "T[1] = 2", "def f():\n    return T"], {1: 2}),
        (["W = 3 if 1 < 2 else 4", "def f(w=W):\n    return w"], 3),
        (["import numpy as np", "T = np.arange(3).sum()", "def f():\n    return T"], 3),
    ],
)
def test_what_needs_more_is_computed_apart_and_comes_as_data(codes, value):
    defined = made(*codes, "q.check(f)")
    (found,) = defined.answers()
    assert defined.missing
    assert found() == value


def test_a_kernel_is_marked_for_the_simulator():
    found = answer("from numba import cuda", "@cuda.jit(fastmath=True)\ndef f(x):\n    x[0] = 1")
    assert type(found).__name__ == "SimulatedKernel"
    helper = answer("from gemmlab import cuda", "@cuda.jit(device=True)\ndef f(x):\n    return x")
    assert type(helper).__name__ == "DeviceFunction"


def test_nothing_of_an_answer_runs_where_it_is_made():
    ran = []
    defined = made("def f(a: g() = 1) -> g():\n    g()", "q.check(f)")
    defined.space["g"] = lambda: ran.append(1)
    defined.answers()
    assert ran == []


@pytest.mark.parametrize(
    ("codes", "diagnosis", "words"),
    [
        (["q.check(f)"], "not-defined", "f is not defined in the notebook"),
        (["T = 1 / 0", "def f():\n    return T", "q.check(f)"], "not-computed",
         "cell 2, line 1: ZeroDivisionError: division by zero"),
        (["class C: pass", "T = C()", "def f():\n    return T", "q.check(f)"], "not-computed",
         "which is no data"),
        (["import os", "def f():\n    return os", "q.check(f)"], "reaches-out",
         "cell 2, line 1: it imports os"),
        (["from numpy import *", "def f():\n    return 1", "q.check(float32)"], "borrowed",
         "float32"),
        (["q.check(print)"], "not-defined", "print"),
        (["q.check(max)"], "borrowed", "max is not a function that the notebook defines"),
        (["def f():\n    return 1", "q.check(f())"], "not-defined",
         "hand over the name of a function"),
        (["def g(f):\n    return f", "@g\ndef f(): pass", "q.check(f)"], "reaches-out",
         "@g is none of cuda.jit"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_says_why(codes, diagnosis, words):
    with pytest.raises(RefusedError, match=words.replace("(", r"\(")) as caught:
        made(*codes).answers()
    assert caught.value.diagnosis == diagnosis


@pytest.mark.parametrize("item", ["T", ("T",), ("g", 1), ("T", print), ("T", [object()]), None, 3])
def test_what_comes_back_is_data_for_the_names_that_were_asked_for(item):
    with pytest.raises(NoDataError, match="no data"):
        taken(item, ["T"])
    assert taken(("T", [1]), ["T"]) == {"T": [1]}


def test_data_has_a_largest_size():
    with pytest.raises(NoDataError, match="no data"):
        taken(("T", "x" * (MOST + 1)), ["T"])
    deep = 1
    for _ in range(20):
        deep = [deep]
    with pytest.raises(NoDataError, match="no data"):
        taken(("T", deep), ["T"])


def test_arithmetic_that_is_done_here_is_small():
    for code in ("T = 9 ** 9 ** 9", "T = 1 << 10 ** 9", "T = 'x' * 10 ** 9"):
        defined = made(code, "def f():\n    return T", "q.check(f)")
        defined._bind(defined.kept[0])
        assert "T" in defined.missing
