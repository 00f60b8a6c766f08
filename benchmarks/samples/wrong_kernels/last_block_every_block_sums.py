"""Slip: the blocks that are not the last read parts too, which others have not stored yet."""

from numpy import float32, int32

from gemmlab import cuda

BASE = "last_block"
EXPECT = "global-race"


def kernel(x, parts, finished, out):
    part = cuda.shared.array(64, float32)
    is_last = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    if t == 0:
        total = float32(0)
        for j in range(64):
            total += part[j]
        parts[cuda.blockIdx.x] = total
        cuda.threadfence()
        ticket = cuda.atomic.add(finished, 0, 1)
        is_last[0] = 1 if ticket >= 0 else 0
    cuda.syncthreads()
    if is_last[0] == 1 and t == 0:
        total = float32(0)
        for b in range(cuda.gridDim.x):
            total += parts[b]  # fault
        out[0] = total
