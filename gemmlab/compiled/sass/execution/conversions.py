"""What conversions between numbers do."""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.floats import single, wide
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step
from gemmlab.formats import decode
from gemmlab.instructions.convert import pair_meaning

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

    def integer() -> Any:
        value = np.asarray(read())
        return value.astype(np.dtype(f"u{kind.itemsize}")).view(kind)

    if "F64" in flags:
        write = o.to_pair(0)
        return lambda mask: write(np.asarray(integer().astype(np.float64)), mask)
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
    raise NotImplementedError(str(o.instruction))


def frnd(o: Operands) -> Step:
    """D = a rounded to a whole number."""
    flags = o.instruction.modifiers
    whole = next((TO_WHOLE[f] for f in flags if f in TO_WHOLE), np.rint)
    if "F64" in flags:
        write, a = o.to_pair(0), o.float64(1)
    else:
        write, a = o.to(0, np.float32), o.float32(1)
    return lambda mask: write(np.asarray(whole(a())), mask)


def f2fp(o: Operands) -> Step:
    """D = two float32 rounded to 16 bits each, the first one in the upper half."""
    to, *rest = o.instruction.modifiers
    if rest != ["F32", "PACK_AB"] or to not in PACKED:
        raise NotImplementedError(str(o.instruction))
    write, high, low = o.to(0), o.float32(1), o.float32(2)

    def run(mask: Mask) -> None:
        two = (np.broadcast_to(x(), o.state.lanes)[:, None] for x in (low, high))
        write(pair_meaning(PACKED[to], "RN", *two, arch="sm_90")[:, 0], mask)

    return run


def hadd2(o: Operands) -> Step:
    """D = the float16 in one half of a word, as float32: the compiler's 0 + h."""
    zero, half = o.instruction.operands[1], o.all[2].half
    if o.instruction.modifiers != ("F32",) or zero != "-RZ" or half not in ("H0_H0", "H1_H1"):
        raise NotImplementedError(str(o.instruction))
    write, word, shift = o.to(0, np.float32), o.word(2), np.uint32(16 * (half == "H1_H1"))

    def run(mask: Mask) -> None:
        bits = (word() >> shift & np.uint32(0xFFFF)).astype(np.uint16)
        write(decode(bits, "float16").astype(np.float32), mask)

    return run
