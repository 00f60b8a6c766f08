"""Some values decide what follows: those of branches, guards and addresses, and what these need.

A forecast asks which instructions warps execute and what their accesses cost. Of most kernels that
does not depend on what they compute: sums, products and loaded data need no values then. Which
registers matter where is found backwards through the code, as compilers find what is alive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gemmlab.compiled.sass.listing import (
    PT,
    Address,
    Constant,
    Instruction,
    Listing,
    Operand,
    Predicate,
    Register,
    parse,
)

# Registers are bits of a number: R, UR, P and UP one after the other.
FIRST = {"R": 0, "UR": 256, "P": 320, "UP": 328}
UNIFORM = (1 << 64) - 1 << FIRST["UR"]
PREDICATES = 0x7F << FIRST["P"] | 0x7F << FIRST["UP"]

GENERIC = "global", "local"  # it may go to the arrays or to a thread's own memory
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
    *("HMMA", "VOTE", "REDUX", "MATCH", "R2UR"),
}
PAIRS = ("DFMA", "DADD", "DMUL", "DSETP")  # of registers, all of their operands
SETS = ("ISETP", "FSETP", "DSETP", "PLOP3")  # two predicates
WIDTHS = {"64": 2, "128": 4}


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
    writes : as far as is known, and where `sure` all of it, for all lanes that execute it
    loads, stores : the memories that it reads and changes
    known : what it does is all in its operands, so that it need not be done where nobody asks
    """

    reads: int
    control: int
    writes: int
    sure: bool
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
    >>> found.writes == 0b11 << 2, found.reads == 1 << 7 | 0b11 << 4 | 1 << FIRST["P"], found.sure
    (True, True, False)
    """
    operands = [parse(text) for text in instruction.operands]
    guard = registers(parse(instruction.guard.lstrip("!"))) if instruction.guard else 0
    name = base_name(instruction)
    if name in LOADS or name in STORES:
        return _access(instruction, name, operands, guard)
    if name not in PLAIN:
        every = guard
        for operand in operands:
            every |= registers(operand, 4)
        if name in ("P2R", "R2P"):
            every |= PREDICATES
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
    return Effect(reads, 0, writes, not instruction.guard and name != "HMMA")


def _access(i: Instruction, name: str, operands: list[Operand], control: int) -> Effect:
    """Find what a load, a store or an atomic instruction reads and writes."""
    count = next((WIDTHS[m] for m in i.modifiers if m in WIDTHS), 4 if name == "LDSM" else 1)
    places = [at for at, o in enumerate(operands) if isinstance(o, Address)]
    writes = reads = 0
    for at, operand in enumerate(operands):
        if at in places or (at > places[0] and isinstance(operand, Predicate)):
            control |= registers(operand)
        elif at < places[0]:
            writes |= registers(operand, count)
        else:
            reads |= registers(operand, count)
    sure = not i.guard and name in ("LDG", "LDS", "LDL", "LD")
    return Effect(reads, control, writes, sure, LOADS.get(name, ()), STORES.get(name, ()))


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
    if name in ("IADD3", "LEA", "IMAD"):  # carries out
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
    wide = name in PAIRS or any(f in flags for f in ("64", "F64", "S64", "U64"))
    return 2 if wide or (name == "CS2R" and "32" not in flags) else 1


@dataclass(frozen=True, eq=False)
class Relevance:
    """What of a listing decides what follows.

    effects : of each instruction
    live : the registers that matter before each instruction, as bits
    exact : those of them that must have their very value
    needed : whether an instruction's values matter; of an access, beside its address
    memories : those whose contents must be what they are
    """

    effects: tuple[Effect, ...]
    live: tuple[int, ...]
    exact: tuple[int, ...]
    needed: tuple[bool, ...]
    memories: frozenset[str]


# What these make of floats matters to a forecast only where floats are compared, or made integers.
FLOATS = {
    *("FFMA", "FADD", "FMUL", "FMNMX", "FCHK", "DFMA", "DADD", "DMUL", "MUFU", "HADD2", "HFMA2"),
    *("F2FP", "F2F", "FRND", "HMMA"),
}
COMPARED = {"FSETP", "DSETP", "F2I"}


@lru_cache(maxsize=32)
def relevance(listing: Listing) -> Relevance:
    """Find which values of a listing decide what its warps execute and what that costs."""
    names = [base_name(i) for i in listing.instructions]
    effects = tuple(effect(i) for i in listing.instructions)
    following = _successors(listing)
    live, memories = _settled(effects, names, following, exact=False)
    exact, of_exact = _settled(effects, names, following, exact=True)
    after = [_joined(live, nexts) for nexts in following]
    needed = tuple(map(_is_needed, effects, after, [memories] * len(effects)))
    return Relevance(effects, tuple(live), tuple(exact), needed, of_exact)


def _is_needed(one: Effect, after: int, memories: frozenset[str]) -> bool:
    return not one.known or bool(one.writes & after) or not memories.isdisjoint(one.stores)


def _settled(
    effects: Sequence[Effect], names: list[str], following: list[list[int]], exact: bool
) -> tuple[list[int], frozenset[str]]:
    """Find the registers that matter before each instruction, and the memories that do.

    exact : which must have their very value: not what sums of floats are made of, if only its
        order of magnitude can matter, as to the code for divisions
    """
    memories: frozenset[str] = frozenset()
    while True:
        live = _live(effects, names, following, memories, exact)
        asked = {
            memory
            for one, nexts in zip(effects, following, strict=True)
            if one.loads and _is_needed(one, _both(_joined(live, nexts)), memories)
            for memory in one.loads
        }
        if memories.issuperset(asked):
            return [_both(one) for one in live], memories
        memories = memories.union(asked)


SPAN = 336  # bits of all registers; those compared as floats stand above them
LOW = (1 << SPAN) - 1


def _both(bits: int) -> int:
    return bits & LOW | bits >> SPAN


def _joined(live: Sequence[int], nexts: list[int]) -> int:
    found = 0
    for at in nexts:
        found |= live[at]
    return found


def _live(
    effects: Sequence[Effect], names: list[str], following: list[list[int]],
    memories: frozenset[str], exact: bool,
) -> list[int]:  # fmt: skip
    """Find the registers that matter before each instruction; backwards, until nothing changes."""
    live = [0] * len(effects)
    before: list[list[int]] = [[] for _ in effects]
    for at, nexts in enumerate(following):
        for to in nexts:
            before[to].append(at)
    waiting, queued = list(range(len(effects))), [True] * len(effects)
    while waiting:
        at = waiting.pop()
        queued[at] = False
        one, out = effects[at], _joined(live, following[at])
        killed = one.writes | one.writes << SPAN if one.sure else 0
        found = out & ~killed | one.control
        if one.writes & (out >> SPAN) or not memories.isdisjoint(one.stores):
            found |= one.reads << SPAN if exact else one.reads
        elif one.writes & out:
            if not exact or names[at] not in FLOATS | COMPARED:
                found |= one.reads
            elif names[at] in COMPARED:
                found |= one.reads << SPAN
        if found != live[at]:
            live[at] = found
            for previous in before[at]:
                if not queued[previous]:
                    queued[previous] = True
                    waiting.append(previous)
    return live


def _successors(listing: Listing) -> list[list[int]]:
    """List where a lane may go on after each instruction."""
    index = {one.address: at for at, one in enumerate(listing.instructions)}
    after_calls = [at + 1 for at, one in enumerate(listing.instructions) if one.name == "CALL"]
    found = []
    for at, one in enumerate(listing.instructions):
        nexts = list(after_calls) if one.name == "RET" else []
        if one.name in ("BRA", "CALL"):
            label = one.operands[-1].strip("`()")
            address = listing.functions.get(label)
            nexts.append(index[int(label, 16) if address is None else address])
        always = not one.guard and (len(one.operands) < 2 or one.name == "RET")
        leaves = one.name in ("RET", "BRA", "EXIT") and always
        if at + 1 < len(listing.instructions) and not leaves:
            nexts.append(at + 1)
        found.append(nexts)
    return found
