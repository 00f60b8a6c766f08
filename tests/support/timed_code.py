"""The compiled code of a microbenchmark: its listing, and the instructions of one turn."""

from collections import Counter
from functools import cache

from gemmlab.compiled.sass.compiling import disassemble
from gemmlab.compiled.sass.listing import Instruction, Listing
from gemmlab.here.compilers import Usage, assemble


@cache  # loops that differ in their lanes' addresses have one text
def assembled(ptx: str, target: str) -> tuple[bytes, Usage]:
    return assemble(ptx, target)


@cache
def listing(ptx: str, target: str) -> Listing:
    return disassemble(*assembled(ptx, target))


def turn(code: Listing, passes: int) -> tuple[Instruction, ...]:
    """The loop that is timed: the longest one, or the longest but one where it runs twice."""
    loops = sorted(
        (first - i.address, first, i.address)
        for i in code.instructions
        if i.name == "BRA" and i.guard and (first := int(i.operands[-1], 16)) < i.address
    )
    _, first, last = loops[min(passes, 2) - 1]
    return tuple(i for i in code.instructions if first <= i.address <= last)


def counted(instructions: tuple[Instruction, ...], opcodes) -> Counter:
    """Instructions by the opcode of `opcodes` that fits ("LDG.128"), or else by their names."""
    found = Counter()
    for i in instructions:
        parts = {i.name, *i.modifiers}
        fitting = [o for o in opcodes if o.startswith(i.name) and set(o.split(".")) <= parts]
        found[max(fitting, key=len, default=i.name)] += 1
    return found
