"""The model of the L2 cache, against one that looks up one sector after the other."""

from collections import Counter, OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gemmlab import Gemm, cuda, device, kernels, simulate
from gemmlab.simt.memory import l2
from gemmlab.simt.memory.l2 import L2, smaller_before

LINE = 128


def one_by_one(accesses, capacity):
    """A cache of `capacity` lines as a dictionary, the least recently used line first."""
    lines, counts = OrderedDict(), Counter()
    for sectors, reads, writes in accesses:
        for sector in sectors:
            if sector // 4 not in lines and len(lines) == capacity:
                _, (_, dirty) = lines.popitem(last=False)
                counts["dram_write_bytes"] += 32 * len(dirty)
            valid, dirty = lines.setdefault(sector // 4, (set(), set()))
            lines.move_to_end(sector // 4)
            counts["l2_hits" if sector in valid else "l2_misses"] += 1
            counts["dram_read_bytes"] += 32 * (reads and sector not in valid)
            valid.add(sector)
            if writes:
                dirty.add(sector)
    counts["dram_write_bytes"] += 32 * sum(len(dirty) for _, dirty in lines.values())
    return counts


kinds = st.sampled_from([(True, False), (False, True), (True, True)])  # load, store, atomic
accesses = st.lists(
    st.tuples(st.lists(st.integers(0, 60), max_size=40), kinds).map(lambda a: (a[0], *a[1])),
    max_size=12,
)


def counted(accesses, capacity):
    cache = L2(capacity * LINE)
    for sectors, reads, writes in accesses:
        cache.access(sectors, reads=reads, writes=writes)
    return cache.finish()


@given(accesses, st.integers(1, 20), st.sampled_from([1, 7, 64, 1 << 16]))
@settings(deadline=None, max_examples=400)
def test_equal_to_a_cache_that_looks_up_one_by_one(accesses, capacity, chunk):
    """Hits, misses and bytes, to the last one, however many accesses are looked up together."""
    before, l2.CHUNK = l2.CHUNK, chunk
    try:
        found = counted(accesses, capacity)
    finally:
        l2.CHUNK = before
    assert +found == +one_by_one(accesses, capacity)


def test_equal_on_long_sequences_that_evict():
    generator = np.random.default_rng(0)
    accesses = [
        (generator.zipf(1.2, 4000) % 5000, *kind)
        for kind in [(True, False), (False, True), (True, False), (True, True)] * 3
    ]
    expected = one_by_one([(s.tolist(), r, w) for s, r, w in accesses], 200)
    assert expected["l2_hits"] > 1000
    assert expected["dram_write_bytes"] > 10_000
    assert counted(accesses, 200) == expected


@given(st.lists(st.integers(-1, 50), max_size=70))
def test_smaller_before(values):
    """Equal values may count either way, and do so by their order."""
    found = smaller_before(np.array(values, np.int64))
    for i, value in enumerate(values):
        less = sum(v < value for v in values[:i])
        assert less <= found[i] <= less + values[:i].count(value)


def test_sectors_of_a_line_are_fetched_one_by_one():
    """A stride of a line: a quarter of each is fetched, and only a line's place is used up."""
    assert counted([(range(0, 400, 4), True, False)], 100)["dram_read_bytes"] == 100 * 32
    twice = [(range(0, 400, 4), True, False)] * 2
    assert counted(twice, 100)["l2_hits"] == 100
    assert counted(twice, 99)["l2_hits"] == 0  # the least recently used is always the next needed


def copy(x, out, stride):
    i = cuda.grid(1)
    out[i] = x[i * stride]


@pytest.mark.parametrize(("stride", "sectors"), [(1, 128), (2, 256), (8, 1024), (0, 1)])
def test_a_copy_moves_its_sectors_once(stride, sectors):
    x, out = np.arange(8192, dtype=np.float32), np.zeros(1024, np.float32)
    counters = simulate(copy, 8, 128, x, out, stride, l2="h200").counters
    assert counters["dram_read_bytes"] == 32 * sectors
    assert counters["dram_write_bytes"] == out.nbytes
    touched = counters["global_load_sectors"] + counters["global_store_sectors"]
    assert counters["l2_hits"] + counters["l2_misses"] == touched
    assert counters["l2_misses"] == sectors + 128


def test_arrays_lie_apart_and_the_same_array_does_not():
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    assert simulate(copy, 1, 32, x, out, 1, l2="h200").counters["l2_misses"] == 8
    assert simulate(copy, 1, 32, x, x, 1, l2="h200").counters["l2_misses"] == 4
    x = np.arange(48, dtype=np.float32)
    overlapping = simulate(copy, 1, 32, x[16:], x[:32], 1, l2="h200", on_hazard="collect")
    assert overlapping.counters["l2_misses"] == 6


@pytest.mark.parametrize("lanes", [1 << 16, 512])
def test_a_product_that_fits_reads_its_matrices_once(lanes, monkeypatch):
    """The compulsory bytes of the problem, whatever the batches; without l2=, no such counters."""
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    problem = Gemm(64, 48, 80)
    a, b, c = problem.operands()
    tiling = kernels.tiled.default
    launch = (*kernels.tiled.configure(problem, tiling), np.float32(1), a, b, np.float32(0), c)
    counters = simulate(kernels.tiled, *launch, l2="h200").counters
    assert counters["dram_read_bytes"] == a.nbytes + b.nbytes
    assert counters["dram_write_bytes"] == c.nbytes
    plain = simulate(kernels.tiled, *launch).counters
    assert {k: v for k, v in counters.items() if k in plain} == plain
    assert not {"l2_hits", "l2_misses", "dram_read_bytes"} & set(plain)


def test_a_product_that_does_not_fit_reads_more():
    problem = Gemm(128, 128, 128)
    a, b, c = problem.operands()
    small = replace(device("h200"), l2_bytes=1 << 14)
    launch = (*kernels.naive.configure(problem, kernels.naive.default), np.float32(1), a, b)
    counters = simulate(kernels.naive, *launch, np.float32(0), c, l2=small).counters
    assert counters["dram_read_bytes"] > 2 * (a.nbytes + b.nbytes)
    assert counters["dram_read_bytes"] <= 32 * counters["global_load_sectors"]


def test_an_l2_of_unknown_size_is_refused():
    unknown = replace(device("h200"), l2_bytes=None)
    with pytest.raises(ValueError, match="no L2 size is known for NVIDIA H200"):
        simulate(copy, 1, 1, np.zeros(1), np.zeros(1), 1, l2=unknown)
    with pytest.raises(ValueError, match="an L2 of 100 B holds no line"):
        L2(100)
