"""The lanes of a warp work together in these instructions: votes, shuffles, Tensor Cores."""

from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.memory import Memory, Watch, cost, sum_of
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step
from gemmlab.compiled.sass.listing import Address, Register
from gemmlab.instructions import ldmatrix, matrix
from gemmlab.instructions.instruction import Instruction
from gemmlab.tiling import WARP

LANES = np.arange(WARP)


def by_warp(row: Any, lanes: int) -> np.ndarray:
    """A row as (warps, 32)."""
    return np.broadcast_to(row, lanes).reshape(-1, WARP)


def first_lane(row: np.ndarray, mask: Mask) -> np.ndarray:
    """Give each lane what the first lane of its warp has that is in `mask`."""
    if row.ndim == 0:
        return row
    if mask is None:
        return np.repeat(row[::WARP], WARP)
    first = mask.reshape(-1, WARP).argmax(1)
    return np.repeat(row.reshape(-1, WARP)[np.arange(len(first)), first], WARP)


def taking_part(mask: Mask, lanes: int) -> np.ndarray:
    """(warps, 32): the lanes in `mask`."""
    on = np.ones(lanes, bool) if mask is None else mask
    return on.reshape(-1, WARP)


def ballots(holds: np.ndarray) -> np.ndarray:
    """Give each lane the truth values (warps, 32) of its warp, a bit each."""
    bits = (holds.astype(np.uint64) << LANES.astype(np.uint64)).sum(1)
    return np.repeat(bits.astype(np.uint32), WARP)


def vote(o: Operands) -> Step:
    """D = the lanes for which the predicate holds; p = whether it does for any, or all of them."""
    mode = o.instruction.modifiers[0]
    predicates = [i for i in range(len(o)) if o.is_predicate(i)]
    asked = o.predicate(predicates[-1])
    out = o.to_predicate(predicates[0]) if len(predicates) > 1 else None
    registers = [i for i in range(len(o)) if i not in predicates]
    write = o.to(registers[0]) if registers else None

    def run(mask: Mask) -> None:
        on = taking_part(mask, o.state.lanes)
        holds = by_warp(asked(), o.state.lanes) & on
        if write is not None:
            write(ballots(holds), mask)
        if out is not None:
            ones, all_ = holds.any(1), (holds == on).all(1)
            value = {"ANY": ones, "ALL": all_, "EQ": all_ | ~ones}[mode]
            out(np.repeat(value, WARP), mask)

    return run


def shfl(o: Operands) -> Step:
    """D = the a of another lane; p = whether there is one in the segment.

    Source: PTX ISA, shfl.sync: c holds a clamp in bits 0-4 and the segments' mask in bits 8-12.
    """
    mode = o.instruction.modifiers[0]
    found, write = o.to_predicate(0), o.to(1)
    a, b, c = (o.word(i) for i in (2, 3, 4))

    def run(mask: Mask) -> None:
        lanes = o.state.lanes
        value, step, bound = (by_warp(read(), lanes) for read in (a, b, c))
        step, bound = (step & 31).astype(int), bound.astype(int)
        clamp, segment = bound & 31, bound >> 8 & 31
        least, most = LANES & segment, (LANES & segment) | (clamp & ~segment)
        source = {
            "IDX": least | (step & ~segment),
            "UP": LANES - step,
            "DOWN": LANES + step,
            "BFLY": LANES ^ step,
        }[mode]
        inside = source >= most if mode == "UP" else source <= most
        source = np.where(inside, source, LANES)
        found(inside.ravel(), mask)
        write(np.take_along_axis(value, source, 1).ravel(), mask)

    return run


def redux(o: Operands) -> Step:
    """The uniform d = a sum, an extreme or a bitwise function of a over the lanes."""
    flags = o.instruction.modifiers
    signed = "S32" in flags
    write, a = o.to(0), o.word(1)
    name = next((f for f in flags if f in ("SUM", "MIN", "MAX", "AND", "OR", "XOR")), "AND")
    kind = np.int32 if signed else np.uint32
    info = np.iinfo(kind)
    function, neutral = {
        "SUM": (np.add, 0),
        "MIN": (np.minimum, info.max),
        "MAX": (np.maximum, info.min),
        "AND": (np.bitwise_and, -1 if signed else info.max),
        "OR": (np.bitwise_or, 0),
        "XOR": (np.bitwise_xor, 0),
    }[name]

    def run(mask: Mask) -> None:
        values = by_warp(a(), o.state.lanes).view(kind)
        values = np.where(taking_part(mask, o.state.lanes), values, kind(neutral))
        write(np.repeat(function.reduce(values, axis=1, dtype=kind).view(np.uint32), WARP), mask)

    return run


def match(o: Operands) -> Step:
    """D = the lanes that have the same a."""
    if o.instruction.modifiers[0] != "ANY":
        raise NotImplementedError(str(o.instruction))
    read = o.double_word(1) if "U64" in o.instruction.modifiers else o.word(1)
    write = o.to(0)

    def run(mask: Mask) -> None:
        values = by_warp(read(), o.state.lanes)
        same = values[:, :, None] == values[:, None, :]
        same &= taking_part(mask, o.state.lanes)[:, None, :]
        bits = (same.astype(np.uint64) << LANES.astype(np.uint64)).sum(2)
        write(bits.astype(np.uint32).ravel(), mask)

    return run


def r2ur(o: Operands) -> Step:
    """The uniform d = a of the first lane that takes part; p, before d, where a is another one.

    With .OR p stays where it held, so that it tells of several registers: code for values that may
    differ goes round until no lane is left.
    """
    if not o.is_predicate(0):
        write, a = o.to(0), o.word(1)
        return lambda mask: write(first_lane(np.asarray(a()), mask), mask)
    holds, held, write, a = o.to_predicate(0), o.predicate(0), o.to(1), o.word(2)
    joins = "OR" in o.instruction.modifiers

    def run(mask: Mask) -> None:
        values = np.asarray(a())
        chosen = first_lane(values, mask)
        write(chosen, mask)
        differs = np.broadcast_to(values != chosen, o.state.lanes)
        holds(differs | held() if joins else differs, mask)

    return run


ROW = 16  # bytes of a row of an 8×8 matrix
SHAPES = {"16816": "m16n8k16", "1688": "m16n8k8", "1684": "m16n8k4"}
FORMATS = {"BF16": "bf16", "TF32": "tf32"}


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
