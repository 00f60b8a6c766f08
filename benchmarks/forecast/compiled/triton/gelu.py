"""GELU by tanh, in bfloat16 with arithmetic in float32."""

import triton
import triton.language as tl


@triton.jit
def gelu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + at, mask=inside).to(tl.float32)
    inner = 0.7978845608 * (v + 0.044715 * v * v * v)
    tanh = 2 / (1 + tl.exp(-2 * inner)) - 1
    tl.store(y + at, (0.5 * v * (1 + tanh)).to(tl.bfloat16), mask=inside)
