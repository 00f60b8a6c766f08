"""Matrix instructions of a warp: `mma.sync`, WMMA, and `ldmatrix` and `stmatrix` beside them.

An `mma` or a WMMA is D = A·B + C with fragments in registers. Each is made of its entry in
`numerics.MMAS`, which has shape, formats and least architecture, and of the layouts of its
operands; the arithmetic is that of `gemmlab.numerics`.

WMMA are 16×16×16 instructions whose fragments have a layout that PTX leaves open. An operand in
memory is a 2-D array and the row and column where its tile begins, the same for all lanes of a
warp; where an operand is column-major, its tile is stored transposed: element (r, c) of it at
array[i + c, j + r]. The tile begins at a multiple of 16 bytes, and so do its rows. `wmma_load`
fills all copies of an element alike; of a fragment that was made by hand, `wmma_mma` reads the
first copy. From sm_75 on that is the lower half of the registers: what ptxas 13.0 makes of
`wmma.mma` for sm_75, sm_80 and sm_90 does not read the upper half, and an H200's results are those
of the lower one. On sm_70, where copies are in different lanes, each quarter of the warp reads its
own: there the result is only that of the hardware where all copies are equal.

`ldmatrix` and `stmatrix` move 8×8 matrices of 16-bit elements between shared memory and registers.
Lane 8m + r gives the address of row r of matrix m, 16 bytes; register m of each lane receives its
two elements of matrix m, as `fragments.layout("ldmatrix.x4", "A")` says.

Source: PTX ISA 9.0, "Matrix multiply-accumulate operation using mma instruction", "wmma.load",
"wmma.mma", "wmma.store", "ldmatrix" and "stmatrix"; layouts: `fragments`.
"""

from functools import partial

import numpy as np

from gemmlab.formats import BY_PTX, FORMATS, Format
from gemmlab.instructions.fragments import layout
from gemmlab.instructions.instruction import (
    Instruction,
    Memory,
    Registers,
    Tile,
    halves,
    held,
    named_in,
    numbers,
    packed,
    per_register,
    registers,
)
from gemmlab.numerics.tensor_cores import MMAS, Mma, mma


def mma_meaning(
    i: Mma, stored: tuple[str, str], a: np.ndarray, b: np.ndarray, c: np.ndarray, *, arch: str
) -> np.ndarray:
    """D of instruction `i`: a, b, c and the result are registers (…, 32, count).

    stored : how A and B are, "row" or "col"
    """
    source, target = FORMATS[i.dtype], FORMATS[i.out_dtype]
    operands = ("A", source, stored[0], a), ("B", source, stored[1], b), ("C", target, "", c)
    tiles = [
        layout(i.shape, name, form.ptx, arch=arch, major=major).gather(numbers(x, held(form)))
        for name, form, major, x in operands
    ]
    d = mma(*tiles, instruction=i.name, arch=arch)
    return registers(layout(i.shape, "C", target.ptx, arch=arch).scatter(d), held(target))


def fragment(shape: str, operand: str, form: Format) -> Registers:
    """Return the registers of an operand of a matrix instruction."""
    elements = layout(shape, operand, form.ptx).registers  # as many on every architecture
    what = held(form)
    return Registers(operand.lower(), what, elements // per_register(what))


ROW_COL = ("row", "col")  # rows of A and columns of B lie along k: the order of every newer `mma`


def _mma(name: str, stored: tuple[str, str] = ROW_COL) -> Instruction:
    i = MMAS[name]
    source, target = FORMATS[i.dtype], FORMATS[i.out_dtype]
    form, out = source.ptx, target.ptx
    order = "" if stored == ROW_COL else "_".join(("", *stored))
    c = fragment(i.shape, "C", target)
    return Instruction(
        name=f"mma_{i.shape}{order}_{out}_{form}",
        ptx=f"mma.sync.aligned.{i.shape}.{'.'.join(stored)}.{out}.{form}.{form}.{out} "
        "{{{d}}}, {{{a}}}, {{{b}}}, {{{c}}}",
        operands=(fragment(i.shape, "A", source), fragment(i.shape, "B", source), c),
        result=Registers("d", c.dtype, c.count),
        requires=i.requires,
        kind="mma",
        meaning=partial(mma_meaning, i, stored),
    )


mma_m16n8k16_f32_f16 = _mma("m16n8k16.f32.f16")
mma_m16n8k16_f16_f16 = _mma("m16n8k16.f16.f16")
mma_m16n8k16_f32_bf16 = _mma("m16n8k16.f32.bf16")
mma_m16n8k8_f32_f16 = _mma("m16n8k8.f32.f16")
mma_m16n8k8_f16_f16 = _mma("m16n8k8.f16.f16")
mma_m16n8k8_f32_bf16 = _mma("m16n8k8.f32.bf16")
mma_m16n8k8_f32_tf32 = _mma("m16n8k8.f32.tf32")
mma_m16n8k4_f32_tf32 = _mma("m16n8k4.f32.tf32")
mma_m8n8k4_f32_f16 = _mma("m8n8k4.f32.f16")
mma_m8n8k4_f16_f16 = _mma("m8n8k4.f16.f16")
mma_m8n8k4_row_row_f32_f16 = _mma("m8n8k4.f32.f16", ("row", "row"))
mma_m8n8k4_row_row_f16_f16 = _mma("m8n8k4.f16.f16", ("row", "row"))
mma_m8n8k4_col_row_f32_f16 = _mma("m8n8k4.f32.f16", ("col", "row"))
mma_m8n8k4_col_row_f16_f16 = _mma("m8n8k4.f16.f16", ("col", "row"))
mma_m8n8k4_col_col_f32_f16 = _mma("m8n8k4.f32.f16", ("col", "col"))
mma_m8n8k4_col_col_f16_f16 = _mma("m8n8k4.f16.f16", ("col", "col"))


SHAPE = "m16n16k16"
# The matrix instructions of this shape, by the format of C and D.
WMMAS = {FORMATS[i.out_dtype].ptx: i for i in MMAS.values() if i.shape == f"wmma.{SHAPE}"}


def load_meaning(what: str, values: np.ndarray, *, arch: str) -> np.ndarray:
    """Registers that hold `what`, from a lane's elements in their order (…, 32, count)."""
    return registers(values, what)


def store_meaning(what: str, d: np.ndarray, *, arch: str) -> np.ndarray:
    """Return a lane's elements in their order (…, 32, count), from registers that hold `what`."""
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


def _wmma(major_a: str, major_b: str, out: str) -> Instruction:
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
wmma_mma_row_row_f16, wmma_mma_row_row_f32 = _wmma("row", "row", "f16"), _wmma("row", "row", "f32")
wmma_mma_row_col_f16, wmma_mma_row_col_f32 = _wmma("row", "col", "f16"), _wmma("row", "col", "f32")
wmma_mma_col_row_f16, wmma_mma_col_row_f32 = _wmma("col", "row", "f16"), _wmma("col", "row", "f32")
wmma_mma_col_col_f16, wmma_mma_col_col_f32 = _wmma("col", "col", "f16"), _wmma("col", "col", "f32")


ROWS = 8  # of a matrix


def ldmatrix_meaning(count: int, trans: str, rows: np.ndarray, *, arch: str) -> np.ndarray:
    """Registers (…, 32, count) from the rows that lanes point to, (…, 32, 4 words)."""
    matrices = halves(rows[..., : ROWS * count, :])
    matrices = matrices.reshape(*rows.shape[:-2], count, ROWS, ROWS)
    return packed(layout(f"ldmatrix.x{count}{trans}", "A").scatter(matrices))


def stmatrix_meaning(count: int, trans: str, values: np.ndarray, *, arch: str) -> np.ndarray:
    """Return the rows (…, 32, 4 words) that lanes write, from registers (…, 32, count)."""
    matrices = layout(f"ldmatrix.x{count}{trans}", "A").gather(halves(values))
    rows = np.zeros((*values.shape[:-1], 4), np.uint32)
    rows[..., : ROWS * count, :] = packed(matrices).reshape(*values.shape[:-2], ROWS * count, 4)
    return rows


def _ldmatrix(count: int, trans: str = "") -> Instruction:
    return Instruction(
        name=f"ldmatrix_x{count}{trans.replace('.', '_')}",
        ptx=f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 "
        "{{{values}}}, [{array}]",
        operands=(Memory("array", "shared", "read", bytes=16, lanes=ROWS * count),),
        result=Registers("values", "uint32", count),
        requires="sm_75",
        kind="ldmatrix",
        meaning=partial(ldmatrix_meaning, count, trans),
    )


def _stmatrix(count: int, trans: str = "") -> Instruction:
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
        meaning=partial(stmatrix_meaning, count, trans),
    )


ldmatrix_x1, ldmatrix_x2, ldmatrix_x4 = _ldmatrix(1), _ldmatrix(2), _ldmatrix(4)
ldmatrix_x1_trans = _ldmatrix(1, ".trans")
ldmatrix_x2_trans = _ldmatrix(2, ".trans")
ldmatrix_x4_trans = _ldmatrix(4, ".trans")
stmatrix_x1, stmatrix_x2, stmatrix_x4 = _stmatrix(1), _stmatrix(2), _stmatrix(4)
stmatrix_x1_trans = _stmatrix(1, ".trans")
stmatrix_x2_trans = _stmatrix(2, ".trans")
stmatrix_x4_trans = _stmatrix(4, ".trans")

__all__ = named_in(globals())
