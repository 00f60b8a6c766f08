"""Microbenchmarks as nouns: names, memory at the start, and what is read from clocks."""

import numpy as np
import pytest

from benchmarks.microbenchmarks import LAUNCHES, LOOPS, microbenchmark
from benchmarks.microbenchmarks.hand_out import taken
from benchmarks.microbenchmarks.loop import (
    CLOCKS,
    LANES_AT,
    RING_AT,
    WARP,
    between_blocks,
    each_warp,
    span,
)
from benchmarks.microbenchmarks.together import own_clock

EVERY = (*LOOPS, *LAUNCHES)
pytestmark = pytest.mark.measuring


def test_names_and_facts_are_each_ones_own():
    assert len({one.name for one in EVERY}) == len(EVERY)
    assert len({one.fact for one in EVERY}) > len(EVERY) // 2
    for one in EVERY:
        assert one.fact[0].islower()
        assert not one.fact.endswith(".")


def test_a_name_that_is_none_is_refused():
    with pytest.raises(LookupError, match="no microbenchmark is called 'ffma'; there are"):
        microbenchmark("ffma")


def test_every_loop_can_be_launched():
    for loop in LOOPS:
        assert loop.count > 0, loop.name
        assert loop.turns > 0, loop.name
        assert all(1 <= warps <= 32 for warps in loop.warps), loop.name
        assert len(loop.lanes) == WARP, loop.name
        assert loop.shared_bytes <= 48 << 10, loop.name  # static
        assert sum(loop.code.values()) >= loop.count or loop.count == 1, loop.name


def test_memory_holds_what_the_kernel_reads_first():
    loop = microbenchmark("lds_32_conflict_2_rate")
    memory = loop.memory(0)
    assert memory[24:28].view(np.uint32) == loop.turns
    assert memory[LANES_AT:].view(np.uint32)[:WARP].tolist() == [8 * lane for lane in range(WARP)]
    assert all(memory[:12].view(np.float32) > 0)


@pytest.mark.parametrize("name", ["ldg_l1_latency", "ldg_l2_latency"])
def test_a_ring_leads_through_all_its_places_and_back(name):
    loop, base = microbenchmark(name), 1 << 40
    memory = loop.memory(base)
    assert memory.nbytes <= loop.data_bytes
    place, seen = base + RING_AT, []
    while place not in seen[:1]:
        seen.append(place)
        place = int(memory[place - base :][:8].view(np.uint64)[0])
    assert len(set(seen)) == len(seen) == -(-(loop.ring.bytes - 7) // loop.ring.stride)


def test_a_cold_ring_is_longer_than_the_loop():
    (loop,) = [loop for loop in LOOPS if loop.cold and loop.ring]
    assert loop.passes == 1
    assert loop.count * loop.turns < loop.ring.bytes // loop.ring.stride


def test_lanes_stay_inside_of_what_there_is():
    wide = [loop for loop in LOOPS if loop.shared_bytes > 4 and any(loop.lanes)]
    assert wide
    for loop in wide:
        shared = "shared" in loop.body or "ldmatrix" in loop.body
        room = loop.shared_bytes if shared else loop.data_bytes
        assert max(loop.lanes) < room, loop.name


def clocks(rows, blocks):
    """From (entry, start, end, sm) of each warp."""
    table = np.zeros(len(rows), CLOCKS)
    for name, column in zip(("entry", "start", "end", "sm"), zip(*rows, strict=True), strict=True):
        table[name] = column
    return table.reshape(blocks, -1)


def test_a_span_is_that_of_the_slowest_sm():
    two = clocks([(0, 10, 50, 0), (0, 12, 60, 0), (0, 1010, 1040, 1), (0, 1015, 1055, 1)], 2)
    assert span(two) == [50]


def test_the_clock_is_that_of_whole_blocks():
    """Of one block: 1000 cycles in 500 ns, by a second warp that waited for 100 ns before."""
    two = clocks([(0, 10, 1000, 0), (0, 11, 1010, 0)], 1)
    two["start_ns"], two["end_ns"] = [[100, 0]], [[590, 600]]
    assert own_clock(two) == [1000, 2000]


def test_each_warp_ends_so_long_after_the_first_start():
    assert each_warp(clocks([(0, 10, 50, 0), (0, 12, 60, 0)], 1)) == [40, 50]


def test_blocks_follow_each_other():
    """Two at a time on one SM: they end at 100 and 130, the next begin at 105 and 137."""
    one = clocks([(0, 20, 100, 0), (1, 21, 130, 0), (105, 125, 200, 0), (137, 157, 230, 0)], 4)
    assert between_blocks(one) == [6, 20]
    assert between_blocks(one[::-1]) == [6, 20]


def test_an_sm_takes_so_many_blocks_and_ends_its_first_one_then():
    """Of three blocks SM 0 takes two; its first begins at 5 and the second ends sooner."""
    rows = [(5, 10, 90, 0), (7, 11, 85, 0), (2, 10, 60, 1)]
    assert taken(clocks(rows, 3)) == [2, 1, 80, 58]
