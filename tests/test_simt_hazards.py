"""What the simulator finds and notes: order between threads, overflow, views of shared memory."""

import importlib.util
import inspect
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import float32, float64, int16, int32, uint8, uint32

from gemmlab import cuda, device, simulate
from gemmlab.device import names
from gemmlab.instructions import load_v4
from gemmlab.simt import Hazard, HazardError
from gemmlab.simt.races.global_shadow import GlobalShadow
from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.shared_shadow import SharedShadow
from gemmlab.simt.report.notes import Note


def line_of(kernel, text):
    lines, first = inspect.getsourcelines(kernel)
    return first + next(i for i, line in enumerate(lines) if text in line)


def hazards(kernel, grid, block, *arguments, **options):
    return simulate(kernel, grid, block, *arguments, on_hazard="collect", **options).hazards


# ------------------------------------------------------------- order, against all pairs of accesses

THREADS = 96  # of a block
PLACES = (0, 1, 2, 32, 33, 96)  # lanes that take part: of two blocks, of three warps

elements = st.lists(st.sampled_from([-1, -1, 0, 1]), min_size=len(PLACES), max_size=len(PLACES))
steps = st.lists(
    st.one_of(
        st.sampled_from(["barrier", "sync"]),
        st.tuples(st.sampled_from(["read", "write", "atomic"]), elements),
    ),
    max_size=7,
)


def clashes(a, b):
    """Whether two accesses of one element need an order."""
    return "write" in (a, b) or (a == "atomic") != (b == "atomic")


@given(steps)
@settings(deadline=None, max_examples=800)
def test_global_races_are_found_if_and_only_if_there_are_any(steps):
    """Barriers order a block, `syncwarp` a warp, and nothing orders two blocks."""
    shadow, found, seen, epoch, sync = GlobalShadow(2), False, [], 0, 0
    for step in steps:
        if isinstance(step, str):
            epoch, sync = epoch + (step == "barrier"), sync + (step == "sync")
            continue
        op, at = step
        now = [(op, e, lane, epoch, sync) for e, lane in zip(at, PLACES, strict=True) if e >= 0]
        seen += now
        if now:
            at, lane = np.array([n[1] for n in now]), np.array([n[2] for n in now])
            args = lane, THREADS, np.full(len(at), epoch), np.full(len(at), sync)
            found |= getattr(shadow, op)(at, *args) is not None

    def ordered(a, b):
        if a[2] // THREADS != b[2] // THREADS:
            return False
        return a[3] < b[3] or (a[2] // 32 == b[2] // 32 and a[4] < b[4])

    assert found == any(
        a[1] == b[1] and a[2] != b[2] and clashes(a[0], b[0]) and not ordered(a, b)
        for a, b in itertools.combinations(seen, 2)
    )


@pytest.mark.parametrize("op", ["read", "atomic"])
def test_two_readers_are_kept_that_are_as_far_apart_as_any(op):
    """Whoever of three is left out, a writer that races with it races with one of the others."""
    for readers in itertools.permutations((0, 1, 32, 33, 96, 97), 4):
        for writer in readers:
            shadow, others = GlobalShadow(1), [r for r in readers if r != writer]
            for together in (readers[:2], readers[2:]):
                lanes = np.array(together)
                getattr(shadow, op)(np.zeros(2, int), lanes, THREADS, np.zeros(2, int))
            at, lane = np.zeros(1, int), np.array([writer])
            clash = shadow.write(at, lane, THREADS, np.array([1]))
            elsewhere = any(r // THREADS != writer // THREADS for r in others)
            assert (clash is not None) == elsewhere, (readers, writer)


@pytest.mark.parametrize("op", ["read", "atomic"])
def test_readers_of_other_warps_are_kept_over_those_of_the_own(op):
    for readers in itertools.permutations((0, 1, 32, 33), 3):
        shadow, at = GlobalShadow(1), np.zeros(1, int)
        for reader in readers:
            getattr(shadow, op)(at, np.array([reader]), THREADS, np.zeros(1, int))
        writer = readers[0]
        clash = shadow.write(at, np.array([writer]), THREADS, np.zeros(1, int), np.ones(1, int))
        assert (clash is not None) == any(r // 32 != writer // 32 for r in readers), readers


def exchange(x, out):
    i = cuda.grid(1)
    x[i] = i
    cuda.cg.this_grid().sync()
    out[i] = x[(i + 32) % 64]
    cuda.cg.this_grid().sync()
    cuda.atomic.add(x, (i + 1) % 64, 1)
    cuda.cg.this_grid().sync()
    x[i] = out[i] + x[(i + 32) % 64]  # fault


def test_a_wait_of_the_whole_grid_orders_all():
    x, out = np.zeros((2, 64), np.float32)
    (hazard,) = hazards(exchange, 2, 32, x, out)
    assert (hazard.kind, hazard.line) == ("global-race", line_of(exchange, "# fault"))
    assert "overwrites what thread (0) of block (1) reads" in hazard.message


flags = st.lists(st.booleans(), min_size=4, max_size=4)
fenced_steps = st.lists(
    st.one_of(
        st.just(("barrier", None)),
        st.tuples(st.sampled_from(["fence", "flag"]), flags),
        st.tuples(
            st.sampled_from(["read", "write"]),
            st.lists(st.integers(-1, 1), min_size=4, max_size=4),
        ),
    ),
    max_size=12,
)


def comes_before(old, new, events, threads):
    """The rule of `release`, word by word, over all pairs of atomics."""

    def same_block(a, b):
        return a.lane // threads == b.lane // threads

    if old.lane == new.lane or (same_block(old, new) and old.epoch < new.epoch):
        return True
    updates = [e for e in events if e.op == "flag"]
    fences = [e for e in events if e.op == "fence"]
    for first, second in itertools.permutations(updates, 2):
        released = any(
            (f.lane == first.lane and f.step < first.step and (
                (old.lane == f.lane and old.step < f.step)
                or (same_block(old, f) and old.epoch < f.epoch)
            ))
            or (f.lane == old.lane and old.step < f.step and same_block(f, first)
                and f.epoch < first.epoch)
            for f in fences
        )  # fmt: skip
        acquired = (second.lane == new.lane and second.step < new.step) or (
            same_block(second, new) and second.epoch < new.epoch
        )
        later = (first.step, first.lane) < (second.step, second.lane)
        if released and acquired and later:
            return True
    return False


class Event:
    def __init__(self, op, lane, element, epoch, step):
        self.op, self.lane, self.element, self.epoch, self.step = op, lane, element, epoch, step


@given(fenced_steps, st.sampled_from([2, 4]))
@settings(deadline=None, max_examples=800)
def test_fences_and_atomics_order_what_the_rule_says(steps, threads):
    """No false report; and what was written unordered is found, whoever comes next."""
    releases = Releases()
    data, counter = GlobalShadow(2, releases), GlobalShadow(1, releases)
    events, epoch, found = [], 0, False
    for step, (op, what) in enumerate(steps):
        if op == "barrier":
            epoch += 1
            continue
        on = [lane for lane in range(4) if what[lane] is True or (what[lane] or 0) >= 0]
        on = [lane for lane in on if what[lane] is not False]
        if not on:
            continue
        lanes, epochs = np.array(on), np.full(len(on), epoch)
        events += [Event(op, lane, what[lane], epoch, step) for lane in on]
        if op == "fence":
            releases.fence(lanes, threads, epochs)
        elif op == "flag":
            counter.atomic(np.zeros_like(lanes), lanes, threads, epochs)
        else:
            at = np.array([what[lane] for lane in on])
            found |= getattr(data, op)(at, lanes, threads, epochs) is not None
    touches = [e for e in events if e.op in ("read", "write")]
    races = [
        (a, b)
        for a, b in itertools.combinations(touches, 2)
        if a.element == b.element and a.lane != b.lane and "write" in (a.op, b.op)
        and (a.step == b.step or not comes_before(a, b, events, threads))
    ]  # fmt: skip
    if found:
        assert races
    if any(a.op == "write" for a, _ in races):
        assert found


def fenced(x, out, flag):
    if cuda.grid(1) == 0:
        x[0] = 7
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    if cuda.grid(1) == 32 and cuda.atomic.add(flag, 0, 0) == 1:
        out[0] = x[0]


def unfenced(x, out, flag):
    if cuda.grid(1) == 0:
        x[0] = 7
        cuda.atomic.exch(flag, 0, 1)
    if cuda.grid(1) == 32 and cuda.atomic.add(flag, 0, 0) == 1:
        out[0] = x[0]  # fault


def another_flag(x, out, flag):
    if cuda.grid(1) == 0:
        x[0] = 7
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    if cuda.grid(1) == 32 and cuda.atomic.add(flag, 1, 1) == 0:
        out[0] = x[0]  # fault


def another_array(x, out, flag):
    if cuda.grid(1) == 0:
        x[0] = 7
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    if cuda.grid(1) == 32 and cuda.atomic.add(out, 0, 0) == 0:
        out[0] = x[0]  # fault


def another_thread(x, out, flag):
    if cuda.grid(1) == 0:
        x[0] = 7
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    if cuda.grid(1) == 32:
        cuda.atomic.add(flag, 0, 0)
        cuda.atomic.add(flag, 0, 0)
    if cuda.grid(1) == 33:
        out[0] = x[0]  # fault


def after_a_barrier(x, out, flag):
    if cuda.grid(1) == 1:
        x[0] = 7
    cuda.syncthreads()
    if cuda.grid(1) == 0:
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    if cuda.grid(1) == 32:
        cuda.atomic.add(flag, 0, 0)
    cuda.syncthreads()
    if cuda.grid(1) == 33:
        out[0] = x[0]


def each_its_own_fence(x, out, flag):
    if cuda.grid(1) == 1:
        x[0] = 7
        cuda.threadfence()
    cuda.syncthreads()
    if cuda.grid(1) == 0:
        cuda.atomic.exch(flag, 0, 1)
    if cuda.grid(1) == 32 and cuda.atomic.add(flag, 0, 0) == 1:
        out[0] = x[0]


def counts_twice(x, out, flag):
    if cuda.grid(1) == 1:
        x[0] = 7
        cuda.threadfence()
    if cuda.grid(1) == 0:
        cuda.atomic.add(flag, 0, 1)
    cuda.syncthreads()
    if cuda.grid(1) == 0:
        cuda.atomic.add(flag, 0, 1)
    if cuda.grid(1) == 32 and cuda.atomic.add(flag, 0, 0) == 2:
        out[0] = x[0]


def fence_of_another(x, out, flag):
    if cuda.grid(1) == 1:
        x[0] = 7
    if cuda.grid(1) == 0:
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    if cuda.grid(1) == 32 and cuda.atomic.add(flag, 0, 0) == 1:
        out[0] = x[0]  # fault


def flag_of_another(x, out, flag):
    if cuda.grid(1) == 1:
        x[0] = 7
        cuda.threadfence()
    if cuda.grid(1) == 0:
        cuda.atomic.exch(flag, 0, 1)
    if cuda.grid(1) == 32 and cuda.atomic.add(flag, 0, 0) == 1:
        out[0] = x[0]  # fault


def too_early(x, out, flag):
    if cuda.grid(1) == 32:
        cuda.atomic.add(flag, 0, 0)
    if cuda.grid(1) == 0:
        x[0] = 7
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    cuda.syncthreads()
    if cuda.grid(1) == 32:
        out[0] = x[0]  # fault


def in_two_steps(x, out, flag):
    if cuda.grid(1) == 0:
        cuda.threadfence()
        cuda.atomic.add(flag, 0, 1)
        x[0] = 7
        cuda.threadfence()
        cuda.atomic.add(flag, 0, 1)
    if cuda.grid(1) == 32 and cuda.atomic.add(flag, 0, 0) == 2:
        out[0] = x[0]


ORDERED = (fenced, after_a_barrier, each_its_own_fence, counts_twice, in_two_steps)
UNORDERED = (
    *(unfenced, another_flag, another_array, another_thread),
    *(fence_of_another, flag_of_another, too_early),
)


@pytest.mark.parametrize("lanes", [1 << 16, 32])
@pytest.mark.parametrize("kernel", ORDERED + UNORDERED)
def test_one_block_tells_another_by_a_flag(kernel, lanes, monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    x, out, flag = np.zeros(1, np.float32), np.zeros(1, np.float32), np.zeros(2, np.int32)
    found = hazards(kernel, 2, 32, x, out, flag)
    if kernel in ORDERED:
        assert found == []
        assert out[0] == 7
        return
    if kernel is too_early and lanes == 32:  # here the second block begins when the first is done
        assert found == []
        return
    (hazard,) = found
    assert (hazard.kind, hazard.line) == ("global-race", line_of(kernel, "# fault"))
    assert "of block (0) wrote, x[0] (7.0), and nothing orders the two blocks" in hazard.message
    assert f"[block (1), thread ({int(kernel is another_thread)})]" in hazard.message


def within_a_warp(x, out):
    t = cuda.threadIdx.x
    x[t] = t
    cuda.syncwarp()
    out[t] = x[t ^ 1]
    cuda.syncwarp()
    x[t] = out[t ^ 1] + x[t]


def across_warps(x, out):
    t = cuda.threadIdx.x
    x[t] = t
    cuda.syncwarp()
    out[t] = x[t ^ 32]  # fault


def one_half_waits(x, out):
    t = cuda.threadIdx.x
    x[t] = t
    if t < 32:
        cuda.syncwarp()
    out[t] = x[t ^ 1]  # fault


def test_syncwarp_orders_global_memory_within_a_warp():
    x, out = np.zeros((2, 64), np.float32)
    assert hazards(within_a_warp, 1, 64, x, out) == []
    (hazard,) = hazards(across_warps, 1, 64, x, out)
    assert (hazard.kind, hazard.threads) == ("global-race", ((0, 0, 0), (32, 0, 0)))
    assert hazard.message.endswith("with no barrier between them [block (0), thread (0)]")
    (hazard,) = hazards(one_half_waits, 1, 64, x, out)
    assert (hazard.kind, hazard.threads) == ("global-race", ((32, 0, 0), (33, 0, 0)))
    assert "with no barrier or syncwarp between them" in hazard.message
    assert hazard.count == 32


# ------------------------------------------------------------------ integers that wrap on their way


def product(x, out, n):
    i = cuda.grid(1)
    row = int32(i * n)
    if i < out.size:
        out[i] = x[row + 0 * i]  # fault


def lands_inside(x, out, n):
    i = cuda.grid(1)
    place = int32(i * n)
    if i < out.size:
        out[i] = x[place - (place // 31) * 31]  # fault


def through_local(x, out, n):
    i = cuda.grid(1)
    v = cuda.local.array(2, int32)
    v[1] = 3
    v[0] = i * n
    v[1] = v[0] + 0
    out[i % out.size] = x[v[1]]  # fault


def chosen(x, out, n):
    i = cuda.grid(1)
    place = int32(0)
    if i % 2 == 1:
        place = int32(i * n)
    place = max(place, -(2**40)) if i > 0 else place
    mirrored = -place
    out[i] = x[-mirrored << 0]  # fault


def unsigned(x, out, n):
    i = cuda.grid(1)
    out[i] = x[uint32(i * n)]  # fault


def stored_to(x, out, n):
    i = cuda.grid(1)
    out[int16(i * n)] = x[i]  # fault


@pytest.mark.parametrize(
    ("kernel", "n", "kind", "lanes"),
    [
        (product, 2**31 - 1, "int32", 31 - 1),
        (lands_inside, 2**31, "int32", 31),
        (through_local, 2**30, "int32", 30),
        (chosen, 2**31 + 2, "int32", 16),
        (unsigned, 2**32, "uint32", 31),
        (stored_to, 2**15, "int16", 31),
    ],
)
def test_a_wrapped_index_is_found(kernel, n, kind, lanes):
    x, out = np.zeros((2, 32), np.float32)
    first = next(h for h in hazards(kernel, 1, 32, x, out, n) if h.kind == "index-overflow")
    assert first.line == line_of(kernel, "# fault")
    assert f", where it is put into {kind} [block (0), thread" in first.message
    assert first.count == lanes
    with pytest.raises(HazardError, match="means .* and gets"):
        simulate(kernel, 1, 32, x, out, n)


def test_an_overflow_tells_both_numbers_and_the_line_of_the_wrap():
    x, out = np.zeros((2, 32), np.float32)
    hazard = hazards(product, 1, 32, x, out, 2**31 - 1)[0]
    assert hazard.message == (
        f"thread (2) means x[4294967294] and gets x[-2], because the index wraps in line "
        f"{line_of(product, 'row =')}, where it is put into int32 [block (0), thread (2)]"
    )


def test_a_wrapped_index_outside_is_one_hazard_not_two():
    x, out = np.zeros((2, 32), np.float32)
    found = hazards(product, 1, 32, x, out, 2**31)
    assert [(h.kind, h.count) for h in found] == [("index-overflow", 31)]


def wide(x, out, n):
    i = cuda.grid(1)
    place = int32(i * n)
    if i < 2:
        load_v4(x, place + 8)  # fault
    out[i] = 1


def test_a_wrapped_index_of_an_instruction_is_found():
    x, out = np.zeros((2, 32), np.float32)
    (hazard,) = hazards(wide, 1, 32, x, out, 2**32)
    assert (hazard.kind, hazard.line, hazard.count) == ("index-overflow", line_of(wide, "# f"), 1)
    assert "thread (1) means x[4294967304] and gets x[8]" in hazard.message


def cancelling(x, out, n):
    i = cuda.grid(1)
    out[i] = x[int32(int32(i + n) - int32(n))]


def modulo(x, out, n):
    i = cuda.grid(1)
    h = int32(i * n)
    u = uint32(i * n)
    out[i] = x[h % 32] + x[h & 31] + x[(h ^ (h >> 7)) & 31] + x[u >> 27] + x[u // 2**27]
    out[i] += x[uint8(i * n) % 32] + x[uint8(i + 256)]


def guarded(x, out, n):
    i = cuda.grid(1)
    place = int32(i * n)
    if place == i * n:
        out[i] = x[place % 32]
        out[place % 32] = x[min(place, 0)]


def overwritten(x, out, n):
    i = cuda.grid(1)
    v = cuda.local.array(1, int32)
    v[0] = i * n
    v[0] = i
    s = cuda.shared.array(32, int32)
    s[i] = i * n
    s[i] = i
    out[i] = x[v[0]] + x[s[i]]


def exchanged(x, out, n):
    i = cuda.grid(1)
    s = cuda.shared.array(32, int32)
    s[i] = i * n
    cuda.atomic.exch(s, i, i)
    out[i] = x[s[i]]


def only_a_value(x, out, n):
    i = cuda.grid(1)
    out[i] = int32(i * n) + int32(i * n) // 2


@pytest.mark.parametrize(
    "kernel", [cancelling, modulo, guarded, overwritten, exchanged, only_a_value]
)
def test_what_wraps_on_purpose_is_no_overflow(kernel):
    x, out = np.zeros((2, 32), np.float32)
    assert hazards(kernel, 1, 32, x, out, 2**31) == []


# ---------------------------------------------------------- dynamic shared memory, of several types


def two_types(x, out):
    words = cuda.shared.array(0, float32)
    halves = cuda.shared.array(0, int16)
    t = cuda.threadIdx.x
    halves[2 * t] = 2 * t
    halves[2 * t + 1] = 2 * t + 1
    cuda.syncthreads()
    out[t] = words[31 - t]
    cuda.syncthreads()
    words[t] = x[t]
    cuda.syncthreads()
    out[t] = halves[t]


def eight_after_four(x, out):
    words = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    words[t] = x[t]
    cuda.syncthreads()
    doubles = cuda.shared.array(0, float64)
    if t < 16:
        out[t] = doubles[t]
        doubles[t] = 1
    cuda.syncthreads()
    out[t] = words[t]


def test_views_of_several_types_share_one_memory():
    x, out = np.zeros((2, 32), np.float32)
    assert hazards(two_types, 1, 32, x, out, shared_bytes=128) == []
    assert hazards(eight_after_four, 1, 32, x, out, shared_bytes=128) == []


def half_written(x, out):
    words = cuda.shared.array(0, float32)
    halves = cuda.shared.array(0, int16)
    t = cuda.threadIdx.x
    halves[2 * t] = 1
    cuda.syncthreads()
    out[t] = words[t]  # fault


def raced_across_types(x, out):
    words = cuda.shared.array(0, float32)
    halves = cuda.shared.array(0, int16)
    t = cuda.threadIdx.x
    words[t] = x[t]
    out[t] = halves[2 * (31 - t) + 1]  # fault


def raced_over_two_halves(x, out):
    words = cuda.shared.array(0, float32)
    halves = cuda.shared.array(0, int16)
    t = cuda.threadIdx.x
    halves[2 * t] = 1
    halves[2 * t + 1] = 2
    out[t] = words[31 - t]  # fault


def updated_half(x, out):
    words = cuda.shared.array(0, int32)
    bytes_ = cuda.shared.array(0, uint8)
    t = cuda.threadIdx.x
    if t > 2:
        bytes_[4 * t + 3] = 1
    cuda.syncthreads()
    cuda.atomic.add(words, t, 1)  # fault


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize(
    ("kernel", "kind", "text"),
    [
        (half_written, "uninitialised-read", "thread (0) reads words[0], which nobody"),
        (raced_across_types, "shared-race", "thread (0) reads what thread (31) wrote, halves[63]"),
        (
            raced_over_two_halves,
            "shared-race",
            "thread (0) reads what thread (31) wrote, words[31]",
        ),
        (updated_half, "uninitialised-read", "thread (0) updates words[0], which nobody"),
    ],
)
def test_hazards_across_types(kernel, kind, text, blocks):
    x, out = np.zeros((2, 32), np.float32)
    found = hazards(kernel, blocks, 32, x, out, shared_bytes=128)[0]
    assert (found.kind, found.line) == (kind, line_of(kernel, "# fault"))
    assert text in found.message
    assert found.count == 32 * blocks


def test_a_shadow_that_is_refined_keeps_what_it_knows():
    shadow = SharedShadow(4)
    shadow.unit = 8
    row = np.zeros(1, int)
    shadow.write((row, row + 1), np.array([5]), 0)
    shadow.atomic((row, row + 3), np.array([5]), 0)
    shadow.order(np.zeros((1, 4), np.int64))
    shadow.refine(2)
    shadow.refine(4)
    assert shadow.unit == 2
    assert shadow.initialised.ravel().nonzero()[0].tolist() == [4, 5, 6, 7]
    assert shadow.read((row, row + 6), np.array([40]), 0).other == 5
    assert shadow.write((row, row + 15), np.array([40]), 0).other == 5
    assert shadow.write((row, row + 11), np.array([40]), 0) is None


# -------------------------------------------------------------------------------------------- notes


def returns_early(x):
    t = cuda.threadIdx.x
    if t >= 20:
        return
    for _ in range(2):
        cuda.syncthreads()
    x[cuda.grid(1)] = 1


def test_threads_that_returned_before_a_barrier_are_noted():
    report = simulate(returns_early, 3, 40, np.zeros(120, np.float32))
    assert report.hazards == []
    (note,) = report.notes
    assert (note.line, note.code) == (line_of(returns_early, "sync"), "cuda.syncthreads()")
    assert (note.block, note.thread, note.count) == ((0, 0, 0), (20, 0, 0), 3 * 20 * 2)
    assert "thread (20) has returned before this barrier" in note.message
    assert "[block (0), 20 of its threads]" in note.message
    assert repr(report).endswith("0 hazards, 1 notes>")
    text = str(report.listing())
    assert f"note: {note.message}\n" in text
    assert "[120 times in all]" in text
    assert "note: thread (20) has returned" in report._repr_html_()


def some_blocks_return(x):
    if cuda.blockIdx.x == 1 and cuda.threadIdx.x > 2:
        return
    if cuda.blockIdx.x == 2:
        return
    cuda.syncthreads()
    x[0, cuda.grid(1)] = 1


@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_a_note_names_the_block(lanes, monkeypatch):
    """A block of which all threads have returned has nothing to note."""
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    report = simulate(some_blocks_return, 4, 8, np.zeros((1, 32)))
    (note,) = report.notes
    assert (note.block, note.thread, note.count) == ((1, 0, 0), (3, 0, 0), 5)


def test_nothing_is_noted_of_lanes_without_a_thread():
    def kernel(x):
        cuda.syncthreads()
        x[cuda.grid(1)] = 1

    report = simulate(kernel, 2, 20, np.zeros(40))
    assert report.notes == ()
    assert repr(report).endswith("0 hazards>")


def test_lines_of_two_files_with_one_number_are_told_apart():
    report = simulate(static_bytes(1), 1, 1, np.zeros(1), on_hazard="collect")
    place = (3, "x[i] = 1", (0, 0, 0))
    hazard = Hazard("misaligned", *place, ((0, 0, 0),), "text", file="one.py")
    note = Note(*place, (0, 0, 0), "text", file="one.py", count=4)
    for file in ("one.py", "two.py", "one.py"):
        report.add(replace(hazard, file=file))
        report.note(replace(note, file=file))
    assert [(h.file, h.count) for h in report.hazards] == [("one.py", 2), ("two.py", 1)]
    assert [(n.file, n.count) for n in report.notes] == [("one.py", 8), ("two.py", 4)]


# ---------------------------------------------------------------------------------- shared memory


def static_bytes(count):
    def kernel(x):
        s = cuda.shared.array(count, float32)
        s[cuda.threadIdx.x] = 1
        x[cuda.threadIdx.x] = s[cuda.threadIdx.x]

    return kernel


def test_static_arrays_have_48_kilobytes_on_every_gpu():
    """As ptxas: 12,288 words assemble, 12,289 are too much shared data."""
    x = np.zeros(32, np.float32)
    for gpu in (None, "h200", "rtx2060"):
        simulate(static_bytes(12288), 1, 32, x, device=gpu)
        with pytest.raises(ValueError, match="of 49156 B a block are too large; use at most 49152"):
            simulate(static_bytes(12289), 1, 32, x, device=gpu)


def test_dynamic_shared_memory_has_the_limit_of_the_largest_gpu():
    x, most = np.zeros(32, np.float32), 227 * 1024
    assert most == max(device(name).shared_bytes_per_block for name in names())
    kernel = static_bytes(32)
    simulate(kernel, 1, 32, x, shared_bytes=most - 128)
    with pytest.raises(ValueError, match=f"shared_bytes={most + 1} are too much for any GPU; a bl"):
        simulate(kernel, 1, 32, x, shared_bytes=most + 1)
    with pytest.raises(ValueError) as caught:
        simulate(kernel, 1, 32, x, shared_bytes=most - 127)
    line = line_of(static_bytes, "cuda.shared.array")
    assert str(caught.value) == (
        f"line {line}: s = cuda.shared.array(count, float32)\n  128 B of shared arrays and "
        f"shared_bytes={most - 127} are too much for any GPU; a block may use {most} B"
    )


def test_the_block_that_is_too_large_for_a_device_names_it():
    few = replace(device("h200"), threads_per_block=64)
    with pytest.raises(ValueError, match="use at most 64 on NVIDIA H200"):
        simulate(static_bytes(1), 1, 96, np.zeros(96), device=few)
    with pytest.raises(ValueError, match="use at most 1024$"):
        simulate(static_bytes(1), 1, 1056, np.zeros(96))


# ----------------------------------------------------------------------------------------- messages


def rows_of_a_view(x):
    row = x[1]
    row[cuda.threadIdx.x // 2] = 1  # fault


@pytest.mark.parametrize("order", ["C", "F", "padded"])
def test_an_element_is_named_by_its_place_in_the_whole_array(order):
    x = np.zeros((3, 32), np.float32, order="F" if order == "F" else "C")
    x = np.zeros((3, 40), np.float32)[:, :32] if order == "padded" else x
    (hazard,) = hazards(rows_of_a_view, 1, 32, x)
    assert (
        "thread (0) writes the same element as thread (1), x[1, 0] (1.0 and 1.0)" in hazard.message
    )


def shared_rows(x):
    s = cuda.shared.array((4, 8), float32)
    row = s[2]
    row[cuda.threadIdx.x // 4] = 0.1  # fault
    x[0] = 1


def test_values_are_written_in_their_own_precision():
    message = hazards(shared_rows, 1, 32, np.zeros(1, np.float32))[0].message
    assert "s[2, 0] (0.1 and 0.1), with no barrier or syncwarp between them" in message


def test_a_trace_knows_files_apart(tmp_path):
    """A device function of another file, at a line with the same number."""
    path = tmp_path / "elsewhere.py"
    first = line_of(test_a_trace_knows_files_apart, "# here\n")
    path.write_text("\n" * (first - 2) + "def read(array, i):\n    return array[i + 1]\n")
    spec = importlib.util.spec_from_file_location("elsewhere", path)
    elsewhere = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(elsewhere)
    read = elsewhere.read

    def kernel(x):
        i = cuda.threadIdx.x
        if i < 8:
            x[i] = 2 * read(x, i)  # here

    report = simulate(kernel, 1, 32, np.zeros(64), trace="x[i] =", on_hazard="collect")
    assert [(a.op, a.line) for a in report.trace] == [("store", first)]


def counted(x, bins):
    s = cuda.shared.array(2, int32)
    t = cuda.threadIdx.x
    if t < 2:
        s[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, t % 2, 1)
    cuda.atomic.add(bins, t, 1)
    cuda.atomic.add(bins, t % 4, 1)


def test_atomics_have_columns_of_their_own():
    report = simulate(counted, 3, 64, np.zeros(64), np.zeros(64, np.int32))
    listing = report.listing()
    columns = dict(listing.groups())["atomics"]
    assert [c.name for c in columns] == ["global", "shared"]
    assert [c.value(listing.total.counts) for c in columns] == [12, 6]
    assert ">atomics</th>" in report._repr_html_()
    plain = simulate(static_bytes(32), 1, 32, np.zeros(32))
    assert "atomics" not in [name for name, _ in plain.listing().groups()]


def test_syncwarp_after_blocks_wrote_each_their_part():
    """The last block has warps without work, so that blocks differ before lanes first wait."""

    def kernel(out):
        part = cuda.shared.array((4, 64), float32)
        lane = cuda.threadIdx.x % 32
        warp = cuda.threadIdx.x // 32
        row = cuda.blockIdx.x * 4 + warp
        if row < out.shape[0]:
            for e in range(lane, 64, 32):
                part[warp, e] = 0
            cuda.syncwarp()
            if lane < 4:
                part[warp, lane] = lane
            cuda.syncwarp()
            out[row, lane] = part[warp, 31 - lane]

    out = np.ones((5, 32), np.float32)
    assert not simulate(kernel, 2, 128, out).hazards
    np.testing.assert_array_equal(out, np.tile([0] * 28 + [3, 2, 1, 0], (5, 1)))
