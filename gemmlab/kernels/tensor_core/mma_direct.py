"""Rung 1, mma_direct: a warp multiplies on its Tensor Core what it loads from global memory.

`mma.m16n8k16` multiplies 16×16 elements of A by 16×8 of B for a whole warp; which of them a lane
has to bring, and which of C it gets, the instruction's layouts say. Nothing is shared: every warp
loads its own fragments, two bytes at a time. Counter to watch: global requests, and how few bytes
each of them moves.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy import float32, uint32

from gemmlab.instructions import layout as layout_of, pack_f16x2
from gemmlab.kernels.kernel import Kernel, check_fit, on_device, threads_in_a_row
from gemmlab.kernels.tensor_core.shared import warp_mma
from gemmlab.kernels.tensor_core.shared.shared_layouts import inside, zero_of
from gemmlab.kernels.tensor_core.shared.warp_mma import (
    STEP,
    clearing,
    corner,
    multiplying,
    updating,
)
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

A_LAYOUT, B_LAYOUT = layout_of("m16n8k16", "A"), layout_of("m16n8k16", "B")


def build(
    tiling: Tiling, layout: str = "nn", paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout : which operands are stored transposed, see `Gemm.layout`
    paired : rows of C have an even number of elements
    dtype, out_dtype : the formats of A and B, and of C
    """
    BM, BN, _ = tiling.block
    WM, WN = tiling.warp
    A_AS_IT_IS, B_AS_IT_IS, FLOAT16 = layout[0] == "n", layout[1] == "n", dtype == "float16"
    A_WORDS, B_WORDS, SUMS = warp_mma.fragment_shapes(tiling)
    of_a, of_b = A_LAYOUT.element, B_LAYOUT.element

    zero, warp_corner, clear = zero_of(dtype), on_device(corner(tiling)), clearing(tiling)
    multiply, update = multiplying(tiling, dtype), updating(tiling, out_dtype, paired)

    @on_device
    def read(X, i, j, as_it_is):
        """Element (i, j) of the matrix that X holds as it is, or transposed; 0 outside."""
        if as_it_is:
            return X[i, j] if inside(X, i, j) else zero()
        return X[j, i] if inside(X, j, i) else zero()

    @on_device
    def word(low, high):
        """Two elements in a register."""
        if FLOAT16:
            return pack_f16x2(float32(low), float32(high))
        return uint32(low) | uint32(high) << uint32(16)

    @on_device
    def load_a(A, row, p, lane, a):
        for x in range(WM // STEP):
            for w in range(4):
                i, j = of_a(lane, 2 * w)  # and its neighbour along k
                i, j = row + x * STEP + i, p + j
                a[x, w] = word(read(A, i, j, A_AS_IT_IS), read(A, i, j + 1, A_AS_IT_IS))

    @on_device
    def load_b(B, p, col, lane, b):
        for y in range(WN // 8):
            for w in range(2):
                i, j = of_b(lane, 2 * w)
                i, j = p + i, col + y * 8 + j
                b[y // 2, y % 2 * 2 + w] = word(
                    read(B, i, j, B_AS_IT_IS), read(B, i + 1, j, B_AS_IT_IS)
                )

    def mma_direct(alpha, A, B, beta, C):
        k = A.shape[1] if A_AS_IT_IS else A.shape[0]
        i, j = warp_corner(cuda.threadIdx.x)
        row, col = cuda.blockIdx.y * BM + i, cuda.blockIdx.x * BN + j  # of this warp's tile

        a = cuda.local.array(A_WORDS, uint32)
        b = cuda.local.array(B_WORDS, uint32)
        acc = cuda.local.array(SUMS, float32)
        clear(acc)
        for p in range(0, k, STEP):
            load_a(A, row, p, cuda.threadIdx.x, a)
            load_b(B, p, col, cuda.threadIdx.x, b)
            multiply(a, b, acc)

        update(C, row, col, alpha, acc, beta)

    return mma_direct


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """Keyword arguments of `build` for a problem."""
    return {
        "layout": problem.layout,
        "paired": problem.n % 2 == 0,
        "dtype": problem.dtype,
        "out_dtype": problem.out_dtype,
    }


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Each warp loads its fragments in every step of 16 along k, an element a lane at a time."""
    (left, right), steps = problem.layout, tiling.steps(problem)
    a, b = fragments(tiling)
    return traffic.staged(
        problem,
        tiling,
        copies=traffic.copied(
            problem, tiling, a if left == "n" else a.turned(), b if right == "n" else b.turned()
        ),
        shared=[],
        update=warp_mma.update_c(problem, tiling),
        barriers=0,
        round_trips=steps,
        flops=warp_mma.flops(problem, tiling),
    )


def fragments(tiling: Tiling) -> tuple[traffic.Lanes, traffic.Lanes]:
    """Return the elements that the lanes load, in a block's tile of A and in that of B."""
    threads = np.arange(tiling.threads).reshape(-1, WARP)
    on = np.ones_like(threads, bool)
    (wm, wn), (i, j) = tiling.warp, corner(tiling)(threads)
    a, b = ([x.element(threads, e) for e in range(x.registers)] for x in (A_LAYOUT, B_LAYOUT))
    of_a = [traffic.Lanes(i + row, col, on).repeated(range(0, wm, STEP), [0]) for row, col in a]
    of_b = [traffic.Lanes(row, j + col, on).repeated([0], range(0, wn, 8)) for row, col in b]
    return _joined(of_a), _joined(of_b)


def _joined(parts: list[traffic.Lanes]) -> traffic.Lanes:
    return traffic.Lanes(*map(np.concatenate, zip(*parts, strict=True)))


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps cannot be made of, or whose steps are not of 16."""
    check_fit(
        warp_mma.computable(tiling) and tiling.block[2] == STEP and tiling.stages == 1,
        tiling,
        f"the kernel without shared memory, which needs {warp_mma.COMPUTABLE}, steps of 16 along "
        "k and one stage",
        DEFAULT,
    )


DEFAULT = Tiling(block=(64, 64, 16), warp=(32, 32), thread=(4, 8))

mma_direct = Kernel(
    name="mma_direct",
    idea="Tensor Cores, fed from global memory",
    default=DEFAULT,
    build=build,
    configure=threads_in_a_row,
    work=work,
    check=check,
    variant=variant,
    tilings=(DEFAULT, Tiling(block=(128, 128, 16), warp=(64, 32), thread=(8, 8))),
    arithmetic=warp_mma.ARITHMETIC,
    layouts=LAYOUTS,
)
