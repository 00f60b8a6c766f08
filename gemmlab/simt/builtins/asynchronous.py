"""What asynchronous instructions do on the simulated GPU: copies, products, and what they wait for.

Each is a function of the machine, the instruction, its operands with their arguments, and the line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.simt.builtins import mbarriers, tensor_copies, warpgroups

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine

BY_NAME: dict[str, Callable] = {
    "mbarrier_init": mbarriers.init,
    "mbarrier_arrive": mbarriers.arrive,
    "mbarrier_arrive_expect": mbarriers.arrive,
    "mbarrier_wait": mbarriers.wait,
    "fence_mbarrier_init": mbarriers.fence_init,
    "fence_proxy_async": mbarriers.fence_proxy,
    "tma_load": tensor_copies.load,
    "tma_store": tensor_copies.store,
    "tma_commit": tensor_copies.commit,
    "tma_wait_read": tensor_copies.wait_read,
    "fence_tensor_map": tensor_copies.fence_map,
    "wgmma_fence": warpgroups.fence,
    "wgmma_commit": warpgroups.commit,
}
OF_WARPGROUP: dict[str, Callable] = {
    "wgmma": warpgroups.multiply,
    "async_wait": warpgroups.wait,
    "setmaxnreg": warpgroups.move_registers,
}


def meaning(instruction: Instruction) -> Callable | None:
    """What an asynchronous instruction does; None for one that is none."""
    if instruction.name in BY_NAME:
        return BY_NAME[instruction.name]
    return OF_WARPGROUP[instruction.kind] if instruction.lanes == WARPGROUP else None


def execute(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
    """Execute it; warpgroups have to run by themselves, because they wait for each other."""
    if m.under_way is None:
        m.loops.divide()
    meaning(instruction)(m, instruction, bound, line)
