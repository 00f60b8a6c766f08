"""A barrier for all threads of a cluster: blocks that begin together and reach each other's memory.

Source: PTX ISA 9.0, section "Parallel Synchronization and Communication Instructions:
barrier.cluster". What blocks send each other is in `tensor_copies`.
"""

from gemmlab.instructions.instruction import Instruction, named_in

cluster_sync = Instruction(
    "cluster_sync",
    "barrier.cluster.arrive; barrier.cluster.wait",
    (), None, "sm_90", "barrier",
)  # fmt: skip
# Nobody waits for what was stored before. Mbarriers are seen all the same, by the fence of those
# who made them.
cluster_sync_relaxed = Instruction(
    "cluster_sync_relaxed",
    "barrier.cluster.arrive.relaxed; barrier.cluster.wait",
    (), None, "sm_90", "barrier",
)  # fmt: skip

__all__ = named_in(globals())
