"""What the producer of a kernel on Tensor Cores does, and of which mistake that speaks.

A producer is the thread that asks for tiles, and waits until there is room for them. The simulated
GPU notes its waits, the bytes that it expects, and its copies. Consumers are the first threads of a
block: they step through tiles of C, and through k, in their order.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from gemmlab.course.judging import guard
from gemmlab.course.judging.apart import apart
from gemmlab.course.judging.launches import SECONDS, Launch, here
from gemmlab.course.judging.verdict import Finding
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.simt.builtins.instructions import BY_NAME
from gemmlab.simt.builtins.under_way import memory_of

ROWS, COLUMNS, DEPTH = 64, 32, 64  # of a tile of C, and elements of k in a step
A_BYTES, B_BYTES = ROWS * ROW, COLUMNS * ROW  # of the boxes of a step
BYTES = A_BYTES + B_BYTES
CONSUMERS = 128  # threads; the producer is behind them
PARAMETERS = ["A", "B", "k", "C"]


@dataclass(frozen=True)
class Case:
    """A product of m×k by k×n, with so many stages, by so many blocks."""

    stages: int
    m: int
    n: int
    k: int
    blocks: int

    @property
    def steps(self) -> int:
        """Steps along k, for each tile of C."""
        return -(-self.k // DEPTH)

    def tiles(self, block: int) -> list[tuple[int, int]]:
        """The first row and column of each tile of a block."""
        across = self.n // COLUMNS
        every = range(block, self.m // ROWS * across, self.blocks)
        return [(tile // across * ROWS, tile % across * COLUMNS) for tile in every]


@dataclass(frozen=True)
class Told:
    """What the producer of one block has done, in its order.

    waits : (copies before it, "full" or "empty", stage, parity, complete phases by then; -1: none)
    expects : (copies before it, of which barrier, its stage, bytes)
    copies : ("A" or "B", stage, row, column, of which barrier, its stage, threads that ask)
    """

    case: Case
    block: int
    waits: list[tuple[int, str, int, int, int]]
    expects: list[tuple[int, str, int, int]]
    copies: list[tuple[str, int, int, int, str, int, int]]

    @cached_property
    def asked(self) -> list[tuple[str, int, int]]:
        """The boxes that the consumers want, in pairs: of A or B, first row and column."""
        steps = range(0, self.case.k, DEPTH)
        return [box for row, col in self.case.tiles(self.block) for p in steps
                for box in (("A", row, p), ("B", col, p))]  # fmt: skip

    @cached_property
    def extra(self) -> list[int]:
        """Copies, by number, that nobody wants, or not again."""
        left, found = Counter(self.asked), []
        for i, (name, _, row, col, *_) in enumerate(self.copies):
            left[name, row, col] -= 1
            found += [i] * (left[name, row, col] < 0)
        return found

    def room(self) -> list[tuple[int, str, int, int, int]]:
        """Waits for stages that are empty."""
        return [wait for wait in self.waits if wait[1] == "empty"]

    def ahead(self) -> int:
        """The least number of steps, this one included, between a copy and what is known over.

        S where the producer has waited for no more than the room that the copy takes.
        """
        known, least, waits = -self.case.stages, self.case.stages, list(self.waits)
        for i in range(0, len(self.copies), 2):
            while waits and waits[0][0] <= i:
                _, _, stage, _, phases = waits.pop(0)
                if phases > 0:
                    known = max(known, (phases - 1) * self.case.stages + stage)
            least = min(least, i // 2 - known)
        return least

    def __str__(self) -> str:
        done = [f"block {self.block}: {len(self.copies)} copies of {len(self.asked)}"]
        if self.waits:
            _, which, stage, parity, _ = self.waits[-1]
            done.append(f"its last wait is for parity {parity} of {which}[{stage}]")
        if self.expects:
            _, which, stage, size = self.expects[-1]
            done.append(f"its last arrival expects {size:,} B at {which}[{stage}]")
        if self.copies:
            name, to, row, col, which, stage, _ = self.copies[-1]
            done.append(f"its last copy is of {name}[{row}, {col}] to stage {to}, which arrives at "
                        f"{which}[{stage}]")  # fmt: skip
        return "; ".join(done)


def told_of(answer: Any, launch: Launch) -> list[Told] | Finding:
    """What the producer of each block does in a launch."""
    (stages,), (blocks,), (*_, k, c) = launch.sizes, launch.grid, launch.arguments
    case, work = Case(stages, *c.shape, k, blocks), partial(_listened, answer, launch)
    for item in apart(work, SECONDS):
        if guard.ended(item):
            return guard.cut_short(item, guard.file_of(answer))
        if isinstance(item, Finding):
            return item
        return [Told(case, block, *item[block]) for block in range(case.blocks)]
    return guard.cut_short(guard.SAID_NO_MORE, guard.file_of(answer))


def _listened(build: Callable, launch: Launch) -> Iterator[Any]:
    (stages,), (blocks,) = launch.sizes, launch.grid
    events: list[tuple[list, list, list]] = [([], [], []) for _ in range(blocks)]
    with _noted(events, stages):
        for item in here(build, PARAMETERS, [launch]):
            yield item if isinstance(item, Finding) else events


@contextmanager
def _noted(events: list[tuple[list, list, list]], stages: int) -> Iterator[None]:
    """Let the simulated GPU note the waits, expected bytes and copies of producers for a while."""
    before = dict(BY_NAME)
    for name in ("mbarrier_init", "mbarrier_wait", "mbarrier_arrive_expect", "tma_load"):
        BY_NAME[name] = partial(_note, before[name], events, stages)
    try:
        yield
    finally:
        BY_NAME.update(before)


def _note(
    do: Callable, events: list, stages: int, m: Any, instruction: Any, bound: list, line: int
) -> None:
    _, threads = m.lanes.of(0, m.masks[-1])
    if instruction.name == "mbarrier_init":  # where a block begins, and once more if it is repeated
        for one in events[int(m.lanes.blocks[0, 0])]:
            one.clear()
    if not len(threads) or threads[0] < CONSUMERS:
        do(m, instruction, bound, line)
        return
    one = int(threads[0])

    def number(value: Any) -> int:
        return int(m.lanes.spread(value)[0, one])

    waits, expects, copies = events[int(m.lanes.blocks[0, 0])]
    _, (array, (at, *_)) = bound[2 if instruction.name == "tma_load" else 0]
    place = number(array.offset) + number(at) - stages * BYTES // 8  # among both rows of mbarriers
    which = "full" if 0 <= place < stages else "empty" if stages <= place < 2 * stages else "other"
    stage = place % stages
    if instruction.name == "mbarrier_wait":
        entry = len(copies), which, stage, number(bound[1][1]) & 1
        waits.append((*entry, -1))
        do(m, instruction, bound, line)
        key = id(memory_of(array)), (number(array.offset) + number(at)) * array.itemsize
        barrier = m.under_way.barriers.get(key)
        waits[-1] = (*entry, barrier.phase if barrier else -1)
    elif instruction.name == "mbarrier_arrive_expect":
        expects.append((len(copies), which, stage, number(bound[1][1])))
        do(m, instruction, bound, line)
    else:
        (_, (_, (to, *_))), (_, (found, row, col)) = bound[:2]
        box = found.array.name, number(to), number(row), number(col)
        copies.append((*box, which, stage, len(threads)))
        do(m, instruction, bound, line)


def _ring_begins_again(told: Told) -> bool:
    """Whether stages and parities are right in the first tile, and come again with each."""
    stages, steps = told.case.stages, told.case.steps
    parity = {before // 2: parity for before, _, _, parity, _ in told.room()}
    made = [(copy[1], parity.get(i)) for i, copy in enumerate(told.copies[::2])]
    right = [(i % stages, i // stages & 1 ^ 1) for i in range(len(made))]
    again = [right[i % steps] for i in range(len(made))]
    return made == again != right


def _foreign(told: Told) -> set[tuple[str, int, int]]:
    """Boxes that are copied, and that no step of this block needs."""
    return {(name, row, col) for name, _, row, col, *_ in told.copies} - set(told.asked)


def _of_all(case: Case) -> set[tuple[str, int, int]]:
    """Boxes that some block needs."""
    return {box for block in range(case.blocks) for box in Told(case, block, [], [], []).asked}


def _other_stage(told: Told) -> bool:
    """Whether a copy goes to another stage than the consumers read, or waits for another's room."""
    stages = told.case.stages
    to = [(copy[1], i // 2 % stages) for i, copy in enumerate(told.copies)]
    to += [(stage, before // 2 % stages) for before, _, stage, *_ in told.room()]
    return any(stage != right for stage, right in to)


def _parities(told: Told) -> list[tuple[int, int]]:
    """The parity of each wait for room, and the right one."""
    return [(parity, before // 2 // told.case.stages & 1 ^ 1)
            for before, _, _, parity, _ in told.room()]  # fmt: skip


def _never_flips(told: Told) -> bool:
    parities = _parities(told)
    return any(given != right for given, right in parities) and len({p for p, _ in parities}) == 1


PROBE = (
    "Take the case that is named, and write a row for each of the producer's first S + 1 steps: "
    "stage, turn, parity of `empty`, bytes that are expected, both boxes. Beside it write the "
    "consumers' row of the same step: stage, turn, parity of `full`. Which row is the first in "
    "which your code does something else than the table?"
)
# A diagnosis, and whether what a producer did speaks for it; the first one decides.
SPEAKS_FOR: dict[str, Callable[[Told], Any]] = {
    "nothing-asked": lambda told: not told.copies and not told.waits,
    "many-ask": lambda told: any(copy[-1] > 1 for copy in told.copies),
    "waits-for-bytes": lambda told: told.waits and not told.room(),
    "first-turn": lambda told: not told.copies and told.room() and not told.room()[0][3],
    "arrives-elsewhere": lambda told: (
        any(which != "full" for _, which, *_ in told.expects)
        or any((copy[4], copy[5]) != ("full", copy[1]) for copy in told.copies)
    ),
    "not-expected": lambda told: told.copies and not told.expects,
    "beyond-k": lambda told: any(told.copies[i][3] >= told.case.k for i in told.extra),
    "other-box": lambda told: _foreign(told) - _of_all(told.case),
    "others-tiles": _foreign,
    "copied-again": lambda told: told.extra,
    "arrives-twice": lambda told: 2 * len(told.expects) > len(told.copies) + 1,
    "bytes-too-few": lambda told: any(size < BYTES for *_, size in told.expects),
    "bytes-too-many": lambda told: any(size > BYTES for *_, size in told.expects),
    "room-not-waited": lambda told: not told.waits,
    "ring-begins-again": _ring_begins_again,
    "other-stage": _other_stage,
    "phase-never-flips": _never_flips,
    "phase-wrong": lambda told: any(given != right for given, right in _parities(told)),
    "tiles-missing": lambda told: _ended_early(told) and len(told.copies) == 2 * told.case.steps,
    "steps-missing": lambda told: _ended_early(told),
}  # fmt: skip


def _ended_early(told: Told) -> bool:
    """Whether the producer has ended before it asked for all; one that is stuck waits."""
    stuck = told.waits and told.waits[-1][0] == len(told.copies)
    return len(told.copies) < len(told.asked) and not stuck


def mistake(answer: Any, launch: Launch) -> tuple[str, Told] | None:
    """The first mistake that a producer makes in a launch, and what it does; None where none is."""
    told = told_of(answer, launch)
    if isinstance(told, Finding):
        return None
    found = ((name, one) for name, speaks in SPEAKS_FOR.items() for one in told if speaks(one))
    return next(found, None)
