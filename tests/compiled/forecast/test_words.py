"""A forecast in words, from slots that are made up."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gemmlab.compiled.forecast import kernel
from gemmlab.compiled.forecast.telling import DONE, PARTS, WAITS, sentence, uses, waits
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import Reason, Result

FMA, LDS, LDG, IMAD = range(4)
KINDS = np.array([Kind.FMA, Kind.SHARED, Kind.GLOBAL, Kind.INTEGER], np.int8)


def result(issued, lost):
    """A result of 25 cycles: 100 slots."""
    table = np.zeros((len(Reason), len(KINDS)), np.int64)
    for (reason, instruction), count in lost.items():
        table[reason, instruction] = count
    assert sum(issued) + table.sum() == 100
    return Result(25, np.array(issued), table, KINDS, np.array([25]), np.array([sum(issued)]))


BUSY = result(
    [30, 10, 2, 8],
    {
        (Reason.SCOREBOARD, LDS): 5,
        (Reason.SCOREBOARD, LDG): 15,
        (Reason.STALL, FMA): 12,
        (Reason.STALL, IMAD): 6,
        (Reason.PIPE, FMA): 7,
        (Reason.LSU, LDS): 5,
    },
)


def test_slots_are_shares_the_largest_first():
    assert list(uses(BUSY).items()) == [
        ("float32 arithmetic", 0.30),
        ("accesses to shared memory", 0.10),
        ("integer arithmetic", 0.08),
        ("accesses to global memory", 0.02),
    ]
    assert list(waits(BUSY).items()) == [
        ("the arithmetic before", 0.18),
        ("global memory", 0.15),
        ("the pipe of float32 arithmetic", 0.07),
        ("shared memory", 0.05),
        ("a place in the queue of the load/store unit", 0.05),
    ]


def test_each_part_of_a_gpu_that_may_take_longest_has_words():
    """What `kernel.predict_time` puts into `times`, beside the SM's."""
    text = Path(kernel.__file__).read_text("utf-8")
    assert {*re.findall(r'times\["(\w+)"\] =', text), "sm"} == {*PARTS, "sm"}
    told = SimpleNamespace(bottleneck="atomics", times={"sm": 1, "atomics": 4}, measured=True)
    assert sentence(told).startswith("It waits mostly for additions that meet at a few addresses")


def test_all_that_a_slot_can_be_has_a_name():
    assert set(DONE) == set(Kind)
    # Of a scoreboard and a pipe the instruction is named; a warp that could go on lost no slot.
    own = {Reason.SCOREBOARD, Reason.PIPE, Reason.NOT_SELECTED}
    assert set(WAITS) == set(Reason) - own


def forecast(**times):
    longest = max(times, key=times.get)
    return SimpleNamespace(
        times=times, seconds=times[longest], bottleneck=longest, result=BUSY, measured=True
    )


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (
            {"sm": 2.0, "dram": 1.0},
            "50% of the issue slots issue an instruction (30% float32 arithmetic, 10% accesses to "
            "shared memory, 8% integer arithmetic); the others wait mostly for the arithmetic "
            "before (18%).",
        ),
        (
            {"sm": 1.0, "dram": 2.0},
            "It waits mostly for device memory: an SM would be done after 50% of that time.",
        ),
        (
            {"sm": 1.0, "dram": 2.0, "blocks": 4.0},
            "It waits mostly for blocks to be handed out: an SM would be done after 25% of that "
            "time.",
        ),
    ],
)
def test_a_sentence_says_what_sets_the_time(times, said):
    assert sentence(forecast(**times)) == said


def test_a_sentence_says_that_facts_are_from_the_literature():
    found = forecast(sm=1.0, dram=2.0)
    found.measured = False
    assert sentence(found).endswith(
        "of that time. Facts of this GPU are from the literature, not measured."
    )
