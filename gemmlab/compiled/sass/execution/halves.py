"""Instructions on pairs of 16-bit floats, float16 or bfloat16, and what narrow integers share.

Each half is rounded once: products are exact in float64, and sums are rounded to odd before.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.integers import COMPARED, JOINED, parts_of
from gemmlab.compiled.sass.execution.state import Mask, Operands, Read, Step
from gemmlab.compiled.sass.listing import Immediate, Predicate
from gemmlab.numerics.fma import sum_to_odd

HALF = np.uint32(16)
LOW = np.uint32(0xFFFF)
Pair = Callable[[], tuple[Any, Any]]  # reads the lower and the upper half, as float64


def is_bfloat16(o: Operands) -> bool:
    """Say whether an instruction is on bfloat16."""
    return any(f.startswith("BF16") for f in o.instruction.modifiers)


def decoded(bits: Any, bfloat16: bool) -> Any:
    """Return 16 bits, in words, as float64."""
    if bfloat16:
        return (np.asarray(bits) << HALF).view(np.float32).astype(np.float64)
    return np.asarray(bits).astype(np.uint16).view(np.float16).astype(np.float64)


def encoded(value: Any, bfloat16: bool) -> Any:
    """Round float64 to 16 bits, to the nearest; a NaN is the hardware's own."""
    value = np.asarray(value)
    if bfloat16:
        bits = _to_bfloat16(value)
    else:
        bits = value.astype(np.float16).view(np.uint16).astype(np.uint32)
    return np.where(np.isnan(value), np.uint32(0x7FFF), bits)


def _to_bfloat16(value: Any) -> Any:
    """Round to the nearest, ties to even; subnormals have the spacing of the least normal."""
    exponent = np.maximum(np.frexp(value)[1] - 1, -126)
    unit = np.ldexp(1.0, exponent - 7)
    finite = np.where(np.isfinite(value), np.rint(value / unit) * unit, value)
    return finite.astype(np.float32).view(np.uint32) >> HALF


def sources(o: Operands) -> list[Pair]:
    """Return what reads the operands after the result; two immediates are the halves of one."""
    first = next((i for i in range(len(o)) if not o.is_predicate(i)), 0)
    first += "SETP" not in o.instruction.name
    found, i = [], first
    while i < len(o):
        if isinstance(o.all[i], Predicate):
            i += 1
        elif isinstance(o.all[i], Immediate) and i + 1 < len(o):
            found.append(_constant(o.all[i + 1].real, o.all[i].real))
            i += 2
        else:
            found.append(pair(o, i))
            i += 1
    return found


def _constant(low: float, high: float) -> Pair:
    both = np.float64(low), np.float64(high)
    return lambda: both


def pair(o: Operands, index: int) -> Pair:
    """Return what reads both halves of an operand, or twice the one that it names."""
    operand, wide = o.all[index], is_bfloat16(o)
    if "].H" in o.instruction.operands[index]:
        raise NotImplementedError(f"{o.instruction}: half of a constant")
    read = o.bits(index)
    half = getattr(operand, "half", "")
    negative, absolute = operand.negative, operand.absolute

    def halves() -> tuple[Any, Any]:
        word = np.asarray(read())
        low, high = decoded(word & LOW, wide), decoded(word >> HALF, wide)
        low, high = (high, high) if half[:2] == "H1" else (low, low) if half else (low, high)
        if absolute:
            low, high = np.abs(low), np.abs(high)
        return (-low, -high) if negative else (low, high)

    return halves


def _finish(o: Operands) -> Callable[[Any], Any]:
    """Return what rounds exact values and does what the opcode asks for beside."""
    flags, wide = o.instruction.modifiers, is_bfloat16(o)

    def finish(value: Any) -> Any:
        if "RELU" in flags:
            value = np.where(value < 0, 0.0, value)
        if "SAT" in flags:
            value = np.where(np.isnan(value), 0.0, np.clip(value, 0.0, 1.0))
        return encoded(value, wide)

    return finish


def _made(o: Operands, function: Callable[..., Any]) -> Step:
    """Return the step that gives each half a function of the sources' halves."""
    write, read, finish = o.to(0), sources(o), _finish(o)

    def run(mask: Mask) -> None:
        low, high = (finish(function(*part)) for part in zip(*(s() for s in read), strict=True))
        write(low | high << HALF, mask)

    return run


def hfma2(o: Operands) -> Step:
    """D = a·b + c of pairs; the compiler makes constants by it, as 0·0 + c."""
    if [str(t) for t in o.instruction.operands[1:3]] == ["-RZ", "RZ"]:
        return _constants(o)
    return _made(o, lambda a, b, c: sum_to_odd(a * b, c))


def _constants(o: Operands) -> Step:
    write, wide = o.to(0), is_bfloat16(o)
    if not isinstance(o.all[3], Immediate):
        read = pair(o, 3)

        def run(mask: Mask) -> None:
            low, high = (encoded(x, wide) for x in read())
            write(low | high << HALF, mask)

        return run
    high, low = (int(encoded(o.all[i].real, wide)) for i in (3, 4))
    value = np.uint32(high << 16 | low)
    return lambda mask: write(value, mask)


def hadd2(o: Operands) -> Step:
    """D = a + b of pairs; F32: of one half, as float32."""
    if "F32" not in o.instruction.modifiers:
        return _made(o, sum_to_odd)
    write, (a, b) = o.to(0, np.float32), sources(o)
    return lambda mask: write(np.asarray(a()[0] + b()[0]).astype(np.float32), mask)


def hmul2(o: Operands) -> Step:
    """D = a·b of pairs."""
    return _made(o, operator.mul)


def hmnmx2(o: Operands) -> Step:
    """D = the lesser of a and b where the predicate holds, else the greater; NaN gives way."""
    least = o.predicate(len(o) - 1)
    keeps = "NAN" in o.instruction.modifiers
    smaller, larger = (np.minimum, np.maximum) if keeps else (np.fmin, np.fmax)
    return _made(o, lambda a, b: np.where(least(), smaller(a, b), larger(a, b)))


def _comparison(o: Operands) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    flags = o.instruction.modifiers
    name = next(f for f in flags if f.removesuffix("U") in COMPARED or f in COMPARED)
    joined = JOINED[next(f for f in flags if f in JOINED)]
    if name in COMPARED:
        return COMPARED[name], joined
    plain = COMPARED[name.removesuffix("U")]
    return lambda a, b: plain(a, b) | np.isnan(a) | np.isnan(b), joined


def hsetp2(o: Operands) -> Step:
    """P and q = whether a ∘ b, of the lower and of the upper halves."""
    compare, join = _comparison(o)
    (a, b), after = sources(o), o.predicate(len(o) - 1)
    first, second = o.to_predicate(0), o.to_predicate(1)

    def run(mask: Mask) -> None:
        other = np.array(after())
        low, high = (np.asarray(compare(x, y)) for x, y in zip(a(), b(), strict=True))
        first(join(low, other), mask)
        second(join(high, other), mask)

    return run


def hset2(o: Operands) -> Step:
    """D = in each half ones where a ∘ b, else zeros; BF: the number 1."""
    compare, join = _comparison(o)
    write, (a, b), after = o.to(0), sources(o), o.predicate(len(o) - 1)
    one = encoded(1.0, is_bfloat16(o)) if "BF" in o.instruction.modifiers else LOW

    def run(mask: Mask) -> None:
        low, high = (
            np.where(join(np.asarray(compare(x, y)), after()), one, np.uint32(0))
            for x, y in zip(a(), b(), strict=True)
        )
        write(low | high << HALF, mask)

    return run


def added_pairs(bfloat16: bool) -> Callable[[Any, Any], Any]:
    """Return the sum of two words of pairs, as an atomic addition makes it."""

    def add(old: Any, new: Any) -> Any:
        parts = (
            encoded(decoded(np.uint32(old) >> s & LOW, bfloat16)
                    + decoded(np.uint32(new) >> s & LOW, bfloat16), bfloat16) << s
            for s in (np.uint32(0), HALF)
        )  # fmt: skip
        low, high = parts
        return low | high

    return add


def function_of_half(o: Operands, function: Callable[[Any], Any]) -> Step:
    """MUFU.F16, MUFU.BF16: the lower half of d = a function of a half of a."""
    write, read, wide = o.to(0), pair(o, 1), is_bfloat16(o)
    return lambda mask: write(encoded(function(read()[0]), wide), mask)


# ------------------------------------------------------------------------------- narrow integers


def packs(o: Operands, narrowed: Callable[[int], Read], bits: int) -> Step:
    """D = c in the upper part, then a, then b, of `bits` each; `narrowed` reads an operand."""
    write, a, b, c = o.to(0), narrowed(1), narrowed(2), o.word(3)
    step, ones = np.uint32(bits), np.uint32(2**bits - 1)

    def run(mask: Mask) -> None:
        low = (np.asarray(a()) & ones) << step | (np.asarray(b()) & ones)
        above = np.asarray(c()) << HALF if bits == 8 else np.uint32(0)
        write(low | above, mask)

    return run


_LIMITS = {
    "U8": (0, 255), "S8": (-128, 127), "U16": (0, 65535), "S16": (-32768, 32767),
}  # fmt: skip


def i2ip(o: Operands) -> Step:
    """D = integers cut to the range of narrow ones, side by side."""
    kind = o.instruction.modifiers[0]
    least, most = _LIMITS[kind]

    def narrowed(index: int) -> Read:
        read = o.word(index)
        return lambda: np.clip(
            np.asarray(read()).view(np.int32).astype(np.int64), least, most
        ).astype(np.int32).view(np.uint32)  # fmt: skip

    return packs(o, narrowed, 8 if kind.endswith("8") else 16)


def i2i(o: Operands) -> Step:
    """D = an integer cut to the range of a narrow one."""
    kind, of = o.instruction.modifiers[:2]
    if kind not in _LIMITS or of not in ("S32", "U32"):
        raise NotImplementedError(str(o.instruction))
    least, most = _LIMITS[kind]
    write, read = o.to(0), o.word(1)
    signed = np.int32 if of == "S32" else np.uint32

    def run(mask: Mask) -> None:
        value = np.asarray(read()).view(signed).astype(np.int64)
        write(np.clip(value, least, most).astype(np.int32).view(np.uint32), mask)

    return run


def f2ip(o: Operands) -> Step:
    """D = floats as bytes, side by side."""
    flags = o.instruction.modifiers
    least, most = _LIMITS[flags[0]]
    whole = np.trunc if "TRUNC" in flags else np.rint

    def narrowed(index: int) -> Read:
        read = o.float32(index)

        def run() -> Any:
            value = whole(np.asarray(read()).astype(np.float64))
            value = np.clip(np.where(np.isnan(value), 0, value), least, most)
            return value.astype(np.int32).view(np.uint32)

        return run

    return packs(o, narrowed, 8)


def idp(o: Operands) -> Step:
    """D = a sum of products of parts of a with bytes of b, + c: four bytes, or two halves."""
    flags = o.instruction.modifiers
    first, second = flags[-2:]
    write, a, b, c = o.to(0), o.word(1), o.word(2), o.word(3)
    wide = 8 if flags[0] == "4A" else 16
    skipped = 2 * ("HI" in flags)  # bytes of b that two halves are not multiplied with

    def run(mask: Mask) -> None:
        left = parts_of(a(), wide, first.startswith("S"))
        right = parts_of(b(), 8, second.startswith("S"))[skipped:]
        total = sum(x * y for x, y in zip(left, right, strict=False))
        write((total + np.asarray(c()).astype(np.int64)).astype(np.uint32), mask)

    return run


def vabsdiff(o: Operands) -> Step:
    """D = |a - b| + c."""
    kind = np.uint32 if "U32" in o.instruction.modifiers else np.int32
    write, a, b, c = o.to(0), o.word(1), o.word(2), o.word(3)

    def run(mask: Mask) -> None:
        x, y = (np.asarray(r()).view(kind).astype(np.int64) for r in (a, b))
        write((np.abs(x - y) + np.asarray(c()).astype(np.int64)).astype(np.uint32), mask)

    return run


def vabsdiff4(o: Operands) -> Step:
    """D = the sum of |a - b| of four bytes, + c."""
    flags = o.instruction.modifiers
    if "ACC" not in flags:
        raise NotImplementedError(str(o.instruction))
    write, a, b, c, signed = o.to(0), o.word(1), o.word(2), o.word(3), "S8" in flags

    def run(mask: Mask) -> None:
        left, right = (parts_of(r(), 8, signed) for r in (a, b))
        total = sum(np.abs(x - y) for x, y in zip(left, right, strict=True))
        write((total + np.asarray(c()).astype(np.int64)).astype(np.uint32), mask)

    return run
