"""GPU instructions, each declared once: its PTX, its operands, and its meaning in NumPy.

Kernels call them by name; Numba-CUDA compiles them and the simulator runs them. An operand in
memory is an array followed by one index for each of its dimensions, never an address.

memory
    load_v2(array, i, j), load_v4, load_v8 return 2, 4 or 8 neighbouring elements of the last
    dimension, array[i, j] …, as a tuple: one access of 4, 8 or 16 bytes to global, shared or local
    memory. The address must be a multiple of its size: give shared arrays `alignment=16`, and rows
    a multiple of 4 float32. store_v2(array, i, j, values), store_v4 and store_v8 write a tuple.
    cp_async_4(shared, i, j, array, k, l[, valid]), cp_async_8 and cp_async_16 begin to copy 4, 8 or
    16 bytes, shared[i, j] … = array[k, l] …, without registers. With valid=False they write zeros
    and read nothing; with a number, from 0 to all, they copy so many elements and zero the rest.
    cp_async_commit() makes one group of the copies since the last commit. cp_async_wait(n) waits
    until at most n groups of this thread are under way; n is a constant. What other threads copied
    is there after a barrier. From compute capability 8.0 on.
    shared_view(shape, dtype, offset) is an array over the block's dynamic shared memory
    (`shared_bytes` of the launch), row-major, from byte `offset` on. Shape and dtype are constants,
    so that it compiles to nothing.
matrix
    ldmatrix_x4(shared, i, j), ldmatrix_x2, ldmatrix_x1, each also with _trans, load 4, 2 or 1
    matrices of 8×8 16-bit elements into a tuple of uint32 (x1: one). Lane 8m + r names the first
    element of row r of matrix m. Rows have 16 bytes: give the array `alignment=16`. From 7.5 on.
    stmatrix_x4(shared, i, j, values) and its like store them. From 9.0 on.
    mma_m16n8k16_f32_f16(a, b, c) returns d = a·b + c. The name has the shape, the format of c and
    d, and that of a and b, as in `numerics.MMAS`; rows of a and columns of b lie along k. m8n8k4
    has other orders too, as in mma_m8n8k4_col_row_f32_f16. A fragment is a tuple of registers:
    packed pairs of 16-bit numbers in uint32, tf32 and float32 in float32. No format is taken for
    another.
    wmma_load_a_row(array, i, j), wmma_mma_row_col_f32(a, b, c) and wmma_store_d_f32(array, i, j, d)
    are WMMA for 16×16×16. The names tell how a and b are stored (row or col), and the format of c
    and d. A fragment holds elements of a and b twice; of one made by hand the first copy counts.
tensor_copies
    mbarrier_init(barriers, i, count), mbarrier_arrive(barriers, i), mbarrier_wait(barriers, i,
    parity) and mbarrier_arrive_expect(barriers, i, bytes) take an element of a shared array of
    uint64: a barrier whose phase is complete when `count` threads have arrived and all bytes have
    come that were expected. fence_mbarrier_init() lets copies see what was initialised,
    fence_proxy_async() lets copies and wgmma see what this thread has stored in shared memory.
    tma_load(shared, i, j, map, row, column, barriers, b) begins to copy a box of the matrix of
    `map`, from (row, column) on, to shared[i, j] …; its bytes arrive at barriers[b]. One thread
    does it, once it has executed fence_tensor_map(map). The host makes `map`, an argument of the
    kernel, by tensor_map(matrix, rows): on a GPU for matrices there, else for the simulator.
    tma_load_multicast(shared, i, j, map, row, column, barriers, b, ranks) copies the box to the
    same place in each block of the cluster whose rank has a bit in `ranks`; its bytes arrive at
    their barriers[b]. mbarrier_arrive_remote(barriers, i, rank) arrives in the block of that rank.
    Both reach arrays of shared_view alone.
    tma_store(map, row, column, shared, i, j) begins to copy a box back. tma_commit() makes a group
    of a thread's stores since its last one, and after tma_wait_read(n) at most n of its groups
    still read shared memory; n is a constant.
clusters
    cluster_sync() waits for all threads of the cluster: blocks that begin together on SMs that
    reach each other's shared memory. The launch says how many: simulate(..., cluster=2). What a
    block sends must find the others there: one after their mbarriers are made, one at the end.
    cluster_sync_relaxed() does not wait for what threads have stored: it shows the others the
    mbarriers that fence_mbarrier_init() told of, and nothing else.
    store_async_v4(shared, i, j, barriers, b, values, rank) begins to store four float32 at the same
    place in the block of that rank, of an array of float32; 16 bytes arrive at its barriers[b]. It
    reaches arrays of shared_view alone.
warpgroup
    wgmma_m64n256k16_f32_f16(acc, A, i, k, B, j, l, accumulate) adds the product of 64×16 elements
    from A[i, k] on and 256×16 elements from B[j, l] on to `acc`, a local array of 128 float32; with
    accumulate False it replaces what is there. Arrays are shared and in the 128-byte swizzle, with
    rows of 64 elements along k; of wgmma_m64n256k16_row_row_f32_f16, B has them across k, in blocks
    B[block, k, row], and of _col_ A. wgmma_fence(), wgmma_commit() and wgmma_wait_n256(groups, acc)
    go with it. WGMMA[n, "nt"] and WGMMA_WAIT[n] are those of n columns, with A and B stored as in
    `Gemm.layout`; WGMMA_BF16 has those of bfloat16, in arrays of uint16. WGMMA_8[n, dtype] are
    those of FP8, in arrays of uint8: 32 along k, and rows along k alone. WGMMA_REGISTERS[n, "t"]
    takes A from registers, (acc, a, B, j, l, accumulate): of each warp's 16 rows, the tuple that
    mma_m16n8k16 takes. setmaxnreg_inc(240) and setmaxnreg_dec(24) move registers between
    warpgroups. Compute capability 9.0 alone.
convert
    cvt_rn_f16x2_f32(low, high), cvt_rna_tf32_f32(x) and their like round float32 to the formats of
    Tensor Cores: rn to nearest with ties to even, rna with ties away from zero, rz toward zero.
    pack_f16x2(low, high), unpack_f16x2(word) and unpack_bf16x2(word) work on every GPU.
fragments
    layout(shape, operand).element and .holds, in Python and in kernels: which element of the
    matrix a register has, and whether it has a given one.

Indices do not wrap around: a negative one is out of bounds. Numba computes with int64 what is
computed from int32; where all indices are np.int32(…) or constants, addresses are computed with 32
bits, for arrays of fewer than 2³¹ elements.
`import gemmlab.instructions` needs NumPy alone; Numba loads when a kernel is compiled.
"""

from functools import cache
from typing import Any

from gemmlab.instructions import (
    clusters,
    convert,
    fragments,
    matrix,
    memory,
    tensor_copies,
    typed,
    warpgroup,
)
from gemmlab.instructions.clusters import *
from gemmlab.instructions.convert import *
from gemmlab.instructions.fragments import *
from gemmlab.instructions.instruction import Instruction, KernelFunction
from gemmlab.instructions.matrix import *
from gemmlab.instructions.memory import *
from gemmlab.instructions.tensor_copies import *
from gemmlab.instructions.warpgroup import *

# Each module lists what kernels call in its own __all__.
MODULES = (clusters, convert, fragments, matrix, memory, tensor_copies, warpgroup)
__all__ = ["Instruction", "fragments"]
__all__ += [name for module in MODULES for name in module.__all__]


@cache  # a compiler has one type of a function
def _typed(function: KernelFunction, mlir: bool) -> Any:
    if mlir:
        from gemmlab.instructions.numba_cuda_mlir import numba_type
    else:
        from gemmlab.instructions.numba_cuda import numba_type
    return numba_type(function)


def _numba_type(function: KernelFunction) -> Any:
    """The type by which a compiler knows a function, when it first meets its name in a kernel."""
    return _typed(function, typed.mlir_asks())


KernelFunction._numba_type_ = property(_numba_type)
