"""The facts of an SM, and the pipes of its instructions."""

import re

import pytest

from benchmarks.microbenchmarks import LOOPS
from gemmlab.compiled.sass.listing import Instruction
from gemmlab.compiled.sm.facts import UNITS, facts, parse
from gemmlab.compiled.sm.pipes import GROUP_OF, OPCODES, Kind, Pipe, Unit, use
from gemmlab.compiled.sm.registers import Read, reads
from gemmlab.device import text_of

DEVICE, SM = text_of("h200").split("[sm]\n")


def test_each_fact_has_a_source():
    assert set(facts("h200").sources) == set(UNITS)
    with pytest.raises(ValueError, match="no facts of the SM of 'h300'; there are those of a100"):
        facts("h300")


def test_a_file_takes_what_it_does_not_say_from_another():
    one, other = facts("h100_sxm"), facts("h200")
    differing = {name for name in UNITS if getattr(one, name) != getattr(other, name)}
    memories = {
        *("dram_latency", "l2_bytes_per_cycle"),
        *("dram_bytes_per_cycle", "dram_stored_per_cycle"),
    }
    assert differing == memories | {"tensor_clocks", "wgmma_clocks"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fma_interval", "fma_intervals", "missing or unknown in its table sm: fma_interval"),
        ('value = 2, unit = "cycle"', 'value = 2, unit = "s"', "must be in 'cycle', not in 's'"),
        ('unit = "cycle", source', 'unit = "cycle", from', "must be { value, unit, source }"),
    ],
)
def test_a_file_of_facts_is_checked(old, new, message):
    with pytest.raises(ValueError, match=message):
        parse("h200", f"{DEVICE}[sm]\n{SM.replace(old, new, 1)}")


def test_an_opcode_has_one_place():
    assert len(GROUP_OF) == sum(len(names.split()) for names in OPCODES.values())


@pytest.mark.parametrize(
    ("opcode", "kind", "pipe", "unit"),
    [
        ("FFMA", Kind.FMA, Pipe.FMA_LITE, Unit.NONE),
        ("IMAD.MOV.U32", Kind.INTEGER, Pipe.FMA_HEAVY, Unit.NONE),
        ("LOP3.LUT", Kind.INTEGER, Pipe.ALU, Unit.NONE),
        ("UIADD3.X", Kind.UNIFORM, Pipe.UNIFORM, Unit.NONE),
        ("ULDC.64", Kind.OTHER, Pipe.OF_ALL, Unit.NONE),
        ("HMMA.16816.F32", Kind.TENSOR, Pipe.TENSOR, Unit.NONE),
        ("LDSM.16.M88.4", Kind.SHARED, Pipe.NONE, Unit.SHARED),
        ("LDG.E.128", Kind.GLOBAL, Pipe.NONE, Unit.GLOBAL),
        ("LDGSTS.E.BYPASS.128", Kind.COPY, Pipe.NONE, Unit.COPY),
        ("BAR.SYNC.DEFER_BLOCKING", Kind.BARRIER, Pipe.NONE, Unit.BARRIER),
        ("BAR.ARV", Kind.BARRIER, Pipe.NONE, Unit.ARRIVAL),
        ("HGMMA.64x256x16.F32", Kind.TENSOR, Pipe.TENSOR, Unit.NONE),
        ("WARPGROUP.DEPBAR.LE", Kind.OTHER, Pipe.NONE, Unit.WAIT),
        ("WARPGROUP.ARRIVE", Kind.OTHER, Pipe.NONE, Unit.NONE),
        ("SYNCS.EXCH.64", Kind.BARRIER, Pipe.NONE, Unit.MBARRIER_INIT),
        ("SYNCS.ARRIVE.TRANS64", Kind.BARRIER, Pipe.NONE, Unit.MBARRIER_EXPECTS),
        ("SYNCS.ARRIVE.TRANS64.A1T0", Kind.BARRIER, Pipe.NONE, Unit.MBARRIER_ARRIVAL),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", Kind.BARRIER, Pipe.NONE, Unit.MBARRIER_WAIT),
        ("UTMALDG.2D", Kind.COPY, Pipe.NONE, Unit.BULK),
        ("UTMASTG.2D", Kind.GLOBAL, Pipe.NONE, Unit.BULK_STORE),
        ("UTMACMDFLUSH", Kind.GLOBAL, Pipe.NONE, Unit.BULK_STORES),
        ("NOP", Kind.OTHER, Pipe.NONE, Unit.NONE),
    ],
)
def test_where_an_instruction_runs(opcode, kind, pipe, unit):
    used = use(Instruction(0, "", opcode, ()), facts("h200"))
    assert (used.kind, used.pipe, used.unit) == (kind, pipe, unit)


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        ("FFMA", "R0 R2.reuse -R3 R5", [Read(2, 0, True), Read(3, 1, False), Read(5, 2, False)]),
        ("IMAD.MOV.U32", "R4 RZ RZ R7", [Read(7, 2, False)]),
        ("FFMA", "R0 R1 c[0x0][0x210] R5", [Read(1, 0, False), Read(5, 2, False)]),
        ("ISETP.LE.U32.AND", "P0 PT R5 UR4 PT", [Read(5, 0, False)]),
        ("LOP3.LUT", "P0 RZ R20 0x7f R27 0xc8 !PT", [Read(20, 0, False), Read(27, 2, False)]),
        ("PLOP3.LUT", "P0 PT P1 P2 PT 0x80 0x0", []),
        ("IADD3", "R7 P0 R4 UR8 RZ", [Read(4, 0, False)]),
        ("LOP3.LUT", "R6 R6 R2 R5 0x6a !PT", [Read(6, 0, False), Read(2, 1, False),
                                              Read(5, 2, False)]),
    ],
)  # fmt: skip
def test_what_an_instruction_reads(opcode, operands, expected):
    assert reads(Instruction(0, "", opcode, tuple(operands.split()))) == expected


NAME = r"\b[a-z0-9]+(?:_[a-z0-9]+)*_(?:rate|latency|ffma|sync|sms|chains)\b"


def test_microbenchmarks_that_sources_name_are_there():
    known = {one.name for one in LOOPS}
    named = [name for text in facts("h200").sources.values() for name in re.findall(NAME, text)]
    assert len(named) > 40
    assert set(named) <= known
