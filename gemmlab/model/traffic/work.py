"""What one launch of a kernel asks of the machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """What one launch asks of the machine.

    counters : exact transactions, by the names that the simulator and Nsight Compute use
    flops : operations executed, whole tiles included [FLOP]
    l2_bytes : traffic between L1 and L2 if L1 kept all that a block rereads [B]
    l1_wavefronts : passes through the L1 and shared-memory pipe, one a cycle; where a global access
        waits for its tags instead, the cycles that these take (`transactions.l1_cycles`)
    blocks, threads, shared_bytes : of the launch; threads and bytes are per block
    chain : (round trips to memory, FMAs) that one thread must do one after the other
    """

    counters: Counter[str]
    flops: int
    l2_bytes: int
    l1_wavefronts: int
    blocks: int
    threads: int
    shared_bytes: int
    chain: tuple[int, int]
