"""What goes on while warps do other things, on listings whose cycles can be counted on paper."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.microbenchmarks import microbenchmark
from benchmarks.microbenchmarks.simulated import listing as timed
from gemmlab.compiled.sm.facts import facts
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import Reason
from gemmlab.compiled.sm.simulation import simulate
from gemmlab.compiled.sm.streams import Effects, Level, Stream, stream
from gemmlab.measure import microbenchmarks as results
from tests.support.listings import listing
from tests.support.timed_code import turn

H200 = facts("h200")
INIT, EXPECT, COPY, WAIT, ARRIVE = range(5)
CODE = listing(
    """
    ------ W- R- - S01  SYNCS.EXCH.64 URZ[UR4], UR6
    ------ W- R- - S01  SYNCS.ARRIVE.TRANS64 RZ, [UR4], R2
    ------ W- R- - S01  UTMALDG.2D [UR8][UR10]
    ------ W- R- - S01  SYNCS.PHASECHK.TRANS64.TRYWAIT P0[UR4], R0
    ------ W- R- - S01  SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ
    """
)
ALL = Effects.only("stalls", "scoreboards", "barriers", "l2")
BYTES = 4096
# Reads that follow each other at the share of device memory wait for those of other SMs, too.
CROWD = 51


def asked(*events, sectors=0, level=Level.L2):
    """A stream of (instruction, number of the mbarrier, amount)."""
    indices, numbers, amounts = zip(*events, strict=True)
    one = stream(indices, 0, [sectors if i == COPY else 0 for i in indices], level)
    return replace(one, mbarriers=np.array(numbers), amounts=np.array(amounts))


def copying(parity=0, **options):
    """A thread makes an mbarrier, begins a copy that it counts, and waits for the phase."""
    events = (INIT, 0, 1), (EXPECT, 0, BYTES), (COPY, 0, BYTES), (WAIT, 0, 1 + parity)
    return asked(*events, sectors=BYTES // 32, **options)


@pytest.mark.parametrize(
    ("level", "share", "latency"),
    [
        (Level.L2, H200.l2_bytes_per_cycle, H200.l2_latency),
        (Level.DRAM, H200.dram_bytes_per_cycle, H200.dram_latency + CROWD),
    ],
)
def test_a_phase_is_over_when_its_bytes_have_come(level, share, latency):
    began = 2
    expected = int(began + BYTES / share) + latency + 1
    found = simulate(CODE, [[copying(level=level)]], effects=ALL)
    assert found.cycles == expected
    assert found.lost[Reason.SCOREBOARD, COPY] == expected - 4


def test_the_phase_before_the_first_is_over():
    assert simulate(CODE, [[copying(parity=1)]], effects=ALL).cycles == 4


def test_the_phase_before_is_over_until_the_next_one_is():
    """One that waits for the first phase late, when it is known when the second will be over."""
    rounds = asked((INIT, 0, 1), (ARRIVE, 0, 1), *[(WAIT, 0, 0)] * 60, (ARRIVE, 0, 1))
    late = asked(*[(WAIT, 0, 0)] * 63, (WAIT, 0, 1))
    assert simulate(CODE, [[rounds, late]], effects=ALL).cycles == 64


@pytest.mark.parametrize("waits", [1, 2, 3])
def test_a_warp_that_is_late_waits_for_its_phases_in_their_order(waits):
    """Three are over when it comes. Of hardware, the parity of the first would be that of the
    fourth; there it could not be late, as it takes part in products that the others wait for.
    """
    rounds = [event for parity in (0, 1, 0) for event in ((ARRIVE, 0, 1), (WAIT, 0, 1 + parity))]
    later = 4 * H200.mbarrier_latency
    late = asked(*[(WAIT, 0, 0)] * later, *((WAIT, 0, 1 + i % 2) for i in range(waits)))
    block = [asked((INIT, 0, 1), *rounds), late]
    assert simulate(CODE, [block], effects=ALL, limit=9 * later).cycles == later + waits
    again = asked(*[(WAIT, 0, 0)] * later, (WAIT, 0, 1), (WAIT, 0, 2), (WAIT, 0, 1), (WAIT, 0, 2))
    with pytest.raises(ValueError, match="do not end"):
        simulate(CODE, [[block[0], again]], effects=ALL, limit=9 * later)


def test_copies_follow_each_other_at_the_share_of_l2():
    both = asked(
        (INIT, 0, 1), (INIT, 1, 1), (EXPECT, 0, BYTES), (COPY, 0, BYTES), (EXPECT, 1, BYTES),
        (COPY, 1, BYTES), (WAIT, 1, 1), sectors=BYTES // 32,
    )  # fmt: skip
    expected = int(3 + 2 * BYTES / H200.l2_bytes_per_cycle) + H200.l2_latency + 1
    assert simulate(CODE, [[both]], effects=ALL).cycles == expected


def test_the_last_arrival_opens_the_phase():
    """Two warps arrive at an mbarrier for two; a third waits for both."""
    made = asked((INIT, 0, 2), (WAIT, 0, 1))
    early, late = asked((ARRIVE, 0, 1)), asked(*[(WAIT, 0, 0)] * 9, (ARRIVE, 0, 1))
    found = simulate(CODE, [[made, early, late]], effects=ALL)
    assert found.cycles == 9 + H200.mbarrier_latency + 1
    assert found.lost[Reason.BARRIER, WAIT] == 9 + H200.mbarrier_latency - 1


@pytest.mark.parametrize("instruction", [ARRIVE, EXPECT, COPY])
def test_what_no_lane_does_counts_nothing(instruction):
    made = asked((INIT, 0, 1), (instruction, 0, 0), (WAIT, 0, 1))
    with pytest.raises(ValueError, match="do not end within 1000 cycles"):
        simulate(CODE, [[made]], effects=ALL, limit=1000)


def test_the_timeline_says_when_phases_are_over():
    """From its first cycle on, and not what is over later."""
    rounds = [event for parity in (0, 1, 0) for event in ((ARRIVE, 1, 1), (WAIT, 1, 1 + parity))]
    block = [asked((INIT, 0, 1), (INIT, 1, 1), *rounds)]
    period = H200.mbarrier_latency + 1
    for first in (0, 1 + period):
        opened = simulate(CODE, [block], effects=ALL, window=(first, 2 * period)).timeline.opened
        assert opened.shape == (1, 2, 2 * period)
        ends = 1 + period * np.arange(1, 4) - first
        assert list(np.flatnonzero(opened[0, 1])) == [e for e in ends if 0 <= e < 2 * period]
        assert not opened[0, 0].any()


def test_phases_take_turns():
    """The second wait is for the other parity, and the third for the first one's again."""
    rounds = [event for parity in (0, 1, 0) for event in ((ARRIVE, 0, 1), (WAIT, 0, 1 + parity))]
    found = simulate(CODE, [[asked((INIT, 0, 1), *rounds)]], effects=ALL)
    assert found.cycles == 1 + 3 * (H200.mbarrier_latency + 1)


def test_blocks_have_mbarriers_of_their_own():
    """A block that comes to a place finds nothing of the one before."""
    one = simulate(CODE, [[copying()]], effects=ALL).cycles
    each = simulate(CODE, [[copying()]] * 3, resident=1, effects=ALL).cycles
    # Later blocks are ahead of their share of L2: their copies do not wait for it.
    sooner = 2 * BYTES / H200.l2_bytes_per_cycle
    assert each == pytest.approx(3 * one + 2 * H200.block_latency - sooner, abs=5)
    lacking = asked((INIT, 0, 1), (WAIT, 0, 1))
    with pytest.raises(ValueError, match="do not end"):
        simulate(CODE, [[copying()], [lacking]], resident=1, effects=ALL, limit=5000)


# ------------------------------------------------------------------------------------------- stores


STORES = listing(
    """
    ------ W- R2 - S01  UTMASTG.2D [UR16][UR12]
    ------ W- R0 - S01  UTMACMDFLUSH
    ------ W- R- - S01  DEPBAR.LE SB0, 0x1
    ------ W- R- - S01  DEPBAR.LE SB0, 0x0
    """
)
STORE, GROUP, FEW_LEFT, NONE_LEFT = range(4)


@pytest.mark.parametrize(
    ("level", "rate"),
    [(Level.L2, H200.l2_bytes_per_cycle), (Level.STORED, H200.dram_stored_per_cycle)],
)
@pytest.mark.parametrize(
    ("order", "read"),
    [
        ((STORE, GROUP, NONE_LEFT), 1),
        ((STORE, STORE, GROUP, NONE_LEFT), 2),
        ((STORE, GROUP, STORE, GROUP, FEW_LEFT), 1),  # one group may still be read
        ((STORE, GROUP, STORE, GROUP, NONE_LEFT), 2),
    ],
)
def test_a_slab_is_free_when_the_tma_has_read_it(order, read, level, rate):
    """The TMA reads as fast as L2, and what is behind it, take; a wait is for the groups before."""
    sectors = [BYTES // 32 * (i == STORE) for i in order]
    found = simulate(STORES, [[stream(order, 0, sectors, level)]], effects=ALL)
    assert found.cycles == int(read * BYTES / rate) + 1


def test_stores_and_copies_share_l2():
    """A copy that is asked for behind a store comes later by what the store takes."""
    both = listing(
        """
        ------ W- R- - S01  SYNCS.EXCH.64 URZ[UR4], UR6
        ------ W- R- - S01  SYNCS.ARRIVE.TRANS64 RZ, [UR4], R2
        ------ W- R2 - S01  UTMASTG.2D [UR16][UR12]
        ------ W- R- - S01  UTMALDG.2D [UR8][UR10]
        ------ W- R- - S01  SYNCS.PHASECHK.TRANS64.TRYWAIT P0[UR4], R0
        """
    )
    one = Stream(
        np.arange(5, dtype=np.int32),
        np.zeros(5, np.int32),
        np.array([0, 0, BYTES // 32, BYTES // 32, 0], np.int32),
        np.full(5, Level.L2, np.int8),
        np.zeros(5, np.int32),
        np.array([1, BYTES, 0, BYTES, 1], np.int32),
    )
    found = simulate(both, [[one]], effects=ALL)
    share = 2 * BYTES / H200.l2_bytes_per_cycle
    assert found.cycles == int(2 + share) + H200.l2_latency + 1


# -------------------------------------------------------------------------------------------- wgmma


PRODUCTS = listing(
    """
    ------ W- R- - S01  HGMMA.64x128x16.F32 R24, gdesc[UR20], R24
    ------ W- R- - S01  HGMMA.64x128x16.F32 R24, gdesc[UR20], R24, gsb0
    ------ W- R- - S01  WARPGROUP.DEPBAR.LE gsb0, 0x1
    ------ W- R- - S01  WARPGROUP.DEPBAR.LE gsb0, 0x0
    """
)
COLUMNS = 128 // H200.wgmma_columns  # cycles of a product


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ((0, 1, 3), 2 * COLUMNS + H200.wgmma_latency + 1),  # the wait for all
        ((0, 1, 2), COLUMNS + 2),  # one group may be under way
        ((0, 1, 0, 1, 2), 3 * COLUMNS + 2),  # the first of two is complete before the last begins
        ((0, 2, 3), 3),  # a product that no group has is not waited for
    ],
)
def test_a_wait_is_for_groups_of_products(order, expected):
    effects = Effects.only("stalls", "scoreboards", "pipes")
    found = simulate(PRODUCTS, [[stream(order)]], effects=effects)
    assert found.cycles == expected
    assert found.kinds[0] == Kind.TENSOR


def test_a_product_ends_when_it_has_read_shared_memory():
    """Loads that the pipe took before keep it for longer than the product lasts."""
    code = listing(
        """
        ------ W0 R- - S01  LDS.128 R4, [R2]
        ------ W- R- - S01  HGMMA.64x128x16.F32 R24, gdesc[UR20], R24, gsb0
        ------ W- R- - S01  WARPGROUP.DEPBAR.LE gsb0, 0x0
        """
    )

    def took(wavefronts):
        one = stream(range(3), [wavefronts, 0, 0])
        return simulate(code, [[one]]).cycles

    assert took(400) - took(300) == 100
    assert took(400) > 400 + H200.wgmma_latency


@pytest.mark.ptxas
def test_an_arrival_and_its_wait_take_as_long_as_on_an_h200():
    name = "mbarrier_latency"
    loop, code = microbenchmark(name), timed(name)
    opcodes = [i.opcode for i in code.instructions]
    first = opcodes.index("SYNCS.EXCH.64")
    of_turn = [code.instructions.index(i) for i in turn(code, loop.passes)]

    def run(turns):
        indices, amounts, parity = [first], [1], 0
        for k in of_turn * turns:
            amount = 0
            if "ARRIVE" in opcodes[k]:
                amount = 1
            elif "TRYWAIT" in opcodes[k]:
                amount, parity = 1 + parity, 1 - parity
            indices.append(k)
            amounts.append(amount)
        one = replace(stream(indices), amounts=np.array(amounts))
        return simulate(code, [[one]]).cycles

    found = (run(9) - run(3)) / 6 / loop.count
    assert found == pytest.approx(results.load("h200").loop(name, 1).each, rel=0.05)


def test_streams_without_mbarriers_have_none():
    plain = Stream(*(np.zeros(3, np.int32),) * 4)
    assert not plain.mbarriers.any()
    assert not plain.amounts.any()
