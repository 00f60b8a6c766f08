"""Loops whose turns repeat: what is left out is what would have been done, and what must not be."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from gemmlab import device
from gemmlab.compiled.forecast import repeated
from gemmlab.compiled.forecast.executed import execute
from gemmlab.compiled.forecast.kernel import forecast
from gemmlab.compiled.sass.execution import loops, visits
from gemmlab.compiled.sass.execution.visits import Again
from tests.support.listings import listing

H200 = device("h200")
FIRST = """
S2R R0, SR_TID.X
LDC.64 R2, c[0x0][0x230]
IMAD.WIDE R2, R0, 0x4, R2
CS2R R4, SRZ
"""
STORED = "STG.E desc[UR4][R2.64], R5\nEXIT"
# Each turn loads a line further on, or the word beside, which all lanes load.
SUM = """
LDG.E R6, desc[UR4][R2.64]
FADD R5, R5, R6
IADD3 R2, P0, R2, 0x80, RZ
IADD3.X R3, RZ, R3, RZ, P0, !PT
VIADD R4, R4, 0x1
ISETP.GE.AND P1, PT, R4, {turns}, PT
@!P1 BRA 0x40
"""
TILES = """
LDG.E R6, desc[UR4][R2.64]
LDG.E R7, desc[UR4][R8.64]
STS [R0], R6
BAR.SYNC.DEFER_BLOCKING 0x0
LDS R10, [R11]
FFMA R5, R10, R7, R5
BAR.SYNC.DEFER_BLOCKING 0x0
IADD3 R2, P0, R2, 0x80, RZ
IADD3.X R3, RZ, R3, RZ, P0, !PT
IADD3 R8, P0, R8, 0x4, RZ
IADD3.X R9, RZ, R9, RZ, P0, !PT
VIADD R4, R4, 0x1
ISETP.GE.AND P1, PT, R4, {turns}, PT
@!P1 BRA 0x70
"""
BEFORE_TILES = "LDC.64 R8, c[0x0][0x230]\nIMAD R0, R0, 0x4, RZ\nVIADD R0, R0, 0x400\n"
INNER = """
MOV R12, RZ
LDG.E R6, desc[UR4][R2.64]
FADD R5, R5, R6
VIADD R12, R12, 0x1
ISETP.GE.AND P2, PT, R12, 0x28, PT
@!P2 BRA 0x50
IADD3 R2, P0, R2, 0x80, RZ
IADD3.X R3, RZ, R3, RZ, P0, !PT
VIADD R4, R4, 0x1
ISETP.GE.AND P1, PT, R4, {turns}, PT
@!P1 BRA 0x40
"""
KINDS = {
    "sum": FIRST + SUM,
    "tiles": FIRST + BEFORE_TILES + TILES,
    "inner": FIRST + INNER,
}
TURNS = {"sum": 400, "tiles": 200, "inner": 60}
SIMULATED = {"sum": (14_000, 1000), "tiles": (14_000, 1000), "inner": (10_000, 150)}


def code(text, **numbers):
    """A listing of instructions whose control fields wait for what was loaded."""
    lines = text.format(**{name: hex(n) for name, n in numbers.items()}).strip().splitlines()
    found = []
    for line in filter(None, lines):
        loads = line.startswith(("LD", "S2R"))
        found.append(f"{'0-----'} W{'0' if loads else '-'} R- - S05  {line}")
    return replace(listing("\n".join(found)), shared_bytes=512)


def executed(text, turns=200, loops=True, array=None, blocks=264, **numbers):
    array = np.zeros(1 << 22, np.float32) if array is None else array
    one = code(text, turns=turns, **numbers)
    return execute(one, H200, blocks, 128, array, loops=loops)


@pytest.fixture
def short(monkeypatch):
    """Loops are cut short though they are not long."""
    monkeypatch.setattr(loops, "LEAST", 60)


def left_out(one):
    return sum(again.times for again in one.visits if isinstance(again, Again))


@pytest.mark.parametrize("kind", KINDS)
def test_turns_that_are_left_out_are_those_that_would_have_been_executed(kind, short):
    text = KINDS[kind] + STORED
    whole, cut = (executed(text, TURNS[kind] // 2, loops=of) for of in (False, True))
    assert left_out(cut) > 5
    done, _ = repeated.unrolled(cut.visits, dict.fromkeys(range(99), 1 << 60))
    assert len(done) == len(whole.visits) > len(cut.visits)
    steps = [visits.steps([a], [b]) for a, b in zip(done, _without_lanes(whole, done), strict=True)]
    assert all(not (step is not None and step.any()) for of in steps for step in of)


def _without_lanes(whole, done):
    """Only who looks for loops notes which lanes it was."""
    for one, other in zip(whole.visits, done, strict=True):
        one.lanes = other.lanes
    return whole.visits


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_is_that_of_all_turns(kind, short, monkeypatch):
    text = KINDS[kind] + STORED
    for name, count in zip(("OF_FEW", "AT_FIRST"), SIMULATED[kind], strict=True):
        monkeypatch.setattr(repeated, name, count)
    whole, cut = (executed(text, TURNS[kind], loops=of) for of in (False, True))
    assert len(cut.runs) > 1
    assert forecast(cut).seconds == pytest.approx(forecast(whole).seconds, rel=0.005)
    assert cut.together == pytest.approx(whole.together, rel=0.005)


ON_DATA = SUM.replace("R4, {turns}", "R6, 0x7")
AT_DATA = SUM.replace("FADD R5, R5, R6", "IMAD.WIDE R8, R6, 0x4, R2\nLDG.E R7, desc[UR4][R8.64]")
AFTER = """
F2I.TRUNC.NTZ R8, R5
IMAD.WIDE R2, R8, 0x4, R2
"""
CHECKED = """
FCHK P0, R5, R5
@P0 BRA 0xd0
MOV R7, RZ
"""


@pytest.mark.parametrize(
    ("text", "repeats"),
    [(ON_DATA, False), (AT_DATA, False), (SUM + AFTER, False), (SUM + CHECKED, True)],
)
def test_nothing_is_left_out_on_which_a_branch_or_an_address_depends(text, repeats, short):
    """A division's way may depend on a sum's order of magnitude."""
    array = np.zeros(1 << 22, np.int32)
    array[64 * 32 :] = 9  # at which a loop that looks at data ends
    array[32 * 100 :] = 0
    one = executed(FIRST + text + STORED, 100, array=array, blocks=1)
    assert (left_out(one) > 0) == repeats
    assert one.visits[-1].stop == len(one.code.instructions)


def test_a_loop_that_does_something_else_than_expected_is_executed_whole(short, monkeypatch):
    text = KINDS["sum"] + STORED
    assert left_out(executed(text, 100, blocks=1))
    monkeypatch.setattr(Again, "turn", lambda again, number: [])
    assert not left_out(executed(text, 100, blocks=1))


def test_arguments_are_neither_copied_nor_changed(tmp_path):
    """Of 4 GB no more is read than is touched; what is written to is kept beside its array."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 32)
    large = np.memmap(tmp_path / "large", np.float32, mode="r")
    work = np.full(1 << 22, 7, np.int32)
    taken = "ATOMG.E.ADD.STRONG.GPU PT, R6, desc[UR4][R2.64], R0\n"
    taken += "IMAD.WIDE R2, R6, 0x4, R2\nLDG.E R7, desc[UR4][R2.64]\n"
    tracemalloc.start()
    one = executed(KINDS["sum"] + STORED, 4, array=large, blocks=1)
    executed(FIRST + taken + STORED, array=work, blocks=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert one.footprint == 1 << 32
    assert (work == 7).all()
    assert peak < work.nbytes + (1 << 21)  # pages that are not touched take none, though counted


def test_an_array_of_one_element_repeated_is_what_it_is():
    all_alike = np.broadcast_to(np.float32(1), (1 << 30,))
    load = "LDC.64 R2, c[0x0][0x230]\nLDG.E R5, desc[UR4][R2.64]\nEXIT"
    assert executed(load, array=all_alike, blocks=1).footprint == 1 << 32
