"""Instructions that read constant banks, and registers that are read as fast."""

import numpy as np

from gemmlab.compiled.sass.execution.integers import mov
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step

NARROW = {"U8": (8, False), "S8": (8, True), "U16": (16, False), "S16": (16, True)}


def ldc(o: Operands) -> Step:
    """D = a word, 64 bits, or a narrow integer of a constant bank."""
    flags = o.instruction.modifiers
    if "64" in flags:
        write, pair = o.to_pair(0), o.double_word(1)
        return lambda mask: write(np.asarray(pair()), mask)
    if not flags:
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


def cs2r(o: Operands) -> Step:
    """D = a special register that is read fast; SRZ is zero."""
    if o.instruction.operands[1] != "SRZ":
        raise NotImplementedError(str(o.instruction))
    write = o.to(0) if "32" in o.instruction.modifiers else o.to_pair(0)
    return lambda mask: write(np.uint64(0) if "32" not in o.instruction.modifiers else 0, mask)
