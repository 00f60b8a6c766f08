"""WMMA: 16×16×16 matrix instructions whose fragments have a layout that PTX leaves open.

An operand in memory is a 2-D array and the row and column where its tile begins, the same for all
lanes of a warp; where an operand is column-major, its tile is stored transposed: element (r, c) of
it at array[i + c, j + r]. The tile begins at a multiple of 16 bytes, and so do its rows.

`wmma_load` fills all copies of an element alike; of a fragment that was made by hand, `wmma_mma`
reads the first copy. From sm_75 on that is the lower half of the registers: what ptxas 13.0 makes
of `wmma.mma` for sm_75, sm_80 and sm_90 does not read the upper half, and an H200's results are
those of the lower one. On sm_70, where copies are in different lanes, each quarter of the warp
reads its own: there the result is only that of the hardware where all copies are equal.
Source: PTX ISA 9.0, "wmma.load", "wmma.mma" and "wmma.store"; layouts: `fragments`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gemmlab.formats import BY_PTX, FORMATS
from gemmlab.instructions.instruction import Instruction, Registers, Tile
from gemmlab.instructions.matrix import fragment, mma_meaning
from gemmlab.instructions.words import numbers, registers
from gemmlab.numerics.tile import MMAS

__all__ = [
    "wmma_load_a_col",
    "wmma_load_a_row",
    "wmma_load_b_col",
    "wmma_load_b_row",
    "wmma_load_c_f16",
    "wmma_load_c_f32",
    "wmma_mma_col_col_f16",
    "wmma_mma_col_col_f32",
    "wmma_mma_col_row_f16",
    "wmma_mma_col_row_f32",
    "wmma_mma_row_col_f16",
    "wmma_mma_row_col_f32",
    "wmma_mma_row_row_f16",
    "wmma_mma_row_row_f32",
    "wmma_store_d_f16",
    "wmma_store_d_f32",
]

SHAPE = "m16n16k16"
# The matrix instructions of this shape, by the format of C and D.
WMMAS = {FORMATS[i.out_dtype].ptx: i for i in MMAS.values() if i.shape == f"wmma.{SHAPE}"}


def load_meaning(what: str, values: np.ndarray, *, arch: str) -> np.ndarray:
    """Registers that hold `what`, from a lane's elements in their order (…, 32, count)."""
    return registers(values, what)


def store_meaning(what: str, d: np.ndarray, *, arch: str) -> np.ndarray:
    """A lane's elements in their order (…, 32, count), from registers that hold `what`."""
    return numbers(d, what)


def _load(operand: str, form: str, major: str = "row") -> Instruction:
    i, of = WMMAS["f32"], operand.lower()  # a fragment of A or B serves both
    loaded = fragment(i.shape, operand, BY_PTX[form])
    return Instruction(
        name=f"wmma_load_{of}_{form if operand == 'C' else major}",
        ptx=f"wmma.load.{of}.sync.aligned.{major}.{SHAPE}.{form} "
        f"{{{{{{{of}}}}}}}, [{{tile}}], {{tile_stride}}",
        operands=(Tile("tile", "read", operand, form, major),),
        result=loaded,
        requires=i.requires,
        kind="wmma_load",
        meaning=partial(load_meaning, loaded.dtype),
    )


def _store(out: str) -> Instruction:
    i = WMMAS[out]
    c = fragment(i.shape, "C", BY_PTX[out])
    return Instruction(
        name=f"wmma_store_d_{out}",
        ptx=f"wmma.store.d.sync.aligned.row.{SHAPE}.{out} "
        "[{tile}], {{{c}}}, {tile_stride}",
        operands=(Tile("tile", "write", "C", out, "row"), c),
        result=None,
        requires=i.requires,
        kind="wmma_store",
        meaning=partial(store_meaning, c.dtype),
    )


def _mma(major_a: str, major_b: str, out: str) -> Instruction:
    i = WMMAS[out]
    a, b = (fragment(i.shape, operand, FORMATS[i.dtype]) for operand in "AB")
    c = fragment(i.shape, "C", BY_PTX[out])
    return Instruction(
        name=f"wmma_mma_{major_a}_{major_b}_{out}",
        ptx=f"wmma.mma.sync.aligned.{major_a}.{major_b}.{SHAPE}.{out}.{out} "
        "{{{d}}}, {{{a}}}, {{{b}}}, {{{c}}}",
        operands=(a, b, c),
        result=Registers("d", c.dtype, c.count),
        requires=i.requires,
        kind="mma",
        meaning=partial(mma_meaning, i, (major_a, major_b)),
    )


wmma_load_a_row, wmma_load_a_col = _load("A", "f16", "row"), _load("A", "f16", "col")
wmma_load_b_row, wmma_load_b_col = _load("B", "f16", "row"), _load("B", "f16", "col")
wmma_load_c_f16, wmma_load_c_f32 = _load("C", "f16"), _load("C", "f32")
wmma_store_d_f16, wmma_store_d_f32 = _store("f16"), _store("f32")
wmma_mma_row_row_f16, wmma_mma_row_row_f32 = _mma("row", "row", "f16"), _mma("row", "row", "f32")
wmma_mma_row_col_f16, wmma_mma_row_col_f32 = _mma("row", "col", "f16"), _mma("row", "col", "f32")
wmma_mma_col_row_f16, wmma_mma_col_row_f32 = _mma("col", "row", "f16"), _mma("col", "row", "f32")
wmma_mma_col_col_f16, wmma_mma_col_col_f32 = _mma("col", "col", "f16"), _mma("col", "col", "f32")
