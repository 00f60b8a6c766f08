"""Copies of boxes of a matrix by the Tensor Memory Accelerator (TMA), to shared memory and back.

Source: PTX ISA 9.0, sections "cp.async.bulk.tensor", "cp.async.bulk.commit_group",
"cp.async.bulk.wait_group" and "fence.proxy.tensormap".
"""

from __future__ import annotations

from gemmlab.instructions.instruction import Box, Instruction, Literal, Memory
from gemmlab.instructions.mbarriers import BARRIER

__all__ = ["fence_tensor_map", "tma_commit", "tma_load", "tma_store", "tma_wait_read"]

tma_load = Instruction(
    name="tma_load",
    ptx="cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
    "[{to}], [{map}, {{{map_column}, {map_row}}}], [{barrier}]",
    operands=(Memory("to", "shared", "write", bytes=16), Box("map"), BARRIER),
    result=None,
    requires="sm_90",
    kind="tensor_copy",
)
fence_tensor_map = Instruction(
    name="fence_tensor_map",
    ptx="fence.proxy.tensormap::generic.acquire.gpu [{map}], 128",
    operands=(Box("map", placed=False),),
    result=None,
    requires="sm_90",
    kind="fence",
)
tma_store = Instruction(
    name="tma_store",
    ptx="cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
    "[{map}, {{{map_column}, {map_row}}}], [{source}]",
    operands=(Box("map"), Memory("source", "shared", "read", bytes=16)),
    result=None,
    requires="sm_90",
    kind="tensor_store",
)
tma_commit = Instruction(
    "tma_commit", "cp.async.bulk.commit_group", (), None, "sm_90", "async_commit"
)
tma_wait_read = Instruction(
    "tma_wait_read", "cp.async.bulk.wait_group.read {groups}", (Literal("groups", 63),), None,
    "sm_90", "async_wait",
)  # fmt: skip
