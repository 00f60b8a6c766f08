"""A kernel for each instruction that runs it on operands from arrays, a warp a block.

The kernels are written by a program, so that an instruction has one as soon as it is declared. They
serve the tests, on the simulator, and `checks/instructions.py`, on a GPU.
"""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gemmlab import cuda, instructions
from gemmlab.instructions.instruction import (
    Instruction,
    Literal,
    Memory,
    Registers,
    Tile,
    packed,
    per_register,
    registers,
)
from gemmlab.numerics import round_to
from gemmlab.simt.builtins.instructions import asynchronous_meaning

WARP = 32
KINDS = ("bits", "edges", "normal")
# Those that mean something each by itself; Hopper's others are in `test_asynchronous.py`.
INSTRUCTIONS = [
    x
    for x in vars(instructions).values()
    if isinstance(x, Instruction) and asynchronous_meaning(x) is None
]


class Input(NamedTuple):
    """An array that a probe takes: its shape after the blocks' axis, and what it holds."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    held: str = ""


@dataclass(frozen=True)
class Probe:
    """A kernel for one instruction, the arrays that it takes, and dtype and shape of its output."""

    instruction: Instruction
    kernel: Callable
    inputs: tuple[Input, ...]
    output: tuple[str, tuple[int, ...]]

    def arguments(self, blocks: int, kind: str) -> list[np.ndarray]:
        """Operands for so many blocks, the same at every call, and an output of zeros.

        kind : "bits", all patterns alike; "edges", where exponents and significands begin, end and
            tie, in registers alone; "normal" numbers
        """
        rng = np.random.default_rng(zlib.crc32(f"{self.instruction.name} {kind}".encode()))
        dtype, shape = self.output
        arrays = [self._array(i, (blocks, *i.shape), kind, rng) for i in self.inputs]
        return [*arrays, np.zeros((blocks, *shape), dtype)]

    def _array(self, given: Input, size: tuple, kind: str, rng: np.random.Generator) -> np.ndarray:
        if given.name == "at":  # which row a lane points to
            return np.array([rng.permutation(WARP) for _ in range(size[0])], np.int32)
        if given.name == "valid":  # of how many elements
            most = self.instruction.operands[0].bytes // 2
            return rng.integers(0, most + 1, size).astype(np.int32)
        if kind == "edges" and given.held:
            return _edges(given.held, size, rng).view(given.dtype)
        if kind == "normal" and given.held:
            count = size[-1] * per_register(given.held)
            values = rng.standard_normal((*size[:-1], count)).astype(np.float32)
            if given.held == "float16x2":
                values = round_to(values, "float16")
            if given.held == "bfloat16x2":
                values = round_to(values, "bfloat16", "RZ")
            return registers(values, given.held)
        raw = rng.integers(0, 256, (*size, np.dtype(given.dtype).itemsize), np.uint8)
        return np.ascontiguousarray(raw).view(given.dtype).reshape(size)


def _edges(held: str, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Words of numbers whose exponents and significands are extreme, or near a tie of a conversion.

    One in 32 is an infinity or a NaN, so that sums of many terms are not all NaN.
    """
    halves = held.endswith("x2")
    shape = (*size[:-1], size[-1] * (2 if halves else 1))
    exponent_bits, fraction_bits = {"float16x2": (5, 10), "bfloat16x2": (8, 7)}.get(held, (8, 23))
    bias, top = 2 ** (exponent_bits - 1) - 1, 2**exponent_bits - 1
    # Of float32: what float16 has as its least and greatest, and 2^-25, half its least subnormal.
    exponents = [0, 1, bias, top - 1] + [bias - 25, bias - 14, bias + 15] * (fraction_bits == 23)
    exponent = rng.choice(exponents, shape)
    exponent = np.where(rng.random(shape) < 1 / 32, top, exponent)
    # The bits that a conversion to TF32 or float16, or to bfloat16, drops: 0, 1, half, or all ones.
    step = 2 ** rng.choice([0, 13, 16] if fraction_bits == 23 else [0], shape)
    fraction = rng.integers(0, 2**fraction_bits, shape) // step * step
    fraction += np.choose(rng.integers(0, 4, shape), [0, 1, step // 2, step - 1]) % step
    extreme = np.choose(rng.integers(0, 3, shape), [0, 1, 2**fraction_bits - 1])
    fraction = np.where(rng.random(shape) < 1 / 2, extreme, fraction)
    sign = rng.integers(0, 2, shape)
    words = (sign << exponent_bits | exponent) << fraction_bits | fraction
    return packed(words.astype(np.uint16)) if halves else words.astype(np.uint32)


def probe(instruction: Instruction) -> Probe:
    """The probe of an instruction."""
    lines: list[str] = []
    inputs: list[Input] = []
    passed, after = [], []
    output = ("uint32", (WARP, 4))
    for operand in instruction.operands:
        if isinstance(operand, Registers):
            dtype, held = str(operand.carrier or output[0]), operand.dtype
            held = {"uint32": "float16x2", "element": ""}.get(held, held)
            inputs.append(Input(operand.name, dtype, (WARP, operand.count), held))
            parts = [f"{operand.name}[block, lane, {i}]" for i in range(operand.count)]
            passed.append(parts[0] if operand.count == 1 else f"({', '.join(parts)})")
        elif isinstance(operand, Literal):
            passed.append("0")
        elif isinstance(operand, Tile):
            dtype = operand.dtype.name
            if operand.access == "read":
                inputs.append(Input("tile", dtype, (16, 24)))
            else:
                output = (dtype, (16, 24))
            name = "tile" if operand.access == "read" else "out"
            passed.append(f"{name}[block], 0, 8")
        elif instruction.kind == "async_copy" and operand.name == "to":
            lines += ["shared = cuda.shared.array((32, 8), uint16, alignment=16)"]
            lines += [f"shared[lane, {i}] = 7" for i in range(8)]
            passed.append("shared, lane, 0")
        elif instruction.kind == "async_copy" and operand.name == "source":
            inputs += [Input("rows", "uint16", (WARP, 8)), Input("at", "int32", (WARP,))]
            inputs += [Input("valid", "int32", (WARP,))]
            passed.append("rows, block, at[block, lane], 0, valid[block, lane]")
            output = ("uint16", (WARP, 8))
            after += ["cp_async_commit()", "cp_async_wait(0)", "cuda.syncthreads()"]
            after += [f"out[block, lane, {i}] = shared[lane, {i}]" for i in range(8)]
        elif isinstance(operand, Memory):
            count = operand.elements or 8
            inputs.append(Input("at", "int32", (WARP,)))
            dtype = "uint16" if operand.bytes or count > 4 else "float32"
            lines += [f"shared = cuda.shared.array((32, {count}), {dtype}, alignment=16)"]
            if operand.access == "read":
                inputs.append(Input("rows", dtype, (WARP, count)))
                lines += [f"shared[lane, {i}] = rows[block, lane, {i}]" for i in range(count)]
            else:
                output = (dtype, (WARP, count))
                lines += [f"shared[lane, {i}] = 7" for i in range(count)]
                after += ["cuda.syncthreads()"]
                after += [f"out[block, lane, {i}] = shared[lane, {i}]" for i in range(count)]
            lines += ["cuda.syncthreads()"]
            passed.append("shared, at[block, lane], 0")
    call = f"{instruction.name}({', '.join(passed)})"
    result = instruction.result
    if result is not None:
        elements = [i.dtype for i in inputs if i.name == "rows"]
        output = (str(result.carrier or elements[0]), (WARP, result.count))
        lines.append(f"result = {call}")
        at = (lambda i: f"result[{i}]") if result.count > 1 else (lambda i: "result")
        lines += [f"out[block, lane, {i}] = {at(i)}" for i in range(result.count)]
    else:
        lines.append(call)
    if not inputs:  # nothing to see
        after = ["out[block, lane, 0] = 1"]
    names = [i.name for i in inputs]
    head = f"def probe_{instruction.name}({', '.join([*names, 'out'])}):"
    body = ["block, lane = cuda.blockIdx.x, cuda.threadIdx.x", *lines, *after]
    kernel = _defined(f"probe_{instruction.name}", "\n    ".join([head, *body]) + "\n")
    return Probe(instruction, kernel, tuple(inputs), output)


def _defined(name: str, text: str) -> Callable:
    """A function from its source, which tracebacks and the simulator can read."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {x.name: x for x in INSTRUCTIONS}
    scope |= {"cuda": cuda, "uint16": np.uint16, "float32": np.float32}
    exec(compile(text, file, "exec"), scope)
    return scope[name]
