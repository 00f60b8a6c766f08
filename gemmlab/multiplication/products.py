"""C = AB on a machine: operands scaled and split, multiplied, and lines that need it by FP32."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab import kernels
from gemmlab.kernels.batched import around, scaling, tcec_batched
from gemmlab.kernels.batched.fewer_products import has_low
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.simt.shared.vector_access import FOUR
from gemmlab.kernels.tcec.shared.split_operands import shared_bytes
from gemmlab.kernels.tensor_core.shared.tma_tiles import along_k, box_rows
from gemmlab.kernels.tensor_core.warp_specialised import compile_options
from gemmlab.multiplication.arrays import ITEM, Stack
from gemmlab.multiplication.choosing import Choice, length_of, steps
from gemmlab.multiplication.machines import MAP_BYTES, Planning, Simulated, Step, rounded
from gemmlab.problem import Gemm

MAPS = {"tcec_batched": 4}  # of halves
# Of k in a sum of FP32 units. By it the error of a chain stays below that of 4096 additions, and C
# is read and written once more for each: a tenth of the time where k is longer.
CHAIN = 4096


def in_fours(rows: int, columns: int, along: bool) -> tuple[int, int]:
    """Return the shape of a matrix whose rows and columns are filled up to multiples of four."""
    return -(-rows // FOUR) * FOUR, -(-columns // FOUR) * FOUR


# Of operands, for a kernel: in which shape they are written.
SHAPES = {"tcec_batched": tcec_batched.stack, "tcec_registers": in_fours}


def writing_of(kernel: str, products: int, side: int) -> tuple[Callable, tuple[str, ...]]:
    """Return how an operand is written, A (side 0) or B, and in which formats."""
    if kernel == "tcec_registers":
        return scaling.copies, ("float32",)
    if has_low(products, side):
        return scaling.parts, ("float16", "float16")
    return scaling.highs, ("float16",)


@dataclass(frozen=True, eq=False)
class Operand:
    """A panel of A or of B as it is multiplied.

    stack : its matrices, as the formula has them; stored : as they are in memory
    out : its parts, or its copy, matrix below matrix; back : what undoes the scales of its lines
    """

    stack: Stack
    stored: Stack
    out: tuple = ()
    back: Any = None

    @property
    def height(self) -> int:
        """Rows of a matrix in `out`."""
        return self.out[0].shape[0] // self.stack.shape[0]


def multiply(
    machine: Planning | Simulated, choice: Choice, a: Stack, b: Stack, c: Stack,
    ready: Operand | None = None,
) -> None:  # fmt: skip
    """C ← AB, panel by panel. Stacks of shape (batch, m, k), (batch, k, n), (batch, m, n).

    ready : B as it is multiplied, where it is and panels take all of it
    """
    by = {"tcec_batched": by_wgmma, "tcec_registers": by_mma, "pipelined": by_fp32}[choice.kernel]
    (products, rows, columns), whole = choice.panels, (0, choice.k)
    for some in steps(choice.batch, products):
        for across in steps(choice.n, columns):
            with machine.scratch():
                right = ready or prepare(machine, choice, b.cut(some, whole, across), 1)
                for down in steps(choice.m, rows):
                    with machine.scratch():
                        left = prepare(machine, choice, a.cut(some, down, whole), 0)
                        by(machine, choice, left, right, c.cut(some, down, across))


def prepare(machine: Planning | Simulated, choice: Choice, stack: Stack, side: int) -> Operand:
    """Return a panel of A (side 0) or of B, scaled and written as the kernel reads it."""
    stored = stack.transposed if choice.layout[side] == "t" else stack
    if choice.kernel not in SHAPES:
        return Operand(stack, stored)
    along = along_k(choice.layout)[side]
    writing, formats = writing_of(choice.kernel, choice.products, side)
    out, lines = taken(choice.kernel, formats, along, stored.shape)
    out = tuple(machine.empty(*each) for each in out)
    found, back, x = machine.zeros(*lines[0]), machine.empty(*lines[1]), machine.view(stored)
    frozen = {"along": along, "aligned": stored.aligned, "writing": writing}
    batch, (rows, columns) = stored.shape[0], out[0].shape
    written = (rows // batch, columns), batch
    first, again = (
        scaling.launch(*written, scaling.ROWS),
        scaling.launch(*written, scaling.LOOKED_AT),
    )
    machine.launch(Step(scaling.build_first, frozen, *first), x, found, out)
    machine.launch(Step(scaling.build_again, frozen, *again), x, found, back, out)
    return Operand(stack, stored, out, back)


def taken(
    kernel: str, formats: tuple[str, ...], along: bool, stored: tuple[int, int, int]
) -> tuple[list, list]:
    """Shapes and formats of what is written of an operand, and of what is told of its lines."""
    batch, rows, columns = stored
    height, length = SHAPES[kernel](rows, columns, along)
    lines = batch, rows if along else columns
    return (
        [((batch * height, length), dtype) for dtype in formats],
        [(lines, "int32"), (lines, "float32")],
    )


def by_wgmma(
    machine: Planning | Simulated, choice: Choice, left: Operand, right: Operand, c: Stack
) -> None:
    """Multiply halves by `tcec_batched`; where k has parts, their sums are added up afterwards."""
    tiling, (batch, m, n), of_c = choice.tiling, c.shape, machine.view(c)
    (box_a, box_b) = box_rows(tiling, choice.layout)
    halves = (left.out[0], left.out[-1], right.out[0], right.out[-1])  # high alone stands for both
    maps = machine.maps(halves, (box_a, box_a, box_b, box_b))
    paired = n % 2 == 0 == c.strides[1] % (2 * ITEM)
    length = length_of(choice.k, choice.parts)
    planes = machine.empty((choice.parts * batch, m, n), "float32") if choice.parts > 1 else of_c
    step = Step(
        tcec_batched.build,
        {
            "tiling": tiling,
            "layout": choice.layout,
            "paired": paired,
            "products": choice.products,
        },
        *tcec_batched.launch(tiling, choice.parts * batch, m, n, machine.device),
        shared_bytes(Gemm(m, n, choice.k), tiling),
        dict(compile_options(tiling)),
    )
    sizes, heights = (choice.k, choice.parts, length), (left.height, right.height)
    machine.launch(step, planes, *sizes, *maps, *heights, left.back, right.back)
    if choice.parts > 1:
        aligned = n % FOUR == 0 and c.aligned
        add = Step(around.build_sum, {"aligned": aligned}, *around.launch_sum(batch, m, n))
        machine.launch(add, planes, choice.parts, of_c)
    sum_lone_lines(machine, left, right, of_c, scaled=False)


def by_mma(
    machine: Planning | Simulated, choice: Choice, left: Operand, right: Operand, c: Stack
) -> None:
    """Multiply scaled copies by `tcec_registers`, one product after the other."""
    of_a, of_b = (
        [x.out[0][i * x.height : (i + 1) * x.height] for i in range(c.shape[0])]
        for x in (left, right)
    )
    k = -(-choice.k // FOUR) * FOUR  # as in the copies, filled with zeros
    launch_each(machine, kernels.tcec_registers, choice, k, of_a, of_b, c)
    sum_lone_lines(machine, left, right, machine.view(c), scaled=True)


def by_fp32(
    machine: Planning | Simulated, choice: Choice, left: Operand, right: Operand, c: Stack
) -> None:
    """Multiply operands as they are by `pipelined`, one product after the other.

    A chain of k additions is wrong by what each one rounds. Where k is long, it is summed in parts,
    each by a launch of its own, which adds to what the ones before it have stored.
    """
    aligned = all(stack.aligned for stack in (left.stored, right.stored, c))
    whole = [(0, size) for size in c.shape]
    for along in steps(choice.k, CHAIN):
        a, b = left.stack.cut(whole[0], whole[1], along), right.stack.cut(whole[0], along, whole[2])
        of_a, of_b = (
            [machine.view(one.transposed if way == "t" else one, 2) for one in stack.matrices]
            for stack, way in zip((a, b), choice.layout, strict=True)
        )
        k, more = along[1] - along[0], along[0] > 0
        launch_each(machine, kernels.pipelined, choice, k, of_a, of_b, c, aligned, more)


def launch_each(
    machine: Planning | Simulated, kernel: Kernel, choice: Choice, k: int,
    of_a: list[Any], of_b: list[Any], c: Stack, aligned: bool = True, adds: bool = False,
) -> None:  # fmt: skip
    """Launch a rung of the ladder for one product after the other; k: as A and B are stored.

    adds : C ← AB + C
    """
    (_, m, n), tiling = c.shape, choice.tiling
    problem = Gemm(m, n, k, beta=float(adds), layout=choice.layout)
    frozen = {"tiling": tiling, **kernel.variant(problem, machine.capability)}
    frozen["aligned"] = frozen["aligned"] and aligned
    step = Step(
        kernel.build,
        frozen,
        *kernel.launch(problem, tiling, machine.device),
        kernel.dynamic_shared_bytes(problem, tiling),
        dict(kernel.compile(tiling)),
    )
    alpha, beta = problem.scalars()
    for one_a, one_b, one_c in zip(of_a, of_b, c.matrices, strict=True):
        machine.launch(step, alpha, one_a, one_b, beta, machine.view(one_c, 2))


def sum_lone_lines(
    machine: Planning | Simulated, left: Operand, right: Operand, of_c: Any, scaled: bool
) -> None:
    """Let FP32 units sum what no scale brings into range; scaled: and undo the scales."""
    step = Step(around.build_lone, {"scaled": scaled}, *around.launch_lone(*of_c.shape))
    a, b = machine.view(left.stack), machine.view(right.stack)
    machine.launch(step, a, b, of_c, left.back, right.back)


def workspace_bytes(
    kernel: str, layout: str, k: int, parts: int, products: int, batch: int, m: int, n: int
) -> int:
    """Memory that `multiply` takes for a panel beside A, B and C [B]."""
    if kernel not in SHAPES:
        return 0
    total = rounded(MAPS.get(kernel, 0) * MAP_BYTES)
    total += rounded(ITEM * parts * batch * m * n) if parts > 1 else 0
    for side, (size, along) in enumerate(zip((m, n), along_k(layout), strict=True)):
        stored = (batch, size, k) if along else (batch, k, size)
        _, formats = writing_of(kernel, products, side)
        total += sum(
            rounded(math.prod(shape) * np.dtype(dtype).itemsize)
            for each in taken(kernel, formats, along, stored)
            for shape, dtype in each
        )
    return total
