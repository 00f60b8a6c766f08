"""An instruction reads some registers and writes others: what of each, as bits of a number."""

from dataclasses import dataclass, replace
from functools import cache

from gemmlab.compiled.sass.listing import (
    PT,
    Address,
    Constant,
    Immediate,
    Instruction,
    Operand,
    Predicate,
    Register,
    parse,
)

# Registers are bits of a number: R, UR, P and UP one after the other.
FIRST = {"R": 0, "UR": 256, "P": 320, "UP": 328}
UNIFORM = (1 << 64) - 1 << FIRST["UR"]
PREDICATES = 0x7F << FIRST["P"] | 0x7F << FIRST["UP"]

GENERIC = "global", "local", "shared"  # it may go to any of them
LOADS = {
    "LDG": ("global",), "LDS": ("shared",), "LDL": ("local",), "LD": GENERIC, "LDSM": ("shared",),
    "LDGSTS": ("global",),
}  # fmt: skip
STORES = {
    "STG": ("global",), "STS": ("shared",), "STL": ("local",), "ST": GENERIC,
    "LDGSTS": ("shared",), "RED": ("global",), "REDG": ("global",),
}  # fmt: skip
ADDITIONS = {"ATOM": GENERIC, "ATOMG": ("global",), "ATOMS": ("shared",)}
LOADS |= ADDITIONS
STORES |= ADDITIONS
# What these do is written in their operands: those written come first. All others keep whatever
# they name, and are always executed.
PLAIN = {
    *("MOV", "LDC", "CS2R", "SEL", "IMAD", "IADD3", "VIADD", "LEA", "IABS", "IDP", "VIMNMX"),
    *("VIADDMNMX", "SHF", "LOP3", "PRMT", "POPC", "FLO", "BREV", "SGXT", "BMSK", "ISETP", "PLOP3"),
    *("FSETP", "DSETP", "FSEL", "FFMA", "FADD", "FMUL", "FMNMX", "HFMA2", "DFMA", "DADD", "DMUL"),
    *("MUFU", "FCHK", "I2F", "I2FP", "F2I", "F2F", "FRND", "F2FP", "HADD2", "SHFL", "S2R", "S2UR"),
    *("HMMA", "VOTE", "REDUX", "MATCH", "R2UR", "IADD", "IMNMX", "LDCU"),
}
DIRECTING = {"BRA", "CALL", "RET", "EXIT", "BSSY", "BSYNC", "BREAK", "WARPSYNC", "BAR", "YIELD"}
PAIRS = ("DFMA", "DADD", "DMUL", "DSETP")  # of registers, all of their operands
SETS = ("ISETP", "FSETP", "DSETP", "PLOP3")  # two predicates
WIDTHS = {"64": 2, "128": 4}


@cache
def bit_of(guard: str) -> int:
    """Return the bit of the predicate of a guard."""
    return registers(parse(guard.lstrip("!")))


def registers(operand: Operand, count: int = 1) -> int:
    """Return the bits of an operand's registers, of `count` successive ones where it names one."""
    match operand:
        case Register() if operand.is_zero:
            return 0
        case Register():
            return ((1 << count) - 1) << (FIRST[operand.file] + operand.index)
        case Predicate():
            return 0 if operand.index == PT else 1 << (FIRST[operand.file] + operand.index)
        case Constant(index=Register() as index):
            return registers(index)
        case Address():
            found = 0
            for i, one in enumerate(operand.registers):
                wide = operand.wide and (i == 0 or one.file == "UR")
                found |= registers(one, 2 if wide else 1)
            return found
    return 0


@dataclass(frozen=True, slots=True)
class Effect:
    """An instruction reads some registers and writes others, as bits.

    reads : to do what it does; control : to direct lanes, or to know where in memory
    writes : as far as is known, and where `sure` all of it, for the lanes that its guard lets do it
    guard : its text, "" for none, and `decides` is its bit, which is among those read
    loads, stores : the memories that it reads and changes
    known : what it does is all in its operands, so that it need not be done where nobody asks
    """

    reads: int
    control: int
    writes: int
    sure: bool
    guard: str = ""
    decides: int = 0
    loads: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    known: bool = True


def base_name(instruction: Instruction) -> str:
    """Return the name without the U of what a warp does once."""
    name = instruction.name
    return name[1:] if name.startswith("U") and name[1:] in PLAIN else name


def effect(instruction: Instruction) -> Effect:
    """Find what an instruction reads and writes.

    A guard decides what an access costs and where lanes go, but of any other instruction, which
    issues all the same, only what it writes.

    >>> one = Instruction(0, "P0", "IMAD.WIDE", ("R2", "R7", "0x4", "R4"))
    >>> found = effect(one)
    >>> found.writes == 0b11 << 2, found.reads == 1 << 7 | 0b11 << 4 | 1 << FIRST["P"], found.guard
    (True, True, 'P0')
    """
    operands = [parse(text) for text in instruction.operands]
    guard = bit_of(instruction.guard) if instruction.guard else 0
    found = _effect(instruction, base_name(instruction), operands, guard)
    return replace(found, guard=instruction.guard if guard else "", decides=guard)


def _effect(instruction: Instruction, name: str, operands: list[Operand], guard: int) -> Effect:
    if name in LOADS or name in STORES:
        return _access(instruction, name, operands, guard)
    if name in ("P2R", "R2P"):
        return _packed(name, operands, guard)
    if name not in PLAIN:
        every = guard
        for operand in operands:
            every |= registers(operand, 1 if name in DIRECTING else 4)
        if name.startswith("UTMA"):  # coordinates are in the registers behind those that it names
            every |= UNIFORM
        return Effect(0, every, every, False, known=False)
    written = _written(name, operands)
    reads, writes = guard, 0
    for at, operand in enumerate(operands):
        found = registers(operand, _width(instruction, name, operand, at, at < written))
        reads, writes = (reads, writes | found) if at < written else (reads | found, writes)
    if name == "R2UR":  # it may join a predicate with what that was
        reads |= writes & PREDICATES
    return Effect(reads, 0, writes, name != "HMMA")


def _packed(name: str, operands: list[Operand], guard: int) -> Effect:
    """Find what P2R and R2P do: predicates become bits of a register, and the other way round."""
    chosen = operands[-1].integer if isinstance(operands[-1], Immediate) else 0x7F
    predicates = (chosen & 0x7F) << FIRST["P"]
    if name == "R2P":
        return Effect(guard | registers(operands[1]), 0, predicates, True)
    reads = guard | predicates | registers(operands[2])
    return Effect(reads, 0, registers(operands[0]), True)


def _access(i: Instruction, name: str, operands: list[Operand], control: int) -> Effect:
    """Find what a load, a store or an atomic instruction reads and writes."""
    count = next((WIDTHS[m] for m in i.modifiers if m in WIDTHS), 4 if name == "LDSM" else 1)
    places = [at for at, o in enumerate(operands) if isinstance(o, Address)]
    writes = reads = 0
    for at, operand in enumerate(operands):
        if at in places and "E" in i.modifiers:  # of 64 bits, which sm_75 says of none
            control |= registers(replace(operand, wide=True))
        elif at in places or (at > places[0] and isinstance(operand, Predicate)):
            control |= registers(operand)
        elif at < places[0]:
            writes |= registers(operand, count)
        else:
            reads |= registers(operand, count)
    sure, loads, stores = name in ("LDG", "LDS", "LDL", "LD"), LOADS.get(name), STORES.get(name)
    return Effect(reads, control, writes, sure, loads=loads or (), stores=stores or ())


def _written(name: str, operands: list[Operand]) -> int:
    """Count the operands that are written: predicates, a register, or one and the other."""
    if name in SETS:
        return 2
    if name == "VOTE":
        return len(operands) - 1
    at = 0
    while at < len(operands) and isinstance(operands[at], Predicate):
        at += 1
    if name == "FCHK":
        return at
    at += 1
    if name in ("IADD3", "IADD", "LEA", "IMAD"):  # carries out
        while at < len(operands) and isinstance(operands[at], Predicate):
            at += 1
    return at


def _width(i: Instruction, name: str, operand: Operand, at: int, written: bool) -> int:
    """Return how many successive registers an operand means, rather too many than too few."""
    flags = i.modifiers
    if not isinstance(operand, Register) or name == "SHF":  # its pairs are two operands
        return 1
    if name == "HMMA":
        return 4
    if name == "IMAD":
        wide = "WIDE" in flags or ("HI" in flags and not written)
        return 2 if wide and (written or at >= 3) else 1
    if name == "F2F":
        return 2 if flags[0 if written else 1] == "F64" else 1
    of_integer = bool({"S64", "U64"} & set(flags))
    if name in ("I2F", "F2I"):
        return 1 + ("F64" in flags if (name == "I2F") == written else of_integer)
    wide = name in PAIRS or "64" in flags or "F64" in flags or (of_integer and not written)
    return 2 if wide or (name == "CS2R" and "32" not in flags) else 1
