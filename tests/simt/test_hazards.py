"""Each kind of hazard is found, at its line, and races if and only if there are any."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy import float32

from benchmarks.samples.language_kernels import copy, double, integers, put
from gemmlab import cuda, simulate
from gemmlab.simt import HazardError
from gemmlab.simt.races.hazards import KINDS, Hazard
from gemmlab.simt.races.memories import GlobalShadow, SharedShadow
from gemmlab.simt.races.visits import Now
from tests.support.launches import line_of
from tests.support.paths import ROOT


def past_the_end(x):
    i = cuda.grid(1)
    x[i] = x[i + 1]  # fault


def neighbours(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    x[t] = s[63 - t]  # fault


def same_element(x):
    x[cuda.grid(1) // 2] = cuda.grid(1)  # fault


def half_a_barrier(x):
    if cuda.threadIdx.x < 40:
        cuda.syncthreads()  # fault


def nobody_wrote(x):
    s = cuda.shared.array(64, float32)
    x[cuda.threadIdx.x] = s[cuda.threadIdx.x]  # fault


def never_set(x):
    v = cuda.local.array(4, float32)
    if cuda.threadIdx.x != 5:
        v[2] = 1
    x[cuda.threadIdx.x] = v[2]  # fault


def forever(x):
    while True:  # fault
        x[cuda.threadIdx.x] += 1


@pytest.mark.parametrize(
    ("kernel", "kind", "threads", "text"),
    [
        (past_the_end, "out-of-bounds", (63,), r"x\[64\] is outside, its dimension 0 has 64"),
        (neighbours, "shared-race", (0, 63), r"reads what thread \(63\) wrote, s\[63\]"),
        (same_element, "global-race", None, r"same element as thread .* x\[0\]"),
        (half_a_barrier, "divergent-barrier", (0, 40), r"thread \(0\) waits .* thread \(40\) does"),
        (nobody_wrote, "uninitialised-read", (0,), r"thread \(0\) reads s\[0\]"),
        (never_set, "uninitialised-read", (5,), r"thread \(5\) reads v\[2\]"),
        (forever, "step-limit", None, "thread .* never leaves this loop"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_each_hazard_is_found(kernel, kind, threads, text):
    x = integers(64)
    report = simulate(kernel, 1, 64, x.copy(), on_hazard="collect", max_steps=500)
    hazard = report.hazards[0]
    assert hazard.kind == kind in KINDS
    assert hazard.line == line_of(kernel, "# fault")
    assert "# fault" in hazard.code
    assert hazard.block == (0, 0, 0)
    assert re.search(text, hazard.message), hazard.message
    if threads is not None:
        assert hazard.threads == tuple((t, 0, 0) for t in threads)
    with pytest.raises(HazardError) as caught:
        simulate(kernel, 1, 64, x, max_steps=500)
    assert caught.value.hazard == hazard
    assert f"line {hazard.line}" in str(caught.value)
    np.testing.assert_array_equal(x, integers(64))  # left as it was


def several(x):
    s = cuda.shared.array((4, 4), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x[ty, tx] = s[ty, tx] + cuda.blockIdx.y
    s[ty, 0] = 1
    x[ty + 1, tx] = cuda.blockIdx.y


def test_collect_gathers_each_kind_once_a_line():
    report = simulate(several, (1, 2), (4, 4), np.zeros((4, 4)), on_hazard="collect")
    kinds = [(h.kind, h.code) for h in report.hazards]
    assert kinds == [
        ("uninitialised-read", "x[ty, tx] = s[ty, tx] + cuda.blockIdx.y"),
        ("global-race", "x[ty, tx] = s[ty, tx] + cuda.blockIdx.y"),
        ("shared-race", "s[ty, 0] = 1"),
        ("out-of-bounds", "x[ty + 1, tx] = cuda.blockIdx.y"),
        ("global-race", "x[ty + 1, tx] = cuda.blockIdx.y"),
    ]
    outside = report.hazards[3]
    assert outside.threads == ((0, 3, 0),)
    assert "x[4, 0] is outside" in outside.message
    assert "thread (0, 3)" in outside.message


def in_place(x):
    i = cuda.grid(1)
    left = x[i - 1] if i > 0 else float32(0)
    x[i] = left + x[i]  # fault


def in_place_own_first(x):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    v = s[t]
    if t > 0:
        v += s[t - 1]
    v += s[t]
    s[t] = v  # fault
    x[t] = v


def other_block(x):
    i = cuda.grid(1)
    v = x[(i + 32) % 64]
    cuda.syncthreads()
    x[i] = v  # fault


def read_back(x):
    i = cuda.grid(1)
    x[i] = 1
    cuda.syncthreads()
    x[i] += x[(i + 1) % 64]  # fault


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "kind"),
    [
        (in_place, 1, 32, "global-race"),
        (in_place, 2, 32, "global-race"),
        (in_place_own_first, 1, 32, "shared-race"),
        (in_place_own_first, 3, 32, "shared-race"),
        (other_block, 2, 32, "global-race"),
        (read_back, 2, 32, "global-race"),
    ],
)
@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_races_that_another_reader_could_hide(kernel, grid, block, kind, lanes, monkeypatch):
    """A thread that reads an element last, and writes it, does not undo that others read it."""
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    x = np.ones(64, np.float32)
    found = simulate(kernel, grid, block, x, on_hazard="collect").hazards
    assert (kind, line_of(kernel, "# fault")) in [(h.kind, h.line) for h in found]


accesses = st.lists(
    st.one_of(
        st.none(),  # a barrier of every block
        st.tuples(
            st.sampled_from(["read", "write"]),
            st.lists(st.integers(-1, 2), min_size=4, max_size=4),  # each lane's element, -1: none
        ),
    ),
    max_size=8,
)


def raced(steps, threads):
    """Whether two lanes clash, by comparing all pairs of accesses."""
    seen, epoch = [], 0
    for step in steps:
        if step is None:
            epoch += 1
            continue
        seen += [(step[0], e, lane, epoch) for lane, e in enumerate(step[1]) if e >= 0]
    return any(
        e == f and i != j and "write" in (a, b) and (s == t or i // threads != j // threads)
        for (a, e, i, s), (b, f, j, t) in itertools.combinations(seen, 2)
    )


@given(accesses, st.sampled_from([2, 4]))
@settings(deadline=None, max_examples=300)
def test_races_are_found_if_and_only_if_there_are_any(steps, threads):
    """In global memory, by four lanes in blocks of 2 or of 4; in shared memory, by one block."""
    everywhere, in_block = GlobalShadow(3, threads, 4), SharedShadow(3, 4)
    found, found_in_block, epoch = [], [], 0
    for step in steps:
        if step is None:
            epoch += 1
            continue
        elements = np.array(step[1])
        lanes = np.flatnonzero(elements >= 0)
        if not len(lanes):
            continue
        at, epochs = elements[lanes], np.full(len(lanes), epoch)
        found += getattr(everywhere, step[0])(at, lanes, Now(epochs))
        found_in_block += getattr(in_block, step[0])(at, lanes, Now(epochs))
    assert bool(found) == raced(steps, threads)
    assert bool(found_in_block) == raced(steps, 4)


def ordered(x):
    t = cuda.threadIdx.x
    for step in range(3):
        v = x[(t + 1) % 64]
        cuda.syncthreads()
        x[t] = v + step
        cuda.syncthreads()


def test_barriers_order_global_memory_within_a_block():
    x = np.arange(64, dtype=np.float32)
    assert simulate(ordered, 1, 64, x).hazards == []
    np.testing.assert_array_equal(x, np.roll(np.arange(64), -3) + 3)


def out_of_line(x):
    put(x, cuda.grid(1) + 1, 0)


def test_a_hazard_in_a_device_function_is_at_its_line():
    with pytest.raises(HazardError) as caught:
        simulate(out_of_line, 1, 8, np.zeros(8))
    hazard = caught.value.hazard
    assert hazard.line == line_of(put, "array[index] = value")
    assert hazard.code == "array[index] = value"


def test_hazards_name_the_block_of_any_batch(monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", 32)
    with pytest.raises(HazardError) as caught:
        simulate(double, (2, 3), 32, np.zeros(64))
    assert caught.value.hazard.kind == "global-race"  # blocks of one column touch the same
    assert caught.value.hazard.block == (0, 1, 0)
    with pytest.raises(HazardError) as caught:
        simulate(copy, 3, 32, np.zeros(95), np.zeros(96), 1, 0)
    assert (caught.value.hazard.block, caught.value.hazard.threads) == ((2, 0, 0), ((31, 0, 0),))
    assert "[block (2), thread (31)]" in caught.value.hazard.message


def ten_turns():
    i = 0
    while i < 10:
        i += 1


def test_the_step_limit_counts_a_thread_not_the_grid():
    x = np.zeros(100_000, np.float32)
    assert simulate(double, 3125, 32, x, max_steps=1).hazards == []
    simulate(ten_turns, 4, 32, max_steps=11)
    with pytest.raises(HazardError, match="stopped after max_steps=5 turns"):
        simulate(ten_turns, 4, 32, max_steps=5)


def test_an_interrupt_leaves_the_arrays_as_they_were(monkeypatch):
    from gemmlab.simt.memory.memory import Memory

    calls = itertools.count()
    store = Memory.store

    def interrupted(*args):
        if next(calls) == 3:
            raise KeyboardInterrupt
        store(*args)

    monkeypatch.setattr(Memory, "store", interrupted)
    monkeypatch.setattr("gemmlab.simt.launch.LANES", 32)
    x = integers(320)
    with pytest.raises(KeyboardInterrupt):
        simulate(double, 10, 32, x)
    np.testing.assert_array_equal(x, integers(320))
    monkeypatch.undo()
    simulate(double, 10, 32, x)
    np.testing.assert_array_equal(x, 2 * integers(320))


def test_the_book_says_what_each_kind_means():
    page = (ROOT / "book" / "hazards.md").read_text("utf-8")
    rows = [f"| `{kind}` | {meaning} |" for kind, meaning in KINDS.items()]
    assert "\n".join(rows) in page


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind='race' is no hazard; use one of out-of-bounds"):
        Hazard("race", 1, "x", (0, 0, 0), (), "a race")
