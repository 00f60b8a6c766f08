"""What kernels say beyond plain code: types, atomics, warps, and the count of instructions."""

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import float32, float64, int32, uint32

from gemmlab import cuda, simulate
from gemmlab.simt import HazardError, UnsupportedError
from gemmlab.simt.builtins import bits
from gemmlab.simt.builtins.atomics import UPDATES, in_order
from gemmlab.simt.cuda.stand_in import stand_in
from gemmlab.simt.numbers import arithmetic
from gemmlab.simt.races.global_shadow import GlobalShadow
from gemmlab.simt.races.shared_shadow import SharedShadow
from gemmlab.simt.syntax.names import INTRINSICS

FULL = 0xFFFFFFFF


def lines(report):
    return {report.source.code(line): counts for line, counts in report.by_line.items()}


# ------------------------------------------------------------------------------------- types

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


@pytest.mark.parametrize("op", OPERATORS)
def test_values_are_those_of_numba(op):
    """`njit` of the same scalar function, over a table of types and values."""
    numba = pytest.importorskip("numba")
    compiled = numba.njit(eval(f"lambda a, b: a {SYMBOLS[op]} b"))
    for a in (np.dtype(t) for t in ("?", "i4", "i8", "u4", "f4")):
        for b in (np.dtype(t) for t in ("i4", "u4", "u8", "f4", "f8")):
            if "f" in (a.kind, b.kind) and op[:3] in ("Bit", "LSh", "RSh"):
                continue
            for x in VALUES[a.kind]:
                for y in VALUES[b.kind]:
                    if op in ("LShift", "RShift") and not 0 <= y < 64:
                        continue
                    expected = compiled(a.type(x), b.type(y))
                    found = arithmetic.binary(op, a.type(x), b.type(y))
                    assert found == expected, (a, x, b, y)


SYMBOLS = dict(
    zip(OPERATORS, ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"], strict=True),
)


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


# ------------------------------------------------------------------------------- contraction


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


# ------------------------------------------------------------------------------ instructions


def counted(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i] * 2.0
        if i % 2 == 0:
            v += 1.0
        for _ in range(3):
            v = -v
        out[i] = v


def test_instructions_line_by_line():
    x, out = np.ones(40), np.zeros(40)
    report = simulate(counted, 2, 64, x, out)
    by = lines(report)
    test = by["if i < x.size:"]
    assert (test["inst_executed"], test["inst_integer"], test["inst_control"]) == (8, 4, 4)
    assert test["thread_inst_executed"] == 2 * 128
    product = by["v = x[i] * 2.0"]  # two warps have a thread with an element: 32 and 8 lanes
    assert (product["inst_fp"], product["inst_global_load"]) == (2, 2)
    assert (product["inst_executed"], product["thread_inst_executed"]) == (4, 80)
    half = by["v += 1.0"]
    assert (half["inst_executed"], half["thread_inst_executed"]) == (2, 20)
    assert by["for _ in range(3):"]["inst_control"] == 6
    assert by["v = -v"]["inst_executed"] == 6
    assert by["out[i] = v"]["inst_global_store"] == 2


def test_instructions_do_not_depend_on_batches(monkeypatch):
    counts = []
    for lanes in (1 << 16, 64):
        monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
        counts.append(simulate(counted, 20, 64, np.ones(1000), np.zeros(1000)).by_line)
    assert counts[0] == counts[1]


# ----------------------------------------------------------------------------------- atomics


def one_after_the_other(name, memory, at, values):
    """Each lane's update in turn; the old values."""
    old = []
    for i, v in zip(at, values, strict=True):
        now = memory[i]
        old.append(now)
        memory[i] = {
            "add": lambda now=now, v=v: now + v,
            "sub": lambda now=now, v=v: now - v,
            "max": lambda now=now, v=v: max(now, v),
            "min": lambda now=now, v=v: min(now, v),
            "nanmax": lambda now=now, v=v: max(now, v),
            "nanmin": lambda now=now, v=v: min(now, v),
            "and_": lambda now=now, v=v: now & v,
            "or_": lambda now=now, v=v: now | v,
            "xor": lambda now=now, v=v: now ^ v,
            "inc": lambda now=now, v=v: 0 if now >= v else now + 1,
            "dec": lambda now=now, v=v: v if now == 0 or now > v else now - 1,
            "exch": lambda v=v: v,
        }[name]()
    return old


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("elements", [1, 3, 40])
def test_atomics_are_made_one_after_the_other(name, elements):
    rng = np.random.default_rng(2)
    at, values = rng.integers(0, elements, 100), rng.integers(0, 9, 100)
    found, expected = rng.integers(0, 9, (1, elements)).repeat(2, axis=0)
    old = in_order(found, (at,), at, UPDATES[name], [values])
    np.testing.assert_array_equal(old, one_after_the_other(name, expected, at, values))
    np.testing.assert_array_equal(found, expected)


def test_sums_of_atomics_are_rounded_one_after_the_other():
    values = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    found, expected = np.zeros((2, 1), np.float32)
    in_order(found, (np.zeros(1000, int),), np.zeros(1000, int), np.add, [values])
    one_after_the_other("add", expected, np.zeros(1000, int), values)
    assert found == expected


def histogram(x, bins, ticket):
    part = cuda.shared.array((2, 4), int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 8:
        part[t // 4, t % 4] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(part, (t % 2, x[i]), 1)
        ticket[i] = cuda.atomic.inc(bins, (1, 0), uint32(FULL))
    cuda.syncthreads()
    if t < 4:
        cuda.atomic.add(bins, (0, t), part[0, t] + part[1, t])


def test_a_histogram():
    x = np.random.default_rng(4).integers(0, 4, 150)
    bins, ticket = np.zeros((2, 4), np.uint32), np.zeros(150, np.int64)
    report = simulate(histogram, 3, 64, x, bins, ticket)
    np.testing.assert_array_equal(bins[0], np.bincount(x, minlength=4))
    np.testing.assert_array_equal(ticket, np.arange(150))  # in the order of the lanes
    assert report.hazards == []
    line = lines(report)["cuda.atomic.add(part, (t % 2, x[i]), 1)"]
    assert line["inst_atomic"] == line["shared_atomic_requests"] == 5
    line = lines(report)["cuda.atomic.add(bins, (0, t), part[0, t] + part[1, t])"]
    assert (line["global_atomic_requests"], line["global_atomic_sectors"]) == (3, 3)


def locks(lock, out):
    i = cuda.grid(1)
    out[i] = cuda.atomic.cas(lock, 0, 0, i + 1)
    out[i] += cuda.atomic.compare_and_swap(lock[1:], -1, i)


def test_compare_and_swap():
    lock, out = np.zeros(2, np.int64), np.zeros(4, np.int64)
    simulate(locks, 1, 4, lock, out)
    assert lock.tolist() == [1, 0]
    assert out.tolist() == [0, 1, 1, 1]


def atomic_then_read(x):
    cuda.atomic.add(x, 0, 1)
    x[cuda.threadIdx.x + 1] = x[0]  # fault


def write_then_atomic(x):
    s = cuda.shared.array(4, float32)
    s[cuda.threadIdx.x] = 0
    cuda.atomic.add(s, 0, 1)  # fault
    cuda.syncthreads()
    x[0] = s[0]


def atomic_unset(x):
    s = cuda.shared.array(1, float32)
    cuda.atomic.add(s, 0, 1)  # fault


def atomic_outside(x):
    cuda.atomic.add(x, 8, 1)  # fault


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        (atomic_then_read, "global-race"),
        (write_then_atomic, "shared-race"),
        (atomic_unset, "uninitialised-read"),
        (atomic_outside, "out-of-bounds"),
    ],
)
def test_hazards_of_atomics(kernel, kind):
    report = simulate(kernel, 1, 4, np.zeros(8), on_hazard="collect")
    assert kind in [h.kind for h in report.hazards]
    assert all("# fault" in h.code for h in report.hazards if h.kind == kind)


accesses = st.lists(
    st.one_of(
        st.none(),
        st.just("grid"),
        st.tuples(
            st.sampled_from(["read", "write", "atomic"]),
            st.lists(st.integers(-1, 2), min_size=4, max_size=4),
        ),
    ),
    max_size=8,
)


def clash(a, b):
    return "write" in (a, b) or (a == "atomic") != (b == "atomic")


@given(accesses, st.sampled_from([2, 4]), st.sampled_from([1, 2, 64, None]))
@settings(deadline=None, max_examples=600)
def test_races_with_atomics_are_found_if_and_only_if_there_are_any(steps, threads, later):
    """`None` is a barrier, "grid" a wait of all blocks; `later` says how many reads may wait."""
    everywhere, in_block = GlobalShadow(3), SharedShadow(3)
    in_block.LATER = later or 0
    seen, found, found_in_block, epoch, waits = [], [], [], 0, 0
    for step in steps:
        if step in (None, "grid"):
            epoch += 1
        if step == "grid":
            waits += 1
            everywhere.order(epoch)
        if step in (None, "grid"):
            continue
        op, elements = step[0], np.array(step[1])
        lanes = np.flatnonzero(elements >= 0)
        at, epochs = elements[lanes], np.full(len(lanes), epoch)
        seen += [(op, int(e), int(lane), epoch, waits) for e, lane in zip(at, lanes, strict=True)]
        found.append(getattr(everywhere, op)(at, lanes, threads, epochs))
        where, interval = (np.zeros_like(at), at), epochs if later is None else epoch
        found_in_block.append(getattr(in_block, op)(where, lanes, interval))

    def raced(size):
        return any(
            e == f and i != j and v == w and clash(a, b) and (s == t or i // size != j // size)
            for n, (a, e, i, s, v) in enumerate(seen)
            for b, f, j, t, w in seen[n + 1 :]
        )

    assert any(c is not None for c in found) == raced(threads)
    assert any(c is not None for c in found_in_block) == raced(4)


# ------------------------------------------------------------------------------------- warps


def shuffles(x, out):
    i = cuda.grid(1)
    v = x[i]
    out[0, i] = cuda.shfl_sync(FULL, v, 5)
    out[1, i] = cuda.shfl_up_sync(FULL, v, 3)
    out[2, i] = cuda.shfl_down_sync(FULL, v, 30)
    out[3, i] = cuda.shfl_xor_sync(FULL, v, 9)
    out[4, i] = cuda.shfl_sync(FULL, v, (i * 7) % 32)


def test_shuffles():
    x, out = np.random.default_rng(5).standard_normal(128).astype(np.float32), np.zeros((5, 128))
    report = simulate(shuffles, 2, 64, x, out)
    w, lane = x.reshape(4, 32), np.arange(32)
    sources = [np.full(32, 5), np.where(lane >= 3, lane - 3, lane),
               np.where(lane < 2, lane + 30, lane), lane ^ 9, lane * 7 % 32]  # fmt: skip
    for row, source in zip(out, sources, strict=True):
        np.testing.assert_array_equal(row, w[:, source].ravel())
    assert report.instructions["inst_shuffle"] == 5 * 4


def votes(x, out):
    i = cuda.grid(1)
    p = x[i] > 0
    out[0, i] = cuda.all_sync(FULL, p)
    out[1, i] = cuda.any_sync(FULL, p)
    out[2, i] = cuda.eq_sync(FULL, p)
    out[3, i] = cuda.ballot_sync(FULL, p)
    out[4, i] = cuda.match_any_sync(FULL, int(x[i]))
    out[5, i] = cuda.match_all_sync(FULL, int(x[i]))[1]
    if p:
        out[6, i] = cuda.activemask()
        out[7, i] = cuda.ballot_sync(cuda.activemask(), x[i] > 1)
    out[8, i] = cuda.popc(cuda.ballot_sync(FULL, p) & cuda.lanemask_lt()) + cuda.laneid


def test_votes():
    x = np.random.default_rng(6).integers(-2, 3, 128).astype(np.float32)
    x[32:64], x[64:96] = 1, -1
    out = np.zeros((9, 128))
    report = simulate(votes, 2, 64, x, out)
    assert report.hazards == []
    for w in range(4):
        at = slice(32 * w, 32 * w + 32)
        v, p = x[at], x[at] > 0

        def bits_of(lanes):
            return sum(1 << int(i) for i in np.flatnonzero(lanes))

        def signed(n):
            return n - (1 << 32) if n >> 31 else n

        assert (out[0, at] == p.all()).all()
        assert (out[1, at] == p.any()).all()
        assert (out[2, at] == (p.all() or not p.any())).all()
        assert (out[3, at] == signed(bits_of(p))).all()
        assert out[4, at].tolist() == [signed(bits_of(v == n)) for n in v]
        assert (out[5, at] == (v == v[0]).all()).all()
        assert (out[6, at] == np.where(p, bits_of(p), 0)).all()
        assert (out[7, at] == np.where(p, signed(bits_of(v > 1)), 0)).all()
        expected = [bits_of(p[:n]).bit_count() + n for n in range(32)]
        assert out[8, at].tolist() == expected


def warp_sum(x, out, waits):
    part = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    for step in range(5):
        if waits:
            cuda.syncwarp()
        v = part[t // 32 * 32 + (t + (1 << step)) % 32]
        if waits:
            cuda.syncwarp()
        part[t] += v  # fault
    out[t] = part[t]


def between_warps(x, out):
    part = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    cuda.syncwarp()
    out[t] = part[63 - t]  # fault


def test_a_warp_that_waits_for_itself_has_no_race():
    x, out = np.arange(64, dtype=np.float32), np.zeros(64)
    assert simulate(warp_sum, 1, 64, x, out, True).hazards == []
    np.testing.assert_array_equal(out, x.reshape(2, 32).sum(axis=1).repeat(32))
    found = simulate(warp_sum, 1, 64, x, out, False, on_hazard="collect").hazards
    assert "shared-race" in [h.kind for h in found]
    with pytest.raises(HazardError, match=r"reads what thread \(63\) wrote") as caught:
        simulate(between_warps, 1, 64, x, out)
    assert "# fault" in caught.value.hazard.code


def half_a_warp(x):
    t = cuda.threadIdx.x
    if t < 16:
        x[t] = cuda.shfl_down_sync(0xFFFF, x[t], 1)  # fault


def named_but_absent(x):
    if cuda.threadIdx.x < 16:
        x[0] = cuda.any_sync(FULL, 1)  # fault


def left_out(x):
    cuda.any_sync(1, 1)  # fault


@pytest.mark.parametrize(
    ("kernel", "kind", "text"),
    [
        (half_a_warp, "uninitialised-read", r"thread \(15\) reads lane 16 in cuda.shfl_down_sync"),
        (named_but_absent, "divergent-barrier", r"\(0\) waits in cuda.any_sync for thread \(16\)"),
        (left_out, "divergent-barrier", r"thread \(1\) calls cuda.any_sync with a mask that"),
    ],
)
def test_hazards_of_warps(kernel, kind, text):
    with pytest.raises(HazardError, match=text) as caught:
        simulate(kernel, 1, 32, np.zeros(32))
    assert caught.value.hazard.kind == kind
    assert "# fault" in caught.value.hazard.code


def block_votes(x, out):
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i < x.size:
        return
    n = cuda.syncthreads_count(t % 3 == 0)
    out[i] = n + 100 * cuda.syncthreads_and(t < 40) + 1000 * cuda.syncthreads_or(t == 39)


def test_barriers_that_vote():
    out = np.zeros(80)
    report = simulate(block_votes, 2, 40, np.zeros(45), out)
    assert (out[:45] == 0).all()
    assert (out[45:] == sum(t % 3 == 0 for t in range(5, 40)) + 1100).all()
    assert report.counters["barriers"] == 3
    assert report.hazards == []


def bit_functions(x, out):
    i = cuda.grid(1)
    out[0, i] = cuda.popc(x[i])
    out[1, i] = cuda.clz(x[i])
    out[2, i] = cuda.ffs(x[i])
    out[3, i] = cuda.brev(x[i])
    out[4, i] = cuda.selp(x[i] > 5, i, -1)
    cuda.threadfence()
    cuda.threadfence_block()
    cuda.syncwarp()


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
def test_bits(dtype):
    x = np.array([0, 1, 6, 2**30, 12345, 2**31 - 1, 17, 8], dtype)
    x = np.concatenate([x, ~x])
    width = x.itemsize * 8
    out = np.zeros((5, 16), np.uint64 if dtype == np.int64 else np.int64)
    with np.errstate(all="ignore"):
        simulate(bit_functions, 1, 16, x, out)
    for column, value in zip(out.T, x, strict=True):
        text = format(int(value) % 2**width, f"0{width}b")
        place = text[::-1].find("1") + 1
        assert column[:4].tolist() == [
            text.count("1"), width - len(text.lstrip("0")), place, int(text[::-1], 2)
        ]  # fmt: skip
    assert int(bits.popc(np.int32(-1))) == 32


# ------------------------------------------------------------------- arrays, names, refusals


TABLE = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def two_types(x, out):
    whole = cuda.shared.array(0, int32)
    parts = cuda.shared.array(0, float64)
    t = cuda.threadIdx.x
    whole[t] = t
    parts[4 + t] = x[t]
    cuda.syncthreads()
    table = cuda.const.array_like(TABLE)
    out[t] = whole[7 - t] + parts[4 + t] + table[1, 0]


def same_bytes(out):
    parts = cuda.shared.array(0, float32)
    words = cuda.shared.array(0, uint32)
    parts[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = words[cuda.threadIdx.x]


def test_dynamic_arrays_of_two_types_are_the_same_memory():
    x, out = np.arange(8.0), np.zeros(8)
    assert simulate(two_types, 1, 8, x, out, shared_bytes=96).hazards == []
    np.testing.assert_array_equal(out, np.arange(7, -1, -1) + x + 3)
    simulate(same_bytes, 1, 8, out, shared_bytes=32)
    assert (out == 0x3F800000).all()


def test_the_stand_in_has_every_name():
    for path in INTRINSICS:
        found = stand_in
        for part in path.split("."):
            found = getattr(found, part)
        assert repr(found) == f"cuda.{path}"


SHAPES = [
    *("16", "T", "(T, T)", "(T, 17)", "(T,)", "(T, T + 1)", "2 * T", "T // 2", "16 * 2", "2**4"),
    *("(16, 16 + 1)", "(4 * 4, T)", "PAIR", "PAIR[0]", "int(T)", "min(T, 8)", "len(PAIR)"),
    *("x.shape[0]", "cuda.blockDim.x", "T << 1", "-(-T // 2)", "np.int32(16)", "x.size"),
    *("n:n = T", "n:n = 16", "n:n = (16, 17)", "n:n = T + 1", "(T, n):n = T + 1", "n:n, q = 8, 9"),
    *("n:n = 8\nn = 16", "n:n = 8\nif x[0] > 1:\n    n = 16", "n:n = (T, T)", "n:m = T\nn = m"),
]


@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_taken_where_numba_takes_them(space, shape, tmp_path):
    compiler = pytest.importorskip("numba.cuda")
    numba = pytest.importorskip("numba")
    shape, _, before = shape.partition(":")
    lines = [*before.splitlines(), f"s = cuda.{space}.array({shape}, float32)", "x[0] = s.size"]
    path = tmp_path / "kernel.py"
    path.write_text("def kernel(x):\n    " + "\n    ".join(lines) + "\n")
    scope = {"cuda": compiler, "float32": float32, "np": np, "T": 16, "PAIR": (16, 17)}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    try:
        compiler.compile_ptx(scope["kernel"], (numba.float32[:],), cc=(9, 0))
    except numba.TypingError:
        with pytest.raises(UnsupportedError, match="Numba takes constants there"):
            simulate(scope["kernel"], 1, 1, np.zeros(4, float32))
    else:
        x = np.zeros(4, float32)
        simulate(scope["kernel"], 1, 1, x)
        assert x[0] > 0


def test_random_numbers_are_refused():
    random = pytest.importorskip("numba.cuda.random")

    def drawing(states, x):
        x[0] = random.xoroshiro128p_uniform_float32(states, 0)  # here

    with pytest.raises(UnsupportedError, match=r"made by NumPy[\s\S]*# here"):
        simulate(drawing, 1, 1, np.zeros(1), np.zeros(1))


def wrong_space(x):
    v = cuda.local.array(2, float32)
    cuda.atomic.add(v, 0, 1)


def wrong_type(x):
    cuda.atomic.xor(x, 0, 1)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (wrong_space, "array in global or shared memory"),
        (wrong_type, "needs integers, not float64"),
    ],
)
def test_atomics_that_no_gpu_has(kernel, text):
    with pytest.raises(TypeError, match=text):
        simulate(kernel, 1, 1, np.zeros(4))
