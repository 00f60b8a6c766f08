"""Accesses are counted without being done, where nobody asks for values."""

from gemmlab.compiled.sass.execution.memory import Access, Memory, Watch, atomic_kind, copied
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step
from gemmlab.compiled.sass.execution.warp_products import ROW, Matrices


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
    moved = Matrices(o, "load", watch)

    def run(mask: Mask) -> None:
        memory.check("shared", moved.rows(mask).at, ROW)

    return run
