"""The emulated Tensor Core against a second one, in rational numbers from the same rules."""

import math
import time
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gemmlab.numerics import (
    TENSOR_CORES,
    decode,
    encode,
    fused_dot_add,
    round_to,
    tensor_core_bound,
)

PAIRS = [
    (arch, dtype, out)
    for arch, core in TENSOR_CORES.items()
    for dtype in core.block
    for out in (("float32", "float16") if dtype == "float16" else ("float32",))
]
# Exponent of the smallest normal number, and fraction bits.
LIMITS = {"float16": (-14, 10), "bfloat16": (-126, 7), "tf32": (-126, 10), "float32": (-126, 23),
          "float8_e5m2": (-14, 2), "float8_e4m3fn": (-6, 3)}  # fmt: skip
WIDTH = {"float16": 16, "bfloat16": 16, "tf32": 32, "float32": 32,
         "float8_e5m2": 8, "float8_e4m3fn": 8}  # fmt: skip
EIGHT = "float8_e5m2", "float8_e4m3fn"
KEPT = 13  # of FP8: F, and the fraction bits of a sum
# F, block and floor of E, typed a second time from the sources.
PARAMETERS = {
    "sm_70": (23, {"float16": 4}, {"float32": -(10**6), "float16": -19}),
    "sm_75": (24, {"float16": 8}, {"float32": -132, "float16": -20}),
    "sm_80": (24, {"float16": 8, "bfloat16": 8, "tf32": 4}, {"float32": -132, "float16": -20}),
    "sm_90": (
        25,
        {"float16": 16, "bfloat16": 16, "tf32": 8, "float8_e5m2": 32, "float8_e4m3fn": 32},
        {"float32": -133, "float16": -21},
    ),
}


def exponent(x: Fraction) -> int:
    """⌊log2 |x|⌋ of a nonzero fraction."""
    x = abs(x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def slow_block(a: list, b: list, c: float, dtype: str, out: str, arch: str) -> int:
    """The bits of one block, from Python floats."""
    products = [x * y for x, y in zip(a, b, strict=True)]  # of floats: for what is not finite
    values = [*products, c]
    if any(map(math.isnan, values)) or {math.inf, -math.inf} <= set(values):
        return {"float32": 0x7FFFFFFF, "float16": 0x7FFF}[out]
    for infinity in (math.inf, -math.inf):
        if infinity in values:
            return int(encode(infinity, out))
    kept, _, floors = PARAMETERS[arch]
    kept = KEPT if dtype in EIGHT else kept
    emin = LIMITS[dtype][0]
    terms = []  # (value, exponent)
    for x, y in zip(a, b, strict=True):
        if x and y:
            x, y = Fraction(x), Fraction(y)
            terms.append((x * y, max(exponent(x), emin) + max(exponent(y), emin)))
    emin_out, fraction_bits = LIMITS[out]
    if c:
        terms.append((Fraction(c), max(exponent(Fraction(c)), emin_out)))
    if not terms:
        return 0
    unit = Fraction(2) ** (max(floors[out], *(e for _, e in terms)) - kept)
    total = unit * sum(int(x / unit) for x, _ in terms)  # int() truncates toward zero
    if total == 0:
        return 0
    fraction_bits = KEPT if dtype in EIGHT else fraction_bits
    place = Fraction(2) ** (max(exponent(total), emin_out) - fraction_bits)
    units = abs(total) / place
    units = int(units) if out == "float32" else round(units)  # round() takes ties to even
    if units == 0:
        return 0  # never −0
    largest = (2 - Fraction(2) ** -fraction_bits) * Fraction(2) ** (1 - emin_out)
    value = math.inf if units * place > largest else float(units * place)
    return int(encode(math.copysign(value, total), out))


def slow(a: list, b: list, c: float, dtype: str, out: str, arch: str) -> int:
    """The bits of c + Σ a_i·b_i, block after block."""
    length = PARAMETERS[arch][1][dtype]
    for i in range(0, len(a), length):
        bits = slow_block(a[i : i + length], b[i : i + length], c, dtype, out, arch)
        c = float(decode(bits, out))
    return bits


def numbers(words: np.ndarray, dtype: str) -> np.ndarray:
    """Bits as numbers; of TF32 the low bits are dropped, as the hardware does."""
    if dtype == "tf32":
        return (words.astype(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return decode(words, dtype)


def assert_equal(a: np.ndarray, b: np.ndarray, c: np.ndarray, dtype: str, out: str, arch: str):
    """Both emulators on arrays of numbers: a, b (n, K), c (n)."""
    fast = fused_dot_add(a, b, c, dtype=dtype, arch=arch, out_dtype=out)
    assert fast.dtype == np.dtype(out)
    fast = fast.view(f"u{fast.itemsize}")
    for i in range(len(a)):
        vectors = [float(x) for x in a[i]], [float(x) for x in b[i]], float(c[i])
        wanted = slow(*vectors, dtype, out, arch)
        assert int(fast[i]) == wanted, (arch, dtype, out, vectors, hex(fast[i]), hex(wanted))


@pytest.mark.parametrize(("arch", "dtype", "out"), PAIRS)
def test_parameters_are_those_of_the_sources(arch, dtype, out):
    core, (kept, block, floors) = TENSOR_CORES[arch], PARAMETERS[arch]
    assert (core.fraction_bits, core.block[dtype]) == (kept, block[dtype])
    assert core.kept(dtype) == (KEPT if dtype in EIGHT else kept)
    assert core.floor.get(out, -(10**6)) == floors[out]


# ------------------------------------------------------------------------------------- any operands


@pytest.mark.parametrize(("arch", "dtype", "out"), PAIRS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_bits(arch, dtype, out, data):
    k = data.draw(st.sampled_from([1, 3, 4, 8, 16, 20]))
    word = st.integers(0, 2 ** WIDTH[dtype] - 1)
    words = np.array(data.draw(st.lists(word, min_size=2 * k, max_size=2 * k)), np.uint32)
    a, b = numbers(words, dtype).reshape(2, 1, k)
    c = decode(np.uint32([data.draw(st.integers(0, 2 ** WIDTH[out] - 1))]), out)
    assert_equal(a, b, c, dtype, out, arch)


def family(name: str, dtype: str, out: str, rng: np.random.Generator) -> tuple:
    """20 dot products of one kind: a (20, K), b (20, K), c (20)."""
    emin, fraction = LIMITS[dtype]
    emin_out, fraction_out = LIMITS[out]
    k = int(rng.choice([4, 8, 16, 32]))

    def draw(shape, low, high, bits):
        e = rng.integers(low, high, shape, endpoint=True)
        return np.ldexp(1 + rng.integers(0, 2**bits, shape) / 2.0**bits, e) * rng.choice(
            [-1, 1], shape
        )

    shape = (20, k)
    a, b = draw(shape, -3, 3, fraction), draw(shape, -3, 3, fraction)
    c = draw(20, -6, 9, fraction_out)
    if name == "subnormal":
        a = draw(shape, emin - fraction - 1, emin + 1, fraction)
        c = draw(20, max(emin_out - fraction_out, emin - 20), emin + 3, fraction_out)
    elif name == "cancellation":
        a[:, 1::2], b[:, 1::2] = -a[:, ::2], b[:, ::2] * (1 + rng.integers(0, 2) * 2.0**-fraction)
        c = rng.choice([0, -0.0, 1, 2.0**-20], 20)
    elif name == "gaps":
        far = rng.integers(0, 34, shape)
        a, b = a * 2.0 ** -(far // 2), b * 2.0 ** (far // 2 - far)
        c = draw(20, -30, 4, fraction_out)
    elif name == "overflow":
        reach = min(1 - emin_out, 2 * (1 - emin))
        a, b = (
            draw(shape, reach // 2 - 2, reach // 2, fraction),
            np.abs(b) * 2.0 ** (reach // 2 - 4),
        )
        c = draw(20, 1 - emin_out, 1 - emin_out, fraction_out)
    elif name == "underflow":
        goal = max(emin_out - fraction_out - 8, 2 * (emin - fraction))
        a, b = a * 2.0 ** (goal // 2), b * 2.0 ** (goal - goal // 2)
        c = rng.choice([0, -0.0, 1, -1, 3], 20) * 2.0 ** (emin_out - fraction_out)
    elif name == "zeros":
        a = np.where(rng.random(shape) < 0.6, rng.choice([0.0, -0.0], shape), a)
        a[rng.random(20) < 0.4] = -0.0
        c = rng.choice([0.0, -0.0, 1.0], 20)
    elif name == "special":
        odd = [np.inf, -np.inf, np.nan, 0.0, -0.0]
        a = np.where(rng.random(shape) < 0.05, rng.choice(odd, shape), a)
        b = np.where(rng.random(shape) < 0.05, rng.choice(odd, shape), b)
        c = np.where(rng.random(20) < 0.2, rng.choice(odd, 20), c)
    return round_to(a, dtype), round_to(b, dtype), round_to(c, out)


FAMILIES = [
    "near",
    "subnormal",
    "cancellation",
    "gaps",
    "overflow",
    "underflow",
    "zeros",
    "special",
]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("arch", "dtype", "out"), PAIRS)
def test_families(arch, dtype, out, name):
    rng = np.random.default_rng(FAMILIES.index(name))
    for _ in range(2):
        assert_equal(*family(name, dtype, out, rng), dtype, out, arch)


@pytest.mark.parametrize("name", ["overflow", "underflow", "subnormal"])
def test_the_families_reach_what_they_are_named_for(name):
    rng = np.random.default_rng(FAMILIES.index(name))
    result = fused_dot_add(*family(name, "bfloat16", "float32", rng), dtype="bfloat16")
    if name == "overflow":
        assert np.isinf(result).any()
    else:
        assert ((result != 0) & (np.abs(result) < 2.0**-126)).any() or name == "subnormal"


# ----------------------------------------------------------------------------------- directed cases


def one(a, b, c, arch="sm_90", dtype="float16", out="float32"):
    a, b = (round_to(x, dtype) for x in (a, b))
    return float(fused_dot_add(a, b, c, dtype=dtype, arch=arch, out_dtype=out))


def bits(a, b, c, out="float32", dtype="float16"):
    a, b = (round_to(x, dtype) for x in (a, b))
    word = fused_dot_add(a, b, round_to(c, out), dtype=dtype, out_dtype=out)
    return int(word.view(f"u{word.itemsize}"))


@pytest.mark.parametrize(
    ("arch", "kept"), [("sm_70", 23), ("sm_75", 24), ("sm_80", 24), ("sm_90", 25)]
)
def test_how_many_bits_survive_alignment(arch, kept):
    """2^24 cancels, and what is left of a small term tells F."""
    for distance in range(20, 30):
        small = 2.0 ** (24 - distance)
        left = one([2**12, small, -(2**12)], [2**12, 1, 2**12], 0.0, arch)
        assert left == (small if distance <= kept else 0.0)


def test_terms_are_truncated_one_by_one_and_toward_zero():
    x, y = 1.5 * 2.0**-12, 2.0**-13  # their product is one unit and a half: 1.5 · 2^-25
    assert one([1, x, -1], [1, y, 1], 0.0) == 2.0**-25
    assert one([1, -x, -1], [1, y, 1], 0.0) == -(2.0**-25)
    # The halves of two terms are not put together.
    assert one([1, x, x, -1], [1, y, y, 1], 0.0) == 2.0**-24


def test_a_product_far_below_leaves_nothing():
    """2.25 is 27 places below 2^27, and its leading bit 26: neither survives 25."""
    assert one([1.5, -(2.0**13)], [1.5, 2.0**14], 2.0**27) == 0.0


def test_products_are_not_normalised():
    """1.5 · 1.5 = 2.25 keeps the exponent 0: one more bit of the others survives."""
    x, y = 2.0**-12, 2.0**-13
    assert one([1.5, x, -1.5], [1.5, y, 1.5], 0.0) == x * y
    assert one([2.25, x, -2.25], [1, y, 1], 0.0) == 0.0


def test_float32_results_are_rounded_toward_zero():
    assert one([2.0**-12], [2.0**-12 * 1.5], 1.0) == 1.0  # IEEE: the next number
    assert one([-(2.0**-12)], [2.0**-12 * 1.5], -1.0) == -1.0


def test_float16_results_are_rounded_to_nearest_even():
    assert one([1], [2.0**-11], 1.0, out="float16") == 1.0
    assert one([1], [2.0**-11], 1.0 + 2.0**-10, out="float16") == 1.0 + 2.0**-9
    assert one([1, 2.0**-12], [2.0**-11, 2.0**-10], 1.0, out="float16") == 1.0 + 2.0**-10


def test_order_inside_a_block_does_not_matter():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((500, 16)).astype(np.float16) for _ in range(2))
    c = rng.standard_normal(500).astype(np.float32)
    order = rng.permutation(16)
    assert np.array_equal(fused_dot_add(a, b, c), fused_dot_add(a[:, order], b[:, order], c))


def test_sixteen_products_are_one_block_on_hopper_and_two_on_ampere():
    a = np.float16([1, 0, 0, 0, 0, 0, 0, 0, 2.0**-12, 2.0**-12] + [0] * 6)
    b = np.float16([1, 0, 0, 0, 0, 0, 0, 0, 2.0**-12, 2.0**-12] + [0] * 6)
    assert one(a, b, 0.0, "sm_90") == 1 + 2.0**-23
    assert one(a, b, 0.0, "sm_80") == 1 + 2.0**-23  # F = 24 keeps both within one block of eight
    chained = fused_dot_add(
        a[8:], b[8:], fused_dot_add(a[:8], b[:8], 0.0, arch="sm_80"), arch="sm_80"
    )
    assert one(a, b, 0.0, "sm_80") == chained


def test_sums_of_fp8_keep_thirteen_bits():
    e4m3, e5m2 = (partial(one, dtype=dtype) for dtype in ("float8_e4m3fn", "float8_e5m2"))
    assert e4m3([64, 2.0**-7], [128, 1], 0.0) == 8192  # 20 places below
    assert e4m3([64, 1], [128, 1], 0.0) == 8193  # 13 places
    assert e4m3([64, 0.5], [128, 1], 0.0) == 8192
    assert e4m3([1, 1], [1, 2.0**-9], 2.0**-13) == 1 + 2.0**-9 + 2.0**-13
    assert e4m3([1], [1], 1.75 * 2.0**-13) == 1 + 2.0**-13  # c is truncated as products are
    assert e4m3([0], [1], 1 + 2.0**-13 + 2.0**-14) == 1 + 2.0**-13
    # The sum of 8192 and 1 has 13 bits behind the first; that of 16384 and 1 has no room for it.
    assert e4m3([64, 64, 1], [128, 128, 1], 0.0) == 16384
    assert e5m2([2.0**15, 2.0**15], [2.0**15, 2.0**3], 0.0) == 2.0**30 + 2.0**18


@pytest.mark.parametrize(
    ("a", "b", "c", "word"),
    [
        ([1, -1], [1, 1], 0.0, 0),  # cancellation gives +0
        ([0.0], [1], -0.0, 0),
        ([-0.0], [1], -0.0, 0),
        ([np.inf], [0], 0.0, 0x7FFFFFFF),
        ([np.inf, -np.inf], [1, 1], 0.0, 0x7FFFFFFF),
        ([np.inf], [1], -np.inf, 0x7FFFFFFF),
        ([np.nan], [1], 0.0, 0x7FFFFFFF),
        ([1], [1], np.nan, 0x7FFFFFFF),
        ([-np.inf], [2], 1.0, 0xFF800000),
        ([65504, 1], [65504, 1], 3.4028234663852886e38, 0x7F7FFFFF),
    ],
)
def test_special_values(a, b, c, word):
    assert bits(a, b, c) == word


def test_a_result_that_underflows_is_plus_zero():
    tiny = 2.0**-75
    assert bits([-tiny], [tiny], 0.0, dtype="bfloat16") == 0
    assert bits([-tiny], [tiny], -0.0, dtype="bfloat16") == 0
    assert bits([-(2.0**-20)], [2.0**-6], 0.0, out="float16") == 0
    assert bits([tiny], [tiny], -(2.0**-149), dtype="bfloat16") == 0
    assert bits([-tiny], [2 * tiny], 0.0, dtype="bfloat16") == 0x80000001


def test_overflow():
    assert bits([60000, 60000], [1, 1], 0.0, out="float16") == 0x7C00
    assert bits([-60000, 60000], [1, -1], 0.0, out="float16") == 0xFC00
    assert bits([65504], [1], 15.0, out="float16") == 0x7BFF
    assert bits([65504], [1], 16.0, out="float16") == 0x7C00  # halfway: to even, which is infinity
    huge = 2.0**100
    assert bits([huge, huge], [2.0**27, 2.0**27], 0.0, dtype="bfloat16") == 0x7F800000
    assert bits([huge], [huge], 0.0, dtype="bfloat16") == 0x7F800000
    # A product beyond the largest float32 may cancel.
    assert bits([huge, huge], [2.0**90, -(2.0**90)], 1.0, dtype="bfloat16") == 0


def test_nan_of_float16():
    assert bits([np.nan], [1], 0.0, out="float16") == 0x7FFF


def test_low_bits_of_tf32_are_not_read():
    a = np.uint32([0x3F800000 | 0x1FFF]).view(np.float32)
    assert float(fused_dot_add(a, np.float32([1]), 0.0, dtype="tf32")) == 1.0
    nan = np.uint32([0x7F800001]).view(np.float32)  # without them an infinity
    assert float(fused_dot_add(nan, np.float32([1]), 0.0, dtype="tf32")) == np.inf


# ------------------------------------------------------------------------------ shapes and refusals


def test_broadcasting_equals_one_by_one():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((5, 1, 20)).astype(np.float16)
    b = rng.standard_normal((1, 7, 20)).astype(np.float16)
    c = rng.standard_normal((3, 1, 1)).astype(np.float32)
    got = fused_dot_add(a, b, c)
    assert got.shape == (3, 5, 7)
    for i, j, k in np.ndindex(3, 5, 7):
        assert got[i, j, k] == fused_dot_add(a[j, 0], b[0, k], c[i, 0, 0])


def test_parts_of_large_arrays_equal_the_whole():
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((2, 9000, 16)).astype(np.float16) for _ in range(2))
    got = fused_dot_add(a, b, 0.0)
    assert np.array_equal(got[1], fused_dot_add(a[1], b[1], 0.0))
    assert np.array_equal(got[:, 4090:4100], fused_dot_add(a[:, 4090:4100], b[:, 4090:4100], 0.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arch": "sm_60"}, "arch='sm_60' is not known; use one of sm_70, sm_75, sm_80, sm_90"),
        ({"arch": "sm_70", "dtype": "bfloat16"}, "dtype='bfloat16' is no operand format of sm_70"),
        ({"dtype": "float32"}, "dtype='float32' is no operand format of sm_90"),
        ({"dtype": "tf32", "out_dtype": "float16"}, "out_dtype='float16' does not go with"),
        ({"out_dtype": "float64"}, "out_dtype='float64' does not go with"),
        ({"a": [0.1]}, "0.1 is not a float16 number; round it first"),
        ({"a": [1 + 2.0**-9], "dtype": "bfloat16"}, "is not a bfloat16 number"),
        ({"c": 0.1}, "0.1 is not a float32 number"),
        ({"b": [1, 2]}, r"a has shape \(1,\) and b \(2,\)"),
        ({"a": [], "b": []}, "K at least 1"),
    ],
)
def test_refusals(change, message):
    arguments = {"a": [1], "b": [1], "c": 0.0} | change
    with pytest.raises(ValueError, match=message):
        fused_dot_add(arguments.pop("a"), arguments.pop("b"), arguments.pop("c"), **arguments)


# ------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("arch", TENSOR_CORES)
@pytest.mark.parametrize("kind", ["positive", "signed"])
def test_errors_stay_below_the_bound(arch, kind):
    rng = np.random.default_rng(4)
    for k in (4, 16, 64, 500):
        a, b = (rng.standard_normal((300, k)).astype(np.float16) for _ in range(2))
        if kind == "positive":
            a, b = np.abs(a), np.abs(b)
        exact = (a.astype(np.float64) * b).sum(axis=1)
        scale = np.abs(a.astype(np.float64) * b).sum(axis=1)
        error = np.abs(fused_dot_add(a, b, 0.0, arch=arch) - exact) / scale
        bound = tensor_core_bound(k, "float16", arch)
        assert error.max() <= bound
        assert kind == "signed" or error.max() > bound / 40  # a bound that says something


def test_many_dot_products(capsys):
    """Correctness of the chunks is tested above; the figure is printed, not asserted."""
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((10**5, 16)).astype(np.float16) for _ in range(2))
    start = time.perf_counter()
    d = fused_dot_add(a, b, 0.0)
    seconds = time.perf_counter() - start
    picks = rng.integers(0, len(d), 200)
    assert np.array_equal(d[picks], fused_dot_add(a[picks], b[picks], 0.0))
    with capsys.disabled():
        print(f"\n10^5 dot products of 16 products: {seconds:.2f} s")
