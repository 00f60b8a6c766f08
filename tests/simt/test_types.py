"""Types and values of arithmetic are those of Numba; a product and a sum are one FMA."""

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy import float32, int8, int32, int64, uint8, uint32, uint64

from gemmlab import cuda, simulate
from gemmlab.simt.numbers import arithmetic
from gemmlab.simt.numbers.arithmetic import fma
from tests.support.launches import lines

TYPES = [np.dtype(t) for t in ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]]
OPERATORS = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
}
VALUES = {"b": [0, 1], "i": [-7, 3, 100], "u": [1, 7, 200], "f": [-2.5, 0.75, 3.0]}


def typed_by_numba(function, *dtypes):
    """The type that Numba gives to `function` of such arguments; None where it gives none."""
    numba = pytest.importorskip("numba")
    from numba.core.registry import cpu_target

    context = cpu_target.typing_context
    context.refresh()
    try:
        found = context.resolve_function_type(
            function, tuple(numba.from_dtype(d) for d in dtypes), {}
        )
    except numba.TypingError:
        return None
    return np.dtype(str(found.return_type))


@pytest.mark.parametrize("op", OPERATORS)
def test_results_have_the_types_of_numba(op):
    for a in TYPES:
        for b in TYPES:
            expected = typed_by_numba(OPERATORS[op], a, b)
            if expected is None:
                with pytest.raises(TypeError, match="use integers"):
                    arithmetic.binary(op, a.type(1), b.type(1))
                continue
            assert arithmetic.binary(op, a.type(1), b.type(1)).dtype == expected, (a, b)


def test_powers_have_the_types_of_numba():
    for a in TYPES:
        for b in TYPES:
            expected = typed_by_numba(operator.pow, a, b)
            if (a, b) == (np.bool_, np.int32):  # Numba's choice among equals, no rule
                continue
            assert arithmetic.binary("Pow", a.type(1), b.type(1)).dtype == expected, (a, b)


@pytest.mark.parametrize(
    ("op", "function"),
    [("USub", operator.neg), ("UAdd", operator.pos), ("Invert", operator.invert)],
)
def test_unary_results_have_the_types_of_numba(op, function):
    for a in TYPES:
        expected = typed_by_numba(function, a)
        if expected is not None:
            assert arithmetic.unary(op, a.type(1)).dtype == expected, a


SYMBOLS = dict(
    zip(OPERATORS, ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"], strict=True),
)


@pytest.mark.parametrize("a", ["?", "i4", "i8", "u4", "f4"])
@pytest.mark.parametrize("b", ["i4", "u4", "u8", "f4", "f8"])
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar")
def test_values_are_those_of_numba(a, b):
    """`njit` of all operators on scalars of two types, over a table of values."""
    numba = pytest.importorskip("numba")
    a, b = np.dtype(a), np.dtype(b)
    integers = "f" not in (a.kind, b.kind)
    ops = [op for op in OPERATORS if integers or op[:3] not in ("Bit", "LSh", "RSh")]
    results = ", ".join(f"a {SYMBOLS[op]} b" for op in ops)
    compiled = numba.njit(eval(f"lambda a, b: ({results})"))
    for x in VALUES[a.kind]:
        for y in VALUES[b.kind]:
            for op, expected in zip(ops, compiled(a.type(x), b.type(y)), strict=True):
                if op not in ("LShift", "RShift") or 0 <= y < 64:
                    found = arithmetic.binary(op, a.type(x), b.type(y))
                    assert found == expected, (a, x, op, b, y)


def typed(out):
    a, b = int32(2**31 - 1), uint32(5)
    out[0] = a + 1  # 64 bits: no wrap
    out[1] = int32(a + 1)  # wraps where the source asks for 32
    out[2] = (a > 0) + (b > 0)  # booleans add as integers
    out[3] = b - uint32(6) > 0  # unsigned: wraps to a large number
    out[4] = 7 / 2
    out[5] = -7 // 2 + -7 % 3 + -a + a + 7
    out[6] = float32(3) ** 2
    out[7] = min(int32(3), 2.5) + max(float32(1), 4)
    out[8] = abs(int32(-4)) + round(2.5) + round(float32(3.5))
    out[9] = math.floor(int32(3)) + math.sqrt(int32(16)) + math.trunc(-2.5)


def test_typed_scalars_in_a_kernel():
    out = np.zeros(10)
    simulate(typed, 1, 1, out)
    assert out.tolist() == [2**31, -(2**31), 2, 1, 3.5, 5, 9, 6.5, 10, 5]


def compared(out):
    out[0] = int64(2**63 - 1) == uint64(2**63)  # as float64
    out[1] = int64(-1) < uint64(2**64 - 1)
    out[2] = int32(-1) == uint32(2**32 - 1)
    out[3] = ~uint32(0) >> 4
    out[4] = -uint8(1) + (~uint8(0) >> 4)
    out[5] = -int8(-128) + ~True
    out[6] = float32(0.1) if out[0] > 5 else 3  # the type of both: float64


def test_unary_operators_and_comparisons_in_a_kernel():
    out = np.zeros(8)
    simulate(compared, 1, 1, out)
    assert out.tolist() == [1, 1, 0, 268435455, 270, -130, 3, 0]


def narrow_indices(x, i8, out):
    t = cuda.grid(1)
    i = i8[t]
    out[i * 2, i] = x[i * i] + i


def test_indices_loaded_from_narrow_arrays_do_not_wrap():
    x, i8 = np.arange(10000.0), np.arange(96, dtype=np.int8)
    out = np.zeros((192, 96))
    simulate(narrow_indices, 1, 96, x, i8, out)
    i = np.arange(96)
    np.testing.assert_array_equal(out[2 * i, i], i * i + i)
    assert np.count_nonzero(out) == 95


# -------------------------------------------------------------------------------------- contraction


def exact(a, b, c, dtype):
    """a·b + c rounded once, by rational numbers."""
    value = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if dtype == np.float64:
        return np.float64(value.numerator / value.denominator)  # Python rounds this right
    near = np.float32(value.numerator / value.denominator)
    candidates = [
        np.nextafter(near, np.float32(-np.inf)),
        near,
        np.nextafter(near, np.float32(np.inf)),
    ]
    return min(
        candidates,
        key=lambda v: (abs(Fraction(float(v)) - value), int(v.view(np.int32)) & 1),
    )


small = st.integers(-(2**24), 2**24)
scale = st.integers(-12, 12)


@given(st.tuples(small, scale), st.tuples(small, scale), st.tuples(small, scale))
@settings(deadline=None, max_examples=400)
def test_fma_rounds_once(a, b, c):
    for dtype, more in ((np.float32, 0), (np.float64, 1)):
        values = [dtype(m * 2.0**e) for m, e in (a, b, c)]
        if more:  # fill the 53 bits
            values = [v * dtype(1 + 2**-28 + 2**-51) for v in values]
        assert arithmetic.fma(*values) == exact(*values, dtype)


def test_fma_next_to_halfway():
    """A sum that float64 rounds to the middle between two float32 is not rounded from there."""
    a, b = np.float32(2**-12 * (1 + 2**-15)), np.float32(2**-12 * (1 - 2**-15))
    for c in (1, 1 + 2**-23, -1, 4097):
        for sign in (1, -1):
            values = sign * a, b, np.float32(c)  # ±(2**-24 - 2**-54) beside 1
            assert arithmetic.fma(*values) == exact(*values, np.float32), values
    naive = np.float32(np.float64(a) * b + np.float64(1 + 2**-23))
    assert naive != arithmetic.fma(a, b, np.float32(1 + 2**-23))


def sums(a, b, c, out):
    i = cuda.grid(1)
    out[0, i] = a[i] * b[i] + c[i]
    out[1, i] = c[i] - a[i] * b[i]
    out[2, i] = a[i] * b[i] - c[i]
    acc = c[i]
    acc += a[i] * b[i]
    out[3, i] = acc
    out[4, i] = c[i]
    out[4, i] -= a[i] * b[i]
    out[5, i] = cuda.fma(a[i], b[i], c[i])


def test_contraction_in_a_kernel():
    rng = np.random.default_rng(1)
    a, b, c = rng.standard_normal((3, 32)).astype(np.float32)
    out = np.zeros((6, 32), np.float32)
    report = simulate(sums, 1, 32, a, b, c, out)
    fused = np.array([exact(*v, np.float32) for v in zip(a, b, c, strict=True)])
    minus = np.array([exact(-x, y, z, np.float32) for x, y, z in zip(a, b, c, strict=True)])
    np.testing.assert_array_equal(out, [fused, minus, -minus, fused, minus, fused])
    assert (fused != a * b + c).any()
    assert lines(report)["out[0, i] = a[i] * b[i] + c[i]"]["inst_fp"] == 1
    report = simulate(sums, 1, 32, a, b, c, out, contract=False)
    np.testing.assert_array_equal(
        out, [a * b + c, c - a * b, a * b - c, a * b + c, c - a * b, fused]
    )
    assert lines(report)["out[0, i] = a[i] * b[i] + c[i]"]["inst_fp"] == 2


def test_sums_of_float64_are_not_contracted():
    a, b, c = np.random.default_rng(2).standard_normal((3, 32))
    out = np.zeros((6, 32))
    report = simulate(sums, 1, 32, a, b, c, out)
    fused = np.array([exact(*v, np.float64) for v in zip(a, b, c, strict=True)])
    np.testing.assert_array_equal(
        out, [a * b + c, c - a * b, a * b - c, a * b + c, c - a * b, fused]
    )
    assert (fused != a * b + c).any()
    assert lines(report)["out[0, i] = a[i] * b[i] + c[i]"]["inst_fp"] == 2


def test_fma_of_subnormal_numbers_rounds_once():
    """Just below halfway between two subnormal numbers, by less than float64 shows."""
    a, b = np.float32((1 + 2**-20) * 2**-75), np.float32((1 - 2**-20) * 2**-75)
    c = np.float32(2**-127 + 2**-149)
    assert fma(np.array([a]), np.array([b]), np.array([c]))[0] == c
    assert np.float32(np.float64(a) * np.float64(b) + np.float64(c)) != c
