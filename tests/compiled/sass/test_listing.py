"""Instructions, their control fields and their operands; and a listing that the tools make."""

import pytest

from gemmlab.compiled.sass.compiling import disassemble
from gemmlab.compiled.sass.listing import (
    Address,
    Constant,
    Control,
    Immediate,
    Instruction,
    Name,
    Predicate,
    Register,
    parse,
)
from gemmlab.here.compilers import assemble, usage
from gemmlab.here.driver import tool

# Bits 105 to 125 of an instruction: the upper word's 41 to 61.
FIELDS = {
    4 | 1 << 4: Control(stall=4, write_barrier=0, read_barrier=0),
    1 | 7 << 5 | 7 << 8: Control(stall=1, yields=True),
    2 | 1 << 4 | 3 << 5 | 7 << 8: Control(stall=2, write_barrier=3),
    15 | 1 << 4 | 7 << 5 | 5 << 8: Control(stall=15, read_barrier=5),
    1 << 4 | 7 << 5 | 7 << 8 | 0b100101 << 11: Control(stall=0, waits=(0, 2, 5)),
}


@pytest.mark.parametrize("bits", FIELDS)
def test_control_fields_are_bits(bits):
    assert Control.decode(bits << 41 | 0x800) == FIELDS[bits]


def test_an_instruction_reads_as_in_a_listing():
    one = Instruction(0x40, "!P0", "IMAD.WIDE.U32", ("R2", "R4.reuse", "0x4", "R6"))
    assert str(one) == "@!P0 IMAD.WIDE.U32 R2, R4.reuse, 0x4, R6"
    assert (one.name, one.modifiers) == ("IMAD", ("WIDE", "U32"))


OPERANDS = {
    "R12": Register("R", 12),
    "RZ": Register("R", 255),
    "-R3.reuse": Register("R", 3, negative=True, reused=True),
    "|R13|.reuse": Register("R", 13, absolute=True, reused=True),
    "-|R1|": Register("R", 1, negative=True, absolute=True),
    "~R7": Register("R", 7, inverted=True),
    "UR4": Register("UR", 4),
    "URZ": Register("UR", 63),
    "!UP2": Predicate("UP", 2, negated=True),
    "PT": Predicate("P", 7),
    "c[0x0][0x210]": Constant(0, 0x210),
    "-c[0x3][R4+0x8]": Constant(3, 8, Register("R", 4), negative=True),
    "0x1f": Immediate("0x1f"),
    "-0.5": Immediate("-0.5"),
    "+INF": Immediate("+INF"),
    "[R2+-0x10]": Address((Register("R", 2),), -0x10),
    "[UR4+0x400]": Address((Register("UR", 4),), 0x400),
    "desc[UR4][R24.64+0x10]": Address((Register("R", 24),), 0x10, wide=True),
    "[R2.X4+UR5]": Address((Register("R", 2), Register("UR", 5)), scale=4),
    "SR_TID.X": Name("SR_TID.X"),
    "B0": Name("B0"),
}


@pytest.mark.parametrize("text", OPERANDS)
def test_operands_are_read(text):
    assert parse(text) == OPERANDS[text]


def test_immediates_are_integers_or_floats():
    assert (Immediate("0x10").integer, Immediate("-2").integer) == (16, -2)
    assert (Immediate("1").real, Immediate("-0.25").real) == (1.0, -0.25)
    assert Immediate("+INF").real == float("inf")
    assert Immediate("+QNAN").real != Immediate("+QNAN").real


def test_a_tool_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr("gemmlab.here.driver.shutil.which", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "cuda.pathfinder", None)
    tool.cache_clear()
    with pytest.raises(RuntimeError, match="pip install nvidia-cuda-nvdisasm"):
        tool("nvdisasm")
    tool.cache_clear()


def test_what_ptxas_says_of_a_kernel():
    told = "ptxas info : Used 40 registers, used 1 barriers, 8320 bytes smem"
    assert tuple(usage(told)) == (40, 0, 8320)


PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x) {
 .reg .b64 a; .reg .f32 f; .shared .align 4 .b8 s[256];
 ld.param.u64 a, [x]; ld.global.f32 f, [a]; st.shared.f32 [s], f; bar.sync 0;
 ld.shared.f32 f, [s+4]; fma.rn.f32 f, f, f, f; st.global.f32 [a], f; ret;
}
"""


@pytest.mark.ptxas
def test_a_listing_of_a_small_kernel():
    listing = disassemble(*assemble(PTX, "sm_90"))
    names = [i.name for i in listing.instructions]
    order = [names.index(name) for name in ("LDG", "STS", "BAR", "LDS", "FFMA", "STG", "EXIT")]
    assert order == sorted(order)
    assert (listing.architecture, listing.shared_bytes) == ("sm_90", 256)
    load, store = (listing.instructions[names.index(name)] for name in ("LDG", "STS"))
    assert load.control.write_barrier in store.control.waits
    assert [i.address for i in listing.instructions] == list(range(0, 16 * len(names), 16))
    assert f"{load.address:05x}  {load.control}  {load}" in str(listing)


@pytest.mark.ptxas
def test_wrong_text_is_refused_in_the_assemblers_words():
    with pytest.raises(RuntimeError, match="ptxas refused the code: .*line 6"):
        assemble(PTX.replace("bar.sync", "bar.sink"), "sm_90")
