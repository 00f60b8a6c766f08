"""Random accesses, judged by the simulator and by vector clocks, in plain Python.

    python -m benchmarks.simulator.fuzz.races 5000 --seed 1

A program is a list of steps, each the same for all lanes: a barrier, a barrier of one block, a wait
of some lanes of each warp, or a read, a write or an atomic of an element of each lane's own. One
kernel runs them all, in global memory and, for the same elements, in shared memory.
Every second program is about masks: two or three lanes of one warp touch one element, one after the
other, with waits between, so that it depends on the masks of these alone whether there is a race.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy import int32

from gemmlab import cuda, simulate

THREADS = 64
LANES = (0, 1, 2, 3, 17, 32, 33, 64, 65, 96)  # that touch memory: of two blocks, of four warps
ELEMENTS = 3
BARRIER, OF_BLOCK, WARP, READ, WRITE, ATOMIC = range(6)
ALL = 0xFFFFFFFF
MASKS = (ALL, ALL, 0b11, 0b110, 0x0002000F)
# What lanes do in turn in a program about masks.
ORDERS = (
    *((WRITE, READ), (READ, WRITE), (ATOMIC, READ), (READ, ATOMIC), (ATOMIC, WRITE)),
    *((WRITE, READ, READ), (READ, READ, WRITE), (WRITE, WRITE, READ)),
)


@dataclass(frozen=True)
class Step:
    """What the lanes do: `at` has the element of each of `LANES`, -1 for none.

    which : the block that waits, or the mask of the lanes of each warp that do
    values : what is written
    """

    op: int
    which: int = 0
    at: tuple[int, ...] = (-1,) * len(LANES)
    values: tuple[int, ...] = (0,) * len(LANES)


def programs(count: int, seed: int, masks: tuple[int, ...] = MASKS) -> Iterator[list[Step]]:
    """Random programs, the same for the same seed."""
    rng = random.Random(seed)
    for number in range(count):
        if number % 2:
            yield _about_masks(rng, masks)
            continue
        program = []
        for _ in range(rng.randint(2, 9)):
            op = rng.choice([BARRIER, OF_BLOCK, WARP, WARP, READ, READ, WRITE, WRITE, ATOMIC])
            if op < READ:
                which = rng.choice(masks) if op == WARP else rng.randrange(2)
                program.append(Step(op, which))
                continue
            few = rng.random()
            at = [rng.randrange(ELEMENTS) if rng.random() < few else -1 for _ in LANES]
            values = [rng.choice([1, 1, 1, 2]) for _ in LANES]
            program.append(Step(op, 0, tuple(at), tuple(values)))
        yield program


def _about_masks(rng: random.Random, masks: tuple[int, ...]) -> list[Step]:
    """A few lanes of the first warp that touch an element in turn, with waits between."""
    program: list[Step] = []
    ops, known = rng.choice(ORDERS), sorted(set(masks))
    two = rng.sample(known, min(2, len(known)))
    for op, lane in zip(ops, rng.sample(range(4), len(ops)), strict=True):
        if program:
            program += [Step(WARP, rng.choice(two)) for _ in range(rng.randint(1, 3))]
        at, values = ([missing] * len(LANES) for missing in (-1, 0))
        at[lane], values[lane] = 0, rng.choice([1, 2])
        program.append(Step(op, 0, tuple(at), tuple(values)))
    return program


# ------------------------------------------------------------------------------ by vector clocks


@dataclass
class Touch:
    """What a lane does in a step to an element of a memory, at a time of its own clock.

    known : of each lane, up to which time its touches come before this one
    """

    op: int
    place: tuple
    value: int
    lane: int
    time: int
    known: dict[int, int]
    step: int


@dataclass
class Clocks:
    """For each lane, up to which time it knows of each lane."""

    known: dict[int, dict[int, int]] = field(
        default_factory=lambda: {lane: dict.fromkeys(LANES, 0) for lane in LANES}
    )

    def wait(self, lanes: list[int]) -> None:
        """Let the lanes wait: each knows then what any of them knows, and is a time later."""
        together = {a: max((self.known[lane][a] for lane in lanes), default=0) for a in LANES}
        for lane in lanes:
            self.known[lane] = together | {lane: together[lane] + 1}


def touches(program: list[Step], shared: bool) -> list[Touch]:
    """What happens, with what each lane knows at the time."""
    clocks, found = Clocks(), []
    for lane in LANES:
        clocks.known[lane][lane] = 1
    for number, step in enumerate(program):
        if step.op == BARRIER:
            for block in (0, 1):
                clocks.wait([lane for lane in LANES if lane // THREADS == block])
        elif step.op == OF_BLOCK:
            clocks.wait([lane for lane in LANES if lane // THREADS == step.which])
        elif step.op == WARP:
            for warp in range(2 * THREADS // 32):
                named = [lane for lane in LANES if lane // 32 == warp]
                clocks.wait([lane for lane in named if step.which >> lane % 32 & 1])
        for lane, at, value in zip(LANES, step.at, step.values, strict=True):
            if at >= 0:
                known = clocks.known[lane]
                place = (lane // THREADS if shared else 0, at)
                found.append(Touch(step.op, place, value, lane, known[lane], dict(known), number))
    return found


def before(a: Touch, b: Touch) -> bool:
    """Whether a comes before b by what their lanes have waited for, or by being of one lane."""
    if a.lane == b.lane:
        return a.step < b.step
    return a.time <= b.known[a.lane]


def races(program: list[Step], shared: bool) -> bool:
    """Whether two touches clash that nothing orders.

    Two writes of the same value do not; nor does one that is overwritten, in order, by the value
    that the other one writes.
    """
    seen = touches(program, shared)
    for a, b in combinations(seen, 2):
        if a.place != b.place or a.lane == b.lane or before(a, b):
            continue
        if (a.op, b.op) == (WRITE, WRITE):
            later = [
                c for c in seen
                if c.op == WRITE and c.place == a.place and c.step < b.step
                and before(a, c) and not before(c, b)
            ]  # fmt: skip
            if a.value != b.value and not any(c.value == b.value for c in later):
                return True
        elif WRITE in (a.op, b.op) or (a.op == ATOMIC) != (b.op == ATOMIC):
            return True
    return False


# ---------------------------------------------------------------------------- by the simulator


def in_global_memory(ops, which, at, values, x, out):
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    for step in range(ops.size):
        op = ops[step]
        e = at[step, i]
        if op == BARRIER:
            cuda.syncthreads()
        if op == OF_BLOCK and cuda.blockIdx.x == which[step]:
            cuda.syncthreads()
        if op == WARP and (which[step] >> (t % 32)) & 1:
            cuda.syncwarp(which[step])
        if e >= 0:
            if op == READ:
                out[i] = x[e]
            if op == WRITE:
                x[e] = values[step, i]
            if op == ATOMIC:
                cuda.atomic.add(x, e, values[step, i])


def in_shared_memory(ops, which, at, values, x, out):
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    s = cuda.shared.array(ELEMENTS, int32)
    if t < ELEMENTS:
        s[t] = 0
    cuda.syncthreads()
    for step in range(ops.size):
        op = ops[step]
        e = at[step, i]
        if op == BARRIER:
            cuda.syncthreads()
        if op == OF_BLOCK and cuda.blockIdx.x == which[step]:
            cuda.syncthreads()
        if op == WARP and (which[step] >> (t % 32)) & 1:
            cuda.syncwarp(which[step])
        if e >= 0:
            if op == READ:
                out[i] = s[e]
            if op == WRITE:
                s[e] = values[step, i]
            if op == ATOMIC:
                cuda.atomic.add(s, e, values[step, i])


def simulated(program: list[Step], shared: bool) -> bool:
    """Whether the simulator finds a race."""
    kernel = in_shared_memory if shared else in_global_memory
    at, values = np.full((2, len(program), 2 * THREADS), -1)
    for i, step in enumerate(program):
        at[i, LANES], values[i, LANES] = step.at, step.values
    ops, which = np.array([(s.op, s.which) for s in program], np.int64).T.copy()
    x, out = np.zeros(ELEMENTS, np.int32), np.zeros(2 * THREADS, np.int32)
    report = simulate(kernel, 2, THREADS, ops, which, at, values, x, out, on_hazard="collect")
    kinds = {hazard.kind for hazard in report.hazards}
    if kinds - {"shared-race" if shared else "global-race"}:
        raise AssertionError(f"{kinds} in {program}")
    return bool(kinds)


def differences(
    count: int, seed: int, masks: tuple[int, ...] = MASKS
) -> tuple[list[list[Step]], list[list[Step]]]:
    """The programs in which the simulator reports a race that is none, and misses one."""
    false: list[list[Step]] = []
    missed: list[list[Step]] = []
    for program in programs(count, seed, masks):
        for shared in (False, True):
            found, right = simulated(program, shared), races(program, shared)
            if found != right:
                (false if found else missed).append(program)
    return false, missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for masks in (MASKS, (ALL,)):
        reported, unseen = differences(arguments.count, arguments.seed, masks)
        for verdict, found in (("reported, though none", reported), ("missed", unseen)):
            print(f"{len(found)} of {2 * arguments.count} races {verdict}, masks {masks}")
            for example in found[:3]:
                print(*example, sep="\n", end="\n\n")
