"""gemmlab.compiled.sm on listings so short that their cycles can be counted on paper."""

from dataclasses import replace

import numpy as np
import pytest

from gemmlab.compiled.sm.facts import facts
from gemmlab.compiled.sm.result import Reason
from gemmlab.compiled.sm.simulation import simulate
from gemmlab.compiled.sm.streams import Effects, Level, Stream, stream
from tests.support.listings import listing

H200 = facts("h200")
FIVE = listing("\n".join(["------ W- R- - S01  FFMA R0, R1, R2, R3"] * 5))


NONE = (0,) * 5
ALONE = replace(  # an SM whose blocks come at once, and whose memory nobody else asks
    H200, block_latency=0, block_interval=0, dram_read_crowd=NONE, dram_copy_crowd=NONE
)


def cycles(code, streams, *effects, **options):
    """Of one block with these streams, and only these effects."""
    return simulate(code, [streams], effects=Effects.only(*effects), **options).cycles


def straight(code, **options):
    return stream(range(len(code.instructions)), **options)


# ------------------------------------------------------------------------------------------ slots


@pytest.mark.parametrize(("warps", "expected"), [(1, 5), (4, 5), (5, 10), (8, 10), (9, 15)])
def test_a_scheduler_issues_one_instruction_a_cycle(warps, expected):
    assert cycles(FIVE, [straight(FIVE)] * warps) == expected


def test_each_slot_is_used_or_empty_for_a_reason():
    code = listing(
        """
        ------ W- R- - S02  IADD3 R4, R5, R6, R7
        ------ W0 R1 - S01  LDS.128 R8, [R4]
        ------ W1 R- - S01  LDG.E R12, desc[UR4][R2.64]
        0----- W- R- - S04  FFMA R0, R8, R9, R10
        -1---- W- R- Y S01  MUFU.EX2 R1, R12
        ------ W- R- - S05  BAR.SYNC.DEFER_BLOCKING 0x0
        ------ W- R- - S01  STS [R4], R0
        ------ W- R- - S05  BRA 0x0
        """
    )
    one = stream([*range(8)] * 5, [0, 4, 1, 0, 0, 0, 1, 0] * 5, [0, 0, 4, 0, 0, 0, 0, 0] * 5)
    other = stream([*range(8)] * 5, [0, 2, 8, 0, 0, 0, 2, 0] * 5, 8, Level.L2)
    result = simulate(code, [[one, other, one]] * 5, resident=2)
    assert sum(result.issued) + result.lost.sum() == result.slots
    assert (result.issued == 5 * 3 * 5).all()
    assert sum(result.used.values()) + sum(result.empty.values()) == result.slots
    assert {"scoreboard", "barrier", "fetch", "idle"} <= set(result.empty)
    again = simulate(code, [[one, other, one]] * 5, resident=2)
    assert again.cycles == result.cycles
    assert (again.lost == result.lost).all()


def test_blocks_start_as_others_end():
    one = straight(FIVE)
    ends = simulate(FIVE, [[one]] * 3, resident=1, on=ALONE, effects=Effects.only()).block_ends
    assert list(ends) == [5, 10, 15]
    short = stream([0])
    ends = simulate(
        FIVE, [[short], [one], [one], [one]], resident=2, on=ALONE, effects=Effects.only()
    ).block_ends
    assert list(ends) == [1, 5, 6, 10]


def test_the_next_block_comes_some_time_after_one_has_ended():
    """The first ones of an SM come one after the other, too."""
    one = straight(FIVE)
    ends = simulate(FIVE, [[one]] * 3, resident=1, effects=Effects.only()).block_ends
    assert list(np.diff(ends)) == [H200.block_latency + 5] * 2
    ends = simulate(FIVE, [[one]] * 4, effects=Effects.only()).block_ends
    assert list(np.diff(ends)) == [H200.block_interval] * 3


# ----------------------------------------------------------------------------------------- stalls

STALLS = listing(
    """
    ------ W- R- - S04  FFMA R0, R1, R2, R3
    ------ W- R- - S01  FFMA R0, R1, R2, R0
    """
)


def test_a_stall_count_is_a_pause():
    assert cycles(STALLS, [straight(STALLS)]) == 2
    assert cycles(STALLS, [straight(STALLS)], "stalls") == 5
    lost = simulate(STALLS, [[straight(STALLS)]], effects=Effects.only("stalls")).lost
    assert lost[Reason.STALL, 1] == 3


def test_a_timeline_shows_each_warp_in_each_cycle():
    result = simulate(
        STALLS, [[straight(STALLS)] * 5], effects=Effects.only("stalls"), window=(0, 6)
    )
    stall, waits = Reason.STALL, Reason.NOT_SELECTED
    assert result.timeline.issued[[4, 0]].tolist() == [
        [0, -1, -1, -1, 1, -1],
        [-1, 0, -1, -1, -1, 1],
    ]
    assert result.timeline.reasons[[4, 0]].tolist() == [
        [-1, stall, stall, stall, -1, -1],
        [waits, -1, stall, stall, stall, -1],
    ]
    later = simulate(
        STALLS, [[straight(STALLS)] * 5], effects=Effects.only("stalls"), window=(3, 2)
    ).timeline
    assert later.reasons[[4, 0]].tolist() == [[stall, -1], [stall, stall]]


def test_another_warp_uses_the_pause():
    """Warps 0 and 4 are of one scheduler: cycles 0 and 4, 1 and 5."""
    assert cycles(STALLS, [straight(STALLS)] * 5, "stalls") == 6


def test_a_warp_that_yields_lets_another_go_first():
    code = listing("------ W- R- Y S01  MOV R0, R1\n------ W- R- - S01  MOV R2, R3")
    assert cycles(code, [straight(code)], "stalls") == 3


def test_a_scheduler_stays_with_its_warp():
    window = simulate(FIVE, [[straight(FIVE)] * 5], effects=Effects.only(), window=(0, 10)).timeline
    assert (window.issued[4] == [0, 1, 2, 3, 4, -1, -1, -1, -1, -1]).all()
    assert (window.issued[0] == [-1, -1, -1, -1, -1, 0, 1, 2, 3, 4]).all()
    assert (window.reasons[0, :5] == Reason.NOT_SELECTED).all()
    assert (window.reasons[0, 5:] == -1).all()


def test_the_oldest_block_goes_first_and_in_it_the_last_warp():
    """Warps 0 and 4 of two blocks are of one scheduler, and never pause."""
    one = [straight(FIVE)] * 5
    window = simulate(FIVE, [one] * 2, on=ALONE, effects=Effects.only(), window=(0, 20)).timeline
    first = [int(np.flatnonzero(window.issued[warp] == 0)[0]) for warp in (4, 0, 8)]
    assert first == [0, 5, 10]  # warps 5 to 9 are the second block's: 8 is of this scheduler


def test_an_operand_that_waits_holds_the_pauses_of_all():
    """Two reads of a bank take two cycles; four warps whose pauses are four cycles fill them."""
    code = listing("\n".join(["------ W- R- - S04  FFMA R0, R2, R4, R1"] * 8))
    streams = [straight(code)] * 29  # eight warps of scheduler 0
    window = simulate(
        code, [streams], effects=Effects.only("banks", "stalls"), window=(0, 60)
    ).timeline
    started = [bool((window.issued[warp] == 0).any()) for warp in range(0, 29, 4)]
    assert started == [False] * 4 + [True] * 4


# ------------------------------------------------------------------------------------ scoreboards

LOAD = listing(
    """
    ------ W0 R- - S01  {} R4, [R2]
    0----- W- R- - S01  FFMA R0, R4, R2, R3
    """.replace("{}", "LDS")
)
GLOBAL = listing(
    """
    ------ W0 R- - S01  LDG.E R4, desc[UR4][R2.64]
    0----- W- R- - S01  FFMA R0, R4, R2, R3
    """
)


@pytest.mark.parametrize("lsu", [(), ("lsu",)])
def test_a_result_is_waited_for(lsu):
    streams = [stream([0, 1], [1, 0])]
    assert cycles(LOAD, streams, *lsu) == 2
    assert cycles(LOAD, streams, "scoreboards", *lsu) == H200.shared_latency + 1
    result = simulate(LOAD, [streams], effects=Effects.only("scoreboards"))
    assert result.lost[Reason.SCOREBOARD, 0] == H200.shared_latency - 1  # the load is waited for


@pytest.mark.parametrize(
    ("level", "latency"),
    [
        (Level.L1, H200.l1_latency),
        (Level.L2, H200.l2_latency),
        (Level.DRAM, H200.dram_latency),
    ],
)
def test_a_global_load_takes_as_long_as_the_level_that_answers(level, latency):
    assert cycles(GLOBAL, [stream([0, 1], [1, 0], 4, level)], "scoreboards", "lsu") == latency + 1


def test_operands_are_read_before_a_register_is_written_again():
    code = listing("------ W- R0 - S01  STS [R2], R4\n0----- W- R- - S01  MOV R4, R5")
    streams = [stream([0, 1], [1, 0])]
    assert cycles(code, streams, "scoreboards", "lsu") == H200.operands_latency + 1


def test_copies_are_waited_for_by_groups():
    """Two groups of copies, and a wait until at most one of them is under way."""
    code = listing(
        """
        ------ W- R- - S01  LDGSTS.E [R2], desc[UR4][R4.64]
        ------ W0 R- - S01  LDGDEPBAR
        ------ W- R- - S01  DEPBAR.LE SB0, {}
        """.replace("{}", "0x1")
    )
    order = [0, 1, 0, 1, 2]
    asked = [1, 0, 1, 0, 0]
    latency = H200.l1_latency + H200.copy_latency
    assert cycles(code, [stream(order, asked)], "scoreboards", "lsu") == latency + 1
    both = listing("\n".join(str(code).splitlines()).replace("0x1", "0x0").replace("00000  ", "")
                   .replace("00010  ", "").replace("00020  ", ""))  # fmt: skip
    assert cycles(both, [stream(order, asked)], "scoreboards", "lsu") > latency + 1


# ----------------------------------------------------------------------------------------- others

BARRIER = listing(
    """
    ------ W- R- - S05  BAR.SYNC.DEFER_BLOCKING 0x0
    ------ W- R- - S01  MOV R0, R1
    """
)


@pytest.mark.parametrize("warps", [1, 2, 4])
def test_the_last_warp_opens_a_barrier(warps):
    opens = H200.barrier_interval * warps + H200.barrier_latency
    assert cycles(BARRIER, [straight(BARRIER)] * warps, "barriers", "stalls") == opens + 1
    assert cycles(BARRIER, [straight(BARRIER)] * warps, "stalls") == 6


def test_what_follows_a_barrier_at_once_does_not_wait():
    code = listing("------ W- R- - S01  BAR.SYNC 0x0\n------ W- R- - S01  MOV R0, R1")
    assert cycles(code, [straight(code)] * 4, "barriers", "stalls") == 2


def test_warps_that_have_ended_are_not_waited_for():
    streams = [straight(BARRIER), stream([1])]
    opens = H200.barrier_interval + H200.barrier_latency
    assert cycles(BARRIER, streams, "barriers", "stalls") == opens + 1


@pytest.mark.parametrize(
    ("opcode", "each"),
    [
        ("FFMA R0, R1, R2, R3", 1),
        ("IMAD R0, R1, R2, R3", H200.fma_interval),
        ("IADD3 R0, R1, R2, R3", H200.alu_interval),
        ("DFMA R0, R2, R4, R6", H200.fp64_interval),
        ("MUFU.EX2 R0, R1", H200.xu_interval),
        ("HMMA.16816.F32 R0, R4, R8, R0", H200.tensor_interval),
    ],
)
def test_warps_share_a_pipe(opcode, each):
    code = listing("\n".join([f"------ W- R- - S01  {opcode}"] * 3))
    streams = [straight(code)] * 5  # warps 0 and 4 are of one scheduler
    assert cycles(code, streams) == 6
    assert cycles(code, streams, "pipes") == 5 * each + 1


def test_a_product_issues_for_half_of_its_cycles():
    code = listing(
        """
        ------ W- R- - S01  HMMA.16816.F32 R0, R4, R8, R0
        ------ W- R- - S01  IADD3 R12, R13, RZ, RZ
        """
    )
    result = simulate(code, [[straight(code)]], effects=Effects.only("pipes", "banks"))
    busy = H200.tensor_interval // 2
    assert result.cycles == busy + 1
    assert result.lost[Reason.DISPATCH, 1] == busy - 1
    assert not result.lost[Reason.BANK].any()


@pytest.mark.parametrize(("opcode", "read"), [("IADD3 R12, R13, R14, R15", 3),
                                              ("DADD R12, R14, R16", 4)])  # fmt: skip
def test_a_product_takes_longer_by_what_is_read_meanwhile(opcode, read):
    code = listing(
        f"""
        ------ W- R- - S01  HMMA.16816.F32 R0, R4, R8, R0
        ------ W- R- - S01  {opcode}
        ------ W- R- - S01  {opcode}
        ------ W- R- - S01  HMMA.16816.F32 R0, R4, R8, R0
        """
    )
    late = 2 * read // H200.shared_reads
    found = simulate(code, [[straight(code)]], effects=Effects.only("pipes", "banks"))
    assert found.cycles == H200.tensor_interval + late + 1


def test_two_pipes_work_side_by_side():
    code = listing(
        "\n".join(["------ W- R- - S01  IMAD R0, R1, R2, R3\n------ W- R- - S01  LOP3 R4, R5"] * 4)
    )
    assert cycles(code, [straight(code)], "pipes") == 8


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ("R1, R2, RZ", 4),
        ("R1, R2, R3", 5),  # two reads of one bank: cycles 0, 1, 2 and 4
        ("R2, R4, R6", 8),  # three reads of one bank: cycles 0, 1, 4 and 7
        ("R2.reuse, R4.reuse, R6", 4),
    ],
)
def test_a_bank_has_one_port(operands, expected):
    code = listing("\n".join([f"------ W- R- - S01  FFMA R0, {operands}"] * 4))
    assert cycles(code, [straight(code)]) == 4
    assert cycles(code, [straight(code)], "banks") == expected


def test_another_warps_instruction_takes_the_place_in_the_cache():
    """With operands from the cache, warps 0 and 4 would issue 8 instructions in 8 cycles."""
    lines = "\n".join(["------ W- R- - S02  FFMA R0, R2.reuse, R4.reuse, R6"] * 4)
    code, plain = listing(lines), listing(lines.replace(".reuse", ""))
    effects = "banks", "stalls"
    assert cycles(code, [straight(code)], *effects) == 7
    assert cycles(plain, [straight(plain)], *effects) > 7
    together = cycles(code, [straight(code)] * 5, *effects)
    assert 2 * 4 < together <= cycles(plain, [straight(plain)] * 5, *effects)


def test_the_way_to_the_lsu_and_its_queue_fill_up():
    """Loads of 4 wavefronts leave every 8 cycles; 5 wait in the queue and one before it."""
    code = listing("\n".join(["------ W- R- - S01  LDS.128 R4, [R2]"] * 8))
    assert cycles(code, [straight(code, cycles=4)]) == 8
    assert cycles(code, [straight(code, cycles=4)], "lsu") == 10
    result = simulate(code, [[straight(code, cycles=4)]], effects=Effects.only("lsu"))
    assert result.empty["lsu"] == 2


def test_four_schedulers_share_the_lsu():
    """32 wavefronts of four warps take 32 cycles, those of one warp twice the way's 2 for each."""
    code = listing(
        "\n".join(["------ W0 R- - S01  LDS R4, [R2]"] * 8) + "\n0----- W- R- - S01  MOV R0, R4"
    )
    one = stream(range(9), [1] * 8 + [0])
    both = "lsu", "scoreboards"
    assert cycles(code, [one], *both) == 7 * H200.lsu_wavefront + H200.shared_latency + 1
    assert cycles(code, [one] * 4, *both) == 31 + H200.shared_latency + 1
    few_units = replace(H200, lsu_interval=2)  # 16 of them, for the addresses of a warp
    assert cycles(code, [one] * 4, *both, on=few_units) == 2 * 31 + H200.shared_latency + 1
    slow = replace(H200, wavefront_interval=2, lsu_interval=2)  # both at once, as on Turing
    assert cycles(code, [one] * 4, *both, on=slow) == 2 * 31 + H200.shared_latency + 1


def test_a_branch_that_is_taken_leads_far():
    code = listing("------ W- R- - S01  FFMA R0, R1, R2, R3\n------ W- R- - S05  BRA 0x0")
    turns = [cycles(code, [stream([0, 1] * n)], "fetch") for n in (3, 4)]
    assert turns[1] - turns[0] == 1 + H200.branch_latency
    assert cycles(code, [stream([0, 1] * 4)]) == 8


FAR = (H200.far_latency + H200.far_interval) / H200.ahead


@pytest.mark.parametrize(("lines", "each"), [(16, 8), (200, 8), (400, FAR)])
def test_a_long_loop_is_fetched_anew_in_each_turn(lines, each):
    """Cycles for each line of 8 instructions; the SM's cache holds 256 lines."""
    code = listing("\n".join(["------ W- R- - S01  FFMA R0, R1, R2, R3"] * 8 * lines))
    turns = [cycles(code, [stream([*range(8 * lines)] * n)], "fetch") for n in (2, 4)]
    assert (turns[1] - turns[0]) / 2 / lines == pytest.approx(each, rel=0.15)


def test_l2_serves_an_sm_at_its_share():
    n = 50
    loads = "\n".join(["------ W0 R- - S01  LDG.E.128 R4, desc[UR4][R2.64]"] * n)
    code = listing(loads + "\n0----- W- R- - S01  MOV R0, R4")
    one = stream(range(n + 1), [4] * n + [0], [16] * n + [0], Level.L2)
    without = cycles(code, [one], "scoreboards")
    share = cycles(code, [one], "scoreboards", "l2")
    assert without < n + H200.l2_latency + 20
    assert share == pytest.approx((n - 1) * 512 / H200.l2_bytes_per_cycle + H200.l2_latency, abs=20)


def test_device_memory_serves_an_sm_at_its_share():
    n = 50
    loads = "\n".join(["------ W0 R- - S01  LDG.E.128 R4, desc[UR4][R2.64]"] * n)
    code = listing(loads + "\n0----- W- R- - S01  MOV R0, R4")
    one = stream(range(n + 1), [4] * n + [0], [16] * n + [0], Level.DRAM)
    share = (n - 1) * 512 / H200.dram_bytes_per_cycle + H200.dram_latency
    assert cycles(code, [one], "scoreboards", "l2", on=ALONE) == pytest.approx(share, abs=20)
    assert cycles(code, [one], "scoreboards") < n + H200.dram_latency + 20


def test_device_memory_serves_loads_and_stores_in_turn():
    """Each at its own rate, one after the other."""
    n = 25
    both = [
        "------ W0 R- - S01  LDG.E.128 R4, desc[UR4][R2.64]",
        "------ W- R- - S01  STG.E.128 desc[UR4][R2.64], R8",
    ]
    code = listing("\n".join([*both * n, "0----- W- R- - S01  MOV R0, R4"]))
    one = stream(range(2 * n + 1), [4] * 2 * n + [0], [16] * 2 * n + [0])
    one.levels[:-1] = [Level.DRAM, Level.STORED] * n
    each = 512 / H200.dram_bytes_per_cycle, 512 / H200.dram_stored_per_cycle
    share = (n - 1) * sum(each) + H200.dram_latency
    assert cycles(code, [one], "scoreboards", "l2", on=ALONE) == pytest.approx(share, abs=40)


def test_device_memory_takes_longer_the_more_all_sms_ask_of_it():
    """A warp asks for so many sectors and waits, again and again; what it waits more is the crowd.

    Stores of others lengthen it: half of what moves is enough for all of that.
    """
    code = listing(
        """
        ------ W0 R- - S01  LDG.E R4, desc[UR4][R2.64]
        0----- W- R- - S01  MOV R0, R4
        ------ W- R- - S01  STG.E desc[UR4][R2.64], R4
        """
    )
    n = 40

    def wait(sectors, stored=0):
        turn = [0, 1] + [2] * bool(stored)
        one = stream(
            turn * n, ([1, 0, 1])[: len(turn)] * n, ([sectors, 0, stored])[: len(turn)] * n
        )
        one.levels[:] = np.tile(([Level.DRAM, Level.L1, Level.STORED])[: len(turn)], n)
        return cycles(code, [one], "scoreboards", "l2") / n - H200.dram_latency

    little, much = wait(1), wait(150)
    assert H200.dram_read_crowd[0] <= little < H200.dram_read_crowd[1] + 10
    assert little + 30 < much < H200.dram_read_crowd[3] + 20
    assert wait(75, 75) > much + 100


def test_waits_differ_once_blocks_follow_others_and_are_the_same_each_time():
    one = stream([0, 1] * 20, [1, 0] * 20, [4, 0] * 20, Level.DRAM)
    blocks = [[one]] * 6
    ends = [simulate(GLOBAL, blocks, resident=2).block_ends for _ in range(2)]
    assert list(ends[0]) == list(ends[1])
    lives = np.diff(sorted(ends[0])[::2])
    assert len(set(lives.tolist())) > 1


def test_what_is_on_its_way_comes_with_what_was_asked_for():
    """The second load asks L2 for nothing; one that begins when all has come finds it in L1."""
    code = listing(
        """
        ------ W0 R- - S01  LDG.E R4, desc[UR4][R2.64]
        ------ W1 R- - S01  LDG.E R5, desc[UR4][R2.64+0x4]
        0----- W- R- - S01  MOV R0, R4
        -1---- W- R- - S01  MOV R0, R5
        ------ W2 R- - S01  LDG.E R6, desc[UR4][R2.64+0x8]
        --2--- W- R- - S01  MOV R0, R6
        """
    )

    def took(count):
        asked, sectors = [1, 1, 0, 0, 1, 0][:count], [4, 0, 0, 0, 0, 0][:count]
        one = stream(range(count), asked, sectors, Level.DRAM)
        return cycles(code, [one], "scoreboards", "lsu", "l2")

    assert took(3) <= took(4) <= took(3) + 2
    assert took(6) - took(4) == pytest.approx(H200.l1_latency, abs=5)
    first = listing(
        """
        ------ W0 R- - S01  LDG.E R4, desc[UR4][R2.64]
        ------ W1 R- - S01  LDG.E R5, desc[UR4][R2.64+0x4]
        -1---- W- R- - S01  MOV R0, R5
        """
    )
    one = stream(range(3), [1, 1, 0], [4, 0, 0], Level.DRAM)
    assert cycles(first, [one], "scoreboards", "lsu", "l2") > H200.dram_latency


def test_it_refuses_what_cannot_be():
    one = straight(FIVE)
    with pytest.raises(ValueError, match="of one length"):
        Stream(np.zeros(3), np.zeros(2), np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="same number of warps"):
        simulate(FIVE, [[one], [one, one]])
    with pytest.raises(ValueError, match="instructions 0 to 7, the listing has 5"):
        simulate(FIVE, [[stream([0, 7])]])
    with pytest.raises(ValueError, match="unknown effect 'cache'"):
        Effects.only("cache")
    never = listing("------ W- R- - S05  BAR.SYNC 0x0, 0x40\n------ W- R- - S01  MOV R0, R1")
    with pytest.raises(ValueError, match="do not end"):
        simulate(never, [[straight(never)]])
    dynamic = listing("------ W- R- - S05  BAR.SYNC R4, 0x40")
    with pytest.raises(ValueError, match="BAR.SYNC R4, 0x40"):
        simulate(dynamic, [[straight(dynamic)]])
