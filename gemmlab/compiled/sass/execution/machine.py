"""Execute a listing for the lanes of some blocks, all at once where they are together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.accesses import Cost
from gemmlab.compiled.sass.execution.asynchronous import Waits
from gemmlab.compiled.sass.execution.directions import Directions
from gemmlab.compiled.sass.execution.groups import Group
from gemmlab.compiled.sass.execution.meanings import ACCESSES, MEANINGS, NOTHING
from gemmlab.compiled.sass.execution.memory import Memory
from gemmlab.compiled.sass.execution.special import Dim, special_registers
from gemmlab.compiled.sass.execution.state import Mask, Operands, State, Step
from gemmlab.compiled.sass.listing import Instruction, Listing
from gemmlab.tiling import WARP

CONDITIONED = ("BRA", "EXIT", "BREAK", "BSYNC")  # they may have a predicate beside their guard


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

    blocks : their places in the grid
    constants : the constant banks, that of the parameters included
    places : for each lane, the number of its block among `blocks`
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
        threads = int(np.prod(block))
        room = -(-threads // WARP) * WARP  # lanes of a block
        self.state = State(len(places), constants)
        self.special = special_registers(grid, block, blocks, room)
        alive = np.tile(np.arange(room) < threads, len(blocks))
        self.directions = Directions(listing, self.state, alive, room)
        self.guards = [self._guard(i) for i in listing.instructions]
        self.conditions = [self._conditions(i) for i in listing.instructions]
        self.steps: dict[int, Step] = {}
        self.visits: list[Visit] = []
        self.at = 0  # the instruction that is executed
        self.waits = Waits(memory, self.directions.groups.add)
        self.directions.meanings["TRYWAIT"] = self._wait
        self.directs = [self.directions.of(i) for i in listing.instructions]

    def run(self, most: int | None = None) -> list[Visit]:
        """Execute until all lanes have ended; the visits in their order.

        Raises RuntimeError when lanes wait for each other for ever, or after `most` instructions.
        """
        groups, alive, done = self.directions.groups, self.directions.alive, 0
        groups.add(0, alive.copy(), 0)
        with np.errstate(all="ignore"):
            while groups.ready:
                done += self._advance(groups.take())
                if most is not None and done > most:
                    raise RuntimeError(f"not at the end after {most} instructions")
        if alive.any():
            raise RuntimeError("lanes wait for each other for ever")
        return self.visits

    def _advance(self, group: Group) -> int:
        """Execute a group up to the next instruction that directs it; how many it executed."""
        instructions, directions = self.listing.instructions, self.directions
        mask = None if group.lanes.all() else group.lanes
        visit = Visit(group.at, group.warps)
        self.visits.append(visit)
        at = group.at
        while True:
            instruction = instructions[at]
            direct = self.directs[at]
            visit.stop = at + 1
            if direct is not None:
                group.steps += visit.stop - visit.start
                group.at = self.at = at
                lanes = group.lanes
                for condition in self.conditions[at]:
                    lanes = lanes & condition()
                direct(instruction, group, lanes)
                return visit.stop - visit.start
            self._execute(at, instruction, group.lanes, mask)
            at += 1
            if at in directions.groups.ready:  # others are there: on with them
                directions.groups.add(at, group.lanes, group.steps + at - visit.start)
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
        except LookupError as error:
            raise type(error)(f"{instruction.address:#x} {instruction}: {error}") from None

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

    def _wait(self, instruction: Instruction, group: Group, lanes: np.ndarray) -> None:
        """Lanes wait for an mbarrier; those for which the guard does not hold go on."""
        after = group.at + 1
        self.directions.groups.add(after, group.lanes & ~lanes, group.steps)
        operands = Operands(instruction, self.state)
        self.waits.wait(operands, lanes, after, group.steps, self._watch)

    def _watch(self, cost: Cost) -> None:
        self.visits[-1].costs.append((self.at, cost))

    def _guard(self, instruction: Instruction) -> Callable[[], Any] | None:
        if not instruction.guard:
            return None
        name = instruction.guard.lstrip("!")
        row = self.state.predicates[name[:-1]][7 if name.endswith("T") else int(name[-1])]
        return (lambda: ~row) if instruction.guard.startswith("!") else (lambda: row)

    def _conditions(self, instruction: Instruction) -> list[Callable[[], Any]]:
        """The guard of an instruction that directs lanes, and a second condition that it has."""
        guard = self._guard(instruction)
        found = [] if guard is None else [guard]
        if instruction.name in CONDITIONED:
            operands = Operands(instruction, self.state)
            at = [i for i in range(len(operands)) if operands.is_predicate(i)]
            found += [operands.predicate(i) for i in at]
        return found

    def _read_special(self, o: Operands) -> Step:
        name = o.instruction.operands[1]
        if name not in self.special:
            raise NotImplementedError(f"{o.instruction}: what {name} holds is not known here")
        write, row = o.to(0), self.special[name]
        return lambda mask: write(row, mask)

    def _read_result(self, o: Operands) -> Step:
        row = self.directions.result
        if o.is_predicate(1):
            holds = o.to_predicate(1)
            return lambda mask: holds(row != 0, mask)
        write = o.to(0)
        return lambda mask: write(row, mask)
