"""What the simulator counts: requests, sectors, wavefronts, barriers and instructions."""

import numpy as np
import pytest
from numpy import float32, int32

from benchmarks.samples.language_kernels import (
    calls,
    copy,
    double,
    integers,
    per_thread_loop,
    put,
    reduction,
    shared_arrays,
    short_circuit,
    strided,
)
from gemmlab import cuda, simulate
from gemmlab.simt import HazardError
from tests.simt.test_shared_memory import static_bytes
from tests.support.launches import lines


@pytest.mark.parametrize(
    ("stride", "offset", "sectors"),
    [(1, 0, 4), (1, 1, 5), (1, 8, 4), (2, 0, 8), (8, 0, 32), (0, 0, 1)],
)
def test_counters_of_a_copy(stride, offset, sectors):
    """Three warps, 32 lanes each: the strides and offsets of a copy, sector by sector."""
    out = np.zeros(96, np.float32)
    counters = simulate(copy, 3, 32, integers(2000), out, stride, offset).counters
    assert counters == {
        "global_load_requests": 3,
        "global_load_sectors": 3 * sectors,
        "global_load_bytes": 384,
        "global_store_requests": 3,
        "global_store_sectors": 12,
        "global_store_bytes": 384,
    }


def test_masked_warps_make_no_request():
    x = integers(40)
    counters = simulate(double, 2, 64, x).counters
    assert counters["global_load_requests"] == counters["global_store_requests"] == 2
    assert counters["global_load_sectors"] == 5
    assert counters["global_load_bytes"] == 160


def column(out):
    tile = cuda.shared.array((32, 32), float32)
    padded = cuda.shared.array((32, 33), float32)
    t = cuda.threadIdx.x
    tile[t, 0] = 1
    padded[t, 0] = 1
    cuda.syncthreads()
    out[t] = tile[t, 0] + padded[t, 0]


def test_counters_of_shared_memory_and_line_by_line():
    report = simulate(column, 1, 32, np.zeros(32, np.float32))
    assert report.counters["shared_store_requests"] == 2
    assert report.counters["shared_store_wavefronts"] == 33
    assert report.counters["shared_load_wavefronts"] == 33
    assert report.counters["shared_bank_conflicts"] == 2 * 31
    lines = {report.source.code(line): counts for line, counts in report.by_line.items()}
    assert lines["tile[t, 0] = 1"]["shared_store_wavefronts"] == 32
    assert lines["padded[t, 0] = 1"]["shared_store_wavefronts"] == 1
    assert report.counters["barriers"] == 1


def evaluated_once(x, out):
    i = cuda.grid(1)
    if 0 <= x[i] < 5:
        out[i] = 1
    if 100 < x[i] < x[i + 1000]:
        out[i] = 2
    cuda.syncthreads()
    out[int(x[i])] += 1


def test_each_operand_is_loaded_once():
    """Chained comparisons and augmented assignments load what they name once."""
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    report = simulate(evaluated_once, 1, 32, x, out)
    lines = {report.source.code(line): counts for line, counts in report.by_line.items()}
    assert lines["if 0 <= x[i] < 5:"]["global_load_requests"] == 1
    assert lines["if 100 < x[i] < x[i + 1000]:"]["global_load_requests"] == 1
    assert lines["out[int(x[i])] += 1"]["global_load_requests"] == 2


def test_barriers_are_counted_for_each_block():
    assert simulate(reduction, 3, 64, integers(150), np.zeros(3)).counters["barriers"] == 3 * 7


@pytest.mark.parametrize("kernel", [strided, shared_arrays, per_thread_loop, short_circuit])
def test_batches_make_no_difference(kernel, monkeypatch):
    """Grids larger than what is simulated at once: the same values and the same counts."""
    results = []
    for lanes in (1 << 16, 256, 64, 1):
        monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
        out = np.zeros(1000, np.float32)
        report = simulate(kernel, 16, 64, integers(1000), out)
        results.append((out.tolist(), report.counters, report.by_line))
    assert all(result == results[0] for result in results)


def test_a_grid_larger_than_a_batch():
    x = integers(100_000)
    report = simulate(double, 3125, 32, x)
    np.testing.assert_array_equal(x, 2 * integers(100_000))
    assert report.counters["global_load_requests"] == 3125


def test_one_array_passed_twice_is_one_array():
    x = integers(64)
    assert simulate(copy, 2, 32, x, x, 1, 0).hazards == []
    np.testing.assert_array_equal(x, integers(64))
    with pytest.raises(HazardError, match="global-race"):
        simulate(copy, 2, 32, x, x, 0, 0)


def test_arrays_that_are_only_read_may_be_read_only():
    x, out = integers(100), np.zeros(100, np.float32)
    x.flags.writeable = False
    simulate(calls, 4, 32, x, out)
    assert out.any()


def stored_by_keyword(x, out):
    i = cuda.grid(1)
    put(index=i, value=x[i], array=out)


def test_arrays_stored_to_by_a_device_function():
    x, out = integers(32), np.zeros(32, np.float32)
    simulate(stored_by_keyword, 1, 32, x, out)
    np.testing.assert_array_equal(out, x)


def binned(x, bins):
    s = cuda.shared.array(2, int32)
    t = cuda.threadIdx.x
    if t < 2:
        s[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, t % 2, 1)
    cuda.atomic.add(bins, t, 1)
    cuda.atomic.add(bins, t % 4, 1)


def test_atomics_have_columns_of_their_own():
    report = simulate(binned, 3, 64, np.zeros(64), np.zeros(64, np.int32))
    listing = report.listing()
    columns = dict(listing.groups())["atomics"]
    assert [c.name for c in columns] == ["global", "shared"]
    assert [c.value(listing.total.counts) for c in columns] == [12, 6]
    assert ">atomics</th>" in report._repr_html_()
    plain = simulate(static_bytes(32), 1, 32, np.zeros(32))
    assert "atomics" not in [name for name, _ in plain.listing().groups()]


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
