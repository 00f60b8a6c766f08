"""Integers that wrap on their way to an index."""

import numpy as np
import pytest
from numpy import int16, int32, uint8, uint32

from gemmlab import cuda, simulate
from gemmlab.instructions import load_v4
from gemmlab.simt import HazardError
from tests.support.launches import hazards, line_of


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
