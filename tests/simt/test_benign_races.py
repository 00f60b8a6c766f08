"""What looks like a race and is none, beside what is one: equal stores, CAS loops, half a warp."""

import inspect

import numpy as np
import pytest
from numpy import float32, int32

from gemmlab import cuda, simulate
from tests.support.launches import hazards, line_of


def launched(kernel, grid, block, *arguments):
    return simulate(kernel, grid, block, *arguments, on_hazard="collect")


# --------------------------------------------------------------------- stores of the same value


def all_set_a_flag(x, found):
    i = cuda.grid(1)
    if x[i] > 3:
        found[0] = 1  # here


def flag_in_shared_memory(x, found):
    any_found = cuda.shared.array(1, int32)
    if cuda.threadIdx.x == 0:
        any_found[0] = 0
    cuda.syncthreads()
    if x[cuda.grid(1)] > 3:
        any_found[0] = 1  # here
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and any_found[0]:
        found[cuda.blockIdx.x] = any_found[0]


def nan_everywhere(x, found):
    found[0] = float32(np.nan)  # here


@pytest.mark.parametrize("kernel", [all_set_a_flag, flag_in_shared_memory, nan_everywhere])
@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_stores_of_one_value_are_a_note(kernel, lanes, monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    report = launched(kernel, 3, 32, np.arange(96.0), np.zeros(3, np.float32))
    assert report.hazards == []
    notes = [(note.line, "write the same value to" in note.message) for note in report.notes]
    assert notes == [(line_of(kernel, "# here"), True)]


def each_its_own_value(x, found):
    found[0] = cuda.threadIdx.x  # fault


def the_last_one_differs(x, found):
    found[0] = 1 if cuda.grid(1) < 95 else 2  # fault


def two_lines_differ(x, found):
    if cuda.grid(1) == 0:
        found[0] = 1
    if cuda.grid(1) == 40:
        found[0] = 2  # fault


def one_changes_it_later(x, found):
    found[0] = 1
    cuda.syncthreads()
    if cuda.grid(1) == 95:
        found[0] = 2  # fault


def blocks_differ(x, found):
    part = cuda.shared.array(1, int32)
    part[0] = cuda.threadIdx.x if cuda.blockIdx.x == 2 else 0  # fault


@pytest.mark.parametrize(
    "kernel",
    [
        *(each_its_own_value, the_last_one_differs, two_lines_differ, one_changes_it_later),
        blocks_differ,
    ],
)
@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_stores_of_different_values_are_a_race(kernel, lanes, monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    found = hazards(kernel, 3, 32, np.arange(96.0), np.zeros(3, np.float32))
    assert {(h.kind.split("-")[1], h.line) for h in found} == {("race", line_of(kernel, "# fault"))}


# --------------------------------------------------------------------------------- CAS loops


def add_by_cas(x, total):
    i = cuda.grid(1)
    old = total[0]  # first read
    while True:
        expected = old
        old = cuda.atomic.cas(total, 0, expected, expected + x[i])
        if old == expected:
            break


def greatest_by_cas(x, total):
    i = cuda.grid(1)
    old = total[0]  # first read
    while old < x[i]:
        expected = old
        old = cuda.atomic.cas(total, 0, expected, x[i])
        if old == expected:
            break


def add_by_cas_in_shared_memory(x, total):
    part = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        part[0] = 0
    cuda.syncthreads()
    old = part[0]  # first read
    while True:
        expected = old
        old = cuda.atomic.cas(part, 0, expected, expected + x[cuda.grid(1)])
        if old == expected:
            break
    cuda.syncthreads()
    if t == 0:
        cuda.atomic.add(total, 0, part[0])


def insert(x, table):
    i = cuda.grid(1)
    slot = x[i] // 2
    waits = x[i] > 0
    while waits:
        if table[slot] == 0 and cuda.atomic.cas(table, slot, 0, x[i]) == 0:  # first read
            waits = False
        if waits:
            slot = (slot + 1) % table.size


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (add_by_cas, np.sum),
        (greatest_by_cas, np.max),
        (add_by_cas_in_shared_memory, np.sum),
        (insert, None),
    ],
)
@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_the_read_that_begins_a_cas_loop_is_a_note(kernel, expected, lanes, monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    x = np.random.default_rng(5).permutation(96).astype(np.int32)
    out = np.zeros(1 if expected else 128, np.int32)
    report = launched(kernel, 3, 32, x, out)
    assert report.hazards == []
    assert {note.line for note in report.notes} == {line_of(kernel, "# first read")}
    assert all("compare-and-swap" in note.message for note in report.notes)
    if expected:
        assert out[0] == expected(x)
    else:
        np.testing.assert_array_equal(np.sort(out)[-95:], np.arange(1, 96))


def ticket_by_two_steps(x, out):
    i = cuda.grid(1)
    ticket = x[0]  # fault
    cuda.atomic.add(x, 0, 1)
    out[i] = ticket


def read_after_the_loop(x, out):
    i = cuda.grid(1)
    old = x[0]
    while True:
        expected = old
        old = cuda.atomic.cas(x, 0, expected, expected + 1)
        if old == expected:
            break
    out[i] = x[0]  # fault


def cas_on_another_element(x, out):
    i = cuda.grid(1)
    value = x[0]  # fault
    cuda.atomic.add(x, 0, 1)
    cuda.atomic.cas(x, 1, value, i)
    out[i] = value


@pytest.mark.parametrize(
    "kernel", [ticket_by_two_steps, read_after_the_loop, cas_on_another_element]
)
@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_other_reads_of_what_is_updated_are_races(kernel, lanes, monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    found = hazards(kernel, 3, 32, np.zeros(2, np.int32), np.zeros(96, np.int32))
    at = line_of(kernel, "# fault")
    assert found
    assert all(at in (h.line, *(touch.line for touch in h.touches)) for h in found)


def spins_on_a_plain_read(x, out):
    if cuda.grid(1) == 0:
        cuda.atomic.add(x, 0, 1)
    while x[0] < 2:
        out[cuda.grid(1)] += 1


def test_a_race_is_reported_before_the_loop_that_does_not_end_for_it():
    options = {"on_hazard": "collect", "max_steps": 50}
    found = simulate(spins_on_a_plain_read, 1, 32, *np.zeros((2, 64)), **options).hazards
    assert [h.kind for h in found] == ["global-race", "step-limit"]


# ------------------------------------------------------------------------------ a part of a warp


def halves(x, out):
    t = cuda.threadIdx.x
    x[t] = t
    if t < 16:
        cuda.syncwarp(0xFFFF)
    else:
        cuda.syncwarp(0xFFFF0000)
    out[t] = x[t ^ 1]


def across_halves(x, out):
    t = cuda.threadIdx.x
    x[t] = t
    if t < 16:
        cuda.syncwarp(0xFFFF)
    else:
        cuda.syncwarp(0xFFFF0000)
    out[t] = x[t ^ 16]  # fault


def one_half_waits(x, out):
    t = cuda.threadIdx.x
    x[t] = t
    if t < 16:
        cuda.syncwarp(0xFFFF)
    out[t] = x[t ^ 1]  # fault


def through_a_third(x, out):
    t = cuda.threadIdx.x
    if t == 0:
        x[0] = 7
    if t == 0 or t == 1:
        cuda.syncwarp(0b11)
    if t == 1 or t == 2:
        cuda.syncwarp(0b110)
    if t == 2:
        out[0] = x[0]


def through_a_third_too_late(x, out):
    t = cuda.threadIdx.x
    if t == 1 or t == 2:
        cuda.syncwarp(0b110)
    if t == 0:
        x[0] = 7
    if t == 0 or t == 1:
        cuda.syncwarp(0b11)
    if t == 2:
        out[0] = x[0]  # fault


def in_shared_memory(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t % 32 < 16:
        cuda.syncwarp(0xFFFF)
    out[t] = s[t ^ 1] if t % 32 < 16 else s[t]
    cuda.syncwarp()
    out[t] = s[t ^ 16]


def in_shared_memory_across(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t % 32 < 16:
        cuda.syncwarp(0xFFFF)
    out[t] = s[t ^ 16]  # fault


def whole_warp_afterwards(x, out):
    t = cuda.threadIdx.x
    x[t] = t
    if t < 16:
        cuda.syncwarp(0xFFFF)
    cuda.syncwarp()
    out[t] = x[t ^ 16]


@pytest.mark.parametrize(
    "kernel",
    [
        *(halves, across_halves, one_half_waits, through_a_third, through_a_third_too_late),
        *(in_shared_memory, in_shared_memory_across, whole_warp_afterwards),
    ],
)
def test_syncwarp_orders_the_lanes_of_its_mask(kernel):
    x, out = np.zeros((2, 64), np.float32)
    found = hazards(kernel, 1, 64 if "shared" in kernel.__name__ else 32, x, out)
    faults = [line_of(kernel, "# fault")] if "# fault" in inspect.getsource(kernel) else []
    assert [(h.kind.split("-")[1], h.line) for h in found] == [("race", line) for line in faults]
