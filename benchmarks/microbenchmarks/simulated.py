"""Microbenchmarks on the simulated SM; `python -m benchmarks.microbenchmarks.simulated` prints all.

A turn of a loop is repeated by hand, and what it asks of memory follows from its lanes' addresses.
"""

import re
import sys
from collections.abc import Iterable

import numpy as np

from benchmarks.microbenchmarks import LOOPS, microbenchmark
from benchmarks.microbenchmarks.listings import TARGET, listings
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.simulation import simulate
from gemmlab.compiled.sm.streams import Level, stream
from gemmlab.measure import microbenchmarks as results
from gemmlab.model import transactions

WIDTHS = {"64": 8, "128": 16}
MATRICES = 4  # of an ldmatrix: a wavefront each
SHORT, LONG = 3, 9  # turns whose difference counts
APART = 2  # instructions more that each scheduler has to do before: after a pass no two are in step
LEFT_OUT = re.compile(
    # they take other ways at each turn, or more than an SM
    "divergent|not_taken|phases|order|succession|pairs|all_sms|global|f32_.*rate|stg|ldg_l2.*rate|stream"
    "|tma|mbarrier|together"
)


_LISTINGS: dict[str, Listing] = {}


def read(names: Iterable[str]) -> None:
    """Compile microbenchmarks together, before their listings are asked for one by one."""
    texts = {name: microbenchmark(name).ptx(TARGET) for name in names}
    made = listings(texts.values())
    _LISTINGS.update({name: made[text] for name, text in texts.items()})


def listing(name: str) -> Listing:
    if name not in _LISTINGS:
        read([name])
    return _LISTINGS[name]


def turn(code, taken):
    """Indices of the instructions of one turn; `taken`: its conditional branches forward are."""
    at = {i.address: k for k, i in enumerate(code.instructions)}
    targets = {
        k: at[int(i.operands[-1], 16)]
        for k, i in enumerate(code.instructions)
        if i.name == "BRA" and i.operands[-1].startswith("0x")
    }
    last, first = next((k, target) for k, target in targets.items() if target < k)
    indices, k = [], first
    while k != last:
        indices.append(k)
        goes = k in targets and (taken or not code.instructions[k].guard)
        k = targets[k] if goes else k + 1
    return [*indices, last]


def cycles(loop, instruction):
    """What an instruction asks of the pipe of shared memory and L1."""
    if instruction.guard == "!PT":
        return 0
    width = max([WIDTHS.get(m, 4) for m in instruction.modifiers], default=4)
    lanes, all_ = np.array(loop.lanes, np.int64), np.ones(32, bool)
    match instruction.name:
        case "LDS":
            return int(transactions.load_wavefronts(lanes, all_, width))
        case "STS":
            return int(transactions.wavefronts(lanes, all_, width))
        case "ATOMS":  # lanes at one address, one after the other
            return int(np.unique(lanes, return_counts=True)[1].max())
        case "LDG":
            lanes = np.zeros(32, np.int64) if loop.ring else lanes
            return int(transactions.l1_cycles(lanes, all_, width))
        case "LDSM":
            return MATRICES
        case "SHFL":
            return 1
        case "LDGSTS":  # a load, if not past L1, and a store, of neighbouring words
            return width // 4 + ("BYPASS" not in instruction.modifiers)
    return 0


def level(name):
    if "dram" in name:
        return Level.DRAM
    return Level.L2 if "_l2_" in f"{name}_" or name.startswith("ldgsts_128") else Level.L1


def simulated(name, warps):
    """Cycles of a warp for each instruction that the microbenchmark counts."""
    loop, code = microbenchmark(name), listing(name)
    indices = turn(code, name == "branch_taken")
    asked = [cycles(loop, code.instructions[i]) for i in indices]
    beyond = [int(code.instructions[i].name in ("LDG", "LDGSTS")) for i in indices]  # of L1
    short, long = (SHORT, LONG) if len(indices) < 1000 else (2, 4)
    apart = 0 if "bar" in name else APART
    took = []
    for count in (short, long):
        each = []
        for scheduler in range(4):
            first = [indices[-2]] * apart * scheduler
            order = [*indices, *first, *indices * (count - 1)]
            needs, sectors = (
                [*one, *[0] * len(first), *one * (count - 1)] for one in (asked, beyond)
            )
            each.append(stream(order, needs, sectors, level(name)))
        took.append(simulate(code, [[each[w % 4] for w in range(warps)]]).cycles)
    return (took[1] - took[0]) / (long - short) / loop.count


def phases(blocks):
    """When each of some blocks ends that load, store and multiply in turn: cycles for a step."""
    loop, code = microbenchmark(f"phases_of_{blocks}_blocks"), listing(f"phases_of_{blocks}_blocks")
    indices = turn(code, False)
    asked = [cycles(loop, code.instructions[i]) for i in indices]
    sectors = [4 * (code.instructions[i].name == "LDG") for i in indices]
    steps = loop.passes * loop.turns
    warp = stream(indices * steps, asked * steps, sectors * steps, Level.L2)
    return simulate(code, [[warp] * max(loop.warps)] * blocks).block_ends / loop.turns


def rows(pattern="."):
    """(name, warps, measured, simulated) of all loops whose names match."""
    recorded = results.load("h200")
    names = [loop.name for loop in LOOPS if re.search(pattern, loop.name)]
    names = [name for name in names if not LEFT_OUT.search(name)]
    read(names)
    for name in names:
        for warps in microbenchmark(name).warps:
            yield name, warps, recorded.loop(name, warps).each, simulated(name, warps)


if __name__ == "__main__":
    errors = []
    for name, warps, measured, found in rows(*sys.argv[1:]):
        errors.append(found / measured - 1)
        print(f"{name:36s} {warps:2d} {measured:9.3f} {found:9.3f} {100 * errors[-1]:+6.1f}%")
    size = np.abs(errors)
    print(
        f"{len(size)} loops: mean {100 * size.mean():.1f}%, above 5%: {(size > 0.05).sum()}, "
        f"above 10%: {(size > 0.1).sum()}"
    )
