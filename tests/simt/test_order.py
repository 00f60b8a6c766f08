"""Order between threads: barriers, fences, atomics and warps, against all pairs of accesses."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy import float32

from gemmlab import cuda, simulate
from gemmlab.simt.races.memories import GlobalShadow, SharedShadow
from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.visits import Now
from tests.support.launches import hazards, line_of

THREADS = 96  # of a block
LANES = 2 * THREADS
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
    shadow, found, seen, epoch, sync = GlobalShadow(2, THREADS, LANES), False, [], 0, 0
    for step in steps:
        if isinstance(step, str):
            epoch, sync = epoch + (step == "barrier"), sync + (step == "sync")
            continue
        op, at = step
        now = [(op, e, lane, epoch, sync) for e, lane in zip(at, PLACES, strict=True) if e >= 0]
        seen += now
        if now:
            at, lane = np.array([n[1] for n in now]), np.array([n[2] for n in now])
            found |= bool(getattr(shadow, op)(at, lane, Now(epoch, sync)))

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
            shadow, others = GlobalShadow(1, THREADS, LANES), [r for r in readers if r != writer]
            for together in (readers[:2], readers[2:]):
                lanes = np.array(together)
                getattr(shadow, op)(np.zeros(2, int), lanes, Now(0))
            at, lane = np.zeros(1, int), np.array([writer])
            clashes = shadow.write(at, lane, Now(1))
            elsewhere = any(r // THREADS != writer // THREADS for r in others)
            assert bool(clashes) == elsewhere, (readers, writer)


@pytest.mark.parametrize("op", ["read", "atomic"])
def test_readers_of_other_warps_are_kept_over_those_of_the_own(op):
    for readers in itertools.permutations((0, 1, 32, 33), 3):
        shadow, at = GlobalShadow(1, THREADS, LANES), np.zeros(1, int)
        for reader in readers:
            getattr(shadow, op)(at, np.array([reader]), Now(0))
        writer = readers[0]
        clashes = shadow.write(at, np.array([writer]), Now(0, 1))
        assert bool(clashes) == any(r // 32 != writer // 32 for r in readers), readers


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
        st.sampled_from([("barrier", None), ("sync", None)]),
        st.tuples(st.sampled_from(["fence", "fence of the block", "flag"]), flags),
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

    def met(a, b):
        """A barrier of the block, or a syncwarp of the warp, is between the two."""
        same_warp = a.lane // 32 == b.lane // 32
        return (same_block(a, b) and a.epoch < b.epoch) or (same_warp and a.sync < b.sync)

    if old.lane == new.lane or met(old, new):
        return True
    updates = [e for e in events if e.op == "flag"]
    kinds = ("fence", "fence of the block") if same_block(old, new) else ("fence",)
    fences = [e for e in events if e.op in kinds]
    for first, second in itertools.permutations(updates, 2):
        released = any(
            (f.lane == first.lane and f.step < first.step and (
                (old.lane == f.lane and old.step < f.step)
                or met(old, f)
            ))
            or (f.lane == old.lane and old.step < f.step and met(f, first))
            for f in fences
        )  # fmt: skip
        acquired = (second.lane == new.lane and second.step < new.step) or met(second, new)
        later = (first.step, first.lane) < (second.step, second.lane)
        if released and acquired and later:
            return True
    return False


class Event:
    def __init__(self, op, lane, element, epoch, sync, step):
        self.op, self.lane, self.element, self.step = op, lane, element, step
        self.epoch, self.sync = epoch, sync


# Threads of a block, and four lanes: of two blocks or of one, of warps of their own or of two.
FOURS = [(64, (0, 32, 64, 96)), (128, (0, 32, 64, 96)), (32, (0, 1, 32, 33)), (64, (0, 1, 32, 33))]


@given(fenced_steps, st.sampled_from(FOURS))
@settings(deadline=None, max_examples=800)
def test_fences_and_atomics_order_what_the_rule_says(steps, lanes_of_block):
    """No false report; and what was written unordered is found, whoever comes next."""
    (threads, places), releases = lanes_of_block, Releases()
    counter = GlobalShadow(1, threads, 128, releases)
    data = GlobalShadow(2, threads, 128, releases)
    in_block, alone = SharedShadow(2, threads, releases), threads > max(places)
    events, epoch, sync, found, found_in_block = [], 0, 0, False, False
    for step, (op, what) in enumerate(steps):
        if what is None:
            epoch, sync = epoch + (op == "barrier"), sync + (op == "sync")
            continue
        on = [i for i in range(4) if what[i] is True or (what[i] or 0) >= 0]
        on = [i for i in on if what[i] is not False]
        if not on:
            continue
        lanes, epochs = np.array([places[i] for i in on]), np.full(len(on), epoch)
        events += [Event(op, places[i], what[i], epoch, sync, step) for i in on]
        now = Now(epoch, sync, lane=lanes)
        if "fence" in op:
            of_block = op == "fence of the block"
            releases.fence(lanes, threads, epochs, of_block, now.syncs)
        elif op == "flag":
            counter.atomic(np.zeros_like(lanes), lanes, now)
        else:
            at = np.array([what[i] for i in on])
            found |= bool(getattr(data, op)(at, lanes, now))
            if alone:
                found_in_block |= bool(getattr(in_block, op)(at, lanes, now))
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
    if alone:
        assert found_in_block == found


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


def each_by_itself(x, flag, out):
    """Two threads fence together, and raise the flag one after the other."""
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        x[t] = 1
        cuda.threadfence()
        if t == 0:
            cuda.atomic.add(flag, 0, 1)
        if t == 1:
            cuda.atomic.add(flag, 0, 1)
    elif t == 0:
        while cuda.atomic.add(flag, 0, 0) < 2:
            pass
        cuda.threadfence()
        out[0] = x[0] + x[1]


def for_its_warp(x, flag, out):
    """One thread of a warp fences for another one, which has told it by `syncwarp`."""
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        x[t] = 1
        cuda.syncwarp()
        if t == 0:
            cuda.threadfence()
            cuda.atomic.add(flag, 0, 2)
    elif t == 0:
        while cuda.atomic.add(flag, 0, 0) < 2:
            pass
        cuda.threadfence()
        out[0] = x[0] + x[1]


@pytest.mark.parametrize("kernel", [each_by_itself, for_its_warp])
def test_what_another_thread_of_the_warp_did_is_released_too(kernel):
    x, flag, out = (np.zeros(n, np.int32) for n in (2, 1, 1))
    report = simulate(kernel, 2, 2, x, flag, out, on_hazard="collect")
    assert report.hazards == []
    assert out[0] == 2
