"""An SM shares with all others the clock, L2 and device memory; a launch takes time of its own."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from gemmlab import Device
from gemmlab.compiled.forecast.executed import Executed, busy_sms, l2_gain, l2_share
from gemmlab.compiled.forecast.power import Load, power
from gemmlab.compiled.forecast.traffic import weights
from gemmlab.compiled.sm.facts import Facts, facts
from gemmlab.compiled.sm.streams import Level, Stream
from gemmlab.model.transactions import SECTOR

NOBODY = -1  # in a row of sectors: a lane that takes no part
FULL = Load()  # Tensor Cores are busy all the time
OF_WARPGROUPS = {"HGMMA", "QGMMA"}  # products of 16 bits, and of 8
QUARTERS = 1 / 4, 1 / 2, 3 / 4, 1  # of the SMs, for which a GPU's clocks are known


def clock(executed: Executed, load: Load = FULL) -> float:
    """Return the SMs' clock in a launch [Hz]: the more power it takes, the lower it is.

    Where Tensor Cores are at work it is lower from the beginning. Where the power is not known it
    falls with their use; without use it is that of few SMs.
    """
    known, device = facts(executed.device.name), executed.device
    names, board = {i.name for i in executed.code.instructions}, power(device.name)
    if board and load.watts is not None:
        return board.clock(full_clock(executed), load.watts)
    if OF_WARPGROUPS & names:
        clocks, full = known.wgmma_clocks, known.wgmma_use
    elif "HMMA" in names:
        clocks, full = known.tensor_clocks, known.tensor_use
    else:
        return device.clock
    lowest = float(np.interp(busy_sms(executed) / device.sms, QUARTERS, clocks))
    return clocks[0] - (clocks[0] - lowest) * min(1.0, load.use / full)


def full_clock(executed: Executed) -> float:
    """Return the clock that a launch has where no limit of power holds it back [Hz]."""
    device, names = executed.device, {i.name for i in executed.code.instructions}
    tensor = ({"HMMA"} | OF_WARPGROUPS) & names
    return (device.tensor_clock if tensor else None) or device.clock


def with_memory(device: Device, load: Load, times: Mapping[str, float]) -> Load:
    """Return the load with the power of device memory, which an SM by itself does not tell."""
    board = power(device.name)
    if board is None or load.watts is None:
        return load
    part = times["dram"] / max(times.values())
    memory = board.energies["dram"] * stream_bandwidth(device) * part
    return load._replace(watts=load.watts + memory, memory=memory)


def at_the_limit(executed: Executed, load: Load, seconds: float, in_a_row: bool = False) -> float:
    """Return the seconds that an SM's work takes at last, if one launch follows another.

    seconds : at the clock that a launch has at once
    in_a_row : without the pauses that timed launches have between them
    """
    board = power(executed.device.name)
    if board is None or load.watts is None:
        return seconds
    full, now = full_clock(executed), clock(executed, load)
    found = seconds
    for _ in range(4):  # the longer a launch, the less a pause leaves for it
        held = board.sustained(full, load, found, 0.0 if in_a_row else board.pause[0])
        found = seconds * now / held
    return found + board.onset(held, full, load.watts, found)


def sm_facts(executed: Executed, load: Load = FULL) -> Facts:
    """Return the facts of an SM among others that do the same, at the clock of such a load.

    L2 and device memory have clocks of their own, and give as much a second: device memory at the
    mean rate at which all arrays come. SMs without a block leave their share of it to others. What
    several blocks ask for comes from there once, so that all of them together get more of it; what
    they store is each one's own.
    """
    known, device = facts(executed.device.name), executed.device
    slower = device.clock / clock(executed, load)
    busy = busy_sms(executed)
    moved = sum(dram_bytes(executed)) or SECTOR
    of_memory = moved / dram_time(moved, device) / device.clock / busy
    return replace(
        known,
        l2_latency=known.l2_latency_for_all,
        l2_bytes_per_cycle=slower * l2_share(executed) * l2_gain(executed),
        dram_bytes_per_cycle=of_memory * slower * asked_again(executed),
        dram_stored_per_cycle=known.dram_stored_per_cycle
        * device.sms
        / busy
        * slower
        * stored_weight(executed),
    )


def asked_again(executed: Executed) -> float:
    """Count how often blocks read what comes from device memory once, at least 1."""
    if not executed.footprint:
        return 1.0
    mine = executed.share
    every, at_once = math.prod(mine.grid), mine.sms * mine.resident
    count = min(every, at_once) + executed.lost * max(0, every - at_once)
    each = SECTOR * executed.of_all(first_sectors) / mine.resident
    come = dram_bytes(executed)[0] - executed.of_all(stored_alone) * math.prod(mine.grid)
    return max(1.0, each * count / max(come, SECTOR))


def first_sectors(executed: Executed) -> int:
    """Count the sectors that the first round of blocks asks device memory for by a pattern."""
    first = executed.blocks(True)[: executed.share.resident]
    anywhere = executed.lacks(True).at
    return sum(_of_memory(s, anywhere)[0] for block in first for s in block)


@lru_cache(maxsize=16)
def dram_bytes(executed: Executed, cold: bool = True) -> tuple[int, int]:
    """Count what device memory moves for all blocks [B]: arrays once each, and the rest.

    The rest is of arrays in which lanes go anywhere, as bytes of a stream that take as long.
    """
    arrays = executed.runs[0][1].lacks(cold).arrays
    whole = executed.footprint - sum(executed.sizes[a] for a in arrays)
    anywhere = executed.of_all(lambda run: _anywhere(run, cold))
    return max(0, whole), round(SECTOR * anywhere / executed.count * math.prod(executed.share.grid))


def _anywhere(executed: Executed, cold: bool) -> int:
    """Count the sectors that device memory moves where lanes go anywhere."""
    at = executed.lacks(cold).at
    blocks = executed.blocks(cold) if at else []
    return sum(_of_memory(s, at)[1] for block in blocks for s in block)


def _of_memory(stream: Stream, anywhere: Collection[int]) -> tuple[int, int]:
    """Count the sectors that a warp has of device memory by a pattern, and from anywhere."""
    of_memory = stream.levels == Level.DRAM
    others = np.isin(stream.instructions, list(anywhere))
    return tuple(int(stream.moved[of_memory & its].sum()) for its in (~others, others))


@lru_cache(maxsize=16)  # of a launch it is asked for at each clock
def stored_alone(executed: Executed) -> int:
    """Count the bytes that a block, the first one executed, stores and does not read."""
    read, stored, boxes = set(), set(), 0
    for cost in (cost for visit in executed.visits for _, cost in visit.costs):
        its = cost.warps < executed.warps
        if cost.space == "tensor":
            boxes += int(cost.sectors[its].sum())
        elif cost.space == "global" and cost.op in ("load", "store"):
            (read if cost.op == "load" else stored).update(cost.pieces[its].ravel().tolist())
    return SECTOR * (boxes + len(stored - read - {NOBODY}))


def stored_weight(executed: Executed) -> float:
    """A sector that an SM stores counts as so many, by the time that L2 takes for it."""
    return l2_gain(executed) * weights(executed.device).written


def launch_latency(device: Device) -> float:
    """Return the time between events around a launch that does nothing [s], 0 if not known."""
    return device.launch_latency or 0.0


def dram_time(moved: float, device: Device) -> float:
    """Return the time to move so many bytes when L2 is full of lines that were written [s].

    Until it has given them up, each line that comes sends another one to memory.
    """
    first = min(moved, device.l2_bytes or 0)
    rate = facts(device.name).dram_bytes_per_cycle * device.sms * device.clock
    return first / rate + (moved - first) / stream_bandwidth(device)


def stream_bandwidth(device: Device) -> float:
    """Return what reading and writing reach together if that was measured, else the peak [B/s]."""
    return device.dram_copy_bandwidth or device.dram_bandwidth
