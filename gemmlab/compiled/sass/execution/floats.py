"""Instructions on floats; products and sums are rounded once, as the hardware rounds."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.halves import encoded, function_of_half, pair
from gemmlab.compiled.sass.execution.integers import COMPARED, JOINED, set_predicates
from gemmlab.compiled.sass.execution.state import Mask, Operands, Read, Step
from gemmlab.compiled.sass.listing import Immediate
from gemmlab.instructions.convert import pair_meaning
from gemmlab.numerics.fma import sum_to_odd, sum_to_single, two_sum

ROUNDINGS = ("RZ", "RM", "RP")  # toward zero, down, up
TINY = np.finfo(np.float32).tiny


def _finish32(o: Operands) -> Callable[[Any], Any]:
    """Round an exact value, or one rounded to odd, from float64 to the float32 that is kept."""
    flags = o.instruction.modifiers
    rounding = next((f for f in flags if f in ROUNDINGS), None)

    def finish(value: Any) -> Any:
        value = np.asarray(value)
        out = value.astype(np.float32)
        if rounding == "RM" or rounding == "RZ":
            down = (out > value) & ((rounding == "RM") | (value > 0))
            out = np.where(down, np.nextafter(out, np.float32(-np.inf)), out)
        if rounding == "RP" or rounding == "RZ":
            up = (out < value) & ((rounding == "RP") | (value < 0))
            out = np.where(up, np.nextafter(out, np.float32(np.inf)), out)
        if "FTZ" in flags:
            out = np.where(np.abs(out) < TINY, np.copysign(np.float32(0), out), out)
        if "SAT" in flags:
            out = np.where(np.isnan(out), np.float32(0), np.clip(out, 0, 1))
        return out

    return finish


def single(o: Operands, index: int) -> Read:
    """Read a float32 operand; FTZ takes what is smaller than normal numbers for zero."""
    read = o.float32(index)
    if "FTZ" not in o.instruction.modifiers:
        return read

    def flushed() -> Any:
        value = read()
        return np.where(np.abs(value) < TINY, np.copysign(np.float32(0), value), value)

    return flushed


def _special(o: Operands) -> bool:
    return any(f in (*ROUNDINGS, "FTZ", "SAT") for f in o.instruction.modifiers)


def ffma(o: Operands) -> Step:
    """D = a·b + c of float32, rounded once."""
    write = o.to(0, np.float32)
    a, b, c = (single(o, i) for i in (1, 2, 3))
    if not _special(o):
        return lambda mask: write(sum_to_single(wide(a()) * b(), wide(c())), mask)
    finish = _finish32(o)
    return lambda mask: write(finish(sum_to_odd(wide(a()) * b(), wide(c()))), mask)


def fadd(o: Operands) -> Step:
    """D = a + b of float32."""
    write, a, b = o.to(0, np.float32), single(o, 1), single(o, 2)
    if not _special(o):
        return lambda mask: write(a() + b(), mask)
    finish = _finish32(o)
    return lambda mask: write(finish(sum_to_odd(wide(a()), wide(b()))), mask)


SCALES = {"D2": 1 / 2, "D4": 1 / 4, "D8": 1 / 8, "M2": 2, "M4": 4, "M8": 8}


def fmul(o: Operands) -> Step:
    """D = a·b of float32, times a power of two that is in the instruction, as in FMUL.D2."""
    write, a, b = o.to(0, np.float32), single(o, 1), single(o, 2)
    scale = next((SCALES[f] for f in o.instruction.modifiers if f in SCALES), 1)
    if not _special(o) and scale == 1:
        return lambda mask: write(a() * b(), mask)
    finish = _finish32(o)
    return lambda mask: write(finish(wide(a()) * wide(b()) * scale), mask)


def wide(value: Any) -> Any:
    """Return a value as float64."""
    return np.asarray(value).astype(np.float64)


def fmnmx(o: Operands) -> Step:
    """D = the lesser of a and b where the predicate holds, else the greater; NaN gives way.

    NAN: it does not; XORSIGN: the result has the product of the signs, and magnitudes are compared.
    """
    flags, least = o.instruction.modifiers, o.predicate(3)
    write, a, b = o.to(0, np.float32), single(o, 1), single(o, 2)
    smaller, larger = (np.minimum, np.maximum) if "NAN" in flags else (np.fmin, np.fmax)
    if "XORSIGN" in flags:
        signs = [o.bits(i) for i in (1, 2)]

    def run(mask: Mask) -> None:
        found = np.where(least(), smaller(a(), b()), larger(a(), b()))
        if "XORSIGN" in flags:
            one, other = ((np.asarray(s()) >> np.uint32(31)) for s in signs)
            found = np.where(one ^ other, -np.abs(found), np.abs(found))
        write(found, mask)

    return run


FUNCTIONS = {
    "RCP": lambda x: 1 / x,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": lambda x: np.sin(2 * np.pi * x),  # of turns
    "COS": lambda x: np.cos(2 * np.pi * x),
    "TANH": np.tanh,
}


def mufu(o: Operands) -> Step:
    """D = a function of a, rounded to float32; 64H: of the upper half of a float64.

    The hardware's last bit may differ: it interpolates in tables. Divisions and roots mend that.
    """
    name = o.instruction.modifiers[0]
    if name.endswith("64H"):
        function = FUNCTIONS[name[:3]]
        write, a = o.to(0), _upper_half(o)

        def upper(mask: Mask) -> None:
            wide = (np.asarray(a()).astype(np.uint64) << np.uint64(32)).view(np.float64)
            write((function(wide).view(np.uint64) >> np.uint64(32)).astype(np.uint32), mask)

        return upper
    if {"F16", "BF16"} & set(o.instruction.modifiers):
        return function_of_half(o, FUNCTIONS[name])
    write, a, function = o.to(0, np.float32), single(o, 1), FUNCTIONS[name]
    return lambda mask: write(function(wide(a())).astype(np.float32), mask)


def _upper_half(o: Operands) -> Read:
    """Read the upper word of a float64; a listing writes an immediate as the number it begins."""
    operand = o.all[1]
    if isinstance(operand, Immediate):
        value = (np.float64(operand.real).view(np.uint64) >> np.uint64(32)).astype(np.uint32)
        return lambda: value
    return o.word(1)


def fchk(o: Operands) -> Step:
    """P = whether a / b needs the slow path: exponents near the ends, zero, infinity, NaN."""
    write, a, b = o.to_predicate(0), o.word(1), o.word(2)

    def run(mask: Mask) -> None:
        x, y = (np.asarray(v()) >> np.uint32(23) & np.uint32(255) for v in (a, b))
        x, y = x.astype(np.int32), y.astype(np.int32)
        easy = (x > 23) & (x < 254) & (y > 2) & (y < 252) & (abs(x - y) < 125)
        write(~easy, mask)

    return run


def fma64(a: Any, b: Any, c: Any) -> Any:
    """a·b + c of float64, rounded once.

    Source: S. Boldo, G. Melquiond, IEEE Trans. Computers 57 (2008), algorithm Fma: the exact
    product and sum as three numbers, of which the lower two are added with rounding to odd.
    """
    product, below = _two_product(a, b)
    high, low = two_sum(c, below)
    top, rest = two_sum(product, high)
    exact = top + sum_to_odd(low, rest)
    plain = a * b + c
    return np.where(np.isfinite(exact), exact, plain)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """(p, e) with p the rounded product and p + e the exact one. Source: Dekker, 1971."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _split(a: Any) -> tuple[Any, Any]:
    scaled = a * (2.0**27 + 1)
    high = scaled - (scaled - a)
    return high, a - high


def _toward(o: Operands, exact: Callable[[], tuple[Any, Any]]) -> Callable[[], Any]:
    """Round (value to nearest, what is missing) in the opcode's direction."""
    flags = o.instruction.modifiers
    rounding = next((f for f in flags if f in ROUNDINGS), None)

    def run() -> Any:
        value, missing = exact()
        if rounding is None:
            return value
        down, up = np.nextafter(value, -np.inf), np.nextafter(value, np.inf)
        if rounding == "RM":
            return np.where(missing < 0, down, value)
        if rounding == "RP":
            return np.where(missing > 0, up, value)
        return np.where(
            (value > 0) & (missing < 0), down, np.where((value < 0) & (missing > 0), up, value)
        )

    return run


def dfma(o: Operands) -> Step:
    """D = a·b + c of float64, rounded once."""
    write = o.to_pair(0)
    a, b, c = (o.float64(i) for i in (1, 2, 3))

    def exact() -> tuple[Any, Any]:
        x, y, z = (np.asarray(read()) for read in (a, b, c))
        value = fma64(x, y, z)
        return value, _residue(x, y, z, value)

    if not any(f in ROUNDINGS for f in o.instruction.modifiers):
        return lambda mask: write(fma64(a(), b(), c()), mask)
    rounded = _toward(o, exact)
    return lambda mask: write(rounded(), mask)


def _residue(a: Any, b: Any, c: Any, value: Any) -> Any:
    """Return the sign of a·b + c - value: value is near enough for the differences to be exact."""
    product, below = _two_product(a, b)
    high, low = two_sum(product, c)
    return ((high - value) + low) + below


def dadd(o: Operands) -> Step:
    """D = a + b of float64."""
    write, a, b = o.to_pair(0), o.float64(1), o.float64(len(o) - 1)
    rounded = _toward(o, lambda: two_sum(a(), b()))
    return lambda mask: write(rounded(), mask)


def dmul(o: Operands) -> Step:
    """D = a·b of float64."""
    write, a, b = o.to_pair(0), o.float64(1), o.float64(2)
    rounded = _toward(o, lambda: _two_product(a(), b()))
    if not any(f in ROUNDINGS for f in o.instruction.modifiers):
        return lambda mask: write(np.asarray(a() * b()), mask)
    return lambda mask: write(rounded(), mask)


INTEGERS = {
    **{f"{sign}{bits}": np.dtype(f"{kind}{bits // 8}")
       for sign, kind in (("U", "u"), ("S", "i")) for bits in (8, 16, 32, 64)},
}  # fmt: skip
PACKED = {"F16": "float16", "BF16": "bfloat16"}
TO_WHOLE = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}


def i2f(o: Operands) -> Step:
    """D = the float of an integer."""
    flags = o.instruction.modifiers
    kind = next((INTEGERS[f] for f in flags if f in INTEGERS), np.dtype(np.int32))
    read = o.double_word(1) if kind.itemsize == 8 else o.word(1)
    part = getattr(o.all[1], "half", "")  # "B2", "H1": the byte or the half that is meant
    shift = (8 if part[:1] == "B" else 16) * int(part[1:2] or 0)

    def integer() -> Any:
        value = np.asarray(read())
        value = value >> value.dtype.type(shift) if shift else value
        return value.astype(np.dtype(f"u{kind.itemsize}")).view(kind)

    if "F64" in flags:
        write = o.to_pair(0)
        return lambda mask: write(np.asarray(integer().astype(np.float64)), mask)
    if "F16" in flags:
        half = o.to(0)
        return lambda mask: half(encoded(integer().astype(np.float64), False), mask)
    put, up = o.to(0, np.float32), "RP" in flags

    def run(mask: Mask) -> None:
        value = integer()
        near = value.astype(np.float32)
        if up:
            near = np.where(
                near.astype(np.longdouble) < value, np.nextafter(near, np.float32(np.inf)), near
            )
        put(near, mask)

    return run


def f2i(o: Operands) -> Step:
    """D = the integer of a float, the nearest one that there is; NaN becomes 0 or the least."""
    flags = o.instruction.modifiers
    kind = next((INTEGERS[f] for f in flags if f in INTEGERS), np.dtype(np.int32))
    if "F16" in flags:
        halves = pair(o, 1)
        read: Read = lambda: halves()[0]  # noqa: E731, a Read as the others are
    else:
        read = o.float64(1) if "F64" in flags else single(o, 1)
    whole = next((TO_WHOLE[f] for f in flags if f in TO_WHOLE), np.rint)
    write = o.to_pair(0) if kind.itemsize == 8 else o.to(0)
    least, most = np.iinfo(kind).min, np.iinfo(kind).max

    def run(mask: Mask) -> None:
        value = whole(np.asarray(read()).astype(np.longdouble))
        none = np.isnan(value)
        value = np.clip(np.where(none, 0, value), least, most)
        out = value.astype(kind)
        lost = np.dtype(kind).type(least if kind.itemsize == 8 else 0)
        out = np.where(none, lost, out)
        if kind.itemsize == 8:
            write(out.view(np.uint64), mask)
        else:
            write(out.astype(np.int64).astype(np.uint32), mask)

    return run


def f2f(o: Operands) -> Step:
    """D = a float in the other format."""
    to, of = o.instruction.modifiers[:2]
    if (to, of) == ("F64", "F32"):
        write, a = o.to_pair(0), o.float32(1)
        return lambda mask: write(wide(a()), mask)
    if (to, of) == ("F32", "F64"):
        put, b = o.to(0, np.float32), o.float64(1)
        return lambda mask: put(np.asarray(b()).astype(np.float32), mask)
    if (to, of) == ("F16", "F32"):
        write, a = o.to(0), o.float32(1)
        return lambda mask: write(encoded(wide(a()), bfloat16=False), mask)
    raise NotImplementedError(str(o.instruction))


def frnd(o: Operands) -> Step:
    """D = a rounded to a whole number."""
    flags = o.instruction.modifiers
    whole = next((TO_WHOLE[f] for f in flags if f in TO_WHOLE), np.rint)
    if "F16" in flags:
        return function_of_half(o, whole)
    if "F64" in flags:
        write, a = o.to_pair(0), o.float64(1)
    else:
        write, a = o.to(0, np.float32), o.float32(1)
    return lambda mask: write(np.asarray(whole(a())), mask)


def f2fp(o: Operands) -> Step:
    """D = two float32 rounded to 16 bits each, the first one in the upper half."""
    flags = o.instruction.modifiers
    if {"E4M3", "E5M2"} & set(flags):
        return _eights(o)
    to = next(f for f in flags if f != "RELU")
    if set(flags) - {to, "F32", "PACK_AB", "RELU", "RZ"} or to not in PACKED:
        raise NotImplementedError(str(o.instruction))
    write, high, low = o.to(0), o.float32(1), o.float32(2)
    rounding, relu = ("RZ" if "RZ" in flags else "RN"), "RELU" in flags

    def run(mask: Mask) -> None:
        two = (np.broadcast_to(x(), o.state.lanes)[:, None] for x in (low, high))
        two = (np.maximum(x, np.float32(0)) for x in two) if relu else two
        write(pair_meaning(PACKED[to], rounding, *two, arch="sm_90")[:, 0], mask)

    return run


# Floats of eight bits are made of float32 and become float16. Source: OCP 8-bit Floating Point
# Specification 1.0: E4M3 has no infinity, E5M2 is the upper half of a float16. What is beyond the
# largest number becomes that (SATFINITE).
_EIGHT = {"E4M3": (4, 3), "E5M2": (5, 2)}


@cache
def magnitudes(form: str) -> np.ndarray:
    """Return the numbers of a format from 0 to the largest, which are in the order of their bits.

    >>> float(magnitudes("E4M3")[-1]), float(magnitudes("E5M2")[-1])
    (448.0, 57344.0)
    """
    exponent_bits, fraction_bits = _EIGHT[form]
    bits = np.arange(0x7F if form == "E4M3" else 0x7C)
    exponent, fraction = bits >> fraction_bits, bits & (2**fraction_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    whole = np.where(exponent > 0, 2**fraction_bits, 0) + fraction
    return np.ldexp(whole, np.maximum(exponent, 1) - bias - fraction_bits)


def _to_eight(value: Any, form: str) -> np.ndarray:
    """Round numbers to a format, ties to even bits; as the bits, in words."""
    value = np.asarray(value, np.float64)
    table = magnitudes(form)
    size = np.minimum(np.abs(np.where(np.isnan(value), 0, value)), table[-1])
    above = np.clip(np.searchsorted(table, size), 1, len(table) - 1)
    below = above - 1
    low, high = size - table[below], table[above] - size
    up = (high < low) | ((high == low) & (above % 2 == 0))
    bits = np.where(up, above, below) | np.where(np.signbit(value), 0x80, 0)
    return np.where(np.isnan(value), 0x7F, bits).astype(np.uint32)


def _of_eight(bits: Any, form: str) -> np.ndarray:
    """Return the numbers of eight bits, in words, as float64."""
    bits = np.asarray(bits)
    table = np.full(128, np.nan)
    table[: len(magnitudes(form))] = magnitudes(form)
    if form == "E5M2":
        table[0x7C] = np.inf
    value = table[bits & 0x7F]
    return np.where(bits & 0x80, -value, value)


def _eights(o: Operands) -> Step:
    """D = two numbers of eight bits from a and b below the lower half of c; or back, to float16."""
    flags = o.instruction.modifiers
    form = next(f for f in flags if f in _EIGHT)
    if "UNPACK_B" in flags:
        return _unpacked(o, form)
    write, a, b, c = o.to(0), o.float32(1), o.float32(2), o.word(3)
    least = 0.0 if "RELU" in flags else -np.inf

    def run(mask: Mask) -> None:
        high, low = (_to_eight(np.maximum(x(), least), form) for x in (a, b))
        write(low | high << np.uint32(8) | np.asarray(c()) << np.uint32(16), mask)

    return run


def _unpacked(o: Operands, form: str) -> Step:
    write, word, half = o.to(0), o.bits(1), getattr(o.all[1], "half", "")
    shift = np.uint32(16 if half.startswith("H1") else 0)

    def run(mask: Mask) -> None:
        bits = np.asarray(word()) >> shift
        low, high = (
            _of_eight(bits >> np.uint32(s) & np.uint32(255), form)
            .astype(np.float16).view(np.uint16).astype(np.uint32)
            for s in (0, 8)
        )  # fmt: skip
        write(low | high << np.uint32(16), mask)

    return run


def comparison(name: str) -> Callable[[Any, Any], Any]:
    """Return the comparison of floats; those that end in U hold for NaN, too."""
    if name in COMPARED:
        return COMPARED[name]
    plain = COMPARED[name.removesuffix("U")]
    return lambda a, b: plain(a, b) | np.isnan(a) | np.isnan(b)


def _float_set(o: Operands, read: Callable[[int], Read]) -> Step:
    flags = o.instruction.modifiers
    compare = comparison(flags[0])
    a, b = read(2), read(3)
    joined = next(f for f in flags if f in JOINED)
    return set_predicates(o, lambda: np.asarray(compare(a(), b())), joined, o.predicate(4))


def fsetp(o: Operands) -> Step:
    """P = whether a ∘ b, of float32 numbers."""
    return _float_set(o, o.float32)


def dsetp(o: Operands) -> Step:
    """P = whether a ∘ b, of float64 numbers."""
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


def fsel(o: Operands) -> Step:
    """D = a where the predicate holds, else b, of float32 numbers."""
    write, p = o.to(0, np.float32), o.predicate(3)
    a, b = o.float32(1), o.float32(2)
    return lambda mask: write(np.where(p(), a(), b()), mask)
