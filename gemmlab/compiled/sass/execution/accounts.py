"""Accesses are counted without being done, where nobody asks for values."""

import numpy as np

from gemmlab.compiled.sass.execution.lanes import ROW, whole
from gemmlab.compiled.sass.execution.memory import (
    Access,
    Memory,
    Watch,
    atomic_kind,
    copied,
    cost,
    sum_of,
)
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step
from gemmlab.compiled.sass.listing import Address
from gemmlab.tiling import WARP


def access(o: Operands, memory: Memory, watch: Watch) -> Step:
    """Count what a load, a store or an atomic instruction costs, without doing it."""
    name = o.instruction.name
    op = "load" if name.startswith("LD") else "store" if name.startswith("ST") else "atomic"
    one = Access(o, memory, watch, op)
    if op == "atomic":
        one.width = atomic_kind(o).itemsize

    def run(mask: Mask) -> None:
        _, address = one.lanes(mask)
        memory.check(one.space, address, one.width)

    return run


def copy(o: Operands, memory: Memory, watch: Watch) -> Step:
    """Count what LDGSTS costs, without copying."""
    one = Access(o, memory, watch, "copy")
    asked = copied(o, one)

    def run(mask: Mask) -> None:
        target, origin, on, wanted = asked(mask)
        memory.check("shared", target[on], one.width)
        memory.check("global", origin[wanted], one.width)

    return run


def ldsm(o: Operands, memory: Memory, watch: Watch) -> Step:
    """Count what LDSM costs, without loading."""
    _, _, *number = o.instruction.modifiers
    count = int(number[0]) if number else 1
    place = next(i for i, operand in enumerate(o.all) if isinstance(operand, Address))
    address = sum_of(o, o.all[place])

    def run(mask: Mask) -> None:
        at = np.broadcast_to(address(), o.state.lanes)
        on = np.zeros((o.state.lanes // WARP, WARP), bool)
        on[whole(o, mask), : 8 * count] = True
        watch(cost("shared", "load", at, on.ravel(), ROW))
        memory.check("shared", at[on.ravel()], ROW)

    return run
