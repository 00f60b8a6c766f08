"""Words are moved and chosen: from registers, constants and predicates, also by pairs."""

import numpy as np

from gemmlab.compiled.sass.execution.state import Mask, Operands, Step

NARROW = {"U8": (8, False), "S8": (8, True), "U16": (16, False), "S16": (16, True)}


def mov(o: Operands) -> Step:
    """D = a; 64, 128: so many bits, of registers or words that follow each other."""
    words = next((n for flag, n in (("64", 2), ("128", 4)) if flag in o.instruction.modifiers), 1)
    if words == 1:
        write, a = o.to(0), o.word(1)
        return lambda mask: write(a(), mask)
    if words == 2:
        pair, both = o.to_pair(0), o.double_word(1)
        return lambda mask: pair(np.asarray(both()), mask)
    parts = [(o.to(0, part=i), o.word(1, i)) for i in range(words)]

    def run(mask: Mask) -> None:
        for put, read in parts:
            put(read(), mask)

    return run


def ldc(o: Operands) -> Step:
    """D = a word, 64 or 128 bits, or a narrow integer of a constant bank."""
    flags = o.instruction.modifiers
    if not set(flags) - {"64", "128"}:
        return mov(o)
    if flags[0] not in NARROW:
        raise NotImplementedError(str(o.instruction))
    bits, signed = NARROW[flags[0]]
    put, word, place = o.to(0), o.word(1), o.constant_place(1)

    def run(mask: Mask) -> None:
        shift = (place() % 4 * 8).astype(np.uint32)
        value = (np.asarray(word()) >> shift & np.uint32(2**bits - 1)).astype(np.int64)
        value = value - (value >> (bits - 1) << bits) if signed else value
        put(value.astype(np.uint32), mask)

    return run


def sel(o: Operands) -> Step:
    """D = a where the predicate holds, else b; 64: pairs of words."""
    p = o.predicate(3)
    if "64" in o.instruction.modifiers:
        write, a, b = o.to_pair(0), o.double_word(1), o.double_word(2)
    else:
        write, a, b = o.to(0), o.word(1), o.word(2)
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


def cs2r(o: Operands) -> Step:
    """D = a special register that is read fast; SRZ is zero."""
    if o.instruction.operands[1] != "SRZ":
        raise NotImplementedError(str(o.instruction))
    write = o.to(0) if "32" in o.instruction.modifiers else o.to_pair(0)
    return lambda mask: write(np.uint64(0) if "32" not in o.instruction.modifiers else 0, mask)


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
