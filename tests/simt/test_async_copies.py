"""Asynchronous copies: what is under way until its thread has waited, and who may touch it."""

import inspect

import numpy as np
import pytest

from gemmlab import cuda, simulate
from gemmlab.instructions import (
    cp_async_4,
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    load_v4,
    store_v4,
)
from gemmlab.simt import HazardError
from tests.support.launches import hazards_of_a_block


def copy_row(A, B, wait, barrier):
    s = cuda.shared.array((32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, A, t, 0)
    cp_async_commit()
    if wait:
        cp_async_wait(0)
    if barrier:
        cuda.syncthreads()
    store_v4(B, t, 0, load_v4(s, 31 - t, 0))


@pytest.mark.parametrize(
    ("wait", "barrier", "kinds"),
    [
        (True, True, []),
        (False, True, ["async-not-waited"]),
        (True, False, ["shared-race"]),
        (False, False, ["async-not-waited", "shared-race"]),
    ],
)
def test_a_copy_is_there_after_the_wait_and_a_barrier(wait, barrier, kinds):
    A, B = np.arange(128, dtype=np.float32).reshape(32, 4), np.zeros((32, 4), np.float32)
    found = hazards_of_a_block(copy_row, A, B, wait, barrier)
    assert [h.kind for h in found] == kinds
    if not kinds:
        assert np.array_equal(B, A[::-1])
    for h in found:
        assert h.code == "store_v4(B, t, 0, load_v4(s, 31 - t, 0))"
        assert h.threads[0] == (0, 0, 0)
        if h.kind == "async-not-waited":
            assert "thread (0) reads s[31, 0]" in h.message
    if not wait:
        assert not np.array_equal(B, A[::-1])
        with pytest.raises(HazardError, match="async-not-waited"):
            simulate(copy_row, 1, 32, A, B, wait, barrier)


def two_groups(A, B, which):
    s = cuda.shared.array((2, 32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    for group in range(2):
        cp_async_16(s, group, t, 0, A, group * 32 + t, 0)
        cp_async_commit()
    cp_async_wait(1)
    cuda.syncthreads()
    store_v4(B, t, 0, load_v4(s, which, t, 0))


def test_waiting_leaves_the_last_groups_under_way():
    A, B = np.arange(256, dtype=np.float32).reshape(64, 4), np.zeros((32, 4), np.float32)
    assert hazards_of_a_block(two_groups, A, B, 0) == []
    assert np.array_equal(B, A[:32])
    assert [h.kind for h in hazards_of_a_block(two_groups, A, B, 1)] == ["async-not-waited"]


def not_committed(A, B, wait):
    s = cuda.shared.array((32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, A, t, 0)
    if wait == 1:
        cp_async_commit()
    cp_async_wait(0)
    store_v4(B, t, 0, load_v4(s, t, 0))


def by_half_the_lanes(A, B, which):
    s = cuda.shared.array((32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, A, t, 0)
    if which == 1 or t < 16:
        cp_async_commit()
    if which == 0 or t < 16:
        cp_async_wait(0)
    store_v4(B, t, 0, load_v4(s, t, 0))


def test_only_what_is_committed_is_waited_for():
    A, B = np.ones((32, 4), np.float32), np.zeros((32, 4), np.float32)
    assert hazards_of_a_block(not_committed, A, B, 1) == []
    assert [h.kind for h in hazards_of_a_block(not_committed, A, B, 0)] == ["async-not-waited"]


@pytest.mark.parametrize("which", [0, 1])
def test_a_thread_commits_and_waits_for_itself(which):
    A, B = np.ones((32, 4), np.float32), np.zeros((32, 4), np.float32)
    [found] = hazards_of_a_block(by_half_the_lanes, A, B, which)
    assert found.kind == "async-not-waited"
    assert found.threads == ((16, 0, 0),)
    assert found.count == 16 * 4
    assert (B[:16] == 1).all()
    assert (B[16:] == 0).all()


def last_of_two(A, B, element):
    s = cuda.shared.array((2, 32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    for row in range(2):
        for column in range(4):
            s[row, t, column] = 0
    cp_async_16(s, 0, t, 0, A, t, 0)
    if cuda.blockIdx.x == 1:
        cp_async_16(s, 1, t, 0, A, t, 0)  # the second
    B[cuda.blockIdx.x, t] = s[1, t, element]


@pytest.mark.parametrize("element", range(4))
def test_each_element_of_a_copy_is_under_way_in_its_own_block(element):
    A, B = np.ones((32, 4), np.float32), np.zeros((2, 32), np.float32)
    [found] = simulate(last_of_two, 2, 32, A, B, element, on_hazard="collect").hazards
    assert found.kind == "async-not-waited"
    assert found.block == (1, 0, 0)
    assert found.count == 32
    lines, first = inspect.getsourcelines(last_of_two)
    line = first + next(i for i, text in enumerate(lines) if "the second" in text)
    assert f"thread (0) reads s[1, 0, {element}], which the copy of line {line}" in found.message


def twice_to_one_place(A, wait):
    s = cuda.shared.array((32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    for i in range(2):
        cp_async_16(s, t, 0, A, t + i, 0)
        cp_async_commit()
        if wait:
            cp_async_wait(0)


def test_two_copies_to_one_place_have_no_order():
    A = np.zeros((33, 4), np.float32)
    assert hazards_of_a_block(twice_to_one_place, A, True) == []
    [found] = hazards_of_a_block(twice_to_one_place, A, False)
    assert found.kind == "async-not-waited"
    assert "thread (0) overwrites s[0, 0], which the copy of line" in found.message


def late(A, B, barrier):
    s = cuda.shared.array((32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, A, t, 0)
    cp_async_commit()
    cuda.syncthreads()
    cp_async_wait(0)
    if barrier:
        cuda.syncthreads()
    store_v4(B, t, 0, load_v4(s, 31 - t, 0))


def test_a_barrier_before_the_wait_is_none_after_it():
    A, B = np.zeros((32, 4), np.float32), np.zeros((32, 4), np.float32)
    assert hazards_of_a_block(late, A, B, True) == []
    [found] = hazards_of_a_block(late, A, B, False)
    assert found.kind == "shared-race"
    assert "thread (0) reads what thread (31) wrote" in found.message


def overtaking(A, B, barrier):
    s = cuda.shared.array((32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    store_v4(s, t, 0, load_v4(A, t, 0))
    cuda.syncthreads()
    store_v4(B, t, 0, load_v4(s, 31 - t, 0))
    if barrier:
        cuda.syncthreads()
    cp_async_16(s, t, 0, A, t, 0)


def test_a_copy_must_not_overtake_readers():
    A, B = np.zeros((32, 4), np.float32), np.zeros((32, 4), np.float32)
    assert hazards_of_a_block(overtaking, A, B, True) == []
    [found] = hazards_of_a_block(overtaking, A, B, False)
    assert found.kind == "shared-race"
    assert found.code == "cp_async_16(s, t, 0, A, t, 0)"


def ragged(A, B, rows, elements):
    s = cuda.shared.array((32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    if elements < 0:
        cp_async_16(s, t, 0, A, t, 0, t < rows)
    else:
        cp_async_16(s, t, 0, A, t, 0, elements if t < rows else 0)
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncthreads()
    store_v4(B, t, 0, load_v4(s, t, 0))


@pytest.mark.parametrize("elements", [-1, 3, 0])
def test_what_is_not_valid_becomes_zero(elements):
    A = np.arange(1, 81, dtype=np.float32).reshape(20, 4)  # rows beyond are not read
    B = np.full((32, 4), np.nan, np.float32)
    assert hazards_of_a_block(ragged, A, B, 20, elements) == []
    expected = np.zeros((32, 4), np.float32)
    count = 4 if elements < 0 else elements
    expected[:20, :count] = A[:, :count]
    assert np.array_equal(B, expected)
    first, *_ = hazards_of_a_block(ragged, A, B, 21, 4)
    assert first.kind == "out-of-bounds"
    assert first.threads == ((20, 0, 0),)


def test_the_end_of_an_array_may_be_copied_in_part():
    def kernel(A, B):
        s = cuda.shared.array((32, 4), np.float32, alignment=16)
        t = cuda.threadIdx.x
        cp_async_16(s, t, 0, A, 4 * t, min(max(A.shape[0] - 4 * t, 0), 4))
        cp_async_commit()
        cp_async_wait(0)
        store_v4(B, t, 0, load_v4(s, t, 0))

    A, B = np.arange(1, 19, dtype=np.float32), np.full((32, 4), np.nan, np.float32)
    assert hazards_of_a_block(kernel, A, B) == []
    assert np.array_equal(B.ravel(), np.pad(A, (0, 128 - 18)))


def test_copies_go_to_shared_memory_from_global():
    def backwards(A):
        s = cuda.shared.array((32, 4), np.float32, alignment=16)
        cp_async_4(A, 0, 0, s, 0, 0)

    def between_types(A):
        s = cuda.shared.array((32, 4), np.int32, alignment=16)
        cp_async_16(s, 0, 0, A, 0, 0)

    def beyond(A):
        cp_async_wait(64)

    A = np.zeros((4, 4), np.float32)
    with pytest.raises(TypeError, match="takes an array in shared memory; A is in global memory"):
        simulate(backwards, 1, 1, A)
    with pytest.raises(TypeError, match="arrays of one type, not from float32 to int32"):
        simulate(between_types, 1, 1, A)
    with pytest.raises(ValueError, match="groups=64; use 0 to 63"):
        simulate(beyond, 1, 1, A)
