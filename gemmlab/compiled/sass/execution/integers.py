"""What integer arithmetic does, a function for an opcode: operands in, an action out.

Source of the names: NVIDIA, CUDA Binary Utilities, Instruction Set Reference. What they do in
detail is not documented; tests run compiled kernels with them against the kernels' results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.state import WORD, Mask, Operands, Step

LOW = np.uint64(0xFFFFFFFF)
BORROWED = np.uint64(2**32)  # less a word: its negative, and a carry where nothing is borrowed


def mov(o: Operands) -> Step:
    """D = a."""
    write, a = o.to(0), o.word(1)
    return lambda mask: write(a(), mask)


def ldc(o: Operands) -> Step:
    """D = a word, or 64 bits, of a constant bank."""
    if "64" in o.instruction.modifiers:
        write, pair = o.to_pair(0), o.double_word(1)
        return lambda mask: write(np.asarray(pair()), mask)
    if o.instruction.modifiers:
        raise NotImplementedError(str(o.instruction))
    return mov(o)


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
    """D = a + b + c, with carries out into predicates and, with X, carries in."""
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


def _addend(o: Operands, index: int) -> Callable[[], Any]:
    """A 32-bit addend in 64 bits; -a is 2³² - a, so that a carry says that nothing was borrowed."""
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
    """D = the lesser of a and b where the predicate holds, else the greater."""
    kind = np.uint32 if "U32" in o.instruction.modifiers else np.int32
    write, a, b, least = o.to(0, kind), o.word(1), o.word(2), o.predicate(3)

    def run(mask: Mask) -> None:
        x, y = a().view(kind), b().view(kind)
        write(np.where(least(), np.minimum(x, y), np.maximum(x, y)), mask)

    return run


def viaddmnmx(o: Operands) -> Step:
    """D = the lesser of a + b and c where the predicate holds, else the greater."""
    kind = np.uint32 if "U32" in o.instruction.modifiers else np.int32
    write, a, b, c, least = o.to(0, kind), o.word(1), o.word(2), o.word(3), o.predicate(4)

    def run(mask: Mask) -> None:
        x, y = (a() + b()).view(kind), c().view(kind)
        write(np.where(least(), np.minimum(x, y), np.maximum(x, y)), mask)

    return run


def iabs(o: Operands) -> Step:
    """D = |a|."""
    write, a = o.to(0), o.word(1)
    return lambda mask: write(np.abs(a().view(np.int32)).view(np.uint32), mask)


def idp(o: Operands) -> Step:
    """D = the sum of products of two halves of a with two bytes of b, + c."""
    if o.instruction.opcode != "IDP.2A.LO.U16.U8":
        raise NotImplementedError(str(o.instruction))
    write, a, b, c = o.to(0), o.word(1), o.word(2), o.word(3)

    def run(mask: Mask) -> None:
        x, y = np.asarray(a()), np.asarray(b())
        low = (x & np.uint32(0xFFFF)) * (y & np.uint32(0xFF))
        write(low + (x >> np.uint32(16)) * (y >> np.uint32(8) & np.uint32(0xFF)) + c(), mask)

    return run


def cs2r(o: Operands) -> Step:
    """D = a special register that is read fast; SRZ is zero."""
    if o.instruction.operands[1] != "SRZ":
        raise NotImplementedError(str(o.instruction))
    write = o.to(0) if "32" in o.instruction.modifiers else o.to_pair(0)
    return lambda mask: write(np.uint64(0) if "32" not in o.instruction.modifiers else 0, mask)
