"""Kernels of asynchronous instructions, made of text, of which tests change a line."""

import linecache

import numpy as np

from gemmlab import cuda, instructions

N, STAGES = 16, 2  # columns of a product, and places of a ring

# One warpgroup that fills shared memory by ordinary stores, in the swizzle, and multiplies once.
STORED = """
def kernel(A, B, k, C):
    As = shared_view((64, 64), float16, 0)
    Bs = shared_view((N, 64), float16, 64 * 128)
    thread = cuda.threadIdx.x
    for i in range(thread, 64 * 64, 128):
        As[i // 64, i % 64 ^ i // 64 % 8 * 8] = A[i // 64, i % 64]
    for i in range(thread, N * 64, 128):
        Bs[i // 64, i % 64 ^ i // 64 % 8 * 8] = B[i // 64, i % 64]
    fence_proxy_async()
    cuda.syncthreads()
    acc = cuda.local.array(HALF, float32)
    wgmma_fence()
    wgmma(acc, As, 0, 0, Bs, 0, 0, False)
    wgmma(acc, As, 0, 16, Bs, 0, 16, True)
    wgmma(acc, As, 0, 32, Bs, 0, 32, True)
    wgmma(acc, As, 0, 48, Bs, 0, 48, True)
    wgmma_commit()
    wgmma_wait(0, acc)
    for r in range(HALF):
        row = thread // 32 * 16 + thread % 32 // 4 + r // 2 % 2 * 8
        C[row, r // 4 * 8 + thread % 4 * 2 + r % 2] = acc[r]
"""


def made(source: str, name: str):
    """The kernel of a source, which tracebacks and the simulator can read."""
    file = f"<asynchronous {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = dict(vars(instructions))
    scope |= {
        "cuda": cuda,
        "uint8": np.uint8,
        "uint16": np.uint16,
        "uint32": np.uint32,
        "float16": np.float16,
        "float32": np.float32,
        "uint64": np.uint64,
    }
    scope |= {"STAGES": STAGES, "N": N, "HALF": N // 2}
    scope |= {"wgmma": instructions.WGMMA[N, "nt"], "wgmma_wait": instructions.WGMMA_WAIT[N]}
    exec(compile(source, file, "exec"), scope)
    return scope["kernel"]
