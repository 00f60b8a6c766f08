"""A hazard as data: the element, who touched it, how and where."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy import float32, int32

from gemmlab import cuda, simulate
from gemmlab.instructions import cp_async_16, cp_async_commit, load_v4
from gemmlab.simt import HazardError
from gemmlab.simt.races.hazards import Element, Touch
from gemmlab.simt.races.memories import GlobalShadow, SharedShadow
from gemmlab.simt.races.visits import Now
from tests.support.launches import hazards, line_of


def element(hazard):
    return Element(hazard.array, hazard.space, hazard.index)


def check_message(hazard):
    """The sentence names what the fields hold."""
    assert str(element(hazard)) in hazard.message
    assert tuple(touch.thread for touch in hazard.touches[: len(hazard.threads)]) == hazard.threads
    assert hazard.touches[0].block == hazard.block
    assert hazard.ops == tuple(touch.op for touch in hazard.touches)


def neighbour(out, first):
    s = cuda.shared.array((4, 16), float32)
    t = cuda.threadIdx.x
    y = t // 16
    x = t % 16
    if first:
        s[y, x] = t  # stores
        out[t] = s[3 - y, x]  # loads
    else:
        s[y, x] = 0  # clears
        cuda.syncthreads()
        out[t] = s[3 - y, x]  # looks
        s[y, x] = 1  # overwrites
    cuda.syncthreads()


@pytest.mark.parametrize(
    ("first", "ops", "at_fault", "before"),
    [
        (True, ("read", "write"), "# loads", "# stores"),
        (False, ("write", "read"), "# overwrites", "# looks"),
    ],
)
def test_a_race_in_shared_memory(first, ops, at_fault, before):
    [hazard] = hazards(neighbour, 1, 64, np.zeros(64, np.float32), first)[:1]
    here, there = line_of(neighbour, at_fault), line_of(neighbour, before)
    assert (hazard.kind, hazard.line) == ("shared-race", here)
    assert element(hazard) == ("s", "shared", (3, 0) if first else (0, 0))
    assert hazard.touches == (
        Touch(ops[0], here, (0, 0, 0), (0, 0, 0)),
        Touch(ops[1], there, (0, 0, 0), (48, 0, 0)),
    )
    check_message(hazard)


def halves(x, part):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        x[t, 1] = 1  # one block
    else:
        if part == 0:
            x[t, 1] = 2  # another
        elif part == 1:
            x[t, 0] = x[t, 1]  # reads
        else:
            cuda.atomic.add(x, (t, 1), 1)  # adds


@pytest.mark.parametrize(
    ("part", "op", "text"),
    [(0, "write", "# another"), (1, "read", "# reads"), (2, "atomic", "# adds")],
)
def test_a_race_of_two_blocks(part, op, text):
    [hazard] = hazards(halves, 2, (8, 1), np.zeros((8, 2), np.float32), part)
    assert (hazard.kind, hazard.ops) == ("global-race", (op, "write"))
    assert element(hazard) == ("x", "global", (0, 1))
    assert hazard.touches == (
        Touch(op, line_of(halves, text), (1, 0, 0), (0, 0, 0)),
        Touch("write", line_of(halves, "# one block"), (0, 0, 0), (0, 0, 0)),
    )
    check_message(hazard)


def same_element(x):
    x[cuda.threadIdx.x // 2, 3] = cuda.threadIdx.x


def test_two_lanes_of_one_store():
    [hazard] = hazards(same_element, 1, 32, np.zeros((16, 4), np.float32))
    assert element(hazard) == ("x", "global", (0, 3))
    assert hazard.ops == ("write", "write")
    assert {touch.line for touch in hazard.touches} == {hazard.line}
    assert [touch.thread[0] for touch in hazard.touches] == [0, 1]
    check_message(hazard)


def across_the_warp(out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = 0
    cuda.syncwarp()
    s[t] = 1  # second
    out[t] = s[(t + 32) % 64]  # loads


def test_a_race_between_warps_that_wait_in_syncwarp():
    hazard = hazards(across_the_warp, 1, 64, np.zeros(64, np.float32))[0]
    assert (hazard.kind, element(hazard)) == ("shared-race", ("s", "shared", (32,)))
    assert hazard.touches == (
        Touch("read", line_of(across_the_warp, "# loads"), (0, 0, 0), (0, 0, 0)),
        Touch("write", line_of(across_the_warp, "# second"), (0, 0, 0), (32, 0, 0)),
    )


def outside(x, y, which):
    t = cuda.threadIdx.x
    if which == 0:
        y[t] = x[2, t + 3]
    elif which == 1:
        x[t - 9, 0] = 1
    elif which == 2:
        column = x[:, t + 1]
        y[t] = column[0]
    elif which == 3:
        y[t] = load_v4(x, 3, 4 * t)[0]
    else:
        cuda.atomic.add(x, (t, 8), 1)


@pytest.mark.parametrize(
    ("which", "op", "index"),
    [
        (0, "read", (2, 8)),
        (1, "write", (-9, 0)),
        (2, "read", (None, 8)),
        (3, "read", (3, 8)),
        (4, "atomic", (0, 8)),
    ],
)
def test_an_index_outside_is_the_one_asked_for(which, op, index):
    x, y = np.zeros((8, 8), np.float32), np.zeros(8, np.float32)
    hazard = hazards(outside, 1, 8, x, y, which)[0]
    assert (hazard.kind, element(hazard)) == ("out-of-bounds", ("x", "global", index))
    assert hazard.ops == (op,)
    assert hazard.touches[0].line == hazard.line
    if which != 3:  # of a wide access, the sentence names the dimension alone
        check_message(hazard)


def unwritten(out, which):
    s = cuda.shared.array((2, 32), float32)
    own = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    if which == 0:
        out[t] = own[2]
    elif which == 1:
        out[t] = s[1, t]
    else:
        cuda.atomic.add(s, (1, t), 1)


@pytest.mark.parametrize(
    ("which", "where", "op"),
    [
        (0, ("own", "local", (2,)), "read"),
        (1, ("s", "shared", (1, 0)), "read"),
        (2, ("s", "shared", (1, 0)), "atomic"),
    ],
)
def test_what_nobody_has_written(which, where, op):
    [hazard] = hazards(unwritten, 1, 32, np.zeros(32, np.float32), which)
    assert (hazard.kind, element(hazard), hazard.ops) == ("uninitialised-read", where, (op,))
    check_message(hazard)


def copies(x, out):
    s = cuda.shared.array((32, 4), float32, 16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, x, t, 0)  # copies
    cp_async_commit()
    out[t] = s[31 - t, 1]  # too early


def test_a_copy_that_was_not_waited_for():
    x = np.ones((32, 4), np.float32)
    hazard = hazards(copies, 1, 32, x, np.zeros(32, np.float32))[0]
    assert (hazard.kind, element(hazard)) == ("async-not-waited", ("s", "shared", (31, 1)))
    assert hazard.touches == (
        Touch("read", line_of(copies, "# too early"), (0, 0, 0), (0, 0, 0)),
        Touch("copy", line_of(copies, "# copies"), (0, 0, 0), (31, 0, 0)),
    )
    check_message(hazard)


def odd(x, out):
    out[cuda.threadIdx.x] = load_v4(x, cuda.threadIdx.x, 1)[0]


def test_an_address_that_is_no_multiple():
    [hazard] = hazards(odd, 1, 4, np.zeros((4, 8), np.float32), np.zeros(4, np.float32))
    assert (hazard.kind, element(hazard)) == ("misaligned", ("x", "global", (0, 1)))
    assert hazard.ops == ("read",)


def wraps(x):
    i = int32(cuda.threadIdx.x + 2**32)
    x[i] = 1


def test_an_index_that_wrapped_is_the_one_it_gets():
    [hazard] = hazards(wraps, 1, 4, np.zeros(4, np.float32))
    assert (hazard.kind, element(hazard)) == ("index-overflow", ("x", "global", (0,)))
    assert hazard.ops == ("write",)
    check_message(hazard)


def waits_alone(x):
    if cuda.threadIdx.x < 7:
        cuda.syncthreads()


def test_a_barrier_concerns_no_element():
    [hazard] = hazards(waits_alone, 1, 32, np.zeros(4, np.float32))
    assert (hazard.kind, element(hazard), hazard.touches) == ("divergent-barrier", ("", "", ()), ())
    assert hazard.threads == ((0, 0, 0), (7, 0, 0))


steps = st.lists(
    st.one_of(
        st.none(),  # a barrier
        st.tuples(
            st.sampled_from(["read", "write", "atomic"]),
            st.lists(st.integers(-1, 2), min_size=4, max_size=4),  # each lane's element, -1: none
        ),
    ),
    max_size=8,
)


@given(steps, st.sampled_from([2, 4]), st.sampled_from([0, 1, 64, None]))
@settings(deadline=None, max_examples=600)
def test_a_clash_says_what_the_other_thread_did_and_where(steps, threads, later):
    """Each step is a line; whatever clash is found, its other half is among the accesses."""
    everywhere, in_block = GlobalShadow(3, threads, 4), SharedShadow(3, 4)
    in_block.LATER = later or 0
    seen, epoch = [], 0
    for line, step in enumerate(steps):
        if step is None:
            epoch += 1
            continue
        op, elements = step[0], np.array(step[1])
        lanes = np.flatnonzero(elements >= 0)
        if not len(lanes):
            continue
        at, epochs = elements[lanes], np.full(len(lanes), epoch)
        now = [(op, int(e), int(lane), line) for e, lane in zip(at, lanes, strict=True)]
        interval = epochs if later is None else epoch
        clashes = (
            *getattr(everywhere, op)(at, lanes, Now(epochs, line=line)),
            *getattr(in_block, op)(at, lanes, Now(interval, line=line)),
        )
        for clash in clashes:
            mine, other_op = clash.ops
            assert mine == op
            assert clash.lanes[clash.lane]
            assert clash.other != lanes[clash.lane]
            other = (other_op, int(at[clash.lane]), clash.other, clash.line)
            assert other in (now if clash.at_once else seen)
        seen += now


# Races told as stories


def counts(x, total):
    if x[cuda.grid(1)] > 2:
        total[0] += 1


def tiled(a, b, c, first, second):
    A = cuda.shared.array((8, 8), float32)
    B = cuda.shared.array((8, 8), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for start in range(0, a.shape[1], 8):
        A[y, x] = a[y, start + x]
        B[y, x] = b[start + y, x]
        if first:
            cuda.syncthreads()
        for k in range(8):
            total += A[y, k] * B[k, x]
        if second:
            cuda.syncthreads()
    c[y, x] = total


def each_writes(out):
    out[0] = cuda.grid(1)


def reads_a_sum(total, out):
    cuda.atomic.add(total, 0, 1)
    out[cuda.grid(1)] = total[0]


MATRICES = np.arange(128.0).reshape(8, 16), np.arange(128.0).reshape(16, 8), np.zeros((8, 8))
STORIES = {
    "an update": (
        counts, (1, 32), (np.arange(32), np.zeros(1)),
        "thread (3) reads total[0] = 0.0 (line {read})",
        "thread (31) reads total[0] = 0.0 (line {read}), too, for thread (3) has not written yet",
        "thread (3) writes total[0] = 1.0 (line {read})",
        "thread (31) writes total[0] = 1.0 (line {read}): one addition is lost",
        "total[0] +=", "",
    ),
    "an update in two batches": (
        counts, (2, 1), (np.arange(3, 5), np.zeros(1)),
        "thread (0) of block (1) reads total[0] (line {read})",
        "thread (0) of block (0) reads total[0] (line {read}), and finds the same",
        "thread (0) of block (0) writes total[0] = 1.0 (line {read})",
        "thread (0) of block (1) writes what it has made of the old value (line {read}): one "
        "addition is lost",
        "total[0] +=", "",
    ),
    "a product by tiles without its first barrier": (
        tiled, (1, (8, 8)), (*MATRICES, False, True),
        "thread (1, 0) reads A[0, 0] (line {read}), which holds what was there before",
        "thread (0, 0) writes A[0, 0] = 0.0 (line {write}): too late for thread (1, 0), which "
        "nothing made wait",
        "total += A", "A[y, x] =",
    ),
    "a product by tiles without its second barrier": (
        tiled, (1, (8, 8)), (*MATRICES, True, False),
        "thread (0, 0) is ahead, and writes A[0, 0] = 8.0 (line {write})",
        "thread (7, 0) reads A[0, 0] = 8.0 (line {read}); it came for 0.0, which is no longer "
        "there",
        "total += A", "A[y, x] =",
    ),
    "two writes": (
        each_writes, (1, 2), (np.zeros(1),),
        "thread (1) writes out[0] = 1.0 (line {write})",
        "thread (0) writes out[0] = 0.0 (line {write}): 0.0 stays. In the other order, 1.0 stays",
        "", "out[0] =",
    ),
    "a sum that is not complete": (
        reads_a_sum, (1, 2), (np.zeros(1, np.int32), np.zeros(2)),
        "thread (0) reads total[0] (line {read}), which is not 2 yet",
        "thread (1) updates total[0] by an atomic (line {write}): too late for thread (0), which "
        "nothing made wait",
        "out[cuda", "cuda.atomic",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_a_race_is_told_as_a_story_of_two_threads(name, monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", 32)
    kernel, launch, arguments, *steps, read, write = STORIES[name]
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    hazard = simulate(kernel, *launch, *copies, on_hazard="collect").hazards[0]
    lines = {"read": line_of(kernel, read), "write": line_of(kernel, write)}
    told = [f"    {i}. {step.format(**lines)}" for i, step in enumerate(steps, 1)]
    assert hazard.story.splitlines() == ["  an order in which it goes wrong:", *told]
    with pytest.raises(HazardError) as caught:
        simulate(kernel, *launch, *arguments)
    assert str(caught.value) == f"{hazard}\n{hazard.story}"


def test_listings_tell_stories_and_other_hazards_have_none():
    report = simulate(counts, 1, 32, np.arange(32), np.zeros(1), on_hazard="collect")
    assert "3. thread (3) writes total[0] = 1.0" in str(report.listing())
    x = np.zeros(31)
    hazard = simulate(counts, 1, 32, x, np.zeros(1), on_hazard="collect").hazards[0]
    assert (hazard.kind, hazard.story) == ("out-of-bounds", "")


@cuda.jit(device=True)
def first_of(values):
    return values[0]  # here


def stores_what_nobody_has_written(out):
    out[0] = first_of(cuda.shared.array(4, float32)) + 1


def test_a_read_in_a_device_function_is_raised_at_its_line_when_the_kernel_has_ended():
    with pytest.raises(HazardError, match="uninitialised-read") as caught:
        simulate(stores_what_nobody_has_written, 1, 1, np.zeros(1, np.float32))
    assert caught.value.hazard.line == line_of(first_of.py_func, "# here")
    assert [frame.name for frame in caught.traceback][-1] == "first_of"
