"""Misconception: transposing each tile transposes the matrix; but tiles must move too."""

from numpy import float32

from gemmlab import cuda

BASE = "transpose"
EXPECT = "uninitialised-read"
T, PADDED = 8, 8 + 1


def kernel(a, out):
    tile = cuda.shared.array((T, PADDED), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    x = cuda.blockIdx.x * T + tx
    y = cuda.blockIdx.y * T + ty
    if y < a.shape[0] and x < a.shape[1]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.x * T + tx
    y = cuda.blockIdx.y * T + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty]  # fault
