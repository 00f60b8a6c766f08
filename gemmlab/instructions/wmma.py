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

from gemmlab.instructions.fragments import layout
from gemmlab.instructions.instruction import Instruction, Registers, Tile
from gemmlab.instructions.matrix import HELD, VOLTA, halved
from gemmlab.instructions.words import numbers, registers

SHAPE = "wmma.m16n16k16"
HALVES_OF_AB = 16  # elements that a lane holds of A or B, on every architecture
ELEMENTS_OF_C = 8


def _fragment(operand: str, form: str) -> Registers:
    count = HALVES_OF_AB if operand in "AB" else ELEMENTS_OF_C
    return Registers(operand.lower(), HELD[form], count // halved(form))


def load_meaning(form: str, values: np.ndarray, *, arch: str) -> np.ndarray:
    """Registers from a lane's elements in their order (…, 32, count)."""
    return registers(values, HELD[form])


def store_meaning(form: str, d: np.ndarray, *, arch: str) -> np.ndarray:
    """A lane's elements in their order (…, 32, count), from registers."""
    return numbers(d, HELD[form])


def mma_meaning(
    major_a: str, major_b: str, out: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, *, arch: str
) -> np.ndarray:
    """D of one `wmma.mma`, all of them registers (…, 32, count)."""
    from gemmlab.numerics import mma

    tiles = [
        layout(SHAPE, name, form, arch=arch, major=major).gather(numbers(x, HELD[form]))
        for name, form, major, x in (
            ("A", "f16", major_a, a), ("B", "f16", major_b, b), ("C", out, "", c),
        )
    ]  # fmt: skip
    d = mma(*tiles, instruction=f"{SHAPE}.{out}.f16", arch=arch)
    return registers(layout(SHAPE, "C", out, arch=arch).scatter(d), HELD[out])


def _load(operand: str, form: str, major: str = "row") -> Instruction:
    of = operand.lower()
    return Instruction(
        name=f"wmma_load_{of}_{form if operand == 'C' else major}",
        ptx=f"wmma.load.{of}.sync.aligned.{major}.m16n16k16.{form} "
        f"{{{{{{{of}}}}}}}, [{{tile}}], {{tile_stride}}",
        operands=(Tile("tile", "read", operand, form, major),),
        result=_fragment(operand, form),
        requires=VOLTA,
        kind="wmma_load",
        meaning=partial(load_meaning, form),
    )


def _store(form: str) -> Instruction:
    return Instruction(
        name=f"wmma_store_d_{form}",
        ptx=f"wmma.store.d.sync.aligned.row.m16n16k16.{form} "
        "[{tile}], {{{c}}}, {tile_stride}",
        operands=(Tile("tile", "write", "C", form, "row"), _fragment("C", form)),
        result=None,
        requires=VOLTA,
        kind="wmma_store",
        meaning=partial(store_meaning, form),
    )


def _mma(major_a: str, major_b: str, out: str) -> Instruction:
    c = _fragment("C", out)
    return Instruction(
        name=f"wmma_mma_{major_a}_{major_b}_{out}",
        ptx=f"wmma.mma.sync.aligned.{major_a}.{major_b}.m16n16k16.{out}.{out} "
        "{{{d}}}, {{{a}}}, {{{b}}}, {{{c}}}",
        operands=(_fragment("A", "f16"), _fragment("B", "f16"), c),
        result=Registers("d", c.dtype, c.count),
        requires=VOLTA,
        kind="mma",
        meaning=partial(mma_meaning, major_a, major_b, out),
    )


wmma_load_a_row, wmma_load_a_col = _load("A", "f16", "row"), _load("A", "f16", "col")
wmma_load_b_row, wmma_load_b_col = _load("B", "f16", "row"), _load("B", "f16", "col")
wmma_load_c_f16, wmma_load_c_f32 = _load("C", "f16"), _load("C", "f32")
wmma_store_d_f16, wmma_store_d_f32 = _store("f16"), _store("f32")
wmma_mma_row_row_f16, wmma_mma_row_row_f32 = _mma("row", "row", "f16"), _mma("row", "row", "f32")
wmma_mma_row_col_f16, wmma_mma_row_col_f32 = _mma("row", "col", "f16"), _mma("row", "col", "f32")
wmma_mma_col_row_f16, wmma_mma_col_row_f32 = _mma("col", "row", "f16"), _mma("col", "row", "f32")
wmma_mma_col_col_f16, wmma_mma_col_col_f32 = _mma("col", "col", "f16"), _mma("col", "col", "f32")
