"""Matrix instructions of a warp: `mma.sync`, D = A·B + C with fragments in registers.

Source: PTX ISA 9.0, "Matrix multiply-accumulate operation using mma instruction"; the arithmetic is
that of `gemmlab.numerics`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gemmlab.instructions.fragments import layout
from gemmlab.instructions.instruction import Capability, Instruction, Registers
from gemmlab.instructions.words import numbers, registers

VOLTA, TURING, AMPERE = (7, 0), (7, 5), (8, 0)
HELD = {"f16": "float16x2", "bf16": "bfloat16x2", "tf32": "tf32", "f32": "float32"}


def mma_meaning(
    shape: str,
    out: str,
    form: str,
    stored: tuple[str, str],
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    *,
    arch: str,
) -> np.ndarray:
    """D of one `mma`: a, b, c and the result are registers (…, 32, count)."""
    from gemmlab.numerics import mma

    operands = ("A", form, stored[0], a), ("B", form, stored[1], b), ("C", out, "", c)
    tiles = [
        layout(shape, name, held, arch=arch, major=major).gather(numbers(x, HELD[held]))
        for name, held, major, x in operands
    ]
    d = mma(*tiles, instruction=f"{shape}.{out}.{form}", arch=arch)
    return registers(layout(shape, "C", out).scatter(d), HELD[out])


ROW_COL = ("row", "col")  # rows of A and columns of B lie along k: the order of every newer `mma`


def _mma(
    shape: str, out: str, form: str, requires: Capability, stored: tuple[str, str] = ROW_COL
) -> Instruction:
    a, b, c = (
        Registers(name.lower(), HELD[held], layout(shape, name, held).registers // halved(held))
        for name, held in (("A", form), ("B", form), ("C", out))
    )
    order = "" if stored == ROW_COL else "_".join(("", *stored))
    return Instruction(
        name=f"mma_{shape}{order}_{out}_{form}",
        ptx=f"mma.sync.aligned.{shape}.{'.'.join(stored)}.{out}.{form}.{form}.{out} "
        "{{{d}}}, {{{a}}}, {{{b}}}, {{{c}}}",
        operands=(a, b, c),
        result=Registers("d", c.dtype, c.count),
        requires=requires,
        kind="mma",
        meaning=partial(mma_meaning, shape, out, form, stored),
    )


def halved(form: str) -> int:
    """How many numbers of a format a register holds."""
    return 2 if form in ("f16", "bf16") else 1


mma_m16n8k16_f32_f16 = _mma("m16n8k16", "f32", "f16", AMPERE)
mma_m16n8k16_f16_f16 = _mma("m16n8k16", "f16", "f16", AMPERE)
mma_m16n8k16_f32_bf16 = _mma("m16n8k16", "f32", "bf16", AMPERE)
mma_m16n8k8_f32_f16 = _mma("m16n8k8", "f32", "f16", TURING)
mma_m16n8k8_f16_f16 = _mma("m16n8k8", "f16", "f16", TURING)
mma_m16n8k8_f32_bf16 = _mma("m16n8k8", "f32", "bf16", AMPERE)
mma_m16n8k8_f32_tf32 = _mma("m16n8k8", "f32", "tf32", AMPERE)
mma_m16n8k4_f32_tf32 = _mma("m16n8k4", "f32", "tf32", AMPERE)
mma_m8n8k4_f32_f16 = _mma("m8n8k4", "f32", "f16", VOLTA)
mma_m8n8k4_f16_f16 = _mma("m8n8k4", "f16", "f16", VOLTA)
mma_m8n8k4_row_row_f32_f16 = _mma("m8n8k4", "f32", "f16", VOLTA, ("row", "row"))
mma_m8n8k4_row_row_f16_f16 = _mma("m8n8k4", "f16", "f16", VOLTA, ("row", "row"))
mma_m8n8k4_col_row_f32_f16 = _mma("m8n8k4", "f32", "f16", VOLTA, ("col", "row"))
mma_m8n8k4_col_row_f16_f16 = _mma("m8n8k4", "f16", "f16", VOLTA, ("col", "row"))
mma_m8n8k4_col_col_f32_f16 = _mma("m8n8k4", "f32", "f16", VOLTA, ("col", "col"))
mma_m8n8k4_col_col_f16_f16 = _mma("m8n8k4", "f16", "f16", VOLTA, ("col", "col"))
