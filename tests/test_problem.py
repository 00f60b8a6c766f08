"""Problems: arithmetic, bytes, operands, tolerance and the refusal of bad input."""

import numpy as np
import pytest

from gemmlab.arguments import whole_number
from gemmlab.formats import FORMATS, from_memory, round_to, to_memory
from gemmlab.problem import Gemm, Gemms, Operands

SHAPES = [(1, 1, 1), (1, 7, 3), (17, 1, 40), (33, 65, 1), (64, 48, 129), (20, 30, 1000)]


def test_worked_intensities():
    """The two worked products of 8192 in float16, in FLOP/B."""
    narrow = Gemm(8192, 128, 8192, dtype="float16")
    square = Gemm(8192, 8192, 8192, dtype="float16")
    assert round(narrow.intensity, 1) == 124.1
    assert int(square.intensity) == 2730
    assert narrow.flops == 2 * 8192 * 128 * 8192
    assert narrow.bytes == 2 * (8192 * 8192 + 8192 * 128 + 8192 * 128)


@pytest.mark.parametrize("size", [1, 2, 100, 8192])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_matrix_vector_products_stay_below_one_flop_a_byte(size, dtype):
    assert Gemm(size, 1, 8192, dtype=dtype).intensity < 1
    assert Gemm(1, size, 8192, dtype=dtype).intensity < 1


@pytest.mark.parametrize("dtype", FORMATS)
def test_bytes_and_intensity_of_a_cube(dtype):
    """Intensity of n³ is 2n / 3s."""
    p = Gemm(96, 96, 96, dtype=dtype)
    s = FORMATS[dtype].bytes
    assert p.bytes == 3 * s * 96**2
    assert p.intensity == pytest.approx(2 * 96 / (3 * s), rel=1e-15)


def test_scaling_flops():
    assert Gemm(3, 5, 7).scaling_flops == 0
    assert Gemm(3, 5, 7, alpha=2).scaling_flops == 15
    assert Gemm(3, 5, 7, beta=2).scaling_flops == 30
    assert Gemm(3, 5, 7, alpha=-1, beta=1).scaling_flops == 45


@pytest.mark.parametrize("name", ["m", "n", "k"])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError),
        (-4, ValueError),
        (2.0, TypeError),
        (2.5, TypeError),
        (True, TypeError),
        (np.bool_(True), TypeError),
        ("16", TypeError),
        (float("nan"), TypeError),
        (float("inf"), TypeError),
        (None, TypeError),
        ([16], TypeError),
    ],
)
def test_bad_sizes_are_quoted(name, value, error):
    sizes = {"m": 4, "n": 4, "k": 4, name: value}
    with pytest.raises(error) as caught:
        Gemm(**sizes)
    assert f"{name}={value!r}" in str(caught.value)
    assert "at least 1" in str(caught.value)


def test_numpy_integers_are_sizes():
    p = Gemm(np.int32(3), np.uint8(4), np.int64(5))
    assert p == Gemm(3, 4, 5)
    assert all(type(size) is int for size in (p.m, p.n, p.k))
    assert whole_number("x", 0, least=0) == 0


@pytest.mark.parametrize("name", ["dtype", "accumulate", "out_dtype"])
@pytest.mark.parametrize("value", ["float31", "", np.float32, ["float32"], 32])
def test_unknown_formats_are_quoted(name, value):
    with pytest.raises(ValueError) as caught:
        Gemm(4, 4, 4, **{name: value})
    assert f"{name}={value!r}" in str(caught.value)
    assert all(known in str(caught.value) for known in FORMATS)


def test_a_format_of_operands_must_be_given():
    with pytest.raises(ValueError, match="dtype=None is not a known format"):
        Gemm(4, 4, 4, dtype=None)


@pytest.mark.parametrize(
    ("dtype", "accumulate", "out_dtype"),
    [
        ("float64", "float64", "float64"),
        ("float32", "float32", "float32"),
        ("tf32", "float32", "float32"),
        ("bfloat16", "float32", "bfloat16"),
        ("float16", "float32", "float16"),
    ],
)
def test_formats_that_are_not_given(dtype, accumulate, out_dtype):
    p = Gemm(4, 5, 6, dtype=dtype)
    assert (p.accumulate, p.out_dtype) == (accumulate, out_dtype)
    assert p == Gemm(4, 5, 6, dtype=dtype, accumulate=accumulate, out_dtype=out_dtype)
    assert p.formats == (dtype, dtype, out_dtype)
    assert str(p) == f"4×5×6 {dtype}"


def test_formats_of_operands_alone_hold_no_sums_and_no_results():
    for name in ("tf32", "bfloat16"):
        with pytest.raises(ValueError, match=f"accumulate='{name}'.*float64, float32, float16"):
            Gemm(4, 4, 4, accumulate=name)
    with pytest.raises(ValueError, match="out_dtype='tf32'.*out_dtype='float32'"):
        Gemm(4, 4, 4, out_dtype="tf32")


def test_16_bit_operands_with_results_in_float32():
    half, mixed = (Gemm(32, 64, 16, dtype="float16", out_dtype=o) for o in (None, "float32"))
    assert str(mixed) == "32×64×16 float16 to float32"
    assert mixed != half
    assert mixed.array_bytes == (2 * 32 * 16, 2 * 16 * 64, 4 * 32 * 64)
    assert mixed.bytes == sum(mixed.array_bytes) == half.bytes + 2 * 32 * 64
    assert mixed.tolerance < half.tolerance  # C is not rounded to float16
    a, b, _ = o = mixed.operands()
    assert [x.dtype.name for x in o] == ["float16", "float16", "float32"]
    result = a.astype(np.float32) @ b.astype(np.float32)
    assert mixed.error(result, o) <= mixed.tolerance < mixed.error(result.astype("float16"), o)


@pytest.mark.parametrize(
    ("accumulate", "scalar"),
    [("float16", np.float16), ("float32", np.float32), ("float64", np.float64)],
)
def test_scalars_are_those_of_the_accumulation(accumulate, scalar):
    p = Gemm(4, 4, 4, alpha=0.1, beta=-2, dtype="float16", accumulate=accumulate)
    assert [type(x) for x in p.scalars()] == [scalar, scalar]
    assert p.scalars() == (scalar(0.1), scalar(-2))


def test_poisoned_results_are_nan_in_every_format():
    for dtype in FORMATS:
        p = Gemm(4, 4, 4, dtype=dtype)
        c = p.operands().c
        poisoned = p.poisoned(c)
        assert poisoned.dtype == c.dtype
        assert np.isnan(from_memory(poisoned, p.out_dtype)).all()
        for beta in (1, -0.5):
            read = Gemm(4, 4, 4, beta=beta, dtype=dtype).poisoned(c)
            assert np.array_equal(read, c)
            assert read is not c


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_bad_scalars_are_quoted(name):
    for value in (float("nan"), float("inf"), -float("inf"), np.float32("nan")):
        with pytest.raises(ValueError, match=f"{name}=.*(nan|inf).*finite"):
            Gemm(4, 4, 4, **{name: value})
    with pytest.raises(ValueError, match=f"{name}=1000.*finite"):
        Gemm(4, 4, 4, **{name: 10**400})
    for value in ("2", b"2", None, True, 1j, np.complex64(1), [1.0, 2.0]):
        with pytest.raises(TypeError) as caught:
            Gemm(4, 4, 4, **{name: value})
        assert f"{name}={value!r}" in str(caught.value)


def test_scalars_must_be_finite_in_the_accumulation():
    largest = float(np.finfo(np.float32).max)
    assert np.isfinite(Gemm(4, 4, 4, alpha=largest, beta=-largest).scalars()).all()
    for given in ({"alpha": 1e39}, {"beta": -1e39}, {"alpha": 65536.0, "accumulate": "float16"}):
        with pytest.raises(ValueError, match=r"(alpha|beta)=.* is too large for accumulate='float"):
            Gemm(4, 4, 4, dtype="float16", **given)
    assert Gemm(4, 4, 4, alpha=1e39, dtype="float64").scalars()[0] == 1e39


def test_problems_are_values():
    assert Gemm(2, 3, 4) == Gemm(2, 3, 4, 1, 0) != Gemm(2, 3, 4, beta=1)
    assert len({Gemm(2, 3, 4), Gemm(2, 3, 4)}) == 1
    with pytest.raises(AttributeError):
        Gemm(2, 3, 4).m = 5


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("kind", ["normal", "integers"])
def test_operands(dtype, kind):
    p = Gemm(3, 5, 7, dtype=dtype)
    first, again, other = p.operands(1, kind), p.operands(1, kind), p.operands(2, kind)
    assert [x.shape for x in first] == [(3, 7), (7, 5), (3, 5)]
    assert tuple(x.dtype for x in first) == p.memory
    values = [from_memory(x, form) for x, form in zip(first, p.formats, strict=True)]
    assert [to_memory(x, dtype).dtype for x in values[:2]] == [*p.memory[:2]]  # numbers of it
    assert all(np.array_equal(x, y) for x, y in zip(values, p.values(first), strict=True))
    assert all(np.array_equal(x, y) for x, y in zip(first, again, strict=True))
    assert not all(np.array_equal(x, y) for x, y in zip(first, other, strict=True))
    p.check_operands(first)
    if kind == "integers":
        assert all(np.array_equal(x, np.round(x)) and np.abs(x).max() <= 2 for x in values)


@pytest.mark.parametrize("dtype", ["tf32", "bfloat16", "float16"])
def test_operands_are_rounded_to_nearest(dtype):
    rounded, drawn = Gemm(30, 50, 70, dtype=dtype).operands(), Gemm(30, 50, 70).operands()
    for x, y in zip(rounded[:2], drawn[:2], strict=True):
        assert np.array_equal(x, to_memory(round_to(y, dtype), dtype))


def test_operands_that_cannot_be_made():
    with pytest.raises(ValueError, match="'uniform'.*normal.*integers"):
        Gemm(3, 5, 7).operands(kind="uniform")


def test_wrong_operands_are_refused():
    p = Gemm(3, 5, 7)
    a, b, c = p.operands()
    for bad, error, text in (
        ((a.T, b, c), ValueError, r"A has shape \(7, 3\).*\(3, 7\)"),
        ((a, b[:, :4], c), ValueError, r"B has shape \(7, 4\).*\(7, 5\)"),
        ((a, b, c.ravel()), ValueError, r"C has shape \(15,\).*\(3, 5\)"),
        ((a.astype("float64"), b, c), TypeError, "A has dtype float64.*float32"),
        ((a, b.astype("int32"), c), TypeError, "B has dtype int32.*float32"),
        ((a, b.tolist(), c), TypeError, "B is a list"),
    ):
        with pytest.raises(error, match=text):
            p.check_operands(Operands(*bad))
    with pytest.raises(TypeError, match="A has dtype float32; .* uint16, which holds bfloat16"):
        Gemm(3, 5, 7, dtype="bfloat16").check_operands(Operands(a, b, c))


@pytest.mark.parametrize("dtype", ["bfloat16", "tf32"])
def test_products_in_formats_that_numpy_does_not_have(dtype):
    p = Gemm(9, 5, 40, alpha=0.5, beta=2, dtype=dtype, layout="tn")
    o = p.operands()
    a, b, c = p.values(o)
    right = 0.5 * (a @ b) + 2 * c
    assert np.array_equal(p.reference(o), right)
    result = to_memory(round_to(right, p.out_dtype), p.out_dtype)
    assert p.error(result, o) <= p.tolerance
    wrong = to_memory(round_to(right * (1 + 2.0**-6), p.out_dtype), p.out_dtype)
    assert p.error(wrong, o) > p.tolerance


@pytest.mark.parametrize(("dtype", "out"), [("bfloat16", "float32"), ("float16", "bfloat16")])
def test_results_in_another_format_than_the_operands(dtype, out):
    p = Gemm(9, 5, 40, alpha=0.5, beta=2, dtype=dtype, out_dtype=out)
    o = p.operands()
    p.check_operands(o)
    result = to_memory(round_to(p.reference(o), out), out)
    assert 0 < p.error(result, o) <= FORMATS[out].unit_roundoff < p.tolerance


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_operands_must_be_finite_where_they_are_read(value):
    p = Gemm(3, 5, 7)
    for which, name in enumerate("AB"):
        operands = Operands(*(x.copy() for x in p.operands()))
        operands[which][2, 1] = value
        with pytest.raises(ValueError) as caught:
            p.check_operands(operands)
        assert f"{name}[2, 1] is {value}" in str(caught.value)
    operands = p.operands()
    operands.c[0, 0] = value
    p.check_operands(operands)  # β = 0: C is not read
    with pytest.raises(ValueError, match=r"C\[0, 0\] is"):
        Gemm(3, 5, 7, beta=0.5).check_operands(operands)


@pytest.mark.parametrize("dtype", FORMATS)
def test_operands_must_be_finite_in_every_format(dtype):
    p = Gemm(3, 5, 7, dtype=dtype)
    for which, name in enumerate("AB"):
        operands = p.operands()
        operands[which][2, 1] = to_memory(np.nan, dtype)
        with pytest.raises(ValueError, match=rf"{name}\[2, 1\] is nan; operands must be finite"):
            p.check_operands(operands)


def test_reference():
    p = Gemm(2, 2, 2, alpha=2, beta=-1)
    o = Operands(
        *(np.array(x, np.float32) for x in ([[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1, 1], [1, 1]]))
    )
    assert p.reference(o).tolist() == [[37, 43], [85, 99]]
    poisoned = o._replace(c=np.full((2, 2), np.nan, np.float32))
    assert Gemm(2, 2, 2).reference(poisoned).tolist() == [[19, 22], [43, 50]]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (2.5, 0), (1, 1), (-0.5, 3)])
def test_float32_arithmetic_passes(shape, alpha, beta):
    """In NumPy's order of summation, and one term after the other as a kernel does it."""
    p = Gemm(*shape, alpha=alpha, beta=beta)
    for seed in range(3):
        o = p.operands(seed)
        in_turn = np.zeros((p.m, p.n), np.float32)
        for i in range(p.k):
            in_turn += o.a[:, i, None] * o.b[None, i]
        for product in (o.a @ o.b, in_turn):
            result = np.float32(alpha) * product + np.float32(beta) * o.c
            assert result.dtype == np.float32
            assert p.error(result, o) <= p.tolerance


@pytest.mark.parametrize("shape", [s for s in SHAPES if s[2] > 1])
def test_a_dropped_term_fails(shape):
    p = Gemm(*shape)
    o = p.operands()
    assert p.error(o.a[:, :-1] @ o.b[:-1], o) > p.tolerance


@pytest.mark.parametrize("shape", [s for s in SHAPES if s[2] > 1])
def test_float16_accumulation_fails(shape):
    p = Gemm(*shape)
    o = p.operands()
    total = np.zeros((p.m, p.n), np.float16)
    for i in range(p.k):
        total += (o.a[:, i, None] * o.b[None, i]).astype(np.float16)
    assert p.error(total, o) > p.tolerance


def test_float16_operands_pass_with_float32_sums_alone():
    p = Gemm(32, 32, 512, dtype="float16")
    o = p.operands()
    good = (o.a.astype(np.float32) @ o.b.astype(np.float32)).astype(np.float16)
    assert p.error(good, o) <= p.tolerance
    total = np.zeros((32, 32), np.float16)
    for i in range(p.k):
        total += o.a[:, i, None] * o.b[None, i]
    assert p.error(total, o) > p.tolerance


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_results_that_are_not_finite_always_fail(value):
    for p in (Gemm(3, 5, 7), Gemm(3, 5, 7, alpha=0), Gemm(3, 5, 1 << 20, accumulate="float16")):
        o = Operands(*(np.zeros(s, np.float32) for s in ((3, p.k), (p.k, 5), (3, 5))))
        result = np.zeros((3, 5), np.float32)
        assert p.error(result, o) == 0
        result[1, 2] = value
        assert p.error(result, o) == np.inf > p.tolerance
        assert np.argwhere(np.isinf(p.errors(result, o))).tolist() == [[1, 2]]


def test_error_of_a_result_of_another_shape():
    p = Gemm(3, 5, 7)
    with pytest.raises(ValueError, match=r"C has shape \(5, 3\).*\(3, 5\)"):
        p.error(np.zeros((5, 3)), p.operands())


def test_tolerance_grows_with_k_and_with_coarser_formats():
    assert Gemm(1, 1, 10).tolerance < Gemm(1, 1, 100).tolerance < Gemm(1, 1, 10**6).tolerance
    assert Gemm(1, 1, 10).tolerance < Gemm(1, 1, 10, accumulate="float16").tolerance
    assert Gemm(1, 1, 10).tolerance == pytest.approx(15 * 2.0**-24, rel=1e-5)


# ------------------------------------------------------------------------------------ layouts


@pytest.mark.parametrize(
    ("layout", "shapes"),
    [
        ("nn", ((2, 4), (4, 3), (2, 3))),
        ("nt", ((2, 4), (3, 4), (2, 3))),
        ("tn", ((4, 2), (4, 3), (2, 3))),
        ("tt", ((4, 2), (3, 4), (2, 3))),
    ],
)
def test_operands_are_stored_as_the_layout_says(layout, shapes):
    problem, plain = Gemm(2, 3, 4, beta=1.0, layout=layout), Gemm(2, 3, 4, beta=1.0)
    stored, operands = problem.operands(), plain.operands()
    assert problem.shapes == shapes
    assert tuple(x.shape for x in stored) == shapes
    assert all(x.flags.c_contiguous for x in stored)
    problem.check_operands(stored)
    for one, other in zip(problem.oriented(stored), operands, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(problem.reference(stored), plain.reference(operands))
    result = plain.reference(operands) + 1e-6
    assert problem.error(result, stored) == pytest.approx(plain.error(result, operands))
    assert (problem.bytes, problem.flops) == (plain.bytes, plain.flops)


def test_operands_of_another_layout_are_refused():
    with pytest.raises(ValueError, match=r"B has shape \(4, 3\); this problem needs \(3, 4\)"):
        Gemm(2, 3, 4, layout="nt").check_operands(Gemm(2, 3, 4).operands())


def test_layouts_are_part_of_the_problem():
    assert Gemm(2, 3, 4, layout="nt") != Gemm(2, 3, 4)
    assert str(Gemm(2, 3, 4, layout="nt")) == "2×3×4 float32 nt"
    assert str(Gemm(2, 3, 4)) == "2×3×4 float32"
    for layout in ("NN", "t", "", None):
        with pytest.raises(ValueError, match=f"layout={layout!r} is not known; use one of nn, nt"):
            Gemm(2, 3, 4, layout=layout)


@pytest.mark.parametrize(
    ("alpha", "accumulate", "dtype"),
    [(1e-40, "float32", "float32"), (1e-6, "float16", "float16"), (3e-42, "float32", "float16")],
)
def test_a_rounded_result_is_right_where_alpha_is_subnormal(alpha, accumulate, dtype):
    p = Gemm(16, 16, 16, alpha=alpha, dtype=dtype, accumulate=accumulate)
    o = p.operands(kind="integers")
    a, b, _ = p.values(o)
    exact = (np.float64(p.scalars()[0]) * (a @ b)).astype(p.memory[2])
    assert p.error(exact, o) <= p.tolerance
    assert p.error(exact + 1, o) > p.tolerance


def test_a_scalar_that_would_be_zero_is_refused():
    for name in ("alpha", "beta"):
        with pytest.raises(ValueError, match=f"{name}=1e-50 is too small for accumulate='float32'"):
            Gemm(1, 1, 1, **{name: 1e-50})
    assert Gemm(1, 1, 1, alpha=1e-50, dtype="float64").alpha == 1e-50
    assert Gemm(1, 1, 1, alpha=0.0).alpha == 0


def test_many_products_compare_and_give_rows():
    many = Gemms(m=[[8, 16], [32, 64]], n=8, k=8)
    assert many == Gemms(m=[[8, 16], [32, 64]], n=[8, 8], k=8)
    assert many != Gemms(m=[[8, 16], [32, 64]], n=8, k=8, beta=1.0)
    assert many != Gemms(m=[8, 16], n=8, k=8)
    assert many != 1
    assert many[1] == Gemms(m=[32, 64], n=8, k=8)
    assert many[0, 1] == Gemm(16, 8, 8)
    with pytest.raises(ValueError, match="m holds 9223372036854775808; use whole numbers below"):
        Gemms(m=np.array([2**63], np.uint64), n=8, k=8)
