"""What a warp does that the course's kernels do not: products of bytes and of float64, and others.

Fragments lie as PTX says for `mma.sync`: g = lane / 4 and t = lane % 4. Source: PTX ISA, section
"Warp-level matrix instructions".
"""

import re

import numpy as np

from gemmlab.compiled.sass.execution.lanes import LANES, ROW, fragment, keep, whole
from gemmlab.compiled.sass.execution.memory import Memory, Watch, cost, sum_of
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step
from gemmlab.compiled.sass.listing import Address
from gemmlab.instructions import matrix
from gemmlab.tiling import WARP

G, T = LANES // 4, LANES % 4
BYTES = {"S8": np.int8, "U8": np.uint8}
_INTEGERS = re.compile(r"(8|16)8(16|32|64)")
_DOUBLES = re.compile(r"(8|16)x8x(4|8|16)")


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


def stsm(o: Operands, memory: Memory, watch: Watch) -> Step:
    """Rows of 8×8 matrices of 16-bit elements, to which the first lanes of a warp point, = b."""
    _, order, *number = o.instruction.modifiers
    count = int(number[0]) if number else 1
    instruction = getattr(matrix, f"stmatrix_x{count}" + "_trans" * (order == "MT88"))
    place = next(i for i, operand in enumerate(o.all) if isinstance(operand, Address))
    address = sum_of(o, o.all[place])

    def run(mask: Mask) -> None:
        warps, at = whole(o, mask), np.broadcast_to(address(), o.state.lanes)
        on = np.zeros((o.state.lanes // WARP, WARP), bool)
        on[warps, : 8 * count] = True
        watch(cost("shared", "store", at, on.ravel(), ROW))
        lanes = np.flatnonzero(on)
        rows = instruction.meaning(fragment(o, place + 1, count, warps), arch="sm_90")
        for word in range(4):
            array, places = memory.place("shared", at[lanes] + np.uint64(4 * word), lanes, 4)
            array[places] = rows[:, : 8 * count, word].ravel()

    return run
