"""What comparisons, predicates and choices do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.state import Mask, Operands, Read, Step

COMPARED = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": lambda a, b: (a < b) | (a > b),  # of floats: neither is NaN
    "NUM": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "NAN": lambda a, b: np.isnan(a) | np.isnan(b),
}
JOINED = {"AND": operator.and_, "OR": operator.or_, "XOR": operator.xor}


def comparison(name: str) -> Callable[[Any, Any], Any]:
    """The comparison of floats; those that end in U hold for NaN, too."""
    if name in COMPARED:
        return COMPARED[name]
    plain = COMPARED[name.removesuffix("U")]
    return lambda a, b: plain(a, b) | np.isnan(a) | np.isnan(b)


def _set(o: Operands, compared: Callable[[], Any], joined: str, after: Read) -> Step:
    """P = compared ∘ after, q = not compared ∘ after, with the AND, OR or XOR of the opcode."""
    join = JOINED[joined]
    first, second = o.to_predicate(0), o.to_predicate(1)

    def run(mask: Mask) -> None:
        value, other = compared(), after()
        other = np.array(other)  # it may be what is written
        first(join(value, other), mask)
        second(join(~value, other), mask)

    return run


def isetp(o: Operands) -> Step:
    """Whether a ∘ b; EX: of pairs of words, whose lower ones were compared before."""
    flags = o.instruction.modifiers
    kind = np.uint32 if "U32" in flags else np.int32
    compare, joined = flags[0], next(f for f in flags if f in JOINED)
    a, b = o.word(2), o.word(3)
    below = o.predicate(5) if "EX" in flags else None
    act = operator.ne if compare == "NE" else COMPARED[compare]

    def compared() -> Any:
        x, y = np.asarray(a()).view(kind), np.asarray(b()).view(kind)
        if below is None:
            return act(x, y)
        if compare == "EQ":
            return (x == y) & below()
        if compare == "NE":
            return (x != y) | below()
        strict = operator.lt if compare in ("LT", "LE") else operator.gt
        return strict(x, y) | ((x == y) & below())

    return _set(o, compared, joined, o.predicate(4))


def _float_set(o: Operands, read: Callable[[int], Read]) -> Step:
    flags = o.instruction.modifiers
    compare = comparison(flags[0])
    a, b = read(2), read(3)
    joined = next(f for f in flags if f in JOINED)
    return _set(o, lambda: np.asarray(compare(a(), b())), joined, o.predicate(4))


def fsetp(o: Operands) -> Step:
    """Whether a ∘ b, of float32 numbers."""
    return _float_set(o, o.float32)


def dsetp(o: Operands) -> Step:
    """Whether a ∘ b, of float64 numbers."""
    if o.instruction.modifiers[0] in ("MIN", "MAX"):
        return _least(o)
    return _float_set(o, o.float64)


def _least(o: Operands) -> Step:
    """DSETP.MIN, MAX: p = a is the one to be taken, a number before a NaN; q = both are NaN."""
    a, b = o.float64(2), o.float64(3)
    less = o.instruction.modifiers[0] == "MIN"
    first, second = o.to_predicate(0), o.to_predicate(1)

    def run(mask: Mask) -> None:
        x, y = np.asarray(a()), np.asarray(b())
        first((x < y if less else x > y) | np.isnan(y), mask)
        second(np.isnan(x) & np.isnan(y), mask)

    return run


def plop3(o: Operands) -> Step:
    """P and q = functions of three predicates, each given as a table of eight."""
    first, second = o.to_predicate(0), o.to_predicate(1)
    sources = [o.predicate(i) for i in (2, 3, 4)]
    tables = [np.array([o.all[i].integer >> bit & 1 for bit in range(8)], bool) for i in (5, 6)]

    def run(mask: Mask) -> None:
        a, b, c = (source().astype(np.intp) for source in sources)
        index = 4 * a + 2 * b + c
        first(tables[0][index], mask)
        second(tables[1][index], mask)

    return run


def sel(o: Operands) -> Step:
    """D = a where the predicate holds, else b."""
    write, a, b, p = o.to(0), o.word(1), o.word(2), o.predicate(3)
    return lambda mask: write(np.where(p(), a(), b()), mask)


def fsel(o: Operands) -> Step:
    """D = a where the predicate holds, else b, of float32 numbers."""
    write, p = o.to(0, np.float32), o.predicate(3)
    a, b = o.float32(1), o.float32(2)
    return lambda mask: write(np.where(p(), a(), b()), mask)


def p2r(o: Operands) -> Step:
    """D = the predicates, a bit each, where the mask c has ones; else the bits of b."""
    write, old, chosen = o.to(0), o.word(2), o.word(3)
    rows = o.state.predicates["P"]

    def run(mask: Mask) -> None:
        bits = np.zeros(o.state.lanes, np.uint32)
        for i in range(7):
            bits |= rows[i].astype(np.uint32) << np.uint32(i)
        write((bits & chosen()) | (old() & ~chosen()), mask)

    return run


def r2p(o: Operands) -> Step:
    """The predicates = the bits of a, where the mask b has ones."""
    a, chosen = o.word(1), o.all[2].integer
    rows = o.state.predicates["P"]

    def run(mask: Mask) -> None:
        bits = a()
        for i in range(7):
            if chosen >> i & 1:
                value = (bits >> np.uint32(i) & np.uint32(1)).astype(bool)
                np.copyto(rows[i], value, where=True if mask is None else mask)

    return run
