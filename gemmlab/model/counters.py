"""The counters: their names, and counts by these names.

A prediction, a measurement and the report of a simulated launch name the same things by the same
names, which are Nsight Compute's words.
"""

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

OPS = ("load", "store", "atomic")

# Transactions of the memories, and barriers.
TRANSACTIONS = {
    **{
        f"global_{op}_{what}": meaning
        for op in OPS
        for what, meaning in {
            "requests": f"{op}s in global memory, as warp instructions",
            "sectors": "32-byte sectors that they touch",
            "bytes": "bytes that their lanes ask for",
        }.items()
    },
    **{
        f"shared_{op}_{what}": meaning
        for op in OPS
        for what, meaning in {
            "requests": f"{op}s in shared memory, as warp instructions",
            "wavefronts": "passes that they take",
        }.items()
    },
    "shared_bank_conflicts": "wavefronts of shared memory beyond those that the accesses need",
    "tensor_copy_bytes": "bytes that the TMA copies to shared memory",
    "tensor_store_bytes": "bytes that the TMA copies from shared memory",
    "cluster_store_bytes": "bytes stored in shared memory of blocks of the cluster",
    "barriers": "waits of a whole block, each counted once a block",
    "l2_hits": "sectors that the L2 held",
    "l2_misses": "sectors that it did not hold",
    "dram_read_bytes": "bytes read from device memory",
    "dram_write_bytes": "bytes written to device memory",
}

# Warp instructions as the simulator counts them: one for each operation of the source.
INSTRUCTIONS = {
    "inst_executed": "warp instructions of all kinds",
    "thread_inst_executed": "their active lanes",
    "inst_fp": "arithmetic and comparisons of floats",
    "inst_integer": "arithmetic and comparisons of integers",
    "inst_control": "branches and loops",
    **{
        f"inst_{space}_{op}": f"{op}s in {space} memory"
        for space in ("global", "shared", "local", "constant")
        for op in ("load", "store")
    },
    "inst_atomic": "atomics",
    "inst_barrier": "waits of the block and of the grid",
    "inst_syncwarp": "waits of the warp, `cuda.syncwarp`",
    "inst_shuffle": "`cuda.shfl_*_sync`",
    "inst_vote": "`cuda.all_sync`, `any_sync`, `eq_sync`, `ballot_sync`, `match_*_sync`",
    "inst_mma": "matrix products of a warp",
    "inst_ldmatrix": "loads of matrices from shared memory",
    "inst_stmatrix": "stores of matrices to shared memory",
    "inst_wmma_load": "loads of WMMA fragments",
    "inst_wmma_store": "stores of WMMA fragments",
    "inst_convert": "conversions to packed formats",
    "inst_async_copy": "asynchronous copies begun",
    "inst_async_commit": "groups of them committed",
    "inst_async_wait": "waits for such groups",
    "inst_tensor_copy": "copies of boxes of a matrix by the TMA begun",
    "inst_tensor_store": "copies of boxes back to a matrix begun",
    "inst_async_store": "stores to shared memory of blocks of the cluster begun",
    "inst_mbarrier": "arrivals and waits at mbarriers, and their initialisation",
    "inst_wgmma": "matrix products of a warpgroup, each counted once for each of its four warps",
    "inst_fence": "fences of mbarriers, of proxies, and before `wgmma`",
    "inst_setmaxnreg": "changes of the number of registers",
}


# Kinds of them that a GPU is slow in; they are counted beside the others, among which they are.
FLOAT64 = "float64"  # arithmetic and comparisons of float64
DIVISION = "division"  # `//` and `%` of integers
MARKS = frozenset((FLOAT64, DIVISION))


class Counters(Counter):
    """Counts by name: 0 for a counter that did not occur, KeyError for a name that is none.

    >>> counted = Counters(barriers=3)
    >>> counted["barriers"], counted["l2_hits"]
    (3, 0)
    """

    names: ClassVar[Mapping[str, str]] = TRANSACTIONS | INSTRUCTIONS

    def __missing__(self, name: str) -> int:
        if name in self.names:
            return 0
        raise KeyError(f"{name!r} is no counter; use one of {', '.join(self.names)}")


class TransactionCounters(Counters):
    """Counts by the names of `TRANSACTIONS`."""

    names = TRANSACTIONS


class InstructionCounters(Counters):
    """Counts by the names of `INSTRUCTIONS`."""

    names = INSTRUCTIONS
