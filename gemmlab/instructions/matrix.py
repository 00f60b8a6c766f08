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
    shape: str, out: str, form: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, *, arch: str
) -> np.ndarray:
    """D of one `mma`: a, b, c and the result are registers (…, 32, count)."""
    from gemmlab.numerics import mma

    tiles = [
        layout(shape, name, held, arch=arch).gather(numbers(x, HELD[held]))
        for name, held, x in (("A", form, a), ("B", form, b), ("C", out, c))
    ]
    d = mma(*tiles, instruction=f"{shape}.{out}.{form}", arch=arch)
    return registers(layout(shape, "C", out).scatter(d), HELD[out])


def _mma(shape: str, out: str, form: str, requires: Capability) -> Instruction:
    a, b, c = (
        Registers(name.lower(), HELD[held], layout(shape, name, held).registers // halved(held))
        for name, held in (("A", form), ("B", form), ("C", out))
    )
    return Instruction(
        name=f"mma_{shape}_{out}_{form}",
        ptx=f"mma.sync.aligned.{shape}.row.col.{out}.{form}.{form}.{out} "
        "{{{d}}}, {{{a}}}, {{{b}}}, {{{c}}}",
        operands=(a, b, c),
        result=Registers("d", c.dtype, c.count),
        requires=requires,
        kind="mma",
        meaning=partial(mma_meaning, shape, out, form),
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
