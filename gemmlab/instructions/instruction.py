"""An instruction has a name, its PTX, its operands, what it needs and what it means.

From one `Instruction` come the function that a compiler knows (`numba_cuda`) and what the simulator
does (`gemmlab.simt`). Operands name what registers hold: "float32", "tf32" and so on for one number
of that format; "float16x2" and "bfloat16x2" for a packed pair, the first number in the lowest bits;
"uint32" for 32 bits whatever they mean.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gemmlab.device import Capability, architecture
from gemmlab.formats import BY_PTX, FORMATS, Format, decode, encode

WORD = np.dtype(np.uint32)


def held(form: Format) -> str:
    """What a register of a fragment holds of a format: as many numbers as 32 bits have room for.

    >>> held(FORMATS["bfloat16"]), held(FORMATS["tf32"])
    ('bfloat16x2', 'tf32')
    """
    return f"{form.name}x{WORD.itemsize // form.bytes}" if form.bytes < WORD.itemsize else form.name


def of_one(what: str) -> tuple[str, int]:
    """Return the format of a number in a register, and how many numbers there are.

    >>> of_one("float16x2"), of_one("tf32")
    (('float16', 2), ('tf32', 1))
    """
    name, _, count = what.rpartition("x")
    return (name, int(count)) if name else (what, 1)


def per_register(what: str) -> int:
    """Numbers in a register.

    >>> per_register("float16x2"), per_register("tf32")
    (2, 1)
    """
    return of_one(what)[1]


@cache
def carrier(what: str) -> np.dtype:
    """The NumPy type by which kernels know a register: a word, or that of its number's format.

    >>> carrier("float16x2"), carrier("tf32")
    (dtype('uint32'), dtype('float32'))
    """
    return WORD if what == WORD.name or per_register(what) > 1 else FORMATS[what].carrier


def numbers(registers: np.ndarray, what: str) -> np.ndarray:
    """The numbers in registers (…, n), each in its format's carrier: (…, 2n) of packed pairs."""
    name, count = of_one(what)
    if count == 1:
        return registers
    return decode(np.ascontiguousarray(registers, WORD).view(FORMATS[name].words), name)


def registers(values: np.ndarray, what: str) -> np.ndarray:
    """Return the registers that hold numbers: the inverse of `numbers`.

    ValueError for values that are not numbers of a packed format: round them first.
    """
    name, count = of_one(what)
    return np.asarray(values) if count == 1 else packed(encode(values, name))


def halves(words: np.ndarray) -> np.ndarray:
    """Return the 16-bit halves of words, (…, n) -> (…, 2n), low half first."""
    return np.ascontiguousarray(words, WORD).view(np.uint16)


def packed(values: np.ndarray) -> np.ndarray:
    """The words of narrower numbers, (…, 2n) -> (…, n) of 16 bits, the first in the lowest bits."""
    return np.ascontiguousarray(values).view(WORD)


class KernelFunction:
    """A function that kernels call: an instruction, one of a layout, or a view of shared memory.

    What it does is said without a compiler. How a compiler does it lies in a folder of its own:
    `numba_cuda` for Numba-CUDA, which asks for the attribute `_numba_type_` that the package gives
    to this class.
    """


def named_in(module: dict[str, Any]) -> list[str]:
    """Return the names by which a module has functions that kernels call, for its `__all__`."""
    return [name for name, value in module.items() if isinstance(value, KernelFunction)]


@dataclass(frozen=True)
class Registers:
    """An operand in registers: `count` registers a lane, as a tuple where there is more than one.

    dtype : what each holds, as `words` names it, or "element": an element of the memory operand
    """

    name: str
    dtype: str
    count: int = 1

    @property
    def carrier(self) -> np.dtype | None:
        """The NumPy type of one in a kernel; None where it is that of the array's elements."""
        return None if self.dtype == "element" else carrier(self.dtype)

    @property
    def kinds(self) -> str:
        """The kinds of numbers, as NumPy abbreviates them, that may be passed.

        Kernels convert by value: a float32 is no word of packed numbers, nor a word a float32.
        """
        if self.carrier is None:
            return "biuf"
        return "iu" if self.carrier == WORD else "if"

    def refusal(self, given: object) -> str:
        """Return the message for an argument that is something else than these registers."""
        held = self.carrier or "numbers"
        text = f"{self.name} is " + (f"a tuple of {self.count}" if self.count > 1 else "one")
        of, many = of_one(self.dtype)
        name = {1: "", 2: "pair", 4: "four"}[many]
        packed = f", {f'a {name}' if self.count == 1 else f'{name}s'} of {of}" * (many > 1)
        return f"{text} {held}{packed}, not {given}"


@dataclass(frozen=True)
class Memory:
    """An operand in memory: an array and one index for each of its dimensions.

    A lane accesses `bytes` there, neighbouring elements of the last dimension; the address is a
    multiple of `bytes`. With `elements` instead, the bytes are those of so many elements.

    space : "shared", "global", or "any"
    access : "read" or "write"
    lanes : of how many lanes, from 0 on, the address counts
    """

    name: str
    space: str
    access: str
    bytes: int = 0
    elements: int = 0
    lanes: int = 32

    def width(self, itemsize: int) -> int:
        """Bytes that a lane accesses in an array of elements of `itemsize` bytes."""
        return self.bytes or self.elements * itemsize

    def refusal(self, dtype: object, kind: str, itemsize: int) -> str | None:
        """Give the reason why elements of this size and NumPy kind cannot be accessed, or None."""
        if kind not in "iuf":
            return f"takes an array of integers or floats, not of {dtype}"
        size = self.width(itemsize)
        if size % itemsize:
            return f"moves {size} bytes, which is no whole element of {dtype}"
        if size in (4, 8, 16):
            return None
        return f"would access {size} bytes of an array of {dtype} at once; it has to be 4, 8 or 16"


@dataclass(frozen=True)
class Tile:
    """A 16×16 tile in global or shared memory: a 2-D array, and the row and column of its corner.

    access : "read" or "write"; operand : "A", "B" or "C", whose WMMA layout says which lane has
        what; format : of its elements, as PTX names it; major : "row", or "col" where it is stored
        transposed
    In the instruction's text {name} is the address and {name_stride} the length of a row.
    """

    name: str
    access: str
    operand: str
    format: str
    major: str

    @property
    def dtype(self) -> np.dtype:
        return BY_PTX[self.format].memory


@dataclass(frozen=True)
class Literal:
    """A whole number from 0 to `most` that is known when the kernel is compiled."""

    name: str
    most: int


@dataclass(frozen=True)
class Valid:
    """The last operand of a copy, which may be left out: how much is read; the rest becomes zero.

    True or False: all or nothing; an integer: that many elements, at most all.
    """

    name: str


@dataclass(frozen=True)
class Matrix:
    """A matrix of `rows` × 32 bytes along k in shared memory, as `wgmma` reads it.

    An array whose rows have 128 bytes, and the indices of the matrix' first element. The array
    is in the 128-byte swizzle: row r has its eight pieces of 16 bytes in the order p ^ (r % 8).

    major : "k" where rows of the array lie along k; "mn" where they lie across it, a row for each
        k, in blocks [block, k, row] of 64 rows of the matrix
    format : of its elements, as PTX names it
    """

    name: str
    rows: int
    major: str = "k"
    format: str = "f16"

    @property
    def depth(self) -> int:
        """Elements along k: 16 of 16 bits, 32 of 8 bits."""
        return 32 // BY_PTX[self.format].bytes

    def refusal(self, dtype: object, kind: str, itemsize: int) -> str | None:
        """The reason why elements of this size and NumPy kind cannot be multiplied, or None."""
        held = BY_PTX[self.format].memory
        if (kind, itemsize) == (held.kind, held.itemsize):
            return None
        return f"multiplies {held}, not {dtype}"


@dataclass(frozen=True)
class Accumulator:
    """A local array of `count` float32: what a lane has of a tile that a warpgroup accumulates.

    It is updated in place, and lives in registers where all indices are known to the compiler.
    """

    name: str
    count: int


@dataclass(frozen=True)
class Box:
    """A tensor map (`tensor_map`), and the row and column of a box in its matrix, if `placed`."""

    name: str
    placed: bool = True


@dataclass(frozen=True)
class Condition:
    """A condition that is the same in all lanes."""

    name: str


Operand = Registers | Memory | Tile | Literal | Valid | Matrix | Accumulator | Box | Condition


@dataclass(frozen=True, eq=False)
class Instruction(KernelFunction):
    """An instruction of a GPU, usable by its name inside a kernel.

    name : as kernels call it
    ptx : its text, operands in braces; source: PTX ISA, sections named in the declaring module
    operands, result : in the order in which kernels pass them; result is None or Registers
    requires : the oldest architecture that has it, a name in `ARCHITECTURES`
    last : the newest that has it, "" where there is no end
    lanes : how many execute it together: 32, a warp; 128, a warpgroup: four warps from a multiple
        of four on
    kind : what the simulator counts it as, inst_<kind>
    meaning : a function of NumPy arrays over warps, (…, 32, count) for each operand that is read,
        with the keyword arch; it returns what is written, of the same form. None where the
        operands are moved as they are.
    """

    name: str
    ptx: str
    operands: tuple[Operand, ...]
    result: Registers | None
    requires: str
    kind: str
    meaning: Callable[..., Any] | None = None
    last: str = ""
    lanes: int = 32

    @property
    def collective(self) -> bool:
        """Whether the lanes of a warp, or of a warpgroup, execute it together, all of them."""
        return ".sync." in self.ptx or ".aligned" in self.ptx

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<instruction {self.name}: {self.ptx}>"

    def __call__(self, *args: object) -> Any:
        raise RuntimeError(
            f"{self.name} has a meaning only inside a kernel; "
            "run the kernel on a GPU or with gemmlab.simulate(kernel, grid, block, *arguments)"
        )

    def refusal(self, capability: Capability) -> str | None:
        """Return the reason why a GPU of this compute capability cannot execute it, or None.

        >>> from gemmlab.instructions import cp_async_16
        >>> cp_async_16.refusal((7, 5))
        'cp_async_16 needs compute capability 8.0 or more, this GPU has 7.5'
        """
        least = architecture(self.requires).capability
        most = architecture(self.last).capability if self.last else capability
        if least <= capability <= most:
            return None
        need, have = (f"{major}.{minor}" for major, minor in (least, capability))
        need += "" if self.last else " or more"
        return f"{self.name} needs compute capability {need}, this GPU has {have}"
