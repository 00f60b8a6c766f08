"""A fence counts for those who are told of it, and a block ends when its copies have ended."""

import pytest

from tests.instructions.test_asynchronous import COPIED, PIPELINE, STORED, launched

BEHIND = (
    "fence_proxy_async()\n    cuda.syncthreads()",
    "cuda.syncthreads()\n    fence_proxy_async()",
)


@pytest.mark.parametrize("source", [STORED, COPIED], ids=["stored", "cp.async"])
def test_a_fence_behind_the_barrier_comes_too_late_even_with_one_warpgroup(source):
    assert BEHIND[0] in source
    report, *_ = launched(source.replace(*BEHIND), 64, "fence behind")
    hazard = report.hazards[0]
    assert (hazard.kind, "wgmma(acc, As, 0, 0," in hazard.code) == ("missing-fence", True)
    assert "fence_proxy_async() has to follow there, before the barrier" in hazard.message
    # another barrier tells of the fences
    told = source.replace(BEHIND[0], BEHIND[1] + "\n    cuda.syncthreads()")
    assert launched(told, 64, "fence told")[0].hazards == []


def test_a_block_must_not_end_while_a_copy_fills_its_shared_memory():
    more = PIPELINE.replace("for i in range(steps):", "for i in range(steps + 1):", 1)
    report, *_ = launched(more, 320, "one copy more")
    assert {h.kind for h in report.hazards} == {"async-not-waited"}
    hazard = report.hazards[0]
    assert "tma_load(As" in hazard.code
    assert "the block ends while the copy of thread (128) may still fill As" in hazard.message
    assert hazard.ops == ("copy",)
