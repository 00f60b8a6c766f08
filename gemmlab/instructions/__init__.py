"""GPU instructions, each declared once: its PTX, its operands, and its meaning in NumPy.

Used by name inside a kernel, compiled by Numba-CUDA and run by the simulator alike. An operand in
memory is an array followed by one index for each of its dimensions, never an address:

load_v2(array, i, j), load_v4, load_v8
    2, 4 or 8 neighbouring elements of the last dimension, array[i, j] … as a tuple: one access of
    4, 8 or 16 bytes to global, shared or local memory. The address must be a multiple of its size:
    give shared arrays `alignment=16`, and rows a multiple of 4 float32.
store_v2(array, i, j, values), store_v4, store_v8
    the same from a tuple.
cp_async_4(shared, i, j, array, k, l[, valid]), cp_async_8, cp_async_16
    begin to copy 4, 8 or 16 bytes, shared[i, j] … = array[k, l] …, without registers. `valid`:
    False writes zeros and reads nothing; an integer, 0 or more and at most all,
    copies so many elements and zeros the rest.
    Needs compute capability 8.0.
cp_async_commit()
    make the copies since the last commit one group.
cp_async_wait(n)
    wait until at most `n` groups of this thread are under way; `n` is a constant. What other
    threads copied is there after a barrier.
shared_view(shape, dtype, offset)
    an array over the block's dynamic shared memory (`shared_bytes` of the launch), from byte
    `offset` on, row-major; shape and dtype are constants, so that it compiles to nothing.

ldmatrix_x4(shared, i, j), ldmatrix_x2, ldmatrix_x1, and with _trans
    4, 2 or 1 matrices of 8×8 16-bit elements, a tuple of uint32 (x1: one); lane 8m + r names the
    first element of row r of matrix m. 16-byte rows: give the array `alignment=16`. From 7.5 on.
stmatrix_x4(shared, i, j, values), stmatrix_x2, stmatrix_x1, and with _trans
    the same back. From 9.0 on.
mma_m16n8k16_f32_f16(a, b, c) -> d
    and f16_f16, f32_bf16; mma_m16n8k8_f32_f16, f16_f16, f32_bf16, f32_tf32; mma_m16n8k4_f32_tf32;
    mma_m8n8k4_f32_f16, f16_f16. The name gives the format of c and d, then that of a and b; rows
    of a and columns of b lie along k. m8n8k4 has other orders, as mma_m8n8k4_col_row_f32_f16.
    Fragments are tuples of registers: packed pairs in uint32, tf32 and float32 in float32, the one
    not taken for the other; `fragments.layout` tells which element is where.
wmma_load_a_row(array, i, j), wmma_load_a_col, wmma_load_b_row, wmma_load_b_col, wmma_load_c_f32 …
wmma_mma_row_col_f32(a, b, c), …, wmma_store_d_f32(array, i, j, d), …_f16
    16×16×16 WMMA; the names tell how a and b are stored, and the format of c and d. A fragment
    holds elements of a and b twice; of a fragment made by hand the first copy counts.
cvt_rn_f16x2_f32(low, high), cvt_rz_…, cvt_rn_bf16x2_f32, cvt_rz_…, cvt_rn_f16_f32(x), cvt_rz_…,
cvt_rna_tf32_f32(x), cvt_rn_…, cvt_rz_…; pack_f16x2(low, high), unpack_f16x2(word), unpack_bf16x2
    conversions; the last three for every GPU.
fragments.layout(instruction, operand).element, .holds
    in Python and in kernels: which element is in a register, whether it holds a given one.

Indices are not wrapped: a negative one is out of bounds. Numba makes int64 of what is computed from
int32; where all indices are np.int32(…) or constants, so is the address's arithmetic, for arrays of
fewer than 2³¹ elements.
`import gemmlab.instructions` needs NumPy alone; Numba loads when a kernel is compiled.
"""

from gemmlab.instructions import convert, fragments, ldmatrix, matrix, memory, views, wmma
from gemmlab.instructions.convert import *
from gemmlab.instructions.fragments import *
from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.ldmatrix import *
from gemmlab.instructions.matrix import *
from gemmlab.instructions.memory import *
from gemmlab.instructions.views import *
from gemmlab.instructions.wmma import *

# Each module lists what kernels call in its own __all__.
__all__ = ["Instruction", "fragments"]
__all__ += convert.__all__
__all__ += fragments.__all__
__all__ += ldmatrix.__all__
__all__ += matrix.__all__
__all__ += memory.__all__
__all__ += views.__all__
__all__ += wmma.__all__
