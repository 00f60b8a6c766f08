"""Copies of boxes of a matrix by the Tensor Memory Accelerator (TMA), and barriers for them.

A *tensor map* says which matrix in global memory is cut into which boxes; the TMA copies a box to
shared memory, or back. An *mbarrier* counts two things: threads that arrive, and bytes that copies
bring. A *phase* of it is complete when as many threads have arrived as `mbarrier_init` said, and
all bytes have come that were expected; then the next one begins. A thread waits for a phase by its
parity, 0 for the first. Source: CUDA Driver API, cuTensorMapEncodeTiled; PTX ISA 9.0, sections
"cp.async.bulk.tensor", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group",
"fence.proxy.tensormap", "mbarrier", "membar / fence" and "Async proxy".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.instructions.instruction import Box, Instruction, Literal, Memory, Registers, named_in

BARRIER = Memory("barrier", "shared", "write", bytes=8)


def _mbarrier(name: str, ptx: str, *operands: Registers, requires: str = "sm_90") -> Instruction:
    return Instruction(name, ptx, (BARRIER, *operands), None, requires, "mbarrier")


mbarrier_init = _mbarrier(
    "mbarrier_init", "mbarrier.init.shared::cta.b64 [{barrier}], {count}",
    Registers("count", "uint32"), requires="sm_80",
)  # fmt: skip
mbarrier_arrive = _mbarrier("mbarrier_arrive", "mbarrier.arrive.shared::cta.b64 _, [{barrier}]")
mbarrier_arrive_expect = _mbarrier(
    "mbarrier_arrive_expect",
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{barrier}], {bytes}",
    Registers("bytes", "uint32"),
)
mbarrier_wait = _mbarrier(
    "mbarrier_wait",
    "{{ .reg .pred done; again: "
    "mbarrier.try_wait.parity.shared::cta.b64 done, [{barrier}], {parity}; @!done bra again; }}",
    Registers("parity", "uint32"),
)
mbarrier_arrive_remote = _mbarrier(
    "mbarrier_arrive_remote",
    "{{ .reg .b32 there; mapa.shared::cluster.u32 there, {barrier}, {rank}; "
    "mbarrier.arrive.shared::cluster.b64 _, [there]; }}",
    Registers("rank", "uint32"),
)
fence_mbarrier_init = Instruction(
    "fence_mbarrier_init", "fence.mbarrier_init.release.cluster", (), None, "sm_90", "fence"
)
fence_proxy_async = Instruction(
    "fence_proxy_async", "fence.proxy.async.shared::cta", (), None, "sm_90", "fence"
)


ROW = 128  # bytes of a row of a box: those of the swizzle
MOST = 256  # rows of a box
STEP = 16  # bytes, of which rows of the matrix are multiples


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A matrix, row-major, cut into boxes of `rows` rows of 128 bytes: an argument of a kernel.

    A box lies in shared memory row after row, in the 128-byte swizzle: row r has its eight pieces
    of 16 bytes in the order p ^ (r % 8). What a box has beyond the matrix is zero.
    """

    array: Any
    rows: int


def tensor_map(array: Any, rows: int) -> Any:
    """Give the map of a matrix for boxes of so many rows, where the matrix is: on the GPU, or here.

    array : (m, n) with contiguous rows, of NumPy or in a GPU's memory; it must outlive the map

    Raises ValueError for arrays that TMA cannot copy.

    >>> import numpy as np
    >>> tensor_map(np.zeros((128, 24), np.float16), 64).rows
    64
    >>> tensor_map(np.zeros((128, 20), np.float16), 64)
    Traceback (most recent call last):
    ValueError: rows of 40 B cannot be copied by TMA; use a multiple of 16 B
    """
    itemsize = array.dtype.itemsize
    if array.ndim != 2 or array.strides[1] != itemsize:
        raise ValueError(f"an array of shape {array.shape} and strides {array.strides} B cannot be "
                         "copied by TMA; use a matrix with contiguous rows")  # fmt: skip
    if array.strides[0] % STEP:
        raise ValueError(
            f"rows of {array.strides[0]} B cannot be copied by TMA; use a multiple of {STEP} B"
        )
    if not 1 <= rows <= MOST:
        raise ValueError(f"rows={rows}; a box has 1 to {MOST}")
    if not hasattr(array, "__cuda_array_interface__"):
        return TensorMap(array, rows)
    from gemmlab.instructions.host import encoded

    return encoded(array, rows, ROW // itemsize)


def map_bytes(address: int, shape: tuple[int, int], dtype: str, rows: int) -> bytes:
    """The 128 bytes of the map of a matrix at an address of the GPU, whose rows have no gaps."""
    from gemmlab.instructions.host import described

    itemsize = np.dtype(dtype).itemsize
    columns = ROW // itemsize
    return described(address, shape, shape[1] * itemsize, dtype, rows, columns)


tma_load = Instruction(
    name="tma_load",
    ptx="cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
    "[{to}], [{map}, {{{map_column}, {map_row}}}], [{barrier}]",
    operands=(Memory("to", "shared", "write", bytes=16), Box("map"), BARRIER),
    result=None,
    requires="sm_90",
    kind="tensor_copy",
)
tma_load_multicast = Instruction(
    name="tma_load_multicast",
    ptx="{{ .reg .b16 mask; cvt.u16.u32 mask, {ranks}; "
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    ".multicast::cluster [{to}], [{map}, {{{map_column}, {map_row}}}], [{barrier}], mask; }}",
    operands=(
        Memory("to", "shared", "write", bytes=16), Box("map"), BARRIER,
        Registers("ranks", "uint32"),
    ),
    result=None,
    requires="sm_90",
    kind="tensor_copy",
)  # fmt: skip
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

__all__ = ["TensorMap", "tensor_map", *named_in(globals())]
