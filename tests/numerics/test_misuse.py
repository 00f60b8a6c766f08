"""Numerics used wrongly: what each function refuses, and what unusual arrays do not change."""

import math
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest

from gemmlab import numerics
from gemmlab.numerics import (
    FORMATS,
    POLICIES,
    Policy,
    accumulation,
    backward_error,
    decode,
    emulated_matmul,
    encode,
    fields,
    fma,
    fma_chain,
    fma_chain_bound,
    forward_error,
    fused_dot_add,
    max_relative_error,
    mma,
    round_to,
    running_sums,
    split,
    split_range,
    tensor_core_bound,
    ulp,
)

ONES = np.ones((2, 4))
EIGHTS = np.ones(8, np.float16)


# ---------------------------------------------------------------------------------- what is refused

NO_NUMBERS = {
    "complex": (np.array([1 + 0j]), r"np.complex128\(1\+0j\) is no real number"),
    "empty and complex": (np.array([], complex), "complex128.* is no real number"),
    "nothing": (None, "None is no real number; use integers or floats"),
    "text": ("1", r"np.str_\('1'\) is no real number"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "is no real number"),
    "records": (np.zeros(1, [("x", "f4")]), "is no real number"),
    "objects": (np.array([1.0, {}], object), "{} is no real number"),
}
FUNCTIONS = {
    "round_to": lambda x: round_to(x, "float32"),
    "ulp": lambda x: ulp(x, "float32"),
    "encode": lambda x: encode(x, "float32"),
    "fields": lambda x: fields(x, "float32"),
    "fma": lambda x: fma(x, 1, 0),
    "fma_chain": lambda x: fma_chain(x, x),
    "fused_dot_add, a": lambda x: fused_dot_add(x, [1], 0, dtype="tf32"),
    "fused_dot_add, c": lambda x: fused_dot_add([1], [1], x),
    "mma": lambda x: mma(np.ones((16, 16)), np.ones((16, 8)), np.broadcast_to(x, (16, 8))),
    "split": split,
    "max_relative_error": lambda x: max_relative_error(x, x),
    "forward_error": lambda x: forward_error(1.0, x),
    "backward_error": lambda x: backward_error(ONES, ONES, ONES, ONES, x),
    "running_sums": lambda x: running_sums(x, x, [1], "cuda"),
}


@pytest.mark.parametrize("what", NO_NUMBERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_real_number_is_refused(name, what):
    x, message = NO_NUMBERS[what]
    if name == "mma" and np.size(x) == 0:
        pytest.skip("no tile is made of nothing")
    if name == "mma" and np.ndim(x):
        x = x[:1] if what != "objects" else x[1:]
    with pytest.raises(TypeError, match=message):
        FUNCTIONS[name](x)


EXACT = [name for name in FUNCTIONS if "error" not in name and name != "mma"]


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(
    "x", [2**53 + 1, -(2**63) + 1, np.uint64(2**64 - 1), Fraction(1, 3), 2**2000]
)
def test_numbers_that_float64_would_round_are_refused(name, x):
    """Rounded on their way, they would be rounded twice, or pass for what they are not."""
    with pytest.raises(ValueError, match=r"is not a float64 number|beyond the range of float64"):
        FUNCTIONS[name](np.array([x]))


@pytest.mark.parametrize("x", [0, -3, 2**53, 2**60, np.uint64(2**63), Fraction(3, 8), True])
def test_numbers_that_float64_has_are_taken(x):
    assert Fraction(float(round_to(x, "float32"))) == Fraction(int(x) if x is True else x)
    assert decode(encode(x, "float32"), "float32") == float(x)


REFUSALS = [
    # (call, what the ValueError says)
    (lambda: round_to(1, np.float16), "dtype=<class 'numpy.float16'> is not a known format"),
    (lambda: round_to(1, ["float16"]), r"dtype=\['float16'\] is not a known format"),
    (lambda: round_to(1, "float16", "rn"), "rounding='rn' is not known; use one of RN, RZ, RNA"),
    (lambda: round_to(1, "float16", ["RN"]), r"rounding=\['RN'\] is not known"),
    (lambda: decode(-1, "float16"), "-1 is no word of 16 bits; use 0 to 65535"),
    (lambda: decode([1, 65536], "bfloat16"), "65536 is no word of 16 bits"),
    (lambda: decode(2**32, "tf32"), "4294967296 is no word of 32 bits"),
    (lambda: encode([2.0, 1e300], "float32"), r"1e\+300 is not a float32 number; round it first"),
    (lambda: fma(1, 1, 1, "up"), "rounding='up' is not known"),
    (lambda: fma_chain(ONES, ONES, np.ones(3)), r"a has shape \(2, 4\) and b \(2, 4\), c \(3,\)"),
    (lambda: fma_chain([], [], 0.1), "0.1 is not a float32 number"),
    (lambda: fused_dot_add(ONES, np.ones((3, 4)), 0), r"a has shape \(2, 4\) and b \(3, 4\), c"),
    (lambda: fused_dot_add(ONES, ONES, np.ones(3)), r"c \(3,\); use .* axes that broadcast"),
    (lambda: fused_dot_add(ONES, np.ones((2, 1)), 0), r"b \(2, 1\).*use \(…, K\)"),
    (lambda: fused_dot_add(1.0, 1.0, 0), r"a has shape \(\) and b \(\)"),
    (lambda: fused_dot_add(np.ones((2, 0)), np.ones((2, 0)), 0), r"\(2, 0\); use K at least 1"),
    (lambda: fused_dot_add([1], [1], 0, dtype=["float16"]), "dtype=.* no operand format of sm_90"),
    (lambda: fused_dot_add([1], [1], 0, arch=90), "arch=90 is not known; use one of sm_70"),
    (lambda: mma(np.ones((2, 16, 16)), np.ones((3, 16, 8)), np.ones((16, 8))),
     r"leading axes of A, B and C, \[\(2,\), \(3,\), \(\)\], do not broadcast"),
    (lambda: mma(np.ones((16, 16)), np.ones((16, 8)), 0.0), r"C has shape \(\); m16n8k16"),
    (lambda: tensor_core_bound(16, "float32"), "dtype='float32' is no operand format of sm_90"),
    (lambda: tensor_core_bound(16, "bfloat16", "sm_70"), "no operand format of sm_70"),
    (lambda: tensor_core_bound(16, out_dtype="float64"), "out_dtype='float64' does not go with"),
    (lambda: tensor_core_bound(16, out_dtype="float16", outside=True), "add blocks in float32"),
    (lambda: tensor_core_bound(-1), "k=-1 is no number of products"),
    (lambda: tensor_core_bound(1.5), "k=1.5 is no number of products; use a whole number"),
    (lambda: fma_chain_bound(-1), "k=-1 is no number of products"),
    (lambda: fma_chain_bound("3"), "k='3' is no number of products"),
    (lambda: accumulation("inside").bound(4, "float8"), "dtype='float8' is no operand format"),
    (lambda: running_sums(EIGHTS, EIGHTS, [], "inside"), r"lengths=\[\] must ascend from 1 to"),
    (lambda: running_sums(EIGHTS, EIGHTS, [2.0], "inside"), r"lengths=\[2.0\] must ascend"),
    (lambda: running_sums(EIGHTS, EIGHTS[:4], [2], "inside"), r"a has shape \(8,\) and b \(4,\)"),
    (lambda: running_sums(EIGHTS * 0.1, EIGHTS, [2], "cuda", dtype="bfloat16"),
     "is not a bfloat16 number"),
    (lambda: running_sums(EIGHTS, EIGHTS, [2], "cuda", dtype="float8"), "dtype='float8' is no"),
    (lambda: running_sums(np.float16(1), np.float16(1), [1], "inside"), r"a has shape \(\)"),
    (lambda: split(1.0, ["float16"]), r"dtype=\['float16'\]: use one of float16, bfloat16, tf32"),
    (lambda: split(1.0, "float16", 3.0), "scale=3.0 is not a power of two from"),
    (lambda: split(1.0, "float16", 0), "scale=0 is not a power of two"),
    (lambda: split(1.0, "float16", "2"), "scale='2' is not a power of two"),
    (lambda: split_range("float32"), "dtype='float32': use one of float16, bfloat16, tf32"),
    (lambda: split_range("float16", 2.0**127), "scale=1.7.* is not a power of two"),
    (lambda: Policy(scale=math.nan), "scale=nan is not a power of two from 2.-126 to 2.126"),
    (lambda: Policy(scale=2**2000), "is not a power of two"),
    (lambda: Policy(scale=None), "scale=None is not a power of two"),
    (lambda: emulated_matmul(ONES, ONES.T, arch="sm_70"), "m16n8k16.f32.f16 needs sm_80 or newer"),
    (lambda: emulated_matmul(ONES, ONES.T, POLICIES["simt"], "sm_1"), "arch='sm_1' is not known"),
    (lambda: emulated_matmul(np.ones(3), np.ones(3)), r"A has shape \(3,\) and B \(3,\)"),
    (lambda: backward_error(ONES, ONES, np.ones((1, 3)), np.ones((3, 4))), r"A has shape \(1, 3\)"),
    (lambda: backward_error(1.0, 1.0, 1.0, 1.0), r"A has shape \(\), B \(\)"),
    (lambda: backward_error(ONES, ONES, ONES, np.ones((4, 4)), np.ones(4)), r"C \(4,\) and the"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSALS)))
def test_refusals_quote_the_value(case):
    call, message = REFUSALS[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_policy_is_not_a_name():
    with pytest.raises(TypeError, match="policy='tcec_fp16': use a Policy, or one of POLICIES: "):
        emulated_matmul(ONES, ONES.T, "tcec_fp16")


# ----------------------------------------------------------------------- arrays of an unusual form


def signalling() -> np.ndarray:
    """Numbers, subnormals, infinities, and NaN of every sort, in float32."""
    words = [0x7F800001, 0xFF800001, 0x7FC12345, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 1, 0x80000001]
    return np.concatenate([np.uint32(words).view(np.float32), np.float32([0, -0.0, 1, -2.5])])


CALLS = {
    "round_to": lambda x: round_to(x, "float16"),
    "ulp": lambda x: ulp(x, "bfloat16"),
    "encode": lambda x: encode(x, "float32"),
    "fields": lambda x: np.stack(fields(x, "float32")),
    "fma": lambda x: fma(x, x, x),
    "fma_chain": lambda x: fma_chain(x, x, x[0]),
    "fused_dot_add": lambda x: fused_dot_add(x, x, x[3], dtype="tf32"),
    "split": lambda x: split(x).value,
    "emulated_matmul": lambda x: emulated_matmul(x[None], x[:, None]),
    "outer product": lambda x: emulated_matmul(x[:, None], x[None], POLICIES["tcec_tf32"]),
    "max_relative_error": lambda x: max_relative_error(x, x),
    "forward_error": lambda x: forward_error(x, x[::-1]),
    "backward_error": lambda x: backward_error(x[None], x[None], [[2]], x[None]),
}
FORMS = {
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype),
    "strided": lambda x: np.repeat(x, 3)[::3],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "byte-swapped": lambda x: x.view(np.uint32).byteswap().view(x.dtype.newbyteorder()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CALLS)
def test_no_warning_no_change_and_the_same_result(name, form):
    x = FORMS[form](signalling())
    before = x.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got, plain = CALLS[name](x), CALLS[name](signalling())
    assert x.tobytes() == before
    assert np.array_equal(got, plain, equal_nan=True)
    assert np.asarray(got).dtype == np.asarray(plain).dtype


@pytest.mark.parametrize("name", ["m8n8k4.f32.f16", "m8n8k4.f16.f16", "m16n8k8.f32.f16"])
def test_tiles_of_signalling_nan_warn_of_nothing(name):
    i = numerics.mma_named(name)
    tiles = [np.full(s, 0x7C01, np.uint16).view(np.float16) for s in ((i.m, i.k), (i.k, i.n))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d = mma(*tiles, np.full((i.m, i.n), np.inf), name)
    assert (d.view(f"u{d.itemsize}") == (0x7FFF if d.itemsize == 2 else 0x7FFFFFFF)).all()


def test_infinite_sums_outside_warn_of_nothing():
    x = np.float16([np.inf] * 16 + [-np.inf] * 16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(running_sums(x, np.ones(32, np.float16), [32], "outside")).all()
        huge = np.full(64, 2.0**127)
        assert running_sums(huge, np.ones(64), [64], "outside", dtype="bfloat16") == np.inf
        assert tensor_core_bound(10**12, out_dtype="float16") == np.inf


# --------------------------------------------------------------------------- results and their form

RESULTS = [
    # (call, dtype, shape)
    (lambda: round_to(1.0, "bfloat16"), np.float32, ()),
    (lambda: ulp(np.ones(3), "float16"), np.float64, (3,)),
    (lambda: encode(1.0, "float16"), np.uint16, ()),
    (lambda: encode(1.0, "bfloat16"), np.uint16, ()),
    (lambda: decode(1, "tf32"), np.float32, ()),
    (lambda: fma_chain(np.ones((2, 0)), np.ones((3, 1, 0))), np.float32, (3, 2)),
    (lambda: fma_chain([], [], np.float16(3)), np.float32, ()),
    (lambda: fused_dot_add(np.ones((3, 0, 16)), np.ones((1, 16)), 0.0), np.float32, (3, 0)),
    (lambda: fused_dot_add(np.ones(5), np.ones(5), np.ones((0, 2)), out_dtype="float16"),
     np.float16, (0, 2)),
    (lambda: mma(np.ones((0, 16, 16)), np.ones((16, 8)), np.ones((16, 8))), np.float32, (0, 16, 8)),
    (lambda: emulated_matmul(np.ones((2, 0)), np.ones((0, 3))), np.float32, (2, 3)),
    (lambda: emulated_matmul(np.ones((2, 0)), np.ones((0, 3)), POLICIES["simt"]),
     np.float32, (2, 3)),
    (lambda: emulated_matmul(np.ones((0, 5)), np.ones((5, 3))), np.float32, (0, 3)),
    (lambda: running_sums([1.0, 2.0], [3.0, 4.0], [1, 2], "cuda"), np.float64, (2,)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(RESULTS)))
def test_results_have_the_documented_form(case):
    call, dtype, shape = RESULTS[case]
    got = call()
    assert got.dtype == dtype
    assert got.shape == shape
    assert isinstance(got, np.generic if shape == () else np.ndarray)


def test_a_chain_of_nothing_is_c_and_not_a_view_of_it():
    c = np.float32([1, 2])
    total = fma_chain(np.ones((2, 0)), np.ones((2, 0)), c)
    total += 1
    assert c.tolist() == [1, 2]


def test_low_bits_of_a_tf32_do_not_count():
    assert decode(0x3F800000 | 0x1FFF, "tf32") == 1
    assert np.isinf(decode(0x7F800001, "tf32"))
    assert encode(decode(0xC2345FFF, "tf32"), "tf32") == 0xC2344000


@pytest.mark.parametrize("k", [1, 5, 15, 17, 33])
@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_90"])
def test_a_last_short_block_is_one_filled_with_zeros(arch, k):
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((2, 50, k)).astype(np.float16)
    filled = [np.pad(x, ((0, 0), (0, 48 - k))) for x in (a, b)]
    short = fused_dot_add(a, b, np.float32(-1), arch=arch)
    assert np.array_equal(short, fused_dot_add(*filled, np.float32(-1), arch=arch))


def test_memory_is_that_of_the_operands():
    a, b = np.ones((2, 10**5, 16), np.float16)
    tracemalloc.start()
    fused_dot_add(a, b, 0.0)
    copied = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    fused_dot_add(a[:1000, None], b[None, :100], 0.0)  # as many dot products, of few vectors
    broadcast = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert copied < 3 * (a.nbytes + b.nbytes)
    assert broadcast < a.nbytes


# ------------------------------------------------------------------------------------------- errors


def test_nothing_is_right():
    assert max_relative_error([], []) == forward_error([], []) == 0
    empty = np.ones((0, 2))
    assert backward_error(empty, empty, np.ones((0, 3)), np.ones((3, 2))) == 0


@pytest.mark.parametrize("size", [2.0**-1000, 1.0, 2.0**1000])
def test_forward_error_does_not_depend_on_the_size(size):
    reference = np.array([3.0, 4.0]) * size
    result = np.array([3.0, 4.5]) * size
    assert forward_error(result, reference) == pytest.approx(0.1)


def test_errors_beyond_the_range_are_infinite():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert max_relative_error([1e308], [-1e308]) == np.inf
        assert max_relative_error([1.0], [5e-324]) == np.inf
        assert max_relative_error([np.inf], [np.inf]) == np.inf
        assert forward_error([1.0, np.nan], [1.0, 1.0]) == np.inf
        assert backward_error([[np.inf]], [[0.0]], [[1e300]], [[1e300]]) == np.inf


def test_a_bound_of_no_products_is_none():
    assert tensor_core_bound(0) == fma_chain_bound(0) == 0


# --------------------------------------------------------------------------------- splits and TCEC


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(d, 2.0**s) for d in ("float16", "bfloat16", "tf32") for s in (0, 5, 8, 11, 14)],
)
def test_the_range_of_a_split_is_neither_too_wide_nor_too_narrow(dtype, scale):
    """Significands with halves and quarters of the low part's last place, in the outer binades:
    those at both ends, and one in 509 between them.
    """
    form = FORMATS[dtype]
    least, largest = split_range(dtype, scale)
    wanted = 2.0 ** (-2 * form.precision)
    places = np.r_[0 : 2**11, 2**11 : 2**20 : 509, 2**20 - 2**11 : 2**20]
    significands = 1 + np.add.outer([0.25, 0.5], places) / 2.0**20

    def worst(exponent: float) -> float:
        x = (significands * 2.0**exponent).astype(np.float32)
        x = x[(x >= least) & (x <= largest)] if least <= 2.0**exponent <= largest else x
        return np.max(np.abs(split(x, dtype, scale).value.astype(float) - x) / x)

    assert worst(np.log2(least)) <= wanted
    assert worst(np.floor(np.log2(largest))) <= wanted
    if least > form.smallest_normal:
        assert worst(np.log2(least) - 1) > wanted
    if scale > 2.0**form.precision:  # the low part of half a unit overflows
        beyond = np.float32(2.0 ** (np.floor(np.log2(largest)) + 1) * (1 + form.unit_roundoff))
        assert not np.isfinite(split(beyond, dtype, scale).low)


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("m16n8k16.f32.f16", "sm_80"),
        ("m16n8k8.f32.tf32", "sm_90"),
        ("m8n8k4.f32.f16", "sm_75"),
        ("m8n8k4.f32.f16", "sm_90"),
    ],
)
def test_a_product_is_made_of_whole_instructions_as_the_gpu_runs_them(name, arch):
    """M8n8k4 in particular: on sm_90 it is the CUDA cores that round."""
    i = numerics.mma_named(name)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((i.m, 2 * i.k + 1)).astype(np.float32)
    b = rng.standard_normal((2 * i.k + 1, i.n)).astype(np.float32)
    got = emulated_matmul(a, b, Policy(name, products=1, outside=False), arch)
    mode = "RNA" if i.dtype == "tf32" else "RN"
    x = round_to(np.pad(a, ((0, 0), (0, i.k - 1))), i.dtype, mode)
    y = round_to(np.pad(b, ((0, i.k - 1), (0, 0))), i.dtype, mode)
    d = np.zeros((i.m, i.n), np.float32)
    for k in range(0, 3 * i.k, i.k):
        d = mma(x[:, k : k + i.k], y[k : k + i.k], d, name, arch)
    assert np.array_equal(got, d)
    if name.startswith("m8n8k4") and arch == "sm_90":
        chain = fused_dot_add(x[:, None], y.T[None], 0.0, arch=arch)
        assert not np.array_equal(got, chain)


def test_corrected_products_reach_float32_over_the_range_of_the_split():
    """Against exact sums, from the least to the largest exponents that the module promises."""
    rng = np.random.default_rng(1)
    for name, policy in POLICIES.items():
        if policy.products == 1:
            continue
        least, largest = split_range(policy.mma.dtype, policy.scale)
        for exponent in (np.log2(least), (np.log2(least) + np.log2(largest)) / 4):
            a = (rng.uniform(1, 2, (4, 64)) * 2.0 ** np.floor(exponent)).astype(np.float32)
            b = rng.uniform(1, 2, (64, 4)).astype(np.float32)
            got = emulated_matmul(a, b, policy)
            for r, c in np.ndindex(got.shape):
                exact = sum(
                    map(lambda x, y: Fraction(float(x)) * Fraction(float(y)), a[r], b[:, c])
                )
                error = abs(Fraction(float(got[r, c])) - exact) / exact
                limit = 2.0**-21 if policy.outside else 2.0**-17
                assert error < limit, (name, exponent, float(error))
