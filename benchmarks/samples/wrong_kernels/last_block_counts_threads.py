"""Misconception: a counter that one thread of each block advances reaches the number of threads."""

from numpy import float32

from gemmlab import cuda

BASE = "last_block"
EXPECT = "deadlock"


def kernel(x, parts, finished, out):
    part = cuda.shared.array(64, float32)
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
        cuda.atomic.add(finished, 0, 1)
        if cuda.blockIdx.x == 0:
            while cuda.atomic.add(finished, 0, 0) < cuda.gridDim.x * cuda.blockDim.x:  # fault
                pass
            cuda.threadfence()
            total = float32(0)
            for b in range(cuda.gridDim.x):
                total += parts[b]
            out[0] = total
