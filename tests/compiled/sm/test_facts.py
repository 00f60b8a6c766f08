"""The facts of an SM, and the pipes of its instructions; facts that the literature tells."""

import re
from dataclasses import replace

import pytest

from benchmarks.microbenchmarks import LOOPS
from gemmlab import device
from gemmlab.compiled.sass.listing import Instruction
from gemmlab.compiled.sm.facts import UNITS, facts, known, parse
from gemmlab.compiled.sm.pipes import GROUP_OF, OPCODES, Kind, Pipe, Unit, use
from gemmlab.compiled.sm.program import _slots
from gemmlab.compiled.sm.registers import Read, reads
from gemmlab.device import of_capability, text_of
from gemmlab.model.occupancy import resident_blocks

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
        ("ULDC.64", Kind.OTHER, Pipe.NONE, Unit.NONE),
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
        ("HFMA2", "R5 R6.H0_H0 -0.5 0.25 R8.H0_H0", [Read(6, 0, False), Read(8, 2, False)]),
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
    assert set(named) - set(UNITS) <= known  # a source may name another fact


MEASURED = "h200", "h100_sxm"
READ = tuple(name for name in known() if name not in MEASURED)


def used(opcode, name):
    return use(Instruction(0, "", opcode, ()), facts(name))


def test_only_what_was_measured_here_says_so():
    assert {name for name in known() if facts(name).measured} == {*MEASURED}
    assert {"t4", "a100_40gb", "rtx3060", "rtx3090", "rtx_a6000", "rtx4090", "rtx5090"} <= {*READ}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_names_no_microbenchmark_of_here(name):
    """Every fact that a file says itself has a source that somebody else published."""
    text = text_of(name).partition("[sm]")[2]
    assert text.count("source = ") > 2
    assert not re.search(r"Microbenchmarks? ", text)
    assert set(facts(name).sources) == set(UNITS)


@pytest.mark.parametrize("name", READ)
def test_ffmas_are_issued_as_fast_as_the_peak_says(name):
    known_of, target = facts(name), device(name)
    per_cycle = 4 * 32 * known_of.fma_pipes / known_of.fma_interval
    assert per_cycle == target.flop_per_cycle_per_sm["float32"] / 2
    assert per_cycle == of_capability(target.compute_capability).fma_per_cycle["float32"]


@pytest.mark.parametrize("name", READ)
def test_tensor_cores_multiply_as_fast_as_the_peak_says(name):
    """16x8x8 products: 1024 FMAs in each of the four Tensor Cores of an SM."""
    per_cycle = 4 * 1024 / facts(name).tensor_short_interval
    assert per_cycle == device(name).flop_per_cycle_per_sm["float16"] / 2


def test_pipes_are_those_of_the_generation():
    assert used("FFMA", "t4").pipe == used("IMAD", "t4").pipe == Pipe.FMA_HEAVY
    assert used("FFMA", "a100_80gb").other == Pipe.NONE
    assert used("FFMA", "rtx3090").other == Pipe.FMA_HEAVY
    assert used("IMAD", "rtx3090").other == Pipe.NONE
    assert used("IMAD", "rtx5090").other == Pipe.FMA_HEAVY
    halves = [used(f"HMMA.16816.{sums}", "rtx3090").interval for sums in ("F16", "F32")]
    assert halves == [16, 32]
    assert used("HMMA.1688.F16", "rtx3090").interval == 8
    product = Instruction(0, "", "HMMA.16816.F32", ())
    assert _slots(product, used(product.opcode, "rtx3090"), facts("rtx3090")) == 3


def test_load_store_units_are_those_of_the_generation():
    units = {name: 32 / facts(name).lsu_interval for name in ("t4", "a100_40gb", "rtx3090")}
    assert units == {"t4": 16, "a100_40gb": 32, "rtx3090": 16}
    assert (facts("t4").wavefront_interval, facts("rtx4090").wavefront_interval) == (2, 1)


def test_an_sm_holds_what_its_capability_says():
    sizes = {name: resident_blocks(device(name), 64) for name in ("t4", "rtx3090", "rtx4090")}
    assert sizes == {"t4": 16, "rtx3090": 16, "rtx4090": 24}
    assert resident_blocks(device("rtx3090"), 256) == 6  # 1536 threads
    assert resident_blocks(device("a100_80gb"), 128, shared_bytes=40 * 1024) == 4  # 164 KB
    assert resident_blocks(device("t4"), 128, shared_bytes=32 * 1024) == 2  # 64 KB


def test_a_recorded_outcome_is_not_another_gpus():
    h200 = facts("h200")
    assert h200.others == facts("h100_sxm").others == ()
    assert ("fma_pipes", 1) in facts("t4").others
    assert replace(h200, wavefront_interval=2).others == (("wavefront_interval", 2),)
