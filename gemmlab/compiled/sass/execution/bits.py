"""What instructions on bits do: shifts, logic, permutations, counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.state import WORD, Mask, Operands, Step

LOW = np.uint64(0xFFFFFFFF)


def shf(o: Operands) -> Step:
    """A funnel shift of the pair (low a, high c) by s, left or right; HI: the upper half of it."""
    flags = o.instruction.modifiers
    write = o.to(0)
    low, amount, high = o.word(1), o.word(2), o.word(3)
    bits = 64 if "U64" in flags or "S64" in flags else 32
    wraps = "W" in flags
    signed = "S32" in flags or "S64" in flags
    left, upper = "L" in flags, "HI" in flags

    def run(mask: Mask) -> None:
        s = np.asarray(amount()).astype(np.uint64)
        s = s & np.uint64(bits - 1) if wraps else np.minimum(s, np.uint64(bits))
        pair = (np.asarray(high()).astype(np.uint64) << WORD) | low()
        if left:
            moved = np.where(s > 63, np.uint64(0), pair << np.minimum(s, np.uint64(63)))
        elif signed:
            at_most = np.minimum(s, np.uint64(63)).astype(np.int64)
            moved = (pair.view(np.int64) >> at_most).view(np.uint64)
        else:
            moved = np.where(s > 63, np.uint64(0), pair >> np.minimum(s, np.uint64(63)))
        write((moved >> WORD if upper else moved & LOW).astype(np.uint32), mask)

    return run


def lop3(o: Operands) -> Step:
    """D = any function of three bits, given as a table of eight; and whether d is not zero."""
    outs = [o.to_predicate(0)] if o.is_predicate(0) else []
    first = len(outs)
    write = o.to(first)
    a, b, c = (o.word(first + 1 + i) for i in range(3))
    function = _three_bits(o.all[first + 4].integer)
    also = o.predicate(first + 5) if first + 5 < len(o) and not o.all[first + 5].never else None

    def run(mask: Mask) -> None:
        value = function(a(), b(), c())
        write(value, mask)
        for out in outs:
            out(value != 0 if also is None else (value != 0) | also(), mask)

    return run


def _three_bits(table: int) -> Callable[[Any, Any, Any], Any]:
    """The function of three words whose value for bits a, b, c is bit 4a + 2b + c of `table`."""
    known = {
        0xC0: lambda a, b, c: a & b,
        0xFC: lambda a, b, c: a | b,
        0x3C: lambda a, b, c: a ^ b,
        0x33: lambda a, b, c: ~b,
        0x0F: lambda a, b, c: ~a,
    }
    if table in known:
        return known[table]
    ones = [i for i in range(8) if table >> i & 1]

    def run(a: Any, b: Any, c: Any) -> Any:
        value = np.uint32(0)
        for i in ones:
            value = value | ((a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c))
        return value

    return run


def prmt(o: Operands) -> Step:
    """D = four bytes chosen from a and c by the hexadecimal digits of b."""
    if any(f != "PRMT" for f in o.instruction.modifiers):
        raise NotImplementedError(str(o.instruction))
    write, a, chosen, c = o.to(0), o.word(1), o.word(2), o.word(3)

    def run(mask: Mask) -> None:
        pair = (np.asarray(c()).astype(np.uint64) << WORD) | a()
        selector = np.asarray(chosen()).astype(np.uint64)
        value = np.uint64(0)
        for i in range(4):
            digit = selector >> np.uint64(4 * i)
            byte = (pair >> (np.uint64(8) * (digit & np.uint64(7)))) & np.uint64(0xFF)
            sign = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
            byte = np.where(digit & np.uint64(8), sign, byte)
            value = value | (byte << np.uint64(8 * i))
        write(value.astype(np.uint32), mask)

    return run


def popc(o: Operands) -> Step:
    """D = the number of ones in a."""
    write, a = o.to(0), o.word(1)
    return lambda mask: write(np.bitwise_count(a()).astype(np.uint32), mask)


def flo(o: Operands) -> Step:
    """D = the place of the leading one, ~0 if there is none; SH: counted from the left."""
    flags = o.instruction.modifiers
    if "U32" not in flags:
        raise NotImplementedError(str(o.instruction))
    write, a = o.to(0), o.word(1)

    def run(mask: Mask) -> None:
        _, exponent = np.frexp(np.asarray(a()).astype(np.float64))
        place = exponent - 1
        place = np.where(exponent > 0, 31 - place if "SH" in flags else place, -1)
        write(place.astype(np.int32).view(np.uint32), mask)

    return run


def brev(o: Operands) -> Step:
    """D = a with its bits in the opposite order."""
    write, a = o.to(0), o.word(1)

    def run(mask: Mask) -> None:
        value = a()
        for shift, pattern in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
            value = ((value >> np.uint32(shift)) & np.uint32(pattern)) | (
                (value & np.uint32(pattern)) << np.uint32(shift)
            )
        write((value >> np.uint32(16)) | (value << np.uint32(16)), mask)

    return run


def sgxt(o: Operands) -> Step:
    """D = the lower b bits of a, with sign."""
    write, a, b = o.to(0), o.word(1), o.word(2)
    unsigned = "U32" in o.instruction.modifiers

    def run(mask: Mask) -> None:
        away = np.uint32(32) - np.minimum(b(), np.uint32(32))
        up = a().astype(np.uint64) << away
        up = (up & LOW).astype(np.uint32)
        write(up >> away if unsigned else (up.view(np.int32) >> away).view(np.uint32), mask)

    return run


def bmsk(o: Operands) -> Step:
    """D = b ones from place a on."""
    write, a, b = o.to(0), o.word(1), o.word(2)

    def run(mask: Mask) -> None:
        ones = (np.uint64(1) << np.minimum(b(), 32).astype(np.uint64)) - np.uint64(1)
        write(((ones << np.minimum(a(), 32).astype(np.uint64)) & LOW).astype(np.uint32), mask)

    return run
