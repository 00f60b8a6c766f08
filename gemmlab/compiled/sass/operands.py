"""Operands of instructions: registers, predicates, constants, immediates, addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass

RZ = 255  # the register that is always zero
URZ = 63  # likewise among the uniform ones
PT = 7  # the predicate that always holds

_NUMBER = re.compile(r"-?(0x[0-9a-f]+|\d+)$")


@dataclass(frozen=True, slots=True)
class Register:
    """A register of a lane ("R") or, the same for all lanes, of a warp ("UR")."""

    file: str
    index: int
    negative: bool = False
    absolute: bool = False
    inverted: bool = False
    reused: bool = False  # its value stays in the cache of operands
    half: str = ""  # "H0_H0", "H1", "B2": the part that is read

    @property
    def is_zero(self) -> bool:
        """Whether it is RZ or URZ."""
        return self.index == (RZ if self.file == "R" else URZ)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate of a lane ("P") or of a warp ("UP")."""

    file: str
    index: int
    negated: bool = False

    @property
    def always(self) -> bool:
        """Whether it is PT."""
        return self.index == PT and not self.negated

    @property
    def never(self) -> bool:
        """Whether it is !PT."""
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
    """Anything else: a special register, a barrier, a label."""

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


def parse(text: str) -> Operand:
    """The operand of a listing's text.

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
    """What stands in the brackets: registers and an offset, added."""
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
