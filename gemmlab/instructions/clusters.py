"""A cluster is blocks that begin together and reach each other's shared memory.

Here are a barrier for all its threads, and stores to another block. Copies that are sent to several
are in `tensor_copies`, with mbarriers. Source: PTX ISA 9.0, sections "barrier.cluster", "mapa" and
"st.async".
"""

from gemmlab.instructions.instruction import Instruction, Memory, Registers, named_in
from gemmlab.instructions.tensor_copies import BARRIER

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

store_async_v4 = Instruction(
    "store_async_v4",
    "{{ .reg .b32 there, told; mapa.shared::cluster.u32 there, {to}, {rank}; "
    "mapa.shared::cluster.u32 told, {barrier}, {rank}; "
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
    "[there], {{{values}}}, [told]; }}",
    (
        Memory("to", "shared", "write", bytes=16), BARRIER, Registers("values", "float32", 4),
        Registers("rank", "uint32"),
    ),
    None, "sm_90", "async_store",
)  # fmt: skip

__all__ = named_in(globals())
