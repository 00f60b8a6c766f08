"""Lanes of a warp are directed together, and work together.

Branches, calls, ends and barriers direct them: lanes that go the same way execute as a group. In
votes and shuffles they work together; in products of matrices too (`warp_products`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.state import Mask, Operands, State, Step, warps_with
from gemmlab.compiled.sass.listing import BYTES, Instruction, Listing
from gemmlab.tiling import WARP

LANES = np.arange(WARP)


def by_warp(row: Any, lanes: int) -> np.ndarray:
    """Return a row as (warps, 32)."""
    return np.broadcast_to(row, lanes).reshape(-1, WARP)


def first_lane(row: np.ndarray, mask: Mask) -> np.ndarray:
    """Give each lane what the first lane of its warp has that is in `mask`."""
    if row.ndim == 0:
        return row
    if mask is None:
        return np.repeat(row[::WARP], WARP)
    first = mask.reshape(-1, WARP).argmax(1)
    return np.repeat(row.reshape(-1, WARP)[np.arange(len(first)), first], WARP)


def taking_part(mask: Mask, lanes: int) -> np.ndarray:
    """(warps, 32): the lanes in `mask`."""
    on = np.ones(lanes, bool) if mask is None else mask
    return on.reshape(-1, WARP)


def ballots(holds: np.ndarray) -> np.ndarray:
    """Give each lane the truth values (warps, 32) of its warp, a bit each."""
    bits = (holds.astype(np.uint64) << LANES.astype(np.uint64)).sum(1)
    return np.repeat(bits.astype(np.uint32), WARP)


def vote(o: Operands) -> Step:
    """D = the lanes for which the predicate holds; p = whether it does for any, or all of them."""
    mode = o.instruction.modifiers[0]
    predicates = [i for i in range(len(o)) if o.is_predicate(i)]
    asked = o.predicate(predicates[-1])
    out = o.to_predicate(predicates[0]) if len(predicates) > 1 else None
    registers = [i for i in range(len(o)) if i not in predicates]
    write = o.to(registers[0]) if registers else None

    def run(mask: Mask) -> None:
        on = taking_part(mask, o.state.lanes)
        holds = by_warp(asked(), o.state.lanes) & on
        if write is not None:
            write(ballots(holds), mask)
        if out is not None:
            ones, all_ = holds.any(1), (holds == on).all(1)
            value = {"ANY": ones, "ALL": all_, "EQ": all_ | ~ones}[mode]
            out(np.repeat(value, WARP), mask)

    return run


def shfl(o: Operands) -> Step:
    """D = the a of another lane; p = whether there is one in the segment.

    Source: PTX ISA, shfl.sync: c holds a clamp in bits 0-4 and the segments' mask in bits 8-12.
    """
    mode = o.instruction.modifiers[0]
    found, write = o.to_predicate(0), o.to(1)
    a, b, c = (o.word(i) for i in (2, 3, 4))

    def run(mask: Mask) -> None:
        lanes = o.state.lanes
        value, step, bound = (by_warp(read(), lanes) for read in (a, b, c))
        step, bound = (step & 31).astype(int), bound.astype(int)
        clamp, segment = bound & 31, bound >> 8 & 31
        least, most = LANES & segment, (LANES & segment) | (clamp & ~segment)
        source = {
            "IDX": least | (step & ~segment),
            "UP": LANES - step,
            "DOWN": LANES + step,
            "BFLY": LANES ^ step,
        }[mode]
        inside = source >= most if mode == "UP" else source <= most
        source = np.where(inside, source, LANES)
        found(inside.ravel(), mask)
        write(np.take_along_axis(value, source, 1).ravel(), mask)

    return run


def redux(o: Operands) -> Step:
    """The uniform d = a sum, an extreme or a bitwise function of a over the lanes."""
    flags = o.instruction.modifiers
    signed = "S32" in flags
    write, a = o.to(0), o.word(1)
    name = next((f for f in flags if f in ("SUM", "MIN", "MAX", "AND", "OR", "XOR")), "AND")
    kind = np.int32 if signed else np.uint32
    info = np.iinfo(kind)
    function, neutral = {
        "SUM": (np.add, 0),
        "MIN": (np.minimum, info.max),
        "MAX": (np.maximum, info.min),
        "AND": (np.bitwise_and, -1 if signed else info.max),
        "OR": (np.bitwise_or, 0),
        "XOR": (np.bitwise_xor, 0),
    }[name]

    def run(mask: Mask) -> None:
        values = by_warp(a(), o.state.lanes).view(kind)
        values = np.where(taking_part(mask, o.state.lanes), values, kind(neutral))
        write(np.repeat(function.reduce(values, axis=1, dtype=kind).view(np.uint32), WARP), mask)

    return run


def match(o: Operands) -> Step:
    """D = the lanes that have the same a; ALL: all lanes if these have, and p, else none."""
    first = 1 if o.is_predicate(0) else 0
    read = o.double_word if "U64" in o.instruction.modifiers else o.word
    read, write = read(first + 1), o.to(first)
    holds = o.to_predicate(0) if first else None

    def run(mask: Mask) -> None:
        values = by_warp(read(), o.state.lanes)
        same = values[:, :, None] == values[:, None, :]
        same &= taking_part(mask, o.state.lanes)[:, None, :]
        bits = (same.astype(np.uint64) << LANES.astype(np.uint64)).sum(2).astype(np.uint32)
        if holds is not None:
            alike = bits == ballots(taking_part(mask, o.state.lanes)).reshape(-1, WARP)
            bits = np.where(alike, bits, np.uint32(0))
            holds(alike.ravel(), mask)
        write(bits.ravel(), mask)

    return run


def r2ur(o: Operands) -> Step:
    """The uniform d = a of the first lane that takes part; p, before d, where a is another one.

    With .OR p stays where it held, so that it tells of several registers: code for values that may
    differ goes round until no lane is left.
    """
    if not o.is_predicate(0):
        write, a = o.to(0), o.word(1)
        return lambda mask: write(first_lane(np.asarray(a()), mask), mask)
    holds, held, write, a = o.to_predicate(0), o.predicate(0), o.to(1), o.word(2)
    joins = "OR" in o.instruction.modifiers

    def run(mask: Mask) -> None:
        values = np.asarray(a())
        chosen = first_lane(values, mask)
        write(chosen, mask)
        differs = np.broadcast_to(values != chosen, o.state.lanes)
        holds(differs | held() if joins else differs, mask)

    return run


@dataclass(eq=False)
class Group:
    """A group of lanes executes together, maybe of many warps, at an index into the listing."""

    at: int
    lanes: np.ndarray
    steps: int = 0  # instructions that they have executed

    def __post_init__(self) -> None:
        self.warps = np.flatnonzero(self.lanes.reshape(-1, WARP).any(1))


class Meeting:
    """A meeting holds lanes until all that are expected have come, by warp or by block."""

    def __init__(self, lanes: int, size: int) -> None:
        """`size` lanes, a warp's or a block's, wait for each other."""
        self.size = size
        self.expected = np.zeros(lanes, bool)
        self.waiting = np.zeros(lanes, bool)

    def complete(self, alive: np.ndarray) -> np.ndarray:
        """Return the waiting lanes whose partners have all come or ended; they wait no longer."""
        if not self.waiting.any():
            return self.waiting.copy()
        missing = self.expected & alive & ~self.waiting
        free = ~missing.reshape(-1, self.size).any(1)
        gone = self.waiting & np.repeat(free, self.size)
        self.waiting &= ~gone
        return gone


def move_barrier(o: Operands, meetings: dict[str, Meeting]) -> Step:
    """BMOV: d = the lanes that will meet, which are none afterwards (CLEAR); or these = a."""
    to, of = o.instruction.operands
    if of in meetings:
        write, meeting, clears = o.to(0), meetings[of], "CLEAR" in o.instruction.modifiers

        def save(mask: Mask) -> None:
            write(ballots(meeting.expected.reshape(-1, WARP)), mask)
            if clears:
                on = taking_part(mask, o.state.lanes).ravel()
                meeting.expected &= ~warps_with(on)

        return save
    meeting, word = meetings[to], o.word(1)

    def restore(mask: Mask) -> None:
        on = warps_with(taking_part(mask, o.state.lanes).ravel())
        bits = first_lane(np.broadcast_to(word(), o.state.lanes), mask)
        lane = np.tile(LANES.astype(np.uint32), o.state.lanes // WARP)
        meeting.expected = np.where(on, (bits >> lane & 1).astype(bool), meeting.expected)

    return restore


class Groups:
    """The groups that can go on are kept by the instruction at which they are.

    Lanes of one warp that have parted do not go together again because they are at the same
    instruction: hardware joins them where they wait for each other. Other warps may join.
    """

    PATIENCE = 1 << 9  # steps that one group may be ahead of another

    def __init__(self) -> None:
        self.ready: dict[int, list[Group]] = {}

    def add(self, at: int, lanes: np.ndarray, steps: int) -> None:
        """Let lanes go on at an instruction, with those of other warps that are there already."""
        if not lanes.any():
            return
        group, there = Group(at, lanes, steps), self.ready.setdefault(at, [])
        for i, other in enumerate(there):
            if np.intersect1d(other.warps, group.warps, assume_unique=True).size == 0:
                there[i] = Group(at, other.lanes | lanes, min(other.steps, steps))
                return
        there.append(group)

    def take(self) -> Group:
        """Take the group to execute: the furthest behind in the code, unless another starves."""
        hindmost = min((g for there in self.ready.values() for g in there), key=lambda g: g.steps)
        first = self.ready[min(self.ready)][0]
        chosen = first if first.steps - hindmost.steps < self.PATIENCE else hindmost
        there = self.ready[chosen.at]
        there.remove(chosen)
        if not there:
            del self.ready[chosen.at]
        return chosen


Direct = Callable[[Instruction, Group, np.ndarray], None]


class Directions:
    """Some instructions direct lanes: what each does with those for which its guard holds."""

    def __init__(self, listing: Listing, state: State, alive: np.ndarray, room: int) -> None:
        """`alive` are the lanes that there are, `room` the lanes of a block."""
        self.state, self.alive, self.room = state, alive, room
        self.functions = listing.functions
        self.index = {i.address: at for at, i in enumerate(listing.instructions)}
        self.groups = Groups()
        lanes = len(alive)
        self.convergence = {f"B{i}": Meeting(lanes, WARP) for i in range(16)}
        self.warp_sync, self.block_sync = Meeting(lanes, WARP), Meeting(lanes, room)
        self.returns = np.zeros(lanes, np.int64)  # where lanes that wait go on
        self.votes = np.zeros(lanes, bool)  # of BAR.RED, and how they are counted
        self.reduction = "POPC"
        self.result = np.zeros(lanes, np.uint32)  # of the block's last BAR.RED
        self.meanings: dict[str, Direct] = {
            "BRA": self._branch, "EXIT": self._exit, "BSSY": self._expect, "BSYNC": self._meet,
            "BREAK": self._leave, "WARPSYNC": self._sync_warp, "BAR": self._sync_block,
            "CALL": self._call, "RET": self._return, "YIELD": self._yield, "BRX": self._jump,
        }  # fmt: skip

    def of(self, instruction: Instruction) -> Direct | None:
        """Return what an instruction does, if it directs lanes; a try that waits is "TRYWAIT"."""
        waits = "TRYWAIT" in instruction.modifiers
        return self.meanings.get("TRYWAIT" if waits else instruction.name)

    def on(self, group: Group, at: int, lanes: np.ndarray) -> None:
        """Let lanes of a group go on at an instruction."""
        self.groups.add(at, lanes, group.steps)

    def _past(self, group: Group, lanes: np.ndarray) -> None:
        self.on(group, group.at + 1, lanes)

    def _target(self, instruction: Instruction) -> int:
        label = instruction.operands[-1].strip("`()")
        address = self.functions.get(label)
        return self.index[int(label, 16) if address is None else address]

    def _branch(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        if "DIV" in instruction.modifiers:  # where a warp's lanes are apart: here they are not
            taking = np.zeros_like(taking)
        self.on(group, self._target(instruction), taking)
        self._past(group, group.lanes & ~taking)

    def _call(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        if "REL" not in instruction.modifiers:
            raise NotImplementedError(f"{instruction}: calls of functions elsewhere")
        self._branch(instruction, group, taking)

    def _return(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        where = np.broadcast_to(Operands(instruction, self.state).word(0)(), taking.shape)
        for address in np.unique(where[taking]):
            self.on(group, self.index[int(address)], taking & (where == address))
        self._past(group, group.lanes & ~taking)

    def _jump(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        """BRX: to the place in a register, counted from the next instruction."""
        here = instruction.address + BYTES + int(instruction.operands[-1], 16)
        where = np.broadcast_to(Operands(instruction, self.state).word(0)(), taking.shape)
        for place in np.unique(where[taking]):
            self.on(group, self.index[int(place) + here], taking & (where == place))
        self._past(group, group.lanes & ~taking)

    def _exit(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        self.alive &= ~taking
        self._past(group, group.lanes & ~taking)
        self._release(group)

    def _expect(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        """BSSY: these lanes of the warp will meet."""
        meeting = self.convergence[instruction.operands[0]]
        meeting.expected = np.where(warps_with(taking), taking, meeting.expected)
        self._past(group, group.lanes)

    def _leave(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        """BREAK: these lanes will not come."""
        self.convergence[instruction.operands[-1]].expected &= ~taking
        self._past(group, group.lanes)
        self._release(group)

    def _meet(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        self._wait(self.convergence[instruction.operands[0]], group, taking)

    def _yield(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        """Lanes that wait for these to converge go on: they may hold what these wait for.

        Source: US patent application 2016/0019066, "Execution of divergent threads using a
        convergence barrier".
        """
        warps = warps_with(taking)
        for meeting in self.convergence.values():
            gone = meeting.waiting & warps
            meeting.waiting &= ~gone
            meeting.expected &= ~gone
            self._go_on(group, gone)
        self._past(group, group.lanes)

    def _sync_warp(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        if "COLLECTIVE" in instruction.modifiers:
            raise NotImplementedError(f"{instruction}: lanes of a warp that come one by one")
        warps, expected = warps_with(taking), taking
        if instruction.operands:
            named = np.broadcast_to(Operands(instruction, self.state).word(0)(), taking.shape)
            of_warp = np.repeat(np.where(taking, named, 0).reshape(-1, WARP).max(1), WARP)
            lane = np.tile(np.arange(WARP, dtype=np.uint32), len(taking) // WARP)
            expected = (of_warp >> lane & 1).astype(bool)
        elif "ALL" in instruction.modifiers:
            expected = warps
        self.warp_sync.expected = np.where(warps, expected, self.warp_sync.expected)
        self._wait(self.warp_sync, group, taking)

    def _sync_block(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        flags = instruction.modifiers
        if "SYNC" not in flags and "RED" not in flags:
            raise NotImplementedError(str(instruction))
        if "RED" in flags:
            holds = Operands(instruction, self.state).predicate(len(instruction.operands) - 1)()
            np.copyto(self.votes, holds, where=taking)
            self.reduction = next(f for f in ("POPC", "AND", "OR") if f in flags)
        self.block_sync.expected[:] = True
        self._wait(self.block_sync, group, taking)

    def _wait(self, meeting: Meeting, group: Group, lanes: np.ndarray) -> None:
        meeting.waiting |= lanes
        self.returns[lanes] = group.at + 1
        self._past(group, group.lanes & ~lanes)
        self._release(group)

    def _release(self, group: Group) -> None:
        """Let those go on whose partners have come."""
        for meeting in (self.warp_sync, self.block_sync, *self.convergence.values()):
            gone = meeting.complete(self.alive)
            if meeting is self.block_sync:
                self._count_votes(gone)
            self._go_on(group, gone)

    def _go_on(self, group: Group, lanes: np.ndarray) -> None:
        for at in np.unique(self.returns[lanes]):
            self.on(group, int(at), lanes & (self.returns == at))

    def _count_votes(self, gone: np.ndarray) -> None:
        """Give BAR.RED's result to the blocks that go on."""
        votes, on = (v.reshape(-1, self.room) for v in (self.votes, gone))
        count = (votes & on).sum(1)
        value = {"POPC": count, "AND": count == on.sum(1), "OR": count > 0}[self.reduction]
        np.copyto(self.result, np.repeat(value.astype(np.uint32), self.room), where=gone)
