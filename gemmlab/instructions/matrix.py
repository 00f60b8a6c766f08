"""Matrix instructions of a warp: `mma.sync`, D = A·B + C with fragments in registers.

Each is made of its entry in `numerics.MMAS`, which has shape, formats and least architecture, and
of the layouts of its operands. Source: PTX ISA 9.0, "Matrix multiply-accumulate operation using mma
instruction"; the arithmetic is that of `gemmlab.numerics`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gemmlab.formats import FORMATS, Format
from gemmlab.instructions.fragments import layout
from gemmlab.instructions.instruction import Instruction, Registers
from gemmlab.instructions.words import held, numbers, per_register, registers
from gemmlab.numerics.tile import MMAS, Mma, mma

__all__ = [
    "mma_m8n8k4_col_col_f16_f16",
    "mma_m8n8k4_col_col_f32_f16",
    "mma_m8n8k4_col_row_f16_f16",
    "mma_m8n8k4_col_row_f32_f16",
    "mma_m8n8k4_f16_f16",
    "mma_m8n8k4_f32_f16",
    "mma_m8n8k4_row_row_f16_f16",
    "mma_m8n8k4_row_row_f32_f16",
    "mma_m16n8k4_f32_tf32",
    "mma_m16n8k8_f16_f16",
    "mma_m16n8k8_f32_bf16",
    "mma_m16n8k8_f32_f16",
    "mma_m16n8k8_f32_tf32",
    "mma_m16n8k16_f16_f16",
    "mma_m16n8k16_f32_bf16",
    "mma_m16n8k16_f32_f16",
]


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
    """The registers of an operand of a matrix instruction."""
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
