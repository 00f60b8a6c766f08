"""A warp multiplies matrices that lie in its lanes' registers, and moves them to and from there.

Fragments lie as PTX says for `mma.sync`: g = lane / 4 and t = lane % 4. Source: PTX ISA, section
"Warp-level matrix instructions".
"""

import re
from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sass.execution.lanes import LANES
from gemmlab.compiled.sass.execution.memory import Memory, Watch, cost, sum_of
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step
from gemmlab.compiled.sass.listing import Address, Register
from gemmlab.instructions import matrix
from gemmlab.tiling import WARP

ROW = 16  # bytes of a row of an 8×8 matrix
SHAPES = {"16816": "m16n8k16", "1688": "m16n8k8", "1684": "m16n8k4"}
FORMATS = {"BF16": "bf16", "TF32": "tf32"}
G, T = LANES // 4, LANES % 4
BYTES = {"S8": np.int8, "U8": np.uint8}
_INTEGERS = re.compile(r"(8|16)8(16|32|64)")
_DOUBLES = re.compile(r"(8|16)x8x(4|8|16)")


def fragment(o: Operands, index: int, count: int, warps: np.ndarray) -> np.ndarray:
    """Read a register and its successors in whole warps, (warps, 32, count); RZ is all 0."""
    operand = o.all[index]
    if not isinstance(operand, Register) or operand.is_zero:
        return np.zeros((len(warps), WARP, count), np.uint32)
    rows = o.state.registers[operand.file][operand.index : operand.index + count]
    return np.moveaxis(rows.reshape(count, -1, WARP)[:, warps], 0, -1)


def keep(o: Operands, index: int, values: np.ndarray, warps: np.ndarray) -> None:
    """Put a fragment (warps, 32, count) into a register and its successors."""
    operand, count = o.all[index], values.shape[-1]
    rows = o.state.registers[operand.file][operand.index : operand.index + count]
    rows.reshape(count, -1, WARP)[:, warps] = np.moveaxis(values.view(np.uint32), -1, 0)


def whole(o: Operands, mask: Mask) -> np.ndarray:
    """Return the numbers of the warps that take part, all lanes of each."""
    lanes = np.ones(o.state.lanes, bool) if mask is None else mask
    return np.flatnonzero(lanes.reshape(-1, WARP).all(1))


def hmma(o: Operands) -> Step:
    """D = A·B + C of a warp, as `gemmlab.numerics` has the arithmetic of an H200."""
    shape, out, *forms = o.instruction.modifiers
    name = f"mma_{SHAPES[shape]}_{out.lower()}_{FORMATS[forms[0]] if forms else 'f16'}"
    instruction = getattr(matrix, name)

    def run(mask: Mask) -> None:
        warps = whole(o, mask)
        given = [
            fragment(o, i, operand.count, warps).view(operand.carrier)
            for i, operand in enumerate(instruction.operands, 1)
        ]
        keep(o, 0, instruction.meaning(*given, arch="sm_90"), warps)

    return run


def imma(o: Operands) -> Step:
    """D = A·B + C of bytes, with sums of 32 bits that wrap."""
    shape, *forms = o.instruction.modifiers
    sizes = _INTEGERS.fullmatch(shape)
    if not sizes or [f for f in forms if f not in BYTES] or len(forms) != 2:
        raise NotImplementedError(str(o.instruction))
    rows, depth = map(int, sizes.groups())
    of_a, of_b = (BYTES[f] for f in forms)
    blocks, halves = depth // 16, rows // 8
    # A register of A has four neighbours along k of one row; B likewise of one column.
    at_k = [16 * block + 4 * T[:, None] + np.arange(4) for block in range(blocks)]

    def run(mask: Mask) -> None:
        warps = whole(o, mask)
        a, b = (
            np.ascontiguousarray(fragment(o, i, n, warps)).view(kind).reshape(-1, WARP, n, 4)
            for i, n, kind in ((1, blocks * halves, of_a), (2, blocks, of_b))
        )
        left = np.zeros((len(warps), rows, depth), np.int32)
        right = np.zeros((len(warps), depth, 8), np.int32)
        for block, k in enumerate(at_k):
            for half in range(halves):
                left[:, (G + 8 * half)[:, None], k] = a[:, :, halves * block + half]
            right[:, k, G[:, None]] = b[:, :, block]
        c = np.ascontiguousarray(fragment(o, 3, 2 * halves, warps)).view(np.int32)
        _sums(o, left @ right, c, warps)

    return run


def dmma(o: Operands) -> Step:
    """D = A·B + C of float64; in which order a sum is made is not known."""
    sizes = _DOUBLES.fullmatch(o.instruction.modifiers[0])
    if not sizes:
        raise NotImplementedError(str(o.instruction))
    rows, depth = map(int, sizes.groups())
    blocks, halves = depth // 4, rows // 8

    def run(mask: Mask) -> None:
        warps = whole(o, mask)
        a, b, c = (
            np.ascontiguousarray(fragment(o, i, 2 * n, warps)).view(np.float64)
            for i, n in ((1, blocks * halves), (2, blocks), (3, 2 * halves))
        )
        left = np.zeros((len(warps), rows, depth))
        right = np.zeros((len(warps), depth, 8))
        for block in range(blocks):
            for half in range(halves):
                left[:, G + 8 * half, 4 * block + T] = a[:, :, halves * block + half]
            right[:, 4 * block + T, G] = b[:, :, block]
        _sums(o, left @ right, c, warps)

    return run


def _sums(o: Operands, product: np.ndarray, c: np.ndarray, warps: np.ndarray) -> None:
    """Add products (warps, rows, 8) to fragments of C: two neighbours of a row, 8 rows apart."""
    found = np.empty_like(c)
    for i in range(c.shape[-1]):
        found[..., i] = product[:, G + 8 * (i // 2), 2 * T + i % 2] + c[..., i]
    keep(o, 0, np.ascontiguousarray(found).view(np.uint32), warps)


def movm(o: Operands) -> Step:
    """D = an 8×8 matrix of 16-bit elements, transposed."""
    if o.instruction.modifiers != ("16", "MT88"):
        raise NotImplementedError(str(o.instruction))

    def run(mask: Mask) -> None:
        warps = whole(o, mask)
        words = np.ascontiguousarray(fragment(o, 1, 1, warps))
        halves = words.view(np.uint16).reshape(len(warps), 8, 8)
        turned = np.ascontiguousarray(halves.transpose(0, 2, 1))
        keep(o, 0, turned.view(np.uint32).reshape(len(warps), WARP, 1), warps)

    return run


class Rows(NamedTuple):
    """Rows of matrices are where the first lanes of some warps point.

    lanes, at : the lanes, and their addresses in shared memory
    """

    warps: np.ndarray
    lanes: np.ndarray
    at: np.ndarray


class Matrices:
    """LDSM and STSM move 8×8 matrices of 16-bit elements, whose rows lie in shared memory.

    count : of the matrices; name : of the instruction in PTX, behind ldmatrix or stmatrix
    place : of the address among the operands
    """

    def __init__(self, o: Operands, op: str, watch: Watch) -> None:
        _, order, *number = o.instruction.modifiers
        self.o, self.op, self.watch = o, op, watch
        self.count = int(number[0]) if number else 1
        self.name = f"_x{self.count}" + "_trans" * (order == "MT88")
        self.place = next(i for i, one in enumerate(o.all) if isinstance(one, Address))
        self.address = sum_of(o, o.all[self.place])

    def rows(self, mask: Mask) -> Rows:
        """Return where the rows are, and count the access."""
        lanes = self.o.state.lanes
        warps, at = whole(self.o, mask), np.broadcast_to(self.address(), lanes)
        on = np.zeros((lanes // WARP, WARP), bool)
        on[warps, : 8 * self.count] = True
        self.watch(cost("shared", self.op, at, on.ravel(), ROW))
        chosen = np.flatnonzero(on)
        return Rows(warps, chosen, at[chosen])


def ldsm(o: Operands, memory: Memory, watch: Watch) -> Step:
    """D = 8×8 matrices of 16-bit elements, to whose rows the first lanes of a warp point."""
    moved = Matrices(o, "load", watch)
    instruction = getattr(matrix, f"ldmatrix{moved.name}")

    def run(mask: Mask) -> None:
        warps, lanes, at = moved.rows(mask)
        rows = np.zeros((len(warps), WARP, 4), np.uint32)
        for word in range(4):
            array, places = memory.place("shared", at + np.uint64(4 * word), lanes, 4)
            rows[:, : 8 * moved.count, word] = array[places].reshape(len(warps), -1)
        keep(o, 0, instruction.meaning(rows, arch="sm_90"), warps)

    return run


def stsm(o: Operands, memory: Memory, watch: Watch) -> Step:
    """Rows of 8×8 matrices of 16-bit elements, to which the first lanes of a warp point, = b."""
    moved = Matrices(o, "store", watch)
    instruction = getattr(matrix, f"stmatrix{moved.name}")

    def run(mask: Mask) -> None:
        warps, lanes, at = moved.rows(mask)
        parts = fragment(o, moved.place + 1, moved.count, warps)
        rows = instruction.meaning(parts, arch="sm_90")
        for word in range(4):
            array, places = memory.place("shared", at + np.uint64(4 * word), lanes, 4)
            array[places] = rows[:, : 8 * moved.count, word].ravel()

    return run
