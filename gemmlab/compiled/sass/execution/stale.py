"""After turns of a loop that were left out, some registers have values of earlier turns.

What a loop has added up or loaded is such a value: it may be multiplied, stored, exchanged between
lanes. Where a branch or an address depends on it, turns must not be left out. Only the tests by
which divisions and roots choose between two ways may see it, if it is a sum of floats: what decides
there is its order of magnitude.
"""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from gemmlab.compiled.sass.execution.effects import FIRST, PREDICATES
from gemmlab.compiled.sass.execution.relevance import Relevance
from gemmlab.compiled.sass.execution.state import Mask, warps_with
from gemmlab.compiled.sass.listing import Immediate, Instruction, Listing, parse

FLOATS = {
    *("FFMA", "FADD", "FMUL", "FMNMX", "FCHK", "DFMA", "DADD", "DMUL", "MUFU", "HADD2", "HFMA2"),
    *("F2FP", "F2F", "FRND", "HMMA", "I2F", "I2FP"),
}
COMPARED = {"FSETP", "DSETP", "F2I"}
ACROSS = {"SHFL", "VOTE", "MATCH", "REDUX", "R2UR", "HMMA"}  # they read other lanes' registers
TESTS = {"ISETP", "FCHK"}
INTERNAL = "$__internal"
EXTREME = 1e30  # divisions and roots compare with such numbers, or with their inverses


class MisjudgedError(Exception):
    """After turns that were left out a loop does something else than was expected."""


class Stale:
    """The registers with such values, by lanes: `sums` of floats, and `others`.

    bits : of all that have some; memories : those with some, and whether all of these are sums
    """

    def __init__(self, listing: Listing, relevance: Relevance, lanes: int) -> None:
        self.effects, self.names, self.lanes = relevance.effects, relevance.names, lanes
        own = _own_functions(listing)
        self.tests = [_is_test(i) or (i.address in own) for i in listing.instructions]
        self.bits = 0
        self.sums: dict[int, np.ndarray] = {}
        self.others: dict[int, np.ndarray] = {}
        self.memories: dict[str, bool] = {}

    def mark(self, bits: int, written: Iterable[int]) -> None:
        """Mark what a loop has left, whose turns execute the instructions `written`."""
        others = 0
        for i in written:
            one = self.effects[i]
            others |= 0 if self.names[i] in FLOATS else one.writes & bits
            self.memories |= dict.fromkeys(one.stores, False)
        for bit in _each(bits):
            rows = self.others if others >> bit & 1 else self.sums
            rows[bit] = np.ones(self.lanes, bool)
        self.bits |= bits

    def follow(self, at: int, mask: Mask) -> None:
        """Follow an instruction that is about to be executed; MisjudgedError where it must not."""
        one, name = self.effects[at], self.names[at]
        loads = [self.memories[place] for place in one.loads if place in self.memories]
        if not loads and not self.bits & (one.reads | one.control | one.writes):
            return
        on = np.ones(self.lanes, bool) if mask is None else mask
        if any(self._of(rows, one.control, on).any() for rows in (self.sums, self.others)):
            raise MisjudgedError
        sums, others = (self._of(rows, one.reads, on) for rows in (self.sums, self.others))
        if name in ACROSS:
            sums, others = (warps_with(lanes) & on for lanes in (sums, others))
        if one.stores and (sums.any() or others.any()):
            for place in one.stores:
                self.memories[place] = self.memories.get(place, True) and not others.any()
        if loads:
            sums, others = (on, ~on) if all(loads) else (~on, on)
            sums, others = sums & on, others & on
        elif self.tests[at] and name not in FLOATS - TESTS:
            sums = sums & bool(one.writes & ~PREDICATES)
        elif name in COMPARED:
            sums, others = sums & False, sums | others
        elif name in FLOATS:
            sums, others = sums | others, others & False
        for bit in _each(one.writes):
            self._put(bit, on, sums, others)

    def _of(self, rows: dict[int, np.ndarray], bits: int, on: np.ndarray) -> np.ndarray:
        found = np.zeros(self.lanes, bool)
        for bit in _each(bits & self.bits):
            if bit in rows:
                found |= rows[bit]
        return found & on

    def _put(self, bit: int, on: np.ndarray, sums: np.ndarray, others: np.ndarray) -> None:
        if FIRST["UR"] <= bit < FIRST["P"] or bit >= FIRST["UP"]:
            on, sums, others = map(warps_with, (on, sums, others))
        some = False
        for rows, new in ((self.sums, sums), (self.others, others)):
            if bit in rows:
                new = (rows[bit] & ~on) | new
            rows.pop(bit, None)
            if new.any():
                rows[bit] = new.copy()
                some = True
        self.bits = self.bits | 1 << bit if some else self.bits & ~(1 << bit)


def _own_functions(listing: Listing) -> set[int]:
    """Return the addresses of the compiler's own functions, long ways of divisions, say."""
    starts = sorted((at, name) for name, at in listing.functions.items())
    found: set[int] = set()
    for (at, name), (end, _) in pairwise([*starts, (1 << 32, "")]):
        if name.startswith(INTERNAL):
            found.update(i.address for i in listing.instructions if at <= i.address < end)
    return found


def _is_test(instruction: Instruction) -> bool:
    """Say whether an instruction asks of a float for its order of magnitude, in its bits or so."""
    if instruction.name in TESTS or {"NAN", "NUM"} & set(instruction.modifiers):
        return True
    operands = map(parse, instruction.operands[2:])
    numbers = [abs(o.real) for o in operands if isinstance(o, Immediate)]
    return instruction.name in COMPARED and any(x > EXTREME or 0 < x < 1 / EXTREME for x in numbers)


def _each(bits: int) -> Iterable[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
