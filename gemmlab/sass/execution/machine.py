"""Execute a listing for the lanes of some blocks, all at once where they are together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.sass.execution.accesses import Cost
from gemmlab.sass.execution.groups import Group, Groups, Meeting
from gemmlab.sass.execution.integers import Step
from gemmlab.sass.execution.lanes import by_warp
from gemmlab.sass.execution.meanings import ACCESSES, MEANINGS, NOTHING
from gemmlab.sass.execution.memory import Memory
from gemmlab.sass.execution.state import Mask, Operands, State
from gemmlab.sass.listing import BYTES, Instruction, Listing
from gemmlab.tiling import WARP

Dim = tuple[int, int, int]


@dataclass
class Visit:
    """Instructions from `start` up to `stop` that some warps have executed one after the other.

    costs : of the accesses among them, as (index of the instruction, cost)
    """

    start: int
    warps: np.ndarray
    stop: int = 0
    costs: list[tuple[int, Cost]] = field(default_factory=list)


class Machine:
    """Warps of some blocks of a grid that execute a listing.

    blocks : (number, 3), their places in the grid
    constants : the constant banks, that of the parameters included
    """

    def __init__(
        self,
        listing: Listing,
        grid: Dim,
        block: Dim,
        blocks: Sequence[Dim],
        constants: dict[int, bytes],
        memory: Memory,
        places: np.ndarray,
    ) -> None:
        self.listing, self.memory = listing, memory
        self.threads = int(np.prod(block))
        self.room = -(-self.threads // WARP) * WARP  # lanes of a block
        self.state = State(len(places), constants)
        self.special = special_registers(grid, block, blocks, self.room)
        self.alive = np.tile(np.arange(self.room) < self.threads, len(blocks))
        self.index = {i.address: at for at, i in enumerate(listing.instructions)}
        self.steps: dict[int, Step] = {}
        self.groups = Groups()
        lanes = len(places)
        self.convergence = {f"B{i}": Meeting(lanes, WARP) for i in range(16)}
        self.warp_sync, self.block_sync = Meeting(lanes, WARP), Meeting(lanes, self.room)
        self.returns = np.zeros(lanes, np.int64)  # where lanes that wait go on
        self.votes = np.zeros(lanes, bool)
        self.result = np.zeros(lanes, np.uint32)  # of the last BAR.RED of the block
        self.visits: list[Visit] = []
        self.at = 0  # the instruction that is executed
        self.guards = [self._guard(i) for i in listing.instructions]
        self.conditions = [self._conditions(i) for i in listing.instructions]
        self.control: dict[str, Callable[[Instruction, Group, np.ndarray], None]] = {
            "BRA": self._branch, "EXIT": self._exit, "BSSY": self._expect, "BSYNC": self._meet,
            "BREAK": self._leave, "WARPSYNC": self._sync_warp, "BAR": self._sync_block,
            "CALL": self._call, "RET": self._return, "YIELD": self._yield,
        }  # fmt: skip

    def run(self, most: int | None = None) -> list[Visit]:
        """Execute until all lanes have ended; the visits in their order.

        Raises RuntimeError when lanes wait for each other for ever, or after `most` instructions.
        """
        done = 0
        self.groups.add(0, self.alive.copy(), 0)
        with np.errstate(all="ignore"):
            while self.groups.ready:
                done += self._advance(self.groups.take())
                if most is not None and done > most:
                    raise RuntimeError(f"not at the end after {most} instructions")
        if self.alive.any():
            raise RuntimeError("lanes wait for each other for ever")
        return self.visits

    def _advance(self, group: Group) -> int:
        """Execute a group up to the next instruction that directs it; how many it executed."""
        instructions = self.listing.instructions
        mask = None if group.lanes.all() else group.lanes
        visit = Visit(group.at, group.warps)
        self.visits.append(visit)
        at = group.at
        ready = self.groups.ready
        while True:
            instruction = instructions[at]
            direct = self.control.get(instruction.name)
            if direct is None:
                self._execute(at, instruction, group.lanes, mask)
                at += 1
                if at in ready:  # others are there: on with them
                    visit.stop = at
                    self.groups.add(at, group.lanes, group.steps + at - visit.start)
                    break
                continue
            visit.stop = at + 1
            group.steps += visit.stop - visit.start
            group.at = at
            direct(instruction, group, self._taking(at, group.lanes))
            break
        return visit.stop - visit.start

    def _execute(self, at: int, instruction: Instruction, lanes: np.ndarray, mask: Mask) -> None:
        guard = self.guards[at]
        if guard is not None:
            mask = lanes & guard()
            if not mask.any():
                return
        self.at = at
        step = self.steps.get(at)
        if step is None:
            step = self.steps[at] = self._step(instruction)
        try:
            step(mask)
        except (IndexError, LookupError) as error:
            raise type(error)(f"{instruction.address:#x} {instruction}: {error}") from None

    def _taking(self, at: int, lanes: np.ndarray) -> np.ndarray:
        """The lanes for which guard and condition of an instruction hold that directs them."""
        for condition in self.conditions[at]:
            lanes = lanes & condition()
        return lanes

    def _step(self, instruction: Instruction) -> Step:
        """What an instruction does, with its operands looked up."""
        operands, name = Operands(instruction, self.state), instruction.name
        if name in NOTHING:
            return lambda mask: None
        if name in ACCESSES:
            return ACCESSES[name](operands, self.memory, self._watch)
        if name in ("S2R", "S2UR"):
            return self._read_special(operands)
        if name == "B2R":
            return self._read_result(operands)
        if name not in MEANINGS:
            raise NotImplementedError(
                f"{instruction.address:#x} {instruction}: what {name} does is not known here"
            )
        return MEANINGS[name](operands)

    def _watch(self, cost: Cost) -> None:
        self.visits[-1].costs.append((self.at, cost))

    def _guard(self, instruction: Instruction) -> Callable[[], Any] | None:
        if not instruction.guard:
            return None
        negated = instruction.guard.startswith("!")
        name = instruction.guard.lstrip("!")
        file, index = name[:-1], name[-1]
        row = self.state.predicates[file][7 if index == "T" else int(index)]
        return (lambda: ~row) if negated else (lambda: row)

    def _conditions(self, instruction: Instruction) -> list[Callable[[], Any]]:
        """The guard of an instruction that directs lanes, and a second condition that it has."""
        guard = self._guard(instruction)
        found = [] if guard is None else [guard]
        if instruction.name in ("BRA", "EXIT", "BREAK", "BSYNC"):
            operands = Operands(instruction, self.state)
            found += [
                operands.predicate(i) for i in range(len(operands)) if operands.is_predicate(i)
            ]
        return found

    def _read_special(self, o: Operands) -> Step:
        name = o.instruction.operands[1]
        if name not in self.special:
            raise NotImplementedError(f"{o.instruction}: what {name} holds is not known here")
        write, row = o.to(0), self.special[name]
        return lambda mask: write(row, mask)

    def _read_result(self, o: Operands) -> Step:
        if o.is_predicate(1):
            holds, row = o.to_predicate(1), self.result
            return lambda mask: holds(row != 0, mask)
        write, row = o.to(0), self.result
        return lambda mask: write(row, mask)

    # Instructions that direct lanes. `taking` are those whose guard holds.

    def _on(self, group: Group, at: int, lanes: np.ndarray) -> None:
        self.groups.add(at, lanes, group.steps)

    def _target(self, instruction: Instruction) -> int:
        label = instruction.operands[-1].strip("`()")
        address = self.listing.functions.get(label)
        return self.index[int(label, 16) if address is None else address]

    def _branch(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        if "DIV" in instruction.modifiers:  # where lanes of a warp are apart: they are not
            taking = np.zeros_like(taking)
        self._on(group, self._target(instruction), taking)
        self._on(group, group.at + 1, group.lanes & ~taking)

    def _call(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        if "REL" not in instruction.modifiers:
            raise NotImplementedError(f"{instruction}: calls of functions elsewhere")
        self._on(group, self._target(instruction), taking)
        self._on(group, group.at + 1, group.lanes & ~taking)

    def _return(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        where = np.broadcast_to(Operands(instruction, self.state).word(0)(), taking.shape)
        for address in np.unique(where[taking]):
            self._on(group, self.index[int(address)], taking & (where == address))
        self._on(group, group.at + 1, group.lanes & ~taking)

    def _exit(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        self.alive &= ~taking
        self._on(group, group.at + 1, group.lanes & ~taking)
        self._release(group)

    def _expect(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        meeting = self.convergence[instruction.operands[0]]
        warps = np.repeat(taking.reshape(-1, WARP).any(1), WARP)
        meeting.expected = np.where(warps, taking, meeting.expected)
        self._on(group, group.at + 1, group.lanes)

    def _leave(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        meeting = self.convergence[instruction.operands[-1]]
        meeting.expected &= ~taking
        self._on(group, group.at + 1, group.lanes)
        self._release(group)

    def _meet(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        self._wait(self.convergence[instruction.operands[0]], group, taking)

    def _yield(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        """Lanes that wait for these to converge go on: they may hold what these wait for.

        Source: US patent 2016/0019066, "Execution of divergent threads using a convergence barrier".
        """
        warps = np.repeat(taking.reshape(-1, WARP).any(1), WARP)
        for meeting in self.convergence.values():
            gone = meeting.waiting & warps
            meeting.waiting &= ~gone
            meeting.expected &= ~gone
            for at in np.unique(self.returns[gone]):
                self._on(group, int(at), gone & (self.returns == at))
        self._on(group, group.at + 1, group.lanes)

    def _sync_warp(self, instruction: Instruction, group: Group, taking: np.ndarray) -> None:
        if "COLLECTIVE" in instruction.modifiers:
            raise NotImplementedError(f"{instruction}: lanes of a warp that come one by one")
        expected = taking.copy()
        if instruction.operands:
            bits = np.broadcast_to(Operands(instruction, self.state).word(0)(), taking.shape)
            lane = np.tile(np.arange(WARP), len(taking) // WARP)
            wanted = (bits >> lane.astype(np.uint32) & 1).astype(bool)
            masks = np.where(taking, bits, 0).reshape(-1, WARP).max(1)
            expected = (np.repeat(masks, WARP) >> lane.astype(np.uint32) & 1).astype(bool)
            expected = expected | (taking & wanted)
        elif "ALL" in instruction.modifiers:
            expected = np.repeat(taking.reshape(-1, WARP).any(1), WARP)
        self.warp_sync.expected = np.where(
            np.repeat(taking.reshape(-1, WARP).any(1), WARP), expected, self.warp_sync.expected
        )
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
        self._on(group, group.at + 1, group.lanes & ~lanes)
        self._release(group)

    def _release(self, group: Group) -> None:
        """Let those go on whose partners have come."""
        for meeting in (self.warp_sync, self.block_sync, *self.convergence.values()):
            gone = meeting.complete(self.alive)
            if not gone.any():
                continue
            if meeting is self.block_sync:
                self._count_votes(gone)
            for at in np.unique(self.returns[gone]):
                self._on(group, int(at), gone & (self.returns == at))

    def _count_votes(self, gone: np.ndarray) -> None:
        """The result of BAR.RED for the blocks that go on."""
        votes, on = (v.reshape(-1, self.room) for v in (self.votes, gone))
        count = (votes & on).sum(1)
        kind = getattr(self, "reduction", "POPC")
        value = {"POPC": count, "AND": count == on.sum(1), "OR": count > 0}[kind]
        np.copyto(self.result, np.repeat(value.astype(np.uint32), self.room), where=gone)


def special_registers(
    grid: Dim, block: Dim, blocks: Sequence[Dim], room: int
) -> dict[str, np.ndarray]:
    """What S2R reads, a row each."""
    thread = np.arange(room)
    x, y = thread % block[0], thread // block[0]
    lane = thread % WARP
    bits = np.uint64(1) << lane.astype(np.uint64)
    at = np.asarray(blocks)
    rows = {
        "SR_TID.X": x, "SR_TID.Y": y % block[1], "SR_TID.Z": y // block[1],
        "SR_LANEID": lane, "SR_EQMASK": bits, "SR_LTMASK": bits - 1,
        "SR_LEMASK": 2 * bits - 1, "SR_GTMASK": (2**32 - 1) ^ (2 * bits - 1),
        "SR_GEMASK": (2**32 - 1) ^ (bits - 1), "SR_CgaCtaId": 0 * lane,
    }  # fmt: skip
    special = {name: np.tile(row, len(blocks)).astype(np.uint32) for name, row in rows.items()}
    for axis, name in enumerate("XYZ"):
        special[f"SR_CTAID.{name}"] = np.repeat(at[:, axis], room).astype(np.uint32)
    return special


def addresses(listing: Listing) -> list[int]:
    """Where the instructions stand; they follow each other without gaps."""
    return [BYTES * i for i in range(len(listing.instructions))]


__all__ = ["Machine", "Visit", "by_warp"]
