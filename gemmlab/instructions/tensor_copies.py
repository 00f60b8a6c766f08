"""Copies of boxes of a matrix by the Tensor Memory Accelerator (TMA).

Source: PTX ISA 9.0, sections "cp.async.bulk.tensor" and "fence.proxy.tensormap".
"""

from __future__ import annotations

from gemmlab.instructions.instruction import Box, Instruction, Memory
from gemmlab.instructions.mbarriers import BARRIER

__all__ = ["fence_tensor_map", "tma_load"]

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
