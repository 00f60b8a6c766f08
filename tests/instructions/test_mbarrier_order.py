"""What arrivals at mbarriers and waits for them order: ordinary accesses, also over several."""

import numpy as np
import pytest

from gemmlab import simulate
from tests.support.asynchronous import made

# Three warps: the first one writes, the second one passes the word on, the third one reads.
CHAIN = """
def kernel(out):
    bars = shared_view((2,), uint64, 0)
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier_init(bars, 0, 32)
        mbarrier_init(bars, 1, 32)
    cuda.syncthreads()
    if t < 32:
        s[t] = t
        mbarrier_arrive(bars, 0)
    elif t < 64:
        mbarrier_wait(bars, 0, 0)
        mbarrier_arrive(bars, 1)
    else:
        mbarrier_wait(bars, 1, 0)
        out[t - 64] = s[t - 64 ^ 1]
"""

# The third warp overwrites what the first one reads.
FILLED = "        for i in range(32):\n            s[i] = i\n"  # by thread 0
OVERWRITTEN = (
    CHAIN.replace("    cuda.syncthreads()", FILLED + "    cuda.syncthreads()")
    .replace("s[t] = t\n", "out[t] = s[t ^ 1]\n")
    .replace("out[t - 64] = s[t - 64 ^ 1]", "s[t - 64] = 7")
)

# One lane arrives for its warp.
FOR_ALL = CHAIN.replace("(bars, 0, 32)", "(bars, 0, 1)").replace(
    "        mbarrier_arrive(bars, 0)",
    "        cuda.syncwarp()\n        if t == 0:\n            mbarrier_arrive(bars, 0)",
)

RIGHT = {
    "a chain of two": (CHAIN, "", ""),
    "what is read in a chain": (OVERWRITTEN, "", ""),
    "one lane arrives for its warp": (FOR_ALL, "", ""),
    "one lane of those that pass it on has waited": (
        CHAIN, "        mbarrier_wait(bars, 0, 0)",
        "        if t == 40:\n            mbarrier_wait(bars, 0, 0)",
    ),
}  # fmt: skip
WRONG = {
    "who passes it on has not waited": (CHAIN, "        mbarrier_wait(bars, 0, 0)\n", ""),
    "who passes it on waits afterwards": (
        CHAIN, "mbarrier_wait(bars, 0, 0)\n        mbarrier_arrive(bars, 1)",
        "mbarrier_arrive(bars, 1)\n        mbarrier_wait(bars, 0, 0)",
    ),
    "the writer arrives before it writes": (
        CHAIN, "s[t] = t\n        mbarrier_arrive(bars, 0)",
        "mbarrier_arrive(bars, 0)\n        s[t] = t",
    ),
    "the last one does not wait": (CHAIN, "        mbarrier_wait(bars, 1, 0)\n", ""),
    "one lane arrives and no other has told it": (FOR_ALL, "        cuda.syncwarp()\n", ""),
    "nobody waits for those who read": (OVERWRITTEN, "        mbarrier_wait(bars, 0, 0)\n", ""),
}  # fmt: skip


def hazards(case, name):
    source, text, instead = case
    assert text in source
    kernel, out = made(source.replace(text, instead, 1), name), np.zeros(32, np.float32)
    return simulate(kernel, 1, 96, out, shared_bytes=16, on_hazard="collect").hazards


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_told_by_others_is_in_order(name):
    assert hazards(RIGHT[name], name) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_nobody_has_told_is_a_race(name):
    found = hazards(WRONG[name], name)
    assert {h.kind for h in found} == {"shared-race"}
    assert all("s[t" in h.code for h in found)
