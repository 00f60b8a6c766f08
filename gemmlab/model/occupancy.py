"""Occupancy: how many thread blocks one SM holds at once, and how many waves a grid takes."""

from gemmlab.device import Device, architecture

# How an SM hands out its registers and its shared memory. Source: cuda_occupancy.h of the CUDA
# Toolkit 13.0, cudaOccRegAllocationGranularity, cudaOccSubPartitionsPerMultiprocessor and
# cudaOccSMemAllocationGranularity.
REGISTER_UNIT = 256  # registers: what a warp holds is a multiple of it
SUBPARTITIONS = 4  # of an SM, each with its warps and a quarter of the registers
SHARED_UNIT = 128  # what a block holds is a multiple of it, from Ampere on [B]
SHARED_UNIT_BEFORE = 256  # the same on older GPUs [B]
AMPERE = architecture("sm_80").capability


def resident_blocks(device: Device, threads: int, shared_bytes: int = 0, registers: int = 0) -> int:
    """Blocks that one SM holds at once: the tightest of four limits.

    threads, shared_bytes : per block; registers : per thread, 0 where not known (that limit is
    then left out).
    Raises ValueError for a block that no SM of `device` can hold.
    Source: NVIDIA CUDA C++ Programming Guide, "Hardware Multithreading", and cuda_occupancy.h.
    """
    check_block(device, threads, shared_bytes)
    warps = -(-threads // device.warp_size)
    limits = [device.blocks_per_sm, device.threads_per_sm // (warps * device.warp_size)]
    if shared_bytes:
        unit = SHARED_UNIT if device.compute_capability >= AMPERE else SHARED_UNIT_BEFORE
        reserved = device.shared_bytes_per_sm - device.shared_bytes_per_block  # for the system
        limits.append(device.shared_bytes_per_sm // _whole(shared_bytes + reserved, unit))
    if registers:
        per_warp = _whole(registers * device.warp_size, REGISTER_UNIT)
        per_subpartition = device.registers_per_sm // SUBPARTITIONS // per_warp
        limits.append(SUBPARTITIONS * per_subpartition // warps)
        if not limits[-1]:
            raise ValueError(
                f"a block of {threads} threads with {registers} registers each is too large: an SM "
                f"of {device.title} has {device.registers_per_sm} registers"
            )
    return min(limits)


def _whole(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit


def check_block(device: Device, threads: int, shared_bytes: int = 0) -> None:
    """Raise ValueError unless `device` can launch a block of this size."""
    if threads > device.threads_per_block:
        raise ValueError(
            f"a block of {threads} threads is too large: {device.title} allows at most "
            f"{device.threads_per_block} threads a block"
        )
    if shared_bytes > device.shared_bytes_per_block:
        raise ValueError(
            f"a block with {shared_bytes} B of shared memory is too large: {device.title} allows "
            f"at most {device.shared_bytes_per_block} B a block"
        )


def waves(device: Device, blocks: int, resident: int) -> int:
    """Rounds in which a grid of `blocks` runs, ⌈blocks / (SMs · resident)⌉."""
    return -(-blocks // (device.sms * resident))
