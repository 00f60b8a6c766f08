"""Operators of a kernel: computed as Numba types them, and counted."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gemmlab.simt.numbers import arithmetic
from gemmlab.simt.numbers.masks import both
from gemmlab.simt.numbers.no_numbers import NUMBER, NoNumber, shown, truth
from gemmlab.simt.report.tally import Tally

COMPARE = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
MIXED = ("iu", "ui")  # kinds of two operands, of which one is signed
COMPARED = (*NUMBER, tuple)


class Operations:
    """What the rewritten operators of a kernel call.

    contract : whether a float a·b + c is rounded once
    """

    def __init__(self, tally: Tally, contract: bool) -> None:
        self.tally, self.contract = tally, contract

    def binary(self, op: str, a: Any, b: Any, line: int) -> Any:
        """`a op b` for each lane."""
        result = arithmetic.binary(op, a, b)
        self.tally.tick(line, "inst_fp" if result.dtype.kind in "fc" else "inst_integer")
        if op in ("FloorDiv", "Mod") and result.dtype.kind in "iu":
            zero = both(self.tally.masks[-1], np.equal(b, 0))
            if zero is not False:
                text = "thread {thread} divides an integer by 0, which stops no GPU: the result "
                text += "means nothing"
                self.tally.findings.note("division-by-zero", line, zero, text)
        return result

    def unary(self, op: str, a: Any, line: int) -> Any:
        """`op a` for each lane."""
        result = arithmetic.unary(op, a)
        self.tally.tick(line, "inst_fp" if result.dtype.kind in "fc" else "inst_integer")
        return result

    def not_(self, value: Any) -> Any:
        """Lanes where `value` is zero."""
        return not value if isinstance(value, bool) else ~truth(value)

    def compare(self, op: str, a: Any, b: Any, line: int) -> Any:
        """A comparison for each lane."""
        try:
            kinds = a.dtype.kind + b.dtype.kind
        except AttributeError:
            if not (isinstance(a, tuple) and isinstance(b, tuple)):
                raise _not_compared(a, b) from None
            kinds = ""
        if not (isinstance(a, COMPARED) and isinstance(b, COMPARED)):
            raise _not_compared(a, b)
        if kinds in MIXED:
            a, b = arithmetic.comparable(a, b)
        result = COMPARE[op](a, b)
        self.tally.tick(line, "inst_fp" if "f" in kinds else "inst_integer")
        return result

    def same(self, a: Any, b: Any) -> bool:
        """`a is b`, of which one is None."""
        if a is not None and b is not None:
            raise TypeError("`is` compares with None alone; use ==")
        return a is b

    def fused_left(self, op: str, a: Any, b: Any, c: Any, line: int) -> Any:
        """The sum a·b ± c: one instruction where the machine contracts, else two."""
        if not (self.contract and arithmetic.fuses(a, b, c)):
            return self.binary(op, self.binary("Mult", a, b, line), c, line)
        self.tally.tick(line, "inst_fp")
        return arithmetic.fma(a, b, c if op == "Add" else -c)

    def fused_right(self, op: str, c: Any, a: Any, b: Any, line: int) -> Any:
        """The sum c ± a·b: one instruction where the machine contracts, else two."""
        if not (self.contract and arithmetic.fuses(a, b, c)):
            return self.binary(op, c, self.binary("Mult", a, b, line), line)
        self.tally.tick(line, "inst_fp")
        return arithmetic.fma(a if op == "Add" else -a, b, c)

    def fma(self, a: Any, b: Any, c: Any, line: int) -> Any:
        """`cuda.fma`: a·b + c, rounded once."""
        self.tally.tick(line, "inst_fp")
        if not all(getattr(v, "dtype", np.dtype(bool)).kind == "f" for v in (a, b, c)):
            a, b, c = (np.asarray(v).astype(np.float64)[()] for v in (a, b, c))
        return arithmetic.fma(a, b, c)


def _not_compared(a: Any, b: Any) -> TypeError:
    """The error of a comparison with what is no number."""
    for value in (a, b):
        if isinstance(value, NoNumber):
            value.refuse()
    return TypeError(
        f"{shown(a)} cannot be compared with {shown(b)}; compare numbers, such as x[i] or "
        "x.shape[0]"
    )
