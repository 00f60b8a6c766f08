"""Barriers in shared memory for asynchronous copies: `mbarrier`, and the fences that go with it.

An mbarrier counts two things: threads that arrive, and bytes that copies bring. A *phase* of it is
complete when as many threads have arrived as `mbarrier_init` said, and all bytes have come that
were expected; then the next one begins. A thread waits for a phase by its parity, 0 for the first.
Source: PTX ISA 9.0, sections "mbarrier", "membar / fence" and "Async proxy".
"""

from __future__ import annotations

from gemmlab.instructions.instruction import Instruction, Memory, Registers

__all__ = [
    "fence_mbarrier_init",
    "fence_proxy_async",
    "mbarrier_arrive",
    "mbarrier_arrive_expect",
    "mbarrier_init",
    "mbarrier_wait",
]

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
fence_mbarrier_init = Instruction(
    "fence_mbarrier_init", "fence.mbarrier_init.release.cluster", (), None, "sm_90", "fence"
)
fence_proxy_async = Instruction(
    "fence_proxy_async", "fence.proxy.async.shared::cta", (), None, "sm_90", "fence"
)
