"""What Tensor Cores do, and the loads of their fragments: instructions of a whole warp."""

from __future__ import annotations

import numpy as np

from gemmlab.compiled.sass.execution.accesses import Watch, cost, sum_of
from gemmlab.compiled.sass.execution.memory import Memory
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step
from gemmlab.compiled.sass.operands import Address, Register
from gemmlab.instructions import ldmatrix, matrix
from gemmlab.instructions.instruction import Instruction
from gemmlab.tiling import WARP

ROW = 16  # bytes of a row of an 8×8 matrix
SHAPES = {"16816": "m16n8k16", "1688": "m16n8k8", "1684": "m16n8k4"}
FORMATS = {"BF16": "bf16", "TF32": "tf32"}


def fragment(o: Operands, index: int, count: int, warps: np.ndarray) -> np.ndarray:
    """A register and its successors in whole warps, (warps, 32, count); RZ is a fragment of 0."""
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
    """The numbers of the warps that take part, all lanes of each."""
    lanes = np.ones(o.state.lanes, bool) if mask is None else mask
    return np.flatnonzero(lanes.reshape(-1, WARP).all(1))


def hmma(o: Operands) -> Step:
    """D = A·B + C of a warp, as `gemmlab.numerics` has the arithmetic of an H200."""
    shape, out, *forms = o.instruction.modifiers
    name = f"mma_{SHAPES[shape]}_{out.lower()}_{FORMATS[forms[0]] if forms else 'f16'}"
    instruction: Instruction = getattr(matrix, name)

    def run(mask: Mask) -> None:
        warps = whole(o, mask)
        given = [
            fragment(o, i, operand.count, warps).view(operand.carrier)
            for i, operand in enumerate(instruction.operands, 1)
        ]
        keep(o, 0, instruction.meaning(*given, arch="sm_90"), warps)

    return run


def ldsm(o: Operands, memory: Memory, watch: Watch) -> Step:
    """D = 8×8 matrices of 16-bit elements, to whose rows the first lanes of a warp point."""
    _, order, *number = o.instruction.modifiers
    count = int(number[0]) if number else 1
    trans = "_trans" if order == "MT88" else ""
    instruction: Instruction = getattr(ldmatrix, f"ldmatrix_x{count}{trans}")
    place = next(i for i, operand in enumerate(o.all) if isinstance(operand, Address))
    address = sum_of(o, o.all[place])

    def run(mask: Mask) -> None:
        warps, at = whole(o, mask), np.broadcast_to(address(), o.state.lanes)
        on = np.zeros((o.state.lanes // WARP, WARP), bool)
        on[warps, : 8 * count] = True
        watch(cost("shared", "load", at, on.ravel(), ROW))
        lanes = np.flatnonzero(on)
        rows = np.zeros((len(warps), WARP, 4), np.uint32)
        for word in range(4):
            array, places = memory.place("shared", at[lanes] + np.uint64(4 * word), lanes, 4)
            rows[:, : 8 * count, word] = array[places].reshape(len(warps), -1)
        keep(o, 0, instruction.meaning(rows, arch="sm_90"), warps)

    return run
