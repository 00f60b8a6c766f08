"""What ptxas makes of each loop is what the microbenchmark says that it times."""

from collections import Counter

import pytest

from benchmarks.microbenchmarks import (
    LAUNCHES,
    LOOPS,
    asynchronous,
    beside_wgmma,
    cold,
    microbenchmark,
    together,
)
from benchmarks.microbenchmarks.listings import TARGET, listings
from tests.support.timed_code import counted, listing, turn

pytestmark = pytest.mark.measuring
CONTROL = Counter({"UIADD3": 1, "ISETP": 1, "BRA": 1})  # of the loop itself
COPIES = ("MOV", "IMAD.MOV")  # of registers, which the compiler needs now and then
FEW = 1 / 8  # copies for each instruction that counts, at most


UNCOUNTED = (*asynchronous.LOOPS, *beside_wgmma.LOOPS, *together.LOOPS)  # fences and waits


@pytest.fixture(scope="module")
def codes():
    """The listings of all microbenchmarks, by their text."""
    return listings(one.ptx(TARGET) for one in (*LOOPS, *LAUNCHES, cold.UPDATE))


@pytest.mark.ptxas
def test_one_module_of_all_has_the_code_of_each_alone(codes):
    for one in (LOOPS[0], LOOPS[-1], LAUNCHES[0], LAUNCHES[-1], *asynchronous.LOOPS[:1]):
        text = one.ptx(TARGET)
        assert vars(codes[text]) == vars(listing(text, TARGET)), one.name


@pytest.mark.ptxas
def test_a_turn_has_exactly_the_instructions_that_are_meant(codes):
    for loop in LOOPS:
        code = codes[loop.ptx(TARGET)]
        found = counted(turn(code, loop.passes), (*loop.code, *COPIES))
        if loop in UNCOUNTED:
            assert {name: found[name] for name in loop.code} == loop.code, loop.name
            continue
        found.subtract(CONTROL)
        found.subtract(loop.code)
        del found["NOP"]  # in which a warp waits for a result, and nothing else
        copies = sum(found.pop(name, 0) for name in COPIES)
        assert {name: count for name, count in found.items() if count} == {}, loop.name
        assert 0 <= copies <= max(2, FEW * loop.count), loop.name
        assert code.local_bytes == 0, loop.name


@pytest.mark.ptxas
def test_the_check_can_fail():
    """A load of which half is not used is made narrower."""
    loop = microbenchmark("ldg_l1_128_own_rate")
    ptx = loop.ptx(TARGET)
    narrowed = ptx.replace("lop3.b32 r100, r100, r0, r1, 0x96;", "", 1)
    assert narrowed != ptx
    for text, fewer in ((ptx, 0), (narrowed, 1)):
        found = counted(turn(listing(text, TARGET), loop.passes), ["LDG.128"])
        assert found["LDG.128"] == loop.code["LDG.128"] - fewer


STREAMING = [one for one in LAUNCHES if one.bytes]


def moved(code, launch, names):
    """Bytes that the instructions of these names move, of all threads."""
    words = {"64": 2, "128": 4}
    each = sum(
        4 * next((words[m] for m in i.modifiers if m in words), 1)
        for i in code.instructions
        if i.name in names
    )
    return launch.threads * launch.blocks[0] * each


@pytest.mark.ptxas
def test_a_launch_moves_the_bytes_that_it_says(codes):
    for launch in STREAMING:
        names = ["LDG"] * bool(launch.in_bytes) + ["STG"] * bool(launch.out_bytes)
        assert moved(codes[launch.ptx(TARGET)], launch, names) == launch.bytes, launch.name


@pytest.mark.ptxas
def test_before_a_cold_launch_each_word_of_an_array_is_read_and_written(codes):
    code = codes[cold.UPDATE.ptx(TARGET)]
    read, written = (moved(code, cold.UPDATE, [name]) for name in ("LDG", "STG"))
    assert read == written == cold.UPDATE.out_bytes
    assert cold.UPDATE.bytes == 2 * cold.UPDATE.out_bytes


@pytest.mark.ptxas
def test_a_launch_without_bytes_is_empty_or_one_addition(codes):
    for launch in LAUNCHES:
        if launch.bytes or launch.cold:
            continue
        names = [i.name for i in codes[launch.ptx(TARGET)].instructions]
        assert names.count("REDG") == launch.name.startswith("red_"), launch.name
        assert not {"LDG", "STG", "BAR"} & {*names}, launch.name


@pytest.mark.ptxas
def test_a_ring_copies_all_of_its_tiles(codes):
    for launch in cold.LAUNCHES:
        names = Counter(i.name for i in codes[launch.ptx(TARGET)].instructions)
        tiles = int(launch.name.split("_")[2])
        assert names["LDGSTS"] * cold.THREADS * 16 == tiles * cold.TILE, launch.name
        assert names["BAR"] == tiles, launch.name
