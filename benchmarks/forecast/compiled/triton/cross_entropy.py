"""The cross entropy of rows of logits in bfloat16, with a running maximum."""

import triton
import triton.language as tl


@triton.jit
def cross_entropy(logits, labels, losses, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    logits += row * columns
    label = tl.load(labels + row)
    most, total = -float("inf"), 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(logits + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(most, tl.max(v, axis=0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(v - larger), axis=0)
        most = larger
    right = tl.load(logits + label).to(tl.float32)
    tl.store(losses + row, most + tl.log(total) - right)
