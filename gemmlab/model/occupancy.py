"""Occupancy: how many thread blocks one SM holds at once, and how many waves a grid takes."""

from __future__ import annotations

from gemmlab.device import Device


def resident_blocks(device: Device, threads: int, shared_bytes: int = 0, registers: int = 0) -> int:
    """Blocks that one SM holds at once: the tightest of four limits, at least 1.

    threads : per block; registers : per thread, 0 where not known (that limit is then left out).
    Raises ValueError for a block that no SM of `device` can hold.
    Source: NVIDIA CUDA C++ Programming Guide, "Hardware Multithreading".
    """
    check_block(device, threads, shared_bytes)
    whole_warps = -(-threads // device.warp_size) * device.warp_size
    limits = [device.blocks_per_sm, device.threads_per_sm // whole_warps]
    if shared_bytes:
        limits.append(device.shared_bytes_per_sm // shared_bytes)
    if registers:
        limits.append(device.registers_per_sm // (registers * whole_warps))
    return max(1, min(limits))


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
