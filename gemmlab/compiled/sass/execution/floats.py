"""What instructions on float32 do; products and sums are rounded once, as the hardware rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.state import Mask, Operands, Read, Step
from gemmlab.compiled.sass.operands import Immediate
from gemmlab.numerics.fma import sum_to_odd

ROUNDINGS = ("RZ", "RM", "RP")  # toward zero, down, up
TINY = np.finfo(np.float32).tiny


def _finish32(o: Operands) -> Callable[[Any], Any]:
    """From an exact value, or one rounded to odd, in float64 to the float32 that is kept."""
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
    """A float32 operand; FTZ takes what is smaller than normal numbers for zero."""
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
    finish = _finish32(o)

    def run(mask: Mask) -> None:
        product = np.asarray(a()).astype(np.float64) * b()
        write(finish(sum_to_odd(product, np.asarray(c()).astype(np.float64))), mask)

    return run


def fadd(o: Operands) -> Step:
    """D = a + b of float32."""
    write, a, b = o.to(0, np.float32), single(o, 1), single(o, 2)
    if not _special(o):
        return lambda mask: write(a() + b(), mask)
    finish = _finish32(o)
    return lambda mask: write(finish(sum_to_odd(wide(a()), wide(b()))), mask)


def fmul(o: Operands) -> Step:
    """D = a·b of float32."""
    write, a, b = o.to(0, np.float32), single(o, 1), single(o, 2)
    if not _special(o):
        return lambda mask: write(a() * b(), mask)
    finish = _finish32(o)
    return lambda mask: write(finish(wide(a()) * wide(b())), mask)


def wide(value: Any) -> Any:
    """A value as float64."""
    return np.asarray(value).astype(np.float64)


def fmnmx(o: Operands) -> Step:
    """D = the lesser of a and b where the predicate holds, else the greater; NaN gives way."""
    write, a, b = o.to(0, np.float32), single(o, 1), single(o, 2)
    least = o.predicate(3)
    return lambda mask: write(np.where(least(), np.fmin(a(), b()), np.fmax(a(), b())), mask)


def hfma2(o: Operands) -> Step:
    """D = a·b + c of pairs of float16; the compiler makes constants by it, as 0·0 + c."""
    if [str(t) for t in o.instruction.operands[1:3]] != ["-RZ", "RZ"]:
        raise NotImplementedError(str(o.instruction))
    write = o.to(0)
    high, low = (np.float16(o.all[i].real).view(np.uint16) for i in (3, 4))
    value = np.uint32(int(high) << 16 | int(low))
    return lambda mask: write(value, mask)


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
    write, a, function = o.to(0, np.float32), single(o, 1), FUNCTIONS[name]
    return lambda mask: write(function(wide(a())).astype(np.float32), mask)


def _upper_half(o: Operands) -> Read:
    """The upper word of a float64; a listing writes an immediate as the number it begins."""
    operand = o.all[1]
    if isinstance(operand, Immediate):
        value = (np.float64(operand.real).view(np.uint64) >> np.uint64(32)).astype(np.uint32)
        return lambda: value
    return o.word(1)


def fchk(o: Operands) -> Step:
    """Whether a / b needs the slow path: exponents near the ends, zero, infinity, NaN."""
    write, a, b = o.to_predicate(0), o.word(1), o.word(2)

    def run(mask: Mask) -> None:
        x, y = (np.asarray(v()) >> np.uint32(23) & np.uint32(255) for v in (a, b))
        x, y = x.astype(np.int32), y.astype(np.int32)
        easy = (x > 23) & (x < 254) & (y > 2) & (y < 252) & (abs(x - y) < 125)
        write(~easy, mask)

    return run
