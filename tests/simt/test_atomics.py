"""Atomics are made one after the other; their hazards and races."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy import float32, int32, uint32

from gemmlab import cuda, simulate
from gemmlab.simt.builtins.atomics import UPDATES, _swap, in_order
from gemmlab.simt.races.memories import GlobalShadow, SharedShadow
from gemmlab.simt.races.visits import Now
from tests.support.launches import lines

FULL = 0xFFFFFFFF


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
    old = in_order(found, at, UPDATES[name], [values])
    np.testing.assert_array_equal(old, one_after_the_other(name, expected, at, values))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("elements", [1, 3, 90])
def test_swaps_are_made_one_after_the_other(elements):
    rng = np.random.default_rng(4)
    at, values, expected = (rng.integers(0, most, 100) for most in (elements, 3, 3))
    found, one_by_one = rng.integers(0, 3, (1, elements)).repeat(2, axis=0)
    before = []
    for cell, value, old in zip(at, values, expected, strict=True):
        before.append(one_by_one[cell])
        one_by_one[cell] = value if one_by_one[cell] == old else one_by_one[cell]
    np.testing.assert_array_equal(in_order(found, at, _swap, [values, expected]), before)
    np.testing.assert_array_equal(found, one_by_one)


def test_sums_of_atomics_are_rounded_one_after_the_other():
    values = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    found, expected = np.zeros((2, 1), np.float32)
    in_order(found, np.zeros(1000, int), np.add, [values])
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
    everywhere, in_block = GlobalShadow(3, threads, 4), SharedShadow(3, 4)
    in_block.LATER = later or 0
    seen, found, found_in_block, epoch, waits = [], [], [], 0, 0
    for step in steps:
        if step in (None, "grid"):
            epoch += 1
        if step == "grid":
            waits += 1
            everywhere.order()
        if step in (None, "grid"):
            continue
        op, elements = step[0], np.array(step[1])
        lanes = np.flatnonzero(elements >= 0)
        if not len(lanes):
            continue
        at, epochs = elements[lanes], np.full(len(lanes), epoch)
        seen += [(op, int(e), int(lane), epoch, waits) for e, lane in zip(at, lanes, strict=True)]
        found += getattr(everywhere, op)(at, lanes, Now(epochs))
        interval = epochs if later is None else epoch
        found_in_block += getattr(in_block, op)(at, lanes, Now(interval))

    def raced(size):
        return any(
            e == f and i != j and v == w and clash(a, b) and (s == t or i // size != j // size)
            for n, (a, e, i, s, v) in enumerate(seen)
            for b, f, j, t, w in seen[n + 1 :]
        )

    assert bool(found) == raced(threads)
    assert bool(found_in_block) == raced(4)


def wrong_space(x):
    v = cuda.local.array(2, float32)
    cuda.atomic.add(v, 0, 1)


def wrong_type(x):
    cuda.atomic.xor(x, 0, 1)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (wrong_space, "array in global or shared memory"),
        (wrong_type, "takes no float64.*it takes int32"),
    ],
)
def test_atomics_that_no_gpu_has(kernel, text):
    with pytest.raises(TypeError, match=text):
        simulate(kernel, 1, 1, np.zeros(4))
