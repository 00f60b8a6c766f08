"""Compiled code as nouns: instructions, their operands and control fields, and listings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

BYTES = 16  # of an instruction, since Volta
BARRIERS = 6  # scoreboards of a warp, numbered from 0
_CONTROL = 41  # of the word's upper half: where the control fields begin


@dataclass(frozen=True, slots=True)
class Control:
    """The control fields are ptxas's word to the hardware on when an instruction may issue.

    stall : cycles until the warp's next instruction may issue
    yields : another warp should go first
    write_barrier, read_barrier : the scoreboard that is held until the result is there, and until
        the operands have been read; None for none
    waits : scoreboards that must be free before this instruction issues
    """

    stall: int = 1
    yields: bool = False
    write_barrier: int | None = None
    read_barrier: int | None = None
    waits: tuple[int, ...] = ()

    @classmethod
    def decode(cls, upper: int) -> Control:
        """Read the upper 64 bits of an instruction, of which bits 41 to 57 are these fields.

        Source: Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking",
        arXiv:1804.06826, section 2.1; the same on GPUs from Turing to Blackwell.

        >>> Control.decode(0x000FE20000000800)
        Control(stall=1, yields=False, write_barrier=None, read_barrier=None, waits=())
        """
        bits = upper >> _CONTROL
        write, read = bits >> 5 & 7, bits >> 8 & 7
        return cls(
            stall=bits & 15,
            yields=not bits >> 4 & 1,
            write_barrier=write if write < BARRIERS else None,
            read_barrier=read if read < BARRIERS else None,
            waits=tuple(b for b in range(BARRIERS) if bits >> 11 >> b & 1),
        )

    def __str__(self) -> str:
        """Waits, barriers, yield and stall, in the notation that such listings have.

        >>> str(Control(stall=4, write_barrier=0, waits=(1, 2)))
        '-12--- W0 R- - S04'
        """
        waits = "".join(str(b) if b in self.waits else "-" for b in range(BARRIERS))
        write, read = (
            "-" if b is None else str(b) for b in (self.write_barrier, self.read_barrier)
        )
        return f"{waits} W{write} R{read} {'Y' if self.yields else '-'} S{self.stall:02d}"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its address [B], guard ("", "P0", "!UP1"), opcode, operands and control."""

    address: int
    guard: str
    opcode: str
    operands: tuple[str, ...]
    control: Control = field(default_factory=Control)

    @property
    def name(self) -> str:
        """The opcode without its modifiers, "IMAD" of "IMAD.WIDE.U32"."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The words that follow the name, ("WIDE", "U32") of "IMAD.WIDE.U32"."""
        return tuple(self.opcode.split(".")[1:])

    def __str__(self) -> str:
        guard = f"@{self.guard} " * bool(self.guard)
        return f"{guard}{self.opcode} {', '.join(self.operands)}".rstrip()


class Line(NamedTuple):
    """A line of a kernel's source.

    number : from the kernel's own first line, which is 1; 0 for a line of another file
    text : without what is to its left and right
    """

    number: int
    text: str


class Parameters(NamedTuple):
    """Parameters lie in constant bank 0 as the compiler of a cubin has put them.

    start : of the first one in the bank [B]
    places : of each, its offset from there and its size [B]
    block : the sizes of a block that the kernel asks for, if it does
    """

    start: int
    places: tuple[tuple[int, int], ...]
    block: tuple[int, int, int] | None = None


@dataclass(frozen=True, eq=False)
class Listing:
    """A listing is a kernel as the GPU executes it; equal to itself alone, so that it is a key.

    architecture : "sm_90", say
    instructions : in the order of their addresses, functions that the kernel calls included
    registers, local_bytes, shared_bytes : of a thread, a thread and a block, as ptxas says;
        shared_bytes are static
    functions : where the functions begin that the kernel calls, by name
    constants : bytes of the constant banks that the file itself fills, by number
    data : bytes of the module's variables in global memory
    pointers : (offset in constant bank 4, offset in `data`) of the addresses kept there
    lines : of each instruction, the line that it comes from, None where that is not known; or empty
    parameters : where they lie, as a cubin says; None for a kernel of Numba, as Numba passes them
    memrefs : whether arrays are passed as numba-cuda-mlir does, not as Numba-CUDA
    """

    architecture: str
    instructions: tuple[Instruction, ...]
    registers: int
    local_bytes: int = 0
    shared_bytes: int = 0
    functions: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    data: bytes = field(default=b"", repr=False)
    pointers: tuple[tuple[int, int], ...] = ()
    lines: tuple[Line | None, ...] = field(default=(), repr=False)
    parameters: Parameters | None = field(default=None, repr=False)
    memrefs: bool = False

    def __str__(self) -> str:
        """One line an instruction: address, control, text."""
        return "\n".join(f"{i.address:05x}  {i.control}  {i}" for i in self.instructions)


_ROW = re.compile(
    r"((?P<address>[0-9a-f]+)\s+)?"
    r"(?P<waits>[-0-5]{6}) W(?P<write>.) R(?P<read>.) (?P<yields>.) S(?P<stall>\d\d)\s+"
    r"(@(?P<guard>\S+) )?(?P<opcode>\S+)\s*(?P<operands>.*)"
)


def instructions(text: str) -> tuple[Instruction, ...]:
    """Read the instructions of a text as `str` makes it of a `Listing`, one a line.

    Addresses may be left out: then each instruction follows the one above.
    Raises ValueError, with the line, for one that is none.

    >>> (one,) = instructions("00020  -1---- W0 R- - S04  @!P0 LDS R2, [R4+0x10]")
    >>> one.address, one.guard, one.operands, one.control.waits
    (32, '!P0', ('R2', '[R4+0x10]'), (1,))
    """
    found: list[Instruction] = []
    for line in text.strip().splitlines():
        found.append(_instruction(line.strip(), found[-1].address + BYTES if found else 0))
    return tuple(found)


def _instruction(line: str, following: int) -> Instruction:
    row = _ROW.fullmatch(line)
    if row is None:
        raise ValueError(f"{line!r} is no instruction; they read as `Listing` prints them")
    write, read = (None if row[k] == "-" else int(row[k]) for k in ("write", "read"))
    return Instruction(
        int(row["address"], 16) if row["address"] else following,
        row["guard"] or "",
        row["opcode"],
        tuple(o.strip() for o in row["operands"].split(",")) if row["operands"] else (),
        Control(
            int(row["stall"]), row["yields"] == "Y", write, read,
            tuple(int(w) for w in row["waits"] if w != "-"),
        ),
    )  # fmt: skip


RZ = 255  # the register that is always zero
URZ = 63  # likewise among the uniform ones
PT = 7  # the predicate that always holds

_NUMBER = re.compile(r"-?(0x[0-9a-f]+|\d+)$")


@dataclass(frozen=True, slots=True)
class Register:
    """A register belongs to a lane ("R") or, the same for all lanes, to a warp ("UR")."""

    file: str
    index: int
    negative: bool = False
    absolute: bool = False
    inverted: bool = False
    reused: bool = False  # its value stays in the cache of operands
    half: str = ""  # "H0_H0", "H1", "B2": the part that is read

    @property
    def is_zero(self) -> bool:
        return self.index == (RZ if self.file == "R" else URZ)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate belongs to a lane ("P") or to a warp ("UP")."""

    file: str
    index: int
    negated: bool = False

    @property
    def always(self) -> bool:
        return self.index == PT and not self.negated

    @property
    def never(self) -> bool:
        return self.index == PT and self.negated


@dataclass(frozen=True, slots=True)
class Constant:
    """A word of a constant bank, `offset` [B] beyond the register `index` if there is one."""

    bank: int
    offset: int
    index: Register | None = None
    negative: bool = False
    absolute: bool = False
    inverted: bool = False


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number in the instruction itself, as text: 1 is an integer or a float by the opcode."""

    text: str

    @property
    def integer(self) -> int:
        """The number; ValueError where it is none."""
        return int(self.text, 0)

    @property
    def real(self) -> float:
        """The number as a float; "+INF" and "+QNAN" are numbers too."""
        text = self.text.lower().replace("qnan", "nan").replace("snan", "nan")
        if _NUMBER.match(text):
            return float(int(text, 0))
        return float(text)


@dataclass(frozen=True, slots=True)
class Address:
    """A place in memory: the sum of registers and an offset [B]; `scale` multiplies the first."""

    registers: tuple[Register, ...]
    offset: int = 0
    wide: bool = False  # the first register and its successor are a 64-bit address
    scale: int = 1


@dataclass(frozen=True, slots=True)
class Name:
    """A name is any other operand: a special register, a barrier, a label."""

    text: str


Operand = Register | Predicate | Constant | Immediate | Address | Name

_REGISTER = re.compile(
    r"(?P<minus>-)?(?P<bar>\|)?(?P<not>~)?(?P<file>UR|R)(?P<index>\d+|Z)"
    r"\|?(?P<parts>(\.\w+)*)\|?$"
)
_PREDICATE = re.compile(r"(?P<not>!)?(?P<file>UP|P)(?P<index>\d|T)$")
_CONSTANT = re.compile(
    r"(?P<minus>-)?(?P<bar>\|)?(?P<not>~)?c\[0x(?P<bank>[0-9a-f]+)\]\[(?P<inside>[^\]]*)\]\|?(\.\w+)*$"
)


@lru_cache(maxsize=4096)  # most operands of a listing stand in it several times
def parse(text: str) -> Operand:
    """Read an operand of a listing's text.

    >>> parse("-R4.reuse").negative, parse("c[0x0][0x210]").offset, parse("!PT").never
    (True, 528, True)
    >>> parse("desc[UR4][R24.64+0x10]").offset
    16
    """
    found = _REGISTER.match(text)
    if found:
        return _register(found)
    found = _PREDICATE.match(text)
    if found:
        index = PT if found["index"] == "T" else int(found["index"])
        return Predicate(found["file"], index, bool(found["not"]))
    found = _CONSTANT.match(text)
    if found:
        inside = _address(found["inside"])
        return Constant(
            int(found["bank"], 16),
            inside.offset,
            inside.registers[0] if inside.registers else None,
            bool(found["minus"]),
            bool(found["bar"]),
            bool(found["not"]),
        )
    if text.endswith("]"):
        return _address(text[text.rindex("[") + 1 : -1])
    if text[:1] in "+-.0123456789" or text.lower().lstrip("+-") in ("inf", "qnan", "snan"):
        return Immediate(text)
    return Name(text)


def _register(found: re.Match[str]) -> Register:
    zero = URZ if found["file"] == "UR" else RZ
    parts = found["parts"].split(".")[1:]
    halves = [part for part in parts if re.match(r"[HB]\d", part)]
    return Register(
        found["file"],
        zero if found["index"] == "Z" else int(found["index"]),
        bool(found["minus"]),
        bool(found["bar"]),
        bool(found["not"]),
        "reuse" in parts,
        halves[0] if halves else "",
    )


def _address(text: str) -> Address:
    """Read what stands in the brackets: registers and an offset, added."""
    registers: list[Register] = []
    offset, wide, scale = 0, False, 1
    for part in text.replace("-0x", "+-0x").split("+"):
        found = _REGISTER.match(part)
        if found is None:
            offset += int(part, 0) if part else 0
            continue
        flags = found["parts"].split(".")[1:]
        wide = wide or "64" in flags
        scale = next((int(flag[1:]) for flag in flags if re.match(r"X\d+$", flag)), scale)
        registers.append(_register(found))
    return Address(tuple(registers), offset, wide, scale)
