"""What ptxas makes of each loop is what the microbenchmark says that it times."""

from collections import Counter

import pytest

from gemmlab.microbenchmarks import LAUNCHES, LOOPS
from tests.support.timed_code import counted, listing, turn

TARGET = "sm_90"
CONTROL = Counter({"UIADD3": 1, "ISETP": 1, "BRA": 1})  # of the loop itself
COPIES = ("MOV", "IMAD.MOV")  # of registers, which the compiler needs now and then
FEW = 1 / 8  # copies for each instruction that counts, at most


@pytest.mark.ptxas
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_a_turn_has_exactly_the_instructions_that_are_meant(loop):
    code = listing(loop.ptx(TARGET), TARGET)
    found = counted(turn(code, loop.passes), (*loop.code, *COPIES))
    found.subtract(CONTROL)
    found.subtract(loop.code)
    del found["NOP"]  # in which a warp waits for a result, and nothing else
    copies = sum(found.pop(name, 0) for name in COPIES)
    assert {name: count for name, count in found.items() if count} == {}
    assert 0 <= copies <= max(2, FEW * loop.count)
    assert code.local_bytes == 0


def test_the_check_can_fail():
    loads = [loop for loop in LOOPS if loop.code.get("LDG.128")]
    one = listing(loads[0].ptx(TARGET), TARGET)
    assert counted(turn(one, 2), ["LDG.128"])["LDG.128"] == loads[0].code["LDG.128"]
    narrowed = listing(loads[0].ptx(TARGET).replace("v4.u32 {", "v2.u32 {", 1), TARGET)
    assert counted(turn(narrowed, 2), ["LDG.128"])["LDG.128"] < loads[0].code["LDG.128"]


STREAMING = [one for one in LAUNCHES if one.bytes]


@pytest.mark.ptxas
@pytest.mark.parametrize("launch", STREAMING, ids=lambda launch: launch.name)
def test_a_launch_moves_the_bytes_that_it_says(launch):
    code = listing(launch.ptx(TARGET), TARGET).instructions
    threads = launch.threads * launch.blocks[0]
    words = {"64": 2, "128": 4}
    moved = sum(
        threads * 4 * next((words[m] for m in i.modifiers if m in words), 1)
        for i in code
        if i.name in ("LDG", "STG") and not i.guard  # a guarded store never happens
    )
    assert moved == launch.bytes


@pytest.mark.ptxas
@pytest.mark.parametrize(
    "launch", [one for one in LAUNCHES if not one.bytes], ids=lambda launch: launch.name
)
def test_a_launch_without_bytes_is_empty_or_one_addition(launch):
    names = [i.name for i in listing(launch.ptx(TARGET), TARGET).instructions]
    assert names.count("REDG") == launch.name.startswith("red_")
    assert not {"LDG", "STG", "BAR"} & {*names}
