"""The work of a launch: its transactions, operations, traffic and dependent steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gemmlab.tiling import WARP

WIDEST = 16  # bytes of a lane that one load moves


@dataclass(frozen=True)
class Work:
    """The work is what one launch asks of the machine.

    counters : exact transactions, by the names that the simulator and Nsight Compute use
    flops : operations that each pipe executes, whole tiles included [FLOP]; a pipe is named by its
        format, as in `Device.peak`: "float32" for FMAs, "float16" or "tf32" for Tensor Cores
    l2_bytes : traffic between L1 and L2 if L1 kept all that a block rereads [B]
    l1_wavefronts : of the L1 and shared-memory pipe, one a cycle; where a global access
        waits for its tags instead, the cycles that these take (`transactions.l1_cycles`)
    chain : (round trips to DRAM, FMAs) that one thread must do one after the other
    instructions : of warps, at least: their FMAs, and loads of 128 bits a lane, which is the most
        that one instruction moves. Stores, addresses and loops come on top
    block_counters, block_wavefronts : what each block adds to `counters` and `l1_wavefronts`, where
        blocks are persistent: how many there are is the device's, see `Launched.launch`
    """

    counters: Counter[str]
    flops: Mapping[str, int]
    l2_bytes: int
    l1_wavefronts: int
    chain: tuple[int, int]
    instructions: int = 0
    block_counters: Counter[str] = field(default_factory=Counter)
    block_wavefronts: int = 0

    def with_blocks(self, blocks: int) -> Work:
        """The work where so many blocks are launched: what they add is added."""
        counters = Counter(self.counters)
        counters.update({name: blocks * count for name, count in self.block_counters.items()})
        return replace(
            self,
            counters=counters,
            l1_wavefronts=self.l1_wavefronts + blocks * self.block_wavefronts,
            block_counters=Counter(),
            block_wavefronts=0,
        )


def instructions(flops: int, lane_bytes: int) -> int:
    """Instructions of warps that FMAs and loads take at least: an FMA for each lane, 128 bits."""
    return flops // (2 * WARP) + lane_bytes // WIDEST


def together(*works: Work) -> Work:
    """The work of launches that follow each other."""
    counters: Counter[str] = Counter()
    flops: Counter[str] = Counter()
    block_counters: Counter[str] = Counter()
    for work in works:
        counters.update(work.counters)
        flops.update(work.flops)
        block_counters.update(work.block_counters)
    return Work(
        counters=counters,
        flops=dict(flops),
        l2_bytes=sum(work.l2_bytes for work in works),
        l1_wavefronts=sum(work.l1_wavefronts for work in works),
        chain=(sum(work.chain[0] for work in works), sum(work.chain[1] for work in works)),
        instructions=sum(work.instructions for work in works),
        block_counters=block_counters,
        block_wavefronts=sum(work.block_wavefronts for work in works),
    )
