"""Operators and conditions of a kernel: computed as Numba types them, and counted.

A branch, or an operand that only some lanes evaluate, has the mask of these lanes on the stack of
masks while it lasts.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.model.counters import DIVISION, FLOAT64
from gemmlab.simt.memory.array import merged
from gemmlab.simt.numbers import arithmetic
from gemmlab.simt.numbers.lanes import Lanes, Launch, Mask, Masks, both, without
from gemmlab.simt.numbers.values import NUMBER, NoNumber, number, shown, truth
from gemmlab.simt.report.tally import Tally

MIXED = ("iu", "ui")  # kinds of two operands, of which one is signed
COMPARED = (*NUMBER, tuple)
DIVISIONS = ("Div", "FloorDiv", "Mod")
WIDE = "dD"  # NumPy's letters of float64 and complex128


class Operations:
    """A rewritten kernel calls these methods for its operators.

    contract : whether a float a·b + c is rounded once
    raises : whether a division by 0 raises, as Python's does: of a kernel with debug=True
    fastmath : whether one of float32 does not raise even then
    """

    def __init__(self, tally: Tally, launch: Launch) -> None:
        self.tally, self.contract = tally, launch.contract
        self.raises, self.fastmath = launch.debug, launch.fastmath

    def binary(self, op: str, a: Any, b: Any, line: int) -> Any:
        if self.raises and op in DIVISIONS:
            self._check_divisor(op, a, b)
        result = arithmetic.binary(op, a, b)
        self.tally.tick(line, "inst_fp" if result.dtype.kind in "fc" else "inst_integer")
        if result.dtype.char in WIDE:
            self.tally.mark(line, FLOAT64)
        if op in ("FloorDiv", "Mod") and result.dtype.kind in "iu":
            self.tally.mark(line, DIVISION)
            zero = both(self.tally.masks[-1], np.equal(b, 0))
            if zero is not False:
                text = "thread {thread} divides an integer by 0, which stops no GPU: the result "
                text += "means nothing"
                self.tally.findings.note("division-by-zero", line, zero, text)
        return result

    def _check_divisor(self, op: str, a: Any, b: Any) -> None:
        """Raise ZeroDivisionError where an active lane divides by 0, in the words of Numba."""
        a, b = np.asarray(a), np.asarray(b)
        kind = np.result_type(a, b)
        if op == "Div" and self.fastmath and kind == np.float32:
            return
        zero = both(self.tally.masks[-1], np.equal(b, 0))
        if zero is False:
            return
        what = "complex " if kind.kind == "c" else ""
        what = "integer " if op != "Div" and kind.kind in "iu" else what
        text = f"{what}{'modulo' if op == 'Mod' else 'division'} by zero"
        raise ZeroDivisionError(f"{text} [{_where(self.tally.lanes, zero)}]")

    def unary(self, op: str, a: Any, line: int) -> Any:
        result = arithmetic.unary(op, a)
        self.tally.tick(line, "inst_fp" if result.dtype.kind in "fc" else "inst_integer")
        return result

    def not_(self, value: Any) -> Any:
        """Lanes where `value` is zero."""
        return not value if isinstance(value, bool) else ~truth(value)

    def compare(self, op: str, a: Any, b: Any, line: int) -> Any:
        if type(a) is int or type(b) is int:  # the dimensions of an array, which the compiler knows
            a, b = (number(v) if type(v) is int else v for v in (a, b))
            return bool(arithmetic.COMPARE[op](a, b)) if np.ndim(a) == np.ndim(b) == 0 else (
                self.compare(op, a, b, line))  # fmt: skip
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
        result = arithmetic.COMPARE[op](a, b)
        self.tally.tick(line, "inst_fp" if "f" in kinds else "inst_integer")
        if "f" in kinds and (kinds != "ff" or a.dtype.char in WIDE or b.dtype.char in WIDE):
            self.tally.mark(line, FLOAT64)
        return result

    def same(self, a: Any, b: Any) -> bool:
        """Return `a is b`, of which one is None."""
        if isinstance(a, NUMBER) and isinstance(b, NUMBER) and a.dtype == b.dtype:
            return a == b
        if a is not None and b is not None:
            raise TypeError("`is` compares with None alone; use ==")
        return a is b

    def fused_left(self, op: str, a: Any, b: Any, c: Any, line: int) -> Any:
        """Return the sum a·b ± c: one instruction where the machine contracts, else two."""
        if not (self.contract and arithmetic.fuses(a, b, c)):
            return self.binary(op, self.binary("Mult", a, b, line), c, line)
        self.tally.tick(line, "inst_fp")
        return arithmetic.fma(a, b, c if op == "Add" else -c)

    def fused_right(self, op: str, c: Any, a: Any, b: Any, line: int) -> Any:
        """Return the sum c ± a·b: one instruction where the machine contracts, else two."""
        if not (self.contract and arithmetic.fuses(a, b, c)):
            return self.binary(op, c, self.binary("Mult", a, b, line), line)
        self.tally.tick(line, "inst_fp")
        return arithmetic.fma(a if op == "Add" else -a, b, c)

    def fma(self, a: Any, b: Any, c: Any, line: int) -> Any:
        """Return `cuda.fma`: a·b + c, rounded once."""
        self.tally.tick(line, "inst_fp")
        if not all(getattr(v, "dtype", np.dtype(bool)).kind == "f" for v in (a, b, c)):
            a, b, c = (np.asarray(v).astype(np.float64)[()] for v in (a, b, c))
        return arithmetic.fma(a, b, c)


def _where(lanes: Lanes, mask: Mask) -> str:
    """Name the first lane of a mask, and its block."""
    row, thread = lanes.first(mask)
    block = int(lanes.blocks[row, 0])
    return f"block {lanes.block_name(block)}, thread {lanes.thread_name(thread)}"


def _not_compared(a: Any, b: Any) -> TypeError:
    for value in (a, b):
        if isinstance(value, NoNumber):
            value.refuse()
    return TypeError(
        f"{shown(a)} cannot be compared with {shown(b)}; compare numbers, such as x[i] or "
        "x.shape[0]"
    )


ENTERED, LEFT, BOTH = 1, 2, 3  # ways of an `if` that lanes went


class Branches:
    """A rewritten kernel calls these methods for `if`, `and`, `or` and conditional expressions.

    others : for each open `if`, the lanes of its `else`
    taken : by line, whether any lane entered the body of an `if`, and whether any did not
    all_ways : whether every way is entered, by no lane, for its types alone (`machine.untaken`)
    """

    def __init__(self, masks: Masks, tally: Tally) -> None:
        self.masks, self.tally = masks, tally
        self.others: list[Mask] = []
        self.taken: dict[int, int] = {}
        self.all_ways = False
        self.pruned: list[bool | None] = []  # tests that the compiler knows, while all are entered

    def if_(
        self, test: Any, line: int, known: Callable[[], tuple] | None = None, whole: bool = False
    ) -> bool:
        """Enter the body of an `if`; returns whether any lane does.

        known : gives the parts of the test that the compiler knows; whole : whether it knows all
        """
        self.tally.tick(line, "inst_control")
        parent, holds = self.masks[-1], truth(test)
        if self.all_ways and known is not None:
            if not all(bool(truth(part)) for part in known()):
                holds = False
            elif whole:
                holds = True
        then = both(parent, holds)
        other = without(parent, then)
        self.masks.append(then)
        self.others.append(other)
        if self.all_ways:
            self.pruned.append(holds if isinstance(holds, bool) else None)
            return holds is not False
        self.took(line, then is not False, other is not False)
        return then is not False

    def took(self, line: int, entered: bool, left: bool) -> None:
        """Note whether lanes went into the body of an `if`, and whether some did not."""
        ways = self.taken.get(line, 0)
        if ways != BOTH:
            self.taken[line] = ways | entered * ENTERED | left * LEFT

    def else_(self) -> bool:
        """Enter its `else`; returns whether any lane does."""
        self.masks[-1] = self.others[-1]
        if self.all_ways:
            return self.pruned[-1] is not True
        return self.masks[-1] is not False

    def end_if(self) -> None:
        """Leave the `if`: the lanes of both branches run again."""
        self.masks.pop()
        self.others.pop()
        if self.all_ways:
            self.pruned.pop()

    def anybody(self) -> bool:
        """Say whether any lane goes on here, behind a statement that lanes may have left.

        A device function that nobody calls goes on, because its value has a type.
        """
        depth = self.tally.calls.frames[-1].depth
        return (
            self.masks[-1] is not False
            or self.all_ways
            or (depth > 0 and self.masks[depth - 1] is False)
        )

    def and_(self, first: Any, second: Callable) -> Any:
        """Return the value of `first and second`; `second` is evaluated where `first` is true."""
        return self._united(truth(first), second, lambda: first)

    def or_(self, first: Any, second: Callable) -> Any:
        """Return the value of `first or second`; `second` is evaluated where `first` is false."""
        return self._united(truth(first), lambda: first, second)

    def and_last(self, first: Any, second: Callable) -> Any:
        """Return the value of `second` where `first` is true, else a 0 of its type."""
        return self._last(truth(first), second, 0)

    def or_last(self, first: Any, second: Callable) -> Any:
        """Return the value of `second` where `first` is false, else a 1 of its type."""
        test = truth(first)
        return self._last(not test if isinstance(test, bool) else ~test, second, 1)

    def _last(self, test: Any, second: Callable, otherwise: int) -> Any:
        if isinstance(test, bool):
            return second() if test else np.bool_(otherwise)
        self.masks.append(both(self.masks[-1], test))
        value = second()
        self.masks.pop()
        if not isinstance(value, NUMBER):
            raise TypeError(f"{shown(value)} is chosen by and, or; use `x if condition else y`")
        return np.where(test, value, value.dtype.type(otherwise))[()]

    def select(self, test: Any, then: Callable, other: Callable, line: int) -> Any:
        """Return the value of `then if test else other`, each evaluated where it is chosen."""
        self.tally.tick(line, "inst_control")
        return self._united(truth(test), then, other)

    def _united(self, test: Any, then: Callable, other: Callable) -> Any:
        """Return the value of `then` or `other`, by lane, in the type that both fit into.

        Both are evaluated, perhaps by no lane, because the type is that of both; one alone where
        the test is the same for every launch, such as `x is None`.
        """
        if isinstance(test, bool):
            return then() if test else other()
        here = self.masks[-1]
        mine, theirs = both(here, test), both(here, ~test)
        self.masks.append(mine)
        first = then()
        self.masks[-1] = theirs
        second = other()
        self.masks.pop()
        kinds = getattr(first, "dtype", None), getattr(second, "dtype", None)
        if None in kinds or (mine is not False and theirs is not False):
            return merged(test, second, first, "the result of a condition")
        value = first if theirs is False else second
        return value if kinds[0] == kinds[1] else value.astype(np.promote_types(*kinds))

    def fail(self, error: type[Exception], text: str, test: Any) -> None:
        """Raise the exception of an `assert` or `raise` for the active lanes where `test` fails.

        Numba raises it on the host where a kernel is compiled with debug=True; without, the
        thread ends and nobody is told.
        """
        lanes = both(self.masks[-1], np.logical_not(truth(test)))
        if lanes is False:
            return
        where = _where(self.tally.lanes, lanes)
        raise error(f"{text} [{where}]" if text else f"[{where}]")
