"""`ldmatrix` and `stmatrix`: 8×8 matrices of 16-bit elements between shared memory and registers.

Lane 8m + r gives the address of row r of matrix m, 16 bytes; register m of each lane receives its
two elements of matrix m, as `fragments.layout("ldmatrix.x4", "A")` says.
Source: PTX ISA 9.0, "ldmatrix" and "stmatrix".
"""

from functools import partial

import numpy as np

from gemmlab.instructions.fragments import layout
from gemmlab.instructions.instruction import Instruction, Memory, Registers
from gemmlab.instructions.words import halves, packed

__all__ = [
    "ldmatrix_x1",
    "ldmatrix_x1_trans",
    "ldmatrix_x2",
    "ldmatrix_x2_trans",
    "ldmatrix_x4",
    "ldmatrix_x4_trans",
    "stmatrix_x1",
    "stmatrix_x1_trans",
    "stmatrix_x2",
    "stmatrix_x2_trans",
    "stmatrix_x4",
    "stmatrix_x4_trans",
]

ROWS = 8  # of a matrix


def load_meaning(count: int, trans: str, rows: np.ndarray, *, arch: str) -> np.ndarray:
    """Registers (…, 32, count) from the rows that lanes point to, (…, 32, 4 words)."""
    matrices = halves(rows[..., : ROWS * count, :])
    matrices = matrices.reshape(*rows.shape[:-2], count, ROWS, ROWS)
    return packed(layout(f"ldmatrix.x{count}{trans}", "A").scatter(matrices))


def store_meaning(count: int, trans: str, values: np.ndarray, *, arch: str) -> np.ndarray:
    """The rows (…, 32, 4 words) that lanes write, from registers (…, 32, count)."""
    matrices = layout(f"ldmatrix.x{count}{trans}", "A").gather(halves(values))
    rows = np.zeros((*values.shape[:-1], 4), np.uint32)
    rows[..., : ROWS * count, :] = packed(matrices).reshape(*values.shape[:-2], ROWS * count, 4)
    return rows


def _load(count: int, trans: str = "") -> Instruction:
    return Instruction(
        name=f"ldmatrix_x{count}{trans.replace('.', '_')}",
        ptx=f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 "
        "{{{values}}}, [{array}]",
        operands=(Memory("array", "shared", "read", bytes=16, lanes=ROWS * count),),
        result=Registers("values", "uint32", count),
        requires="sm_75",
        kind="ldmatrix",
        meaning=partial(load_meaning, count, trans),
    )


def _store(count: int, trans: str = "") -> Instruction:
    return Instruction(
        name=f"stmatrix_x{count}{trans.replace('.', '_')}",
        ptx=f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 "
        "[{array}], {{{values}}}",
        operands=(
            Memory("array", "shared", "write", bytes=16, lanes=ROWS * count),
            Registers("values", "uint32", count),
        ),
        result=None,
        requires="sm_90",
        kind="stmatrix",
        meaning=partial(store_meaning, count, trans),
    )


ldmatrix_x1, ldmatrix_x2, ldmatrix_x4 = _load(1), _load(2), _load(4)
ldmatrix_x1_trans = _load(1, ".trans")
ldmatrix_x2_trans = _load(2, ".trans")
ldmatrix_x4_trans = _load(4, ".trans")
stmatrix_x1, stmatrix_x2, stmatrix_x4 = _store(1), _store(2), _store(4)
stmatrix_x1_trans = _store(1, ".trans")
stmatrix_x2_trans = _store(2, ".trans")
stmatrix_x4_trans = _store(4, ".trans")
