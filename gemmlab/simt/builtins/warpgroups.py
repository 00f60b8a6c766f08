"""Matrix instructions of warpgroups, `wgmma`, and what moves registers between them."""

from typing import Any

import numpy as np

from gemmlab.instructions.fragments import layout
from gemmlab.instructions.instruction import Instruction, Matrix, Registers, halves
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP, K
from gemmlab.model.transactions import WARP
from gemmlab.numerics import BY_PTX, from_memory, fused_dot_add
from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.builtins.collective import architecture
from gemmlab.simt.builtins.tensor_copies import PATTERN, ROW, swizzled
from gemmlab.simt.builtins.under_way import UNIT, Operation
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.tracking import look_shared
from gemmlab.simt.numbers.lanes import both

REGISTERS = 1 << 16  # of an SM, compute capability 9.0: CUDA C++ Programming Guide
STEP = 8  # registers, of which those of a thread are a multiple


def _whole_warpgroups(m: BuiltinBatch, name: str, line: int) -> list[int]:
    """Return the warpgroups that run; a hazard for each of which lanes are missing."""
    on, present = m.lanes.full(m.masks[-1])[0], m.lanes.full(m.lanes.present)[0]
    groups, m.under_way.undivided = [], True
    for first in range(0, m.lanes.threads, WARPGROUP):
        here, there = on[first : first + WARPGROUP], present[first : first + WARPGROUP]
        if not here.any():
            continue
        groups.append(first // WARPGROUP)
        if here.sum() < WARPGROUP:
            missing = there & ~here
            text = f"{name} needs all {WARPGROUP} threads of the warpgroup, "
            other = first + int(missing.argmax()) if missing.any() else None
            text += ("thread {other} does not get here" if missing.any() else
                     f"the last one of the block has {int(there.sum())}")  # fmt: skip
            lanes = both(m.masks[-1], m.lanes.thread == first + int(here.argmax()))
            m.findings.hazard("divergent-barrier", line, lanes, text, other=other)
    return groups


def multiply(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`wgmma`: D = A·B + D, or A·B, for each warpgroup that runs."""
    m.tally.tick(line, "inst_wgmma")
    (_, d), left, right, (_, keep) = bound
    for group in _whole_warpgroups(m, instruction.name, line):
        threads = np.arange(group * WARPGROUP, (group + 1) * WARPGROUP)
        kept = bool(m.lanes.spread(keep)[0, threads[0]])
        _check_accumulator(m, d, group, kept, line)
        batch, source = int(m.under_way.committed[group]), m.under_way.source(("warpgroup", group))
        until = f"group {batch} of the wgmmas of warpgroup {group} is complete"
        operation = Operation("read", line, int(threads[0]), until)
        number = m.under_way.begin(operation, source, batch + 1)
        a, b = (
            _fragments(m, given, threads)
            if isinstance(operand, Registers)
            else _matrix(m, instruction, operand, *given, threads, number, line)
            for operand, given in (left, right)
        )
        rows, columns = places(len(b))
        tile = np.zeros((ROWS, len(b)), np.float32)
        if kept:
            tile[rows, columns] = d.buffer[:, 0, threads].T
        form = BY_PTX[right[0].format].name
        values = (from_memory(x, form) for x in (a[:, None], b[None]))
        tile = fused_dot_add(*values, tile, dtype=form, arch=architecture(m))
        d.buffer[:, 0, threads] = tile[rows, columns].T
        d.owner.shadow[:] = True
        d.owner.updating, d.owner.group = operation, batch


def places(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each register of each thread of a 64×n tile, (128, n/2).

    Each warp has 16 rows, in tiles of 8 columns as `mma.m16n8k16` holds them. Source: PTX ISA 9.0,
    "Register Fragments for wgmma.mma_async".
    """
    thread, register = np.arange(WARPGROUP)[:, None], np.arange(n // 2)[None, :]
    row, column = layout("m16n8k16", "C", "f32").element(thread % WARP, register % 4)
    return thread // WARP * 16 + row, register // 4 * 8 + column


def _check_accumulator(m: BuiltinBatch, d: Array, group: int, kept: bool, line: int) -> None:
    first = group * WARPGROUP
    lanes = m.lanes.thread == first
    fences, stored = m.under_way.fences[group], d.owner.stored
    if fences == 0 or (stored is not None and stored[group] == fences):
        text = f"wgmma may not see what thread {{thread}} has written to {d.name}: wgmma_fence() "
        text += "has to come between"
        m.findings.hazard("missing-fence", line, lanes, text)
    written = np.broadcast_to(d.owner.shadow, d.buffer.shape)[:, 0, first : first + WARPGROUP]
    if kept and not written.all():
        element = d.element(int(np.flatnonzero(~written.all(axis=1))[0]))
        text = f"thread {{thread}} adds to {element}, which it has not written"
        m.findings.hazard("uninitialised-read", line, lanes, text, element=element, op="read")


def _fragments(m: BuiltinBatch, given: tuple, threads: np.ndarray) -> np.ndarray:
    """Return the elements of an operand in registers, (64, 16)."""
    words = np.stack([m.lanes.spread(word)[0, threads] for word in given], axis=-1)
    row, column = layout("m16n8k16", "A").element(threads[:, None] % WARP, np.arange(8))
    found = np.zeros((ROWS, K), np.float16)
    warp = threads[:, None] % WARPGROUP // WARP
    found[warp * 16 + row, column] = halves(words).view(np.float16)
    return found


def _matrix(
    m: BuiltinBatch, instruction: Instruction, operand: Matrix, array: Array, index: list,
    threads: np.ndarray, number: int, line: int,
) -> np.ndarray:  # fmt: skip
    """Return the elements of an operand in shared memory, (rows, depth), checked."""
    values = [m.lanes.spread(part)[0, threads] for part in index]
    lanes = m.lanes.thread == int(threads[0])
    if any((part != part[0]).any() for part in values):
        text = f"{instruction.name}: threads of a warpgroup name different {operand.name}; all "
        m.findings.hazard("divergent-barrier", line, lanes, text + "name the same one")
    elements = _elements(m, instruction, operand, array, [int(v[0]) for v in values], lanes, line)
    if elements is None:
        return np.zeros((operand.rows, operand.depth), array.dtype)
    flat = elements.ravel()
    under_way, units = m.under_way, np.unique(flat * array.itemsize // UNIT)
    firsts = units * UNIT // array.itemsize
    # All threads of the warpgroup have to know: who knows least stands for them.
    held, group = under_way.held(array), int(threads[0]) // WARPGROUP
    least = threads[under_way.known[threads].argmin(axis=0)]
    who = least[under_way.moments[0, held.copies[units]]]
    under_way.check(m, line, "read", array, firsts, units, who)
    m.copies.check_all(m, line, "read", array, flat, int(threads[0]))
    look_shared(m, line, "read", array, flat, int(threads[0]))
    under_way.check_fenced(m, instruction, array, flat, threads, line)
    held.reads.setdefault(group, np.full(len(held.copies), -1))[units] = number
    return array.buffer[0, flat].reshape(elements.shape)


def _elements(
    m: BuiltinBatch, instruction: Instruction, operand: Matrix, array: Array, place: list,
    lanes: Any, line: int,
) -> np.ndarray | None:  # fmt: skip
    """The places of an operand's elements, (rows, depth); None where some are outside."""
    r, depth, along = np.arange(operand.rows)[:, None], operand.depth, operand.major == "k"
    k = np.arange(depth)[None, :]
    if array.ndim < (2 if along else 3) or int(array.strides[-2]) * array.itemsize != ROW:
        raise TypeError(
            f"{instruction.name}: rows of {array.name} have {array.strides[-2]} elements; those of "
            f"the 128-byte swizzle have {ROW // array.itemsize}"
        )
    columns = ROW // array.itemsize
    last = [0] * array.ndim  # of each dimension, from `place` on
    last[-2:] = (
        (operand.rows - 1, depth - 1) if along else (depth - 1, min(operand.rows, columns) - 1)
    )
    if not along:
        last[-3] = (operand.rows - 1) // columns
    for axis, (first, more, size) in enumerate(zip(place, last, array.shape, strict=True)):
        if first < 0 or first + more >= size:
            text = f"{operand.name} of {instruction.name}, {operand.rows}×{depth} from "
            text += f"{array.name}[{', '.join(map(str, place))}] on, is outside: its dimension "
            text += f"{axis} has {size} elements"
            m.findings.hazard("out-of-bounds", line, lanes, text)
            return None
    column = place[-1]
    first = int(array.offset) - column
    first += sum(p * int(s) for p, s in zip(place, array.strides, strict=True))
    if first * array.itemsize % PATTERN or column % (depth if along else columns):
        text = f"{instruction.name}: {operand.name} begins at byte {first * array.itemsize} of "
        text += f"{array.name} and {column} elements on; use multiples of {PATTERN} and of "
        text += f"{depth if along else columns}"
        m.findings.hazard("misaligned", line, lanes, text, element=array.element(first), op="read")
    if along:
        return swizzled(first, r, column + k, array.itemsize)
    return swizzled(first + r // columns * int(array.strides[-3]), k, r % columns, array.itemsize)


def fence(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`wgmma_fence`: products to come see what their warpgroup has put in registers."""
    m.tally.tick(line, "inst_fence")
    for group in _whole_warpgroups(m, instruction.name, line):
        m.under_way.fences[group] += 1


def commit(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`wgmma_commit`: the products of a warpgroup since the last one are a group."""
    m.tally.tick(line, "inst_async_commit")
    for group in _whole_warpgroups(m, instruction.name, line):
        m.under_way.committed[group] += 1


def wait(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`wgmma_wait`: all but the last groups are complete."""
    m.tally.tick(line, "inst_async_wait")
    (_, groups), (_, d) = bound
    for group in _whole_warpgroups(m, instruction.name, line):
        threads = np.arange(group * WARPGROUP, (group + 1) * WARPGROUP)
        complete = int(m.under_way.committed[group]) - int(groups)
        m.under_way.learn(threads, m.under_way.source(("warpgroup", group)), complete)
        if d.owner.updating is not None and d.owner.group < complete:
            d.owner.updating = None


def move_registers(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`setmaxnreg_inc` and `setmaxnreg_dec`: a block has what its threads began with, no more."""
    m.tally.tick(line, "inst_setmaxnreg")
    count, threads = int(bound[0][1]), m.lanes.threads
    if count % STEP or not 24 <= count <= 256:
        text = f"{instruction.name}: {count} registers; use a multiple of {STEP} from 24 to 256"
        raise ValueError(text)
    most = min(REGISTERS // threads // STEP * STEP, 248)
    if m.under_way.registers is None:
        m.under_way.registers = np.full(-(-threads // WARPGROUP), most)
    registers = m.under_way.registers
    for group in _whole_warpgroups(m, instruction.name, line):
        less = instruction.name.endswith("dec")
        if (count > registers[group]) if less else (count < registers[group]):
            text = f"{instruction.name} from {registers[group]} registers to {count}"
            raise ValueError(f"{text}: a thread of {threads} in a block begins with {most}")

        def lacking(group: int = group) -> int:
            taken = int(registers.sum()) - int(registers[group]) + count
            return taken * WARPGROUP - most * threads

        m.loops.await_(
            line, m.masks[-1], lambda lacking=lacking: lacking() <= 0,
            lambda lacking=lacking: f"others have given back {lacking()} registers",
        )  # fmt: skip
        registers[group] = count
