"""C = A·B in float16 with sums in float32, on Tensor Cores; tiles in groups of rows."""

import triton
import triton.language as tl


@triton.jit
def matmul(
    a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr
):
    number, across = tl.program_id(0), tl.cdiv(n, N)
    group = number // (GROUP * across)
    row = group * GROUP + number % (GROUP * across) % GROUP
    column = number % (GROUP * across) // GROUP
    at_m = row * M + tl.arange(0, M)
    at_n = column * N + tl.arange(0, N)
    at_k = tl.arange(0, K)
    left = a + at_m[:, None] * k + at_k[None, :]
    right = b + at_k[:, None] * n + at_n[None, :]
    total = tl.zeros([M, N], tl.float32)
    for _ in range(0, tl.cdiv(k, K)):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += K
        right += K * n
    tl.store(c + at_m[:, None] * n + at_n[None, :], total.to(tl.float16))
