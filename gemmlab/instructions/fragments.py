"""Fragments: which register of which lane of a warp holds which element of a matrix.

Every layout is linear: each bit of the lane's number, and each bit of the register's number, adds a
fixed amount to the row or to the column. So a layout is two lists of bits, the lowest first: `i8`
adds 8 to the row, `j2` adds 2 to the column, `q1` adds 1 to the number of the matrix where an
instruction has several, and `-` adds nothing: lanes or registers that differ in it hold the same.

Registers are counted in elements, from low to high: of 16-bit elements, register x is half x mod 2
of the 32-bit register x // 2.

A kernel makes a fragment from a rule, and sets an element, with no shared memory:

    element, holds = layout("m16n8k16", "A").element, layout("m16n8k16", "A").holds

    for x in range(8):
        i, j = element(lane, x)
        a[x] = 1.0 if i <= j else 0.0       # foreach_ij
        if holds(lane, x, 3, 5):
            a[x] = 7.0                      # map

Sources: PTX ISA 9.0, "Matrix Fragments for mma.*" and "ldmatrix" for those; WMMA's layouts are not
documented: read from the hardware by `benchmarks/hardware/checks/layouts.py`, and in agreement with
H. Ootomo's wmma_extension.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gemmlab.device import architecture
from gemmlab.instructions.instruction import KernelFunction

ARGUMENTS = {"element": 2, "holds": 4}


@dataclass(frozen=True, eq=False)
class LayoutFunction(KernelFunction):
    """A function of a layout, called with integers or arrays of them.

    Of the lane's number the lower five bits count. Raises TypeError for other arguments, IndexError
    for a register that the layout does not have.
    A kernel names it as a variable outside: `element = layout.element`. With constant registers, in
    a loop that is unrolled, it costs a few operations on the lane's number, or none.
    """

    layout: Layout
    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def refusal(self, register: int) -> str | None:
        """The message for a register that the layout does not have; None for one that it has."""
        if 0 <= register < self.layout.registers:
            return None
        last = self.layout.registers - 1
        return f"{self.name}: register {register} of a fragment; use 0 to {last}"

    def __call__(self, *args: Any) -> Any:
        types = [getattr(a, "dtype", np.dtype(type(a))) for a in args]
        if len(args) != ARGUMENTS[self.name] or any(t.kind not in "iu" for t in types):
            given = ", ".join(map(str, types))
            raise TypeError(f"{self.name} takes {ARGUMENTS[self.name]} integers, not ({given})")
        lane, register, *ij = args
        refusal = self.refusal(register) if np.ndim(register) == 0 else None
        if refusal:
            raise IndexError(refusal)
        i, j = (place(self.layout.steps[axis], lane, register) for axis in range(2))
        return (i, j) if self.name == "element" else (i == ij[0]) & (j == ij[1])


def place(steps: tuple[int, ...], lane: Any, register: Any) -> Any:
    """Return the place of `register` of `lane` along one axis: the sum of what each bit adds."""
    total = (lane & 0) + (register & 0)
    for bit, step in enumerate(steps):
        number, shift = (lane, bit) if bit < 5 else (register, bit - 5)
        total = total + (number >> shift & 1) * step
    return total


__all__ = ["Layout", "layout"]

LANES = 32


@dataclass(frozen=True)
class Layout:
    """The layout of one operand of an instruction.

    instruction : its shape, "m16n8k16" or "wmma.m16n16k16"; operand : "A", "B" or "C"
    formats : of the elements, as PTX names them
    lane, register : what each bit adds, as the module says
    first, last : the architectures that have it, from the one to the other; "" where there is no
        limit
    major : "row" or "col", how WMMA or m8n8k4 was told that the operand is stored; else ""
    """

    instruction: str
    operand: str
    formats: tuple[str, ...]
    lane: tuple[str, ...]
    register: tuple[str, ...]
    first: str = ""
    last: str = ""
    major: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, cols, _ = (1 + sum(self.steps[axis]) for axis in range(3))
        return rows, cols

    @property
    def registers(self) -> int:
        """Elements that a lane holds."""
        return 1 << len(self.register)

    @property
    def matrices(self) -> int:
        """Independent matrices that a warp holds."""
        return 1 + sum(self.steps[2])

    @property
    def where(self) -> str:
        """The architectures that have it, in words; "" for all.

        >>> layout("wmma.m16n16k16", "A").where
        'sm_75 and newer'
        """
        if self.first == self.last:
            return self.first
        return f"{self.first} to {self.last}" if self.last else f"{self.first} and newer"

    def on(self, arch: str) -> bool:
        """Say whether an architecture has it; ValueError for one that is not known."""
        asked = architecture(arch)
        after = not self.first or asked >= architecture(self.first)
        return after and (not self.last or asked <= architecture(self.last))

    @property
    def copies(self) -> int:
        """The number of registers that hold each element."""
        return 1 << (self.lane + self.register).count("-")

    @cached_property
    def steps(self) -> tuple[tuple[int, ...], ...]:
        """The amounts that the lane's bits, then the register's, add to row, column and matrix."""
        bits = self.lane + self.register
        return tuple(tuple(int(b[1:]) if b[0] == axis else 0 for b in bits) for axis in "ijq")

    @cached_property
    def element(self) -> LayoutFunction:
        """`element(lane, register)` -> (i, j), in Python and in kernels.

        >>> layout("m16n8k16", "A").element(5, 2)
        (9, 2)
        """
        return LayoutFunction(self, "element")

    @cached_property
    def holds(self) -> LayoutFunction:
        """`holds(lane, register, i, j)`: whether it is there, in Python and in kernels.

        >>> layout("m16n8k16", "A").holds(5, 2, 9, 2)
        True
        """
        return LayoutFunction(self, "holds")

    def matrix(self, lane: Any, register: Any) -> Any:
        """Return the number of the independent matrix that `register` of `lane` belongs to."""
        return place(self.steps[2], lane, register)

    def map(self, i: int, j: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the lanes and the registers that hold element (i, j), one of each for each copy.

        Raises IndexError for an element that the matrix does not have.

        >>> layout("m16n8k16", "A").map(9, 2)
        ((5,), (2,))
        """
        rows, cols = self.shape
        if not (0 <= i < rows and 0 <= j < cols):
            raise IndexError(f"element ({i}, {j}) is outside; the matrix is {rows}×{cols}")
        lanes, registers = np.nonzero((self.table[..., 0] == i) & (self.table[..., 1] == j))
        return tuple(lanes.tolist()), tuple(registers.tolist())

    @cached_property
    def table(self) -> np.ndarray:
        """(row, column) of each register of each lane, (32, registers, 2)."""
        lane, register = np.arange(LANES)[:, None], np.arange(self.registers)[None, :]
        return np.stack(self.element(lane, register), axis=-1)

    def foreach_ij(self) -> Iterator[tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
        """All elements, row by row: (i, j, lanes, registers), the last two as `map` gives them."""
        rows, cols = self.shape
        return ((i, j, *self.map(i, j)) for i in range(rows) for j in range(cols))

    def gather(self, fragment: np.ndarray) -> np.ndarray:
        """Return the matrices (…, matrices, rows, cols) of a fragment (…, 32, registers).

        Of an element that is held several times, the copy of the lowest lane and register counts.
        """
        rows, cols = self.shape
        fragment = np.asarray(fragment)
        out = np.empty((*fragment.shape[:-2], self.matrices, rows, cols), fragment.dtype)
        first = self._first
        out[(..., *(place[first] for place in self._places))] = fragment[(..., *first)]
        return out

    def scatter(self, matrix: np.ndarray) -> np.ndarray:
        """Return the fragment (…, 32, registers) of matrices (…, matrices, rows, cols)."""
        return np.asarray(matrix)[(..., *self._places)]

    @cached_property
    def _first(self) -> tuple[np.ndarray, np.ndarray]:
        """The lanes and the registers that hold first copies: no bit that adds nothing is set."""
        kinds = (self.lane, self.register)
        idle = [sum(1 << bit for bit, what in enumerate(k) if what == "-") for k in kinds]
        counts = (LANES, self.registers)
        lanes, registers = (
            [n for n in range(count) if not n & bits]
            for count, bits in zip(counts, idle, strict=True)
        )
        return np.ix_(lanes, registers)

    @cached_property
    def _places(self) -> tuple[np.ndarray, ...]:
        lane, register = np.arange(LANES)[:, None], np.arange(self.registers)[None, :]
        at = self.matrix(lane, register), *self.element(lane, register)
        return tuple(np.broadcast_to(a, (LANES, self.registers)) for a in at)


def _of(
    instruction: str, operand: str, formats: str, lane: str, register: str, **limits: str
) -> Layout:
    lists = (tuple(text.split()) for text in (formats, lane, register))
    return Layout(instruction, operand, *lists, **limits)


_HALVES, _NUMBERS = "f16 bf16", "f32 f16"
_VOLTA, _NEWER = {"first": "sm_70", "last": "sm_70"}, {"first": "sm_75"}
LAYOUTS = (
    _of("m16n8k16", "A", _HALVES, "j2 j4 i1 i2 i4", "j1 i8 j8"),
    _of("m16n8k16", "B", _HALVES, "i2 i4 j1 j2 j4", "i1 i8"),
    _of("m16n8k16", "C", _NUMBERS, "j2 j4 i1 i2 i4", "j1 i8"),
    _of("m16n8k8", "A", _HALVES, "j2 j4 i1 i2 i4", "j1 i8"),
    _of("m16n8k8", "B", _HALVES, "i2 i4 j1 j2 j4", "i1"),
    _of("m16n8k8", "C", _NUMBERS, "j2 j4 i1 i2 i4", "j1 i8"),
    _of("m16n8k8", "A", "tf32", "j1 j2 i1 i2 i4", "i8 j4"),
    _of("m16n8k8", "B", "tf32", "i1 i2 j1 j2 j4", "i4"),
    _of("m16n8k4", "A", "tf32", "j1 j2 i1 i2 i4", "i8"),
    _of("m16n8k4", "B", "tf32", "i1 i2 j1 j2 j4", ""),
    _of("m16n8k4", "C", "f32", "j2 j4 i1 i2 i4", "j1 i8"),
    _of("m8n8k4", "A", "f16", "i1 i2 q1 q2 i4", "j1 j2", major="row"),
    _of("m8n8k4", "A", "f16", "j1 j2 q1 q2 i4", "i1 i2", major="col"),
    _of("m8n8k4", "B", "f16", "j1 j2 q1 q2 j4", "i1 i2", major="col"),
    _of("m8n8k4", "B", "f16", "i1 i2 q1 q2 j4", "j1 j2", major="row"),
    _of("m8n8k4", "C", "f16", "i1 i2 q1 q2 i4", "j1 j2 j4"),
    _of("m8n8k4", "C", "f32", "i1 j2 q1 q2 i4", "j1 i2 j4"),
    _of("wmma.m16n16k16", "A", "f16", "i1 i2 i8 - i4", "j1 j2 j4 j8", **_VOLTA, major="row"),
    _of("wmma.m16n16k16", "A", "f16", "j1 j2 i8 - i4", "i1 i2 j4 j8", **_VOLTA, major="col"),
    _of("wmma.m16n16k16", "B", "f16", "j1 j2 - j8 j4", "i1 i2 i4 i8", **_VOLTA, major="col"),
    _of("wmma.m16n16k16", "B", "f16", "i1 i2 - j8 j4", "j1 j2 i4 i8", **_VOLTA, major="row"),
    _of("wmma.m16n16k16", "C", "f16", "i1 i2 i8 j8 i4", "j1 j2 j4", **_VOLTA),
    _of("wmma.m16n16k16", "C", "f32", "i1 j2 i8 j8 i4", "j1 i2 j4", **_VOLTA),
    _of("wmma.m16n16k16", "A", "f16", "j2 j4 i1 i2 i4", "j1 i8 j8 -", **_NEWER),
    _of("wmma.m16n16k16", "B", "f16", "i2 i4 j1 j2 j4", "i1 i8 j8 -", **_NEWER),
    _of("wmma.m16n16k16", "C", _NUMBERS, "j2 j4 i1 i2 i4", "j1 i8 j8", **_NEWER),
    _of("ldmatrix.x1", "A", "b16", "j2 j4 i1 i2 i4", "j1"),
    _of("ldmatrix.x2", "A", "b16", "j2 j4 i1 i2 i4", "j1 q1"),
    _of("ldmatrix.x4", "A", "b16", "j2 j4 i1 i2 i4", "j1 q1 q2"),
    _of("ldmatrix.x1.trans", "A", "b16", "i2 i4 j1 j2 j4", "i1"),
    _of("ldmatrix.x2.trans", "A", "b16", "i2 i4 j1 j2 j4", "i1 q1"),
    _of("ldmatrix.x4.trans", "A", "b16", "i2 i4 j1 j2 j4", "i1 q1 q2"),
)


def layout(
    instruction: str, operand: str, format: str = "", *, arch: str = "sm_80", major: str = ""
) -> Layout:
    """Return the layout of an operand; the first that fits where several would.

    instruction : its shape, "m16n8k16" or "wmma.m16n16k16"; operand : "A", "B" or "C"
    format : "f16", "bf16", "tf32", "f32"; arch : a name in `ARCHITECTURES`, "sm_80"
    major : "row" or "col" where the layout depends on how the operand is stored

    Raises ValueError, listing what there is for the instruction, where none fits, and for an
    architecture that is not known.

    >>> layout("wmma.m16n16k16", "A", arch="sm_70", major="col").copies
    2
    """
    for one in LAYOUTS:
        if (
            (one.instruction, one.operand) == (instruction, operand)
            and format in ("", *one.formats)
            and major in ("", one.major or major)
            and one.on(arch)
        ):
            return one
    known = [x for x in LAYOUTS if x.instruction == instruction]
    names = {x.instruction for x in LAYOUTS}
    there = (" ".join((x.operand, "/".join(x.formats), x.where)).rstrip() for x in known)
    asked = " ".join(word for word in (repr(operand), format, major) if word)
    raise ValueError(
        f"no layout of {asked} of {instruction!r} on {arch}; there are "
        f"{', '.join(there) or ', '.join(sorted(names))}"
    )
