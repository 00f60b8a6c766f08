"""Instructions on words and predicates, a function for an opcode: operands in, an action out.

Source of the names: NVIDIA, CUDA Binary Utilities, Instruction Set Reference. What they do in
detail is not documented; tests run compiled kernels with them against the kernels' results.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.state import WORD, Mask, Operands, Read, Step

LOW = np.uint64(0xFFFFFFFF)
BORROWED = np.uint64(2**32)  # less a word: its negative, and a carry where nothing is borrowed


def imad(o: Operands) -> Step:
    """D = a·b + c; WIDE: in 64 bits; HI: the upper half of that; X: and a carry."""
    flags = o.instruction.modifiers
    carries = o.is_predicate(1)
    first = 2 if carries else 1
    carry = o.predicate(first + 3) if "X" in flags else None
    if "MOV" in flags:  # 0·0 + c, or a·1 + 0
        write, c = o.to(0), o.word(first + 2)
        return lambda mask: write(c(), mask)
    if "WIDE" not in flags and "HI" not in flags:
        a, b, c = (o.word(first + i) for i in range(3))
        write, over = o.to(0), o.to_predicate(1) if carries else None
        if over is not None:
            raise NotImplementedError(f"{o.instruction}: a carry out of 32 bits")
        if carry is not None:
            return lambda mask: write(a() * b() + c() + carry(), mask)
        return lambda mask: write(a() * b() + c(), mask)
    widen = _zeros if "U32" in flags or "U64" in flags else _signs
    a, b = o.word(first), o.word(first + 1)
    c = o.double_word(first + 2)
    over = o.to_predicate(1) if carries else None
    write = o.to(0) if "HI" in flags else o.to_pair(0)

    def run(mask: Mask) -> None:
        product = widen(a()) * widen(b())
        total = product + c()
        wrapped = total < product
        if carry is not None:
            total = total + carry()
            wrapped = wrapped | (carry() & (total == 0))
        if over is not None:
            over(wrapped, mask)
        write((total >> WORD).astype(np.uint32) if "HI" in flags else total, mask)

    return run


def _zeros(word: Any) -> Any:
    return word.astype(np.uint64)


def _signs(word: Any) -> Any:
    return word.view(np.int32).astype(np.int64).view(np.uint64)


def add3(o: Operands) -> Step:
    """D = a + b + c, with carries out into predicates and, with X, carries in; 64: of pairs."""
    if "64" in o.instruction.modifiers:
        return add(o)
    write = o.to(0)
    outs = []
    first = 1
    while o.is_predicate(first):
        outs.append(o.to_predicate(first))
        first += 1
    sources = [_addend(o, i) for i in range(first, min(first + 3, len(o)))]
    ins = []
    if "X" in o.instruction.modifiers:
        ins = [o.predicate(i) for i in range(first + 3, len(o)) if not _never(o, i)]
    if not outs and not ins:
        words = [o.word(i) for i in range(first, min(first + 3, len(o)))]
        if len(words) == 2:
            return lambda mask: write(words[0]() + words[1](), mask)
        return lambda mask: write(words[0]() + words[1]() + words[2](), mask)

    def run(mask: Mask) -> None:
        total = sources[0]() + sources[1]()
        for carry in ins:
            total = total + carry()
        total = total + sources[2]()
        write((total & LOW).astype(np.uint32), mask)
        over = total >> WORD
        for place, out in enumerate(outs):
            out(over > place, mask)

    return run


def add(o: Operands) -> Step:
    """D = the sum of pairs of words, without a carry."""
    first = 1
    while o.is_predicate(first):
        if not o.all[first].always:
            raise NotImplementedError(f"{o.instruction}: a carry out of 64 bits")
        first += 1
    write, parts = o.to_pair(0), [o.double_word(i) for i in range(first, len(o))]
    return lambda mask: write(np.asarray(sum(part() for part in parts), np.uint64), mask)


def _addend(o: Operands, index: int) -> Callable[[], Any]:
    """Read an addend in 64 bits; -a is 2³² - a, so that a carry says that nothing was borrowed."""
    word, negative = o.magnitude(index)
    if negative:
        return lambda: BORROWED - word().astype(np.uint64)
    return lambda: np.asarray(word()).astype(np.uint64)


def _never(o: Operands, index: int) -> bool:
    return not o.is_predicate(index) or o.all[index].never


def lea(o: Operands) -> Step:
    """D = (a << s) + b; HI: the upper half of the pair (a, c) << s, + b; X: and a carry."""
    flags = o.instruction.modifiers
    write = o.to(0)
    outs = [o.to_predicate(1)] if o.is_predicate(1) else []
    first = 1 + len(outs)
    carry = o.predicate(len(o) - 1) if "X" in flags else None
    a, b = o.word(first), _addend(o, first + 1)
    if "HI" not in flags:
        plain, negative = o.magnitude(first)
        shift = o.word(first + 2)

        def shifted() -> Any:
            word = (plain() << (shift() & np.uint32(31))).astype(np.uint64)
            return BORROWED - word if negative else word
    elif "SX32" in flags:
        amount = o.word(first + 2)

        def shifted() -> Any:
            wide = _signs(np.asarray(a())).view(np.int64) << amount().astype(np.int64)
            return wide.view(np.uint64) >> WORD
    else:
        above, amount = o.word(first + 2), o.word(first + 3)

        def shifted() -> Any:
            pair = (np.asarray(above()).astype(np.uint64) << WORD) | a()
            return (pair << amount().astype(np.uint64)) >> WORD

    def run(mask: Mask) -> None:
        total = shifted() + b()
        if carry is not None:
            total = total + carry()
        write((total & LOW).astype(np.uint32), mask)
        for out in outs:
            out((total >> WORD) != 0, mask)

    return run


def vimnmx(o: Operands) -> Step:
    """D = the lesser of a and b where the predicate holds, else the greater; or of their halves."""
    flags = o.instruction.modifiers
    if "S16x2" in flags or "U16x2" in flags:
        least = o.predicate(3)
        return by_halves(
            o, lambda x, y: np.where(least(), np.minimum(x, y), np.maximum(x, y)), "S16x2" in flags
        )
    return _lesser(o, o.word(1), 2)


def parts_of(word: Any, bits: int, signed: bool) -> list[Any]:
    """Split words into their parts, as int64, the lowest first."""
    found = [
        (np.asarray(word) >> np.uint32(i) & np.uint32(2**bits - 1)).astype(np.int64)
        for i in range(0, 32, bits)
    ]
    return [x - ((x >> bits - 1) << bits) for x in found] if signed else found


def by_halves(o: Operands, function: Callable[[Any, Any], Any], signed: bool) -> Step:
    """D = a function of the 16-bit integers in each half of a and b."""
    write, a, b = o.to(0), o.word(1), o.word(2)

    def run(mask: Mask) -> None:
        left, right = (parts_of(r(), 16, signed) for r in (a, b))
        low, high = (function(x, y) & 0xFFFF for x, y in zip(left, right, strict=True))
        write((low | high << 16).astype(np.uint32), mask)

    return run


def viadd(o: Operands) -> Step:
    """D = a + b; 16x2: in each half."""
    if "16x2" in o.instruction.modifiers:
        return by_halves(o, operator.add, False)
    return add3(o)


def viaddmnmx(o: Operands) -> Step:
    """D = the lesser of a + b and c where the predicate holds, else the greater."""
    a, b = o.word(1), o.word(2)
    return _lesser(o, lambda: a() + b(), 3)


def imnmx(o: Operands) -> Step:
    """D = the lesser of a and b where the predicate holds, else the greater; S64: of pairs."""
    if "S64" not in o.instruction.modifiers:
        return vimnmx(o)
    write, a, b, least = o.to_pair(2), o.double_word(3), o.double_word(4), o.predicate(5)

    def run(mask: Mask) -> None:
        x, y = (np.asarray(part()).view(np.int64) for part in (a, b))
        write(np.where(least(), np.minimum(x, y), np.maximum(x, y)), mask)

    return run


def _lesser(o: Operands, first: Read, second: int) -> Step:
    if set(o.instruction.modifiers) - {"U32", "S32", "RELU"}:
        raise NotImplementedError(str(o.instruction))
    relu = "RELU" in o.instruction.modifiers
    kind = np.uint32 if "U32" in o.instruction.modifiers else np.int32
    write, other, least = o.to(0, kind), o.word(second), o.predicate(second + 1)

    def run(mask: Mask) -> None:
        x, y = first().view(kind), other().view(kind)
        found = np.where(least(), np.minimum(x, y), np.maximum(x, y))
        write(np.maximum(found, 0) if relu else found, mask)

    return run


def iabs(o: Operands) -> Step:
    """D = |a|."""
    write, a = o.to(0), o.word(1)
    return lambda mask: write(np.abs(a().view(np.int32)).view(np.uint32), mask)


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
    """Return the function of three words whose value for a, b, c is bit 4a + 2b + c of `table`."""
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


CHOICES = {  # of bytes, by the lower two bits. Source: PTX ISA, section "prmt"
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543), "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333), "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210), "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}  # fmt: skip


def prmt(o: Operands) -> Step:
    """D = four bytes chosen from a and c by the hexadecimal digits of b."""
    mode = next((f for f in o.instruction.modifiers if f != "PRMT"), None)
    write, a, chosen, c = o.to(0), o.word(1), o.word(2), o.word(3)
    table = np.array(CHOICES[mode], np.uint64) if mode else None

    def run(mask: Mask) -> None:
        pair = (np.asarray(c()).astype(np.uint64) << WORD) | a()
        selector = np.asarray(chosen()).astype(np.uint64)
        if table is not None:
            selector = table[selector & np.uint64(3)]
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
    """D = the place of the leading one, ~0 if there is none; SH: counted from the left.

    Of a signed number it is the place of the leading bit that is not as the sign is.
    """
    flags = o.instruction.modifiers
    write, a = o.to(0), o.word(1)

    def run(mask: Mask) -> None:
        value = np.asarray(a())
        if "U32" not in flags:
            value = np.where(value >> np.uint32(31), ~value, value)
        _, exponent = np.frexp(value.astype(np.float64))
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
    unsigned, wraps = ("U32" in o.instruction.modifiers), ("W" in o.instruction.modifiers)

    def run(mask: Mask) -> None:
        count = b() & np.uint32(31) if wraps else np.minimum(b(), np.uint32(32))
        away = np.uint32(32) - count
        up = np.asarray(((a().astype(np.uint64) << away) & LOW).astype(np.uint32))
        signed = up.view(np.int32) >> away.astype(np.int32)
        write(up >> away if unsigned else signed.view(np.uint32), mask)

    return run


def bmsk(o: Operands) -> Step:
    """D = b ones from place a on."""
    write, a, b = o.to(0), o.word(1), o.word(2)
    wraps = "W" in o.instruction.modifiers

    def cut(value: Any) -> Any:
        return (value & np.uint32(31) if wraps else np.minimum(value, 32)).astype(np.uint64)

    def run(mask: Mask) -> None:
        ones = (np.uint64(1) << cut(b())) - np.uint64(1)
        write(((ones << cut(a())) & LOW).astype(np.uint32), mask)

    return run


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


def set_predicates(o: Operands, compared: Callable[[], Any], joined: str, after: Read) -> Step:
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
    """P = whether a ∘ b; EX: of pairs of words, whose lower ones were compared before."""
    flags = o.instruction.modifiers
    kind = np.uint32 if "U32" in flags else np.int32
    compare, joined = flags[0], next(f for f in flags if f in JOINED)
    a, b = o.word(2), o.word(3)
    if {"S64", "U64"} & set(flags):
        kind = np.uint64 if "U64" in flags else np.int64
        a, b = o.double_word(2), o.double_word(3)
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

    return set_predicates(o, compared, joined, o.predicate(4))


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
