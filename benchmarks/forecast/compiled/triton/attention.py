"""Attention of one head at a time, with a running maximum and sum: FlashAttention's loop."""

import triton
import triton.language as tl


@triton.jit
def attention(q, k, v, out, scale, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    start, head = tl.program_id(0) * M, tl.program_id(1) * length * D
    at_m, at_n, at_d = start + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    queries = tl.load(q + head + at_m[:, None] * D + at_d[None, :])
    most = tl.full([M], -float("inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    sums = tl.zeros([M, D], tl.float32)
    for first in range(0, length, N):
        keys = tl.load(k + head + (first + at_n)[None, :] * D + at_d[:, None])
        s = tl.dot(queries, keys) * scale
        larger = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp2(s - larger[:, None])
        shrink = tl.exp2(most - larger)
        total = total * shrink + tl.sum(p, axis=1)
        values = tl.load(v + head + (first + at_n)[:, None] * D + at_d[None, :])
        sums = tl.dot(p.to(tl.float16), values, sums * shrink[:, None])
        most = larger
    place = out + head + at_m[:, None] * D + at_d[None, :]
    tl.store(place, (sums / total[:, None]).to(tl.float16))
