"""Arguments that overlap on the host share simulated memory: their values and their races."""

import numpy as np
import pytest

from gemmlab import cuda, simulate
from gemmlab.simt import HazardError
from gemmlab.simt.memory.arguments import Argument, put_in_memory
from gemmlab.simt.races.memories import GlobalShadow
from tests.support.launches import hazards, line_of


def shift(to, x):
    i = cuda.grid(1)
    if i < to.size:
        to[i] = x[i]  # fault


def shift_in_order(to, x):
    i = cuda.grid(1)
    value = x[i] if i < x.size else 0
    cuda.syncthreads()
    if i < to.size:
        to[i] = value


def test_a_shift_in_place_is_a_race():
    d = np.arange(65.0)
    [hazard] = hazards(shift, 1, 64, d[:-1], d[1:])
    assert (hazard.kind, hazard.line, hazard.array) == (
        *("global-race", line_of(shift, "# fault")),
        "to",
    )
    assert hazard.ops == ("write", "read")
    kept = np.arange(65.0)
    with pytest.raises(HazardError):
        simulate(shift, 1, 64, kept[:-1], kept[1:])
    np.testing.assert_array_equal(kept, np.arange(65.0))


def test_what_one_view_stores_the_other_one_loads():
    d = np.arange(65.0)
    assert hazards(shift_in_order, 1, 64, d[:-1], d[1:]) == []
    np.testing.assert_array_equal(d, [*range(1, 65), 64])


def test_arrays_that_do_not_touch_are_no_race():
    d = np.arange(128.0)
    assert hazards(shift, 1, 64, d[:64], d[64:]) == []
    np.testing.assert_array_equal(d[:64], d[64:])
    columns = np.arange(128.0).reshape(64, 2)
    assert hazards(shift, 1, 64, columns[:, 0], columns[:, 1]) == []
    np.testing.assert_array_equal(columns[:, 0], np.arange(1, 128, 2))
    np.testing.assert_array_equal(columns[:, 1], np.arange(1, 128, 2))


def add(total, x):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(total, i // 2, x[i])


def test_no_update_through_another_view_is_lost():
    d = np.ones(8)
    assert hazards(add, 1, 32, d[:2], d[4:]) == []
    np.testing.assert_array_equal(d, [3, 3, 1, 1, 1, 1, 1, 1])
    whole = np.ones(8)
    simulate(add, 1, 32, whole[:], np.ones(4))
    np.testing.assert_array_equal(whole, [3, 3, 1, 1, 1, 1, 1, 1])


def transposed(a, b):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        a[y, x] = b[y, x]  # fault


def test_a_transposition_in_place_is_a_race():
    a = np.arange(16.0).reshape(4, 4)
    [hazard] = hazards(transposed, 1, (4, 4), a, a.T)
    assert (hazard.kind, hazard.line) == ("global-race", line_of(transposed, "# fault"))
    assert hazard.index[0] != hazard.index[1]  # the diagonal is read by the thread that writes it


def clear_high(words, halves, ordered):
    i = cuda.grid(1)
    words[i] = 0x10001 * (i + 1)
    if ordered:
        cuda.syncthreads()
    halves[2 * ((i + 1) % words.size) + 1] = 0  # fault


def test_views_of_other_types():
    words = np.zeros(32, np.uint32)
    found = hazards(clear_high, 1, 32, words, words.view(np.uint16), False)
    assert [(h.kind, h.line, h.array) for h in found] == [
        ("global-race", line_of(clear_high, "# fault"), "halves")
    ]
    assert hazards(clear_high, 1, 32, words, np.zeros(64, np.uint16), False) == []
    assert hazards(clear_high, 1, 32, words, words.view(np.uint16), True) == []
    np.testing.assert_array_equal(words, np.arange(1, 33))


def test_views_whose_elements_do_not_lie_on_each_other():
    memory = np.zeros(66, np.uint8)
    with pytest.raises(ValueError, match=r"halves begins 1 B after the start .* pass arrays"):
        simulate(clear_high, 1, 16, memory[:64].view(np.uint32), memory[1:65].view(np.uint16), True)


def test_one_array_through_two_parameters():
    x = np.arange(64.0)
    [hazard] = hazards(shift_by_one, 1, 32, x, x)
    assert hazard.kind == "global-race"


def shift_by_one(to, x):
    i = cuda.grid(1)
    to[i] = x[i + 1]


def test_arguments_that_are_only_read_are_not_copied():
    x = np.zeros((64, 4))
    hosts = {"to": x[:, 0], "also": x[:, 1], "read": np.zeros(8), "too": np.zeros((4, 4)).T}
    arguments = [Argument(host, name) for name, host in hosts.items()]
    put_in_memory(arguments, {"to"}, lambda size: GlobalShadow(size, 32, 32))
    memory = {a.name: a.array.buffer for a in arguments}
    assert np.shares_memory(memory["to"], memory["also"])
    shared = [name for name, host in hosts.items() if np.shares_memory(memory[name], host)]
    assert shared == ["read", "too"]
    assert not memory["read"].flags.writeable


def broadcast(x, out):
    i = cuda.grid(1)
    out[i] = x[i]


@pytest.mark.parametrize("blocks", [1, 2])
def test_an_array_that_is_read_only_cannot_be_stored_to(blocks):
    x = np.zeros(64)
    out = np.zeros(64)
    out.flags.writeable = False
    with pytest.raises(ValueError, match=r"out is read-only on the host .*\n?.*out\[i\] = x\[i\]"):
        simulate(broadcast, blocks, 32, x, out)
    x.flags.writeable = False
    simulate(broadcast, blocks, 32, x, np.zeros(64))  # to read it is fine


# ------------------------------------------------------------------ what nobody has ever written


class OnDevice(np.ndarray):
    """An array of the GPU, of which elements may be unwritten."""

    unwritten = None


def on_device(size, dtype=np.float64):
    array = np.zeros(size, dtype).view(OnDevice)
    array.unwritten = np.ones(size, bool)
    return array


def fill(x, n):
    i = cuda.grid(1)
    if i < n:
        x[i] = i


def read(x, out):
    i = cuda.grid(1)
    out[i] = x[i]  # fault


def test_a_read_of_what_nobody_wrote():
    x, out = on_device(64), np.zeros(64)
    found = hazards(read, 2, 32, x, out)
    assert [(h.kind, h.line, h.space, h.index, h.count) for h in found] == [
        ("uninitialised-read", line_of(read, "# fault"), "global", (0,), 64)
    ]
    assert "thread (0) reads x[0], which nobody has written" in found[0].message
    simulate(fill, 2, 32, x, 40)
    assert x.unwritten.tolist() == [False] * 40 + [True] * 24
    [hazard] = hazards(read, 2, 32, x, out)
    assert (hazard.index, hazard.count, hazard.block) == ((40,), 24, (1, 0, 0))
    simulate(fill, 2, 32, x, 64)
    assert not x.unwritten.any()
    assert hazards(read, 2, 32, x, out) == []


def counts(x):
    cuda.atomic.add(x, 0, 1)  # fault


def test_an_atomic_reads_too():
    x = on_device(4)
    [hazard] = hazards(counts, 1, 32, x)
    assert (hazard.kind, hazard.line) == ("uninitialised-read", line_of(counts, "# fault"))
    assert "updates x[0], which nobody has written" in hazard.message


def test_what_is_unwritten_is_known_by_every_view():
    x = on_device(64)
    half = x[32:]
    half.unwritten = x.unwritten[32:]
    simulate(fill, 1, 32, half, 32)
    assert x.unwritten.tolist() == [True] * 32 + [False] * 32
    out = np.zeros(32)
    assert hazards(read, 1, 32, half, out) == []


def test_a_launch_that_fails_writes_nothing():
    x = on_device(16)
    with pytest.raises(HazardError, match="outside"):
        simulate(fill, 1, 32, x, 32)
    assert x.unwritten.all()
