"""C = AB on a machine: operands scaled and split, multiplied, and lines that need it by FP32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gemmlab import kernels
from gemmlab.instructions.tensor_maps import ROW
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.simt.fours import FOUR
from gemmlab.kernels.tcec import lone_lines, scaling, tcec_batched
from gemmlab.kernels.tcec.halves import PARTS
from gemmlab.kernels.tensor_core.boxes import WORD, along_k
from gemmlab.kernels.tensor_core.warp_specialised import compile_options
from gemmlab.multiplication.choosing import Choice
from gemmlab.multiplication.machines import Gpu, Simulated, Step
from gemmlab.multiplication.panels import steps
from gemmlab.multiplication.stacks import ITEM, Stack
from gemmlab.problem import Gemm

# What is written of an operand, in which formats.
WRITTEN = {scaling.parts: ("float16", "float16"), scaling.copies: ("float32",)}
OF_ELEMENT, OF_LINE = 4, 8  # bytes for an element of an operand, and for a row or column


class Scaled(NamedTuple):
    """An operand as it is multiplied: its parts or its copy, and what undoes the scales."""

    out: tuple
    back: Any


def multiply(machine: Gpu | Simulated, choice: Choice, a: Stack, b: Stack, c: Stack) -> None:
    """C ← AB, panel by panel. Stacks of shape (batch, m, k), (batch, k, n), (batch, m, n)."""
    of_panel = {"tcec_batched": by_wgmma, "tcec_registers": by_mma, "pipelined": by_fp32}
    go, (products, rows, columns) = of_panel[choice.kernel], choice.panels
    for some in steps(choice.batch, products):
        for across in steps(choice.n, columns):
            for down in steps(choice.m, rows):
                whole = (0, choice.k)
                panel = a.cut(some, down, whole), b.cut(some, whole, across)
                go(machine, choice, *panel, c.cut(some, down, across))


def workspace_bytes(kernel: str, layout: str, k: int, batch: int, m: int, n: int) -> int:
    """Memory that `multiply` takes for a panel beside A, B and C [B]."""
    shape = {"tcec_batched": tcec_batched.stack, "tcec_registers": in_fours}.get(kernel)
    if shape is None:
        return 0
    elements = lines = 0
    along = along_k(layout)
    for size, way in zip((m, n), along, strict=True):
        height, length = shape(size, k, True) if way else shape(k, size, False)
        elements, lines = elements + height * length, lines + size
    return batch * (OF_ELEMENT * elements + OF_LINE * lines)


def stored(stack: Stack, transposed: bool) -> Stack:
    """A stack as it is stored."""
    return stack.transposed if transposed else stack


def by_wgmma(machine: Gpu | Simulated, choice: Choice, a: Stack, b: Stack, c: Stack) -> None:
    """By `tcec_batched`, whose operands are scaled and split beforehand."""
    tiling, layout = choice.tiling, choice.layout
    left, right = (
        scaled(machine, stored(x, way == "t"), along, scaling.parts, tcec_batched.stack)
        for x, way, along in zip((a, b), layout, along_k(layout), strict=True)
    )
    (batch, m, n), k = c.shape, a.shape[2]
    box_a, box_b = tcec_batched.boxes(tiling, layout)
    maps = [machine.map(p, box_a) for p in left.out] + [machine.map(p, box_b) for p in right.out]
    rows = [x.out[0].shape[0] // batch for x in (left, right)]
    of_c, (bm, bn, _) = machine.view(c), tiling.block
    frozen = {"tiling": tiling, "layout": layout, "paired": c.strides[1] % (2 * ITEM) == 0 == n % 2}
    shared = tiling.stages * (PARTS * (bm + bn) * ROW + 2 * WORD)
    step = Step(
        tcec_batched.build, frozen, *tcec_batched.launch(tiling, batch, m, n), shared,
        dict(compile_options(tiling)),
    )  # fmt: skip
    machine.launch(step, of_c, k, *maps, *rows, left.back, right.back)
    sum_lone_lines(machine, a, b, of_c, left, right, False)


def by_mma(machine: Gpu | Simulated, choice: Choice, a: Stack, b: Stack, c: Stack) -> None:
    """By `tcec_registers`, one product after the other, of scaled copies."""
    left, right = (
        scaled(machine, stored(x, way == "t"), along, scaling.copies, in_fours)
        for x, way, along in zip((a, b), choice.layout, along_k(choice.layout), strict=True)
    )
    of_c, batch = machine.view(c), c.shape[0]
    k = -(-a.shape[2] // FOUR) * FOUR  # as in the copies, filled with zeros
    of_a, of_b = ([x.out[0][i * h : (i + 1) * h] for i in range(batch)]
                  for x in (left, right) for h in [x.out[0].shape[0] // batch])  # fmt: skip
    launch_each(machine, kernels.tcec_registers, choice, k, of_a, of_b, of_c)
    sum_lone_lines(machine, a, b, of_c, left, right, True)


def by_fp32(machine: Gpu | Simulated, choice: Choice, a: Stack, b: Stack, c: Stack) -> None:
    """By `pipelined`, one product after the other."""
    stacks = [stored(x, way == "t") for x, way in zip((a, b), choice.layout, strict=True)]
    aligned = all(stack.aligned for stack in (*stacks, c))
    of_a, of_b, of_c = map(machine.view, (*stacks, c))
    launch_each(machine, kernels.pipelined, choice, choice.k, of_a, of_b, of_c, aligned)


def scaled(
    machine: Gpu | Simulated, stack: Stack, along: bool, writing: Callable, shape: Callable
) -> Scaled:
    """An operand as `scaling` writes it; along: rows of the stack lie along k.

    shape : (rows, columns, along) -> of what is written of a matrix
    """
    batch, rows, columns = stack.shape
    height, length = shape(rows, columns, along)
    out = tuple(machine.empty((batch * height, length), x) for x in WRITTEN[writing])
    found = machine.zeros((batch, rows if along else columns), "int32")
    back, x = machine.empty(found.shape, "float32"), machine.view(stack)
    frozen = {"along": along, "aligned": stack.aligned, "writing": writing}
    size = scaling.launch((height, length), batch)
    machine.launch(Step(scaling.build_first, frozen, *size), x, found, out)
    machine.launch(Step(scaling.build_again, frozen, *size), x, found, back, out)
    return Scaled(out, back)


def in_fours(rows: int, columns: int, along: bool) -> tuple[int, int]:
    """The shape of a matrix whose rows and columns are filled up to multiples of four."""
    return -(-rows // FOUR) * FOUR, -(-columns // FOUR) * FOUR


def launch_each(
    machine: Gpu | Simulated, kernel: Kernel, choice: Choice, k: int,
    of_a: Any, of_b: Any, of_c: Any, aligned: bool = True,
) -> None:  # fmt: skip
    """Launch a rung of the ladder for one product after the other."""
    (batch, m, n), tiling = of_c.shape, choice.tiling
    problem = Gemm(m, n, k, layout=choice.layout)
    frozen = {"tiling": tiling, **kernel.variant(problem, machine.capability)}
    frozen["aligned"] = frozen["aligned"] and aligned
    step = Step(
        kernel.build, frozen, *kernel.launch(problem, tiling),
        kernel.dynamic_shared_bytes(problem, tiling), dict(kernel.compile(tiling)),
    )  # fmt: skip
    alpha, beta = problem.scalars()
    for i in range(batch):
        machine.launch(step, alpha, of_a[i], of_b[i], beta, of_c[i])


def sum_lone_lines(
    machine: Gpu | Simulated, a: Stack, b: Stack, of_c: Any, left: Scaled, right: Scaled,
    undo: bool,
) -> None:  # fmt: skip
    """Let FP32 units sum what no scale brings into range."""
    step = Step(lone_lines.build, {"scaled": undo}, *lone_lines.launch(*of_c.shape))
    machine.launch(step, machine.view(a), machine.view(b), of_c, left.back, right.back)
