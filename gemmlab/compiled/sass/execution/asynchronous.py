"""Mbarriers, copies by the TMA and `wgmma` go on while a warp does other things.

Copies are complete as soon as they begin, and neither they nor products have values here: which
instructions follow does not depend on them. Who must wait for whom does depend on mbarriers, so
that these are followed to the letter: lanes wait until the phase is complete. Blocks of a cluster
are alike: what one of them sends to the others, arrivals and boxes, comes to it from them as well.
Source: PTX ISA 9.0, section "mbarrier".
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gemmlab.compiled.sass.execution.memory import Cost, Memory, Watch, sum_of
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step
from gemmlab.compiled.sass.listing import Register, parse
from gemmlab.instructions.tensor_copies import ROW, TensorMap
from gemmlab.model.transactions import SECTOR
from gemmlab.tiling import WARP

MAP = 128  # bytes of a tensor map
OWN = (1 << 24) - 1  # of an address in shared memory: above is the rank of a block in its cluster
STORED = 16  # bytes that a lane stores in another block
MOST = 1 << 20  # arrivals: an mbarrier holds this less those that are expected, and twice that
_PARTS = re.compile(r"(?P<before>\w*)(?P<address>\[[^\]]*\])(?P<map>\[[^\]]*\])?$")


@dataclass
class Mbarrier:
    """An mbarrier counts arrivals and bytes that its phase waits for, and phases complete.

    number : in the order in which those of the block are made
    """

    number: int
    count: int
    pending: int = 0
    bytes: int = 0
    complete: int = 0

    def __post_init__(self) -> None:
        self.pending = self.count

    def add(self, arrivals: int, bytes_: int) -> bool:
        """Take arrivals, expect bytes (less than 0: they have come); whether that completes."""
        self.pending -= arrivals
        self.bytes += bytes_
        if self.pending or self.bytes:
            return False
        self.pending, self.complete = self.count, self.complete + 1
        return True

    def is_past(self, parity: int) -> bool:
        """Say whether the phase of this parity is complete, and the next one not."""
        return self.complete & 1 != parity


def _text(o: Operands) -> re.Match[str]:
    """Match the operand with the address: what is written, where, and the tensor map behind it."""
    text = next(text for text in o.instruction.operands if "[" in text)
    return _PARTS.match(text)


def _word(o: Operands, text: str) -> Callable[[], np.ndarray]:
    register = parse(text)
    return lambda: o.state.registers[register.file][register.index]


def _box(o: Operands, memory: Memory) -> Callable[[np.ndarray], tuple[int, int]]:
    """Find (bytes, address) of the box of an instruction's tensor map, by the lane that asks.

    The first four bytes of what stands for a tensor map say how many rows a box has.
    """
    source = sum_of(o, parse(_text(o)["map"][:-1] + ".64]"))

    def of(lane: np.ndarray) -> tuple[int, int]:
        maps = np.broadcast_to(source(), o.state.lanes)
        array, at = memory.place("global", maps[lane], lane, 4)
        return int(array[at][0]) * ROW, int(maps[lane][0])

    return of


def _warps(o: Operands, mask: Mask) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each warp that takes part, with those of its lanes that do."""
    on = np.ones(o.state.lanes, bool) if mask is None else mask
    for warp in np.flatnonzero(on.reshape(-1, WARP).any(1)):
        yield int(warp), warp * WARP + np.flatnonzero(on[warp * WARP : (warp + 1) * WARP])


def noted(op: str, warp: int, barrier: Mbarrier, amount: int, sectors: int = 0) -> Cost:
    """Return the cost of what a warp asks of an mbarrier."""
    one, none = np.array([warp]), np.zeros(1, np.int64)
    return Cost("mbarrier", op, one, none, none + sectors, mbarrier=barrier.number, amount=amount)


def syncs(o: Operands, memory: Memory, watch: Watch) -> Step:
    """SYNCS: an mbarrier is made (EXCH), threads arrive, and may expect bytes (ARRIVE)."""
    flags = o.instruction.modifiers
    address = sum_of(o, parse(_text(o)["address"]))
    value = _word(o, o.instruction.operands[-1])

    def run(mask: Mask) -> None:
        at, given = (np.broadcast_to(v, o.state.lanes) for v in (address(), value()))
        for warp, lanes in _warps(o, mask):
            # Lanes of one warp may arrive in several blocks, from each of which one arrives here.
            place = int(memory.blocks[lanes[0]]), int(at[lanes[0]]) & OWN
            if "EXCH" in flags:
                count = MOST - (int(given[lanes[0]]) >> 1)
                mine = [key for key in memory.mbarriers if key[0] == place[0]]
                memory.mbarriers[place] = Mbarrier(len(mine), count)
                watch(noted("init", warp, memory.mbarriers[place], count))
                continue
            bytes_ = 0 if "A1T0" in flags else int(given[lanes].sum())
            watch(noted("arrive", warp, memory.mbarriers[place], bytes_ or len(lanes)))
            memory.change(place, len(lanes), bytes_)

    return run


def tensor_copy(o: Operands, memory: Memory, watch: Watch) -> Step:
    """UTMALDG: a box of a matrix to shared memory, whose bytes an mbarrier counts.

    Where it is sent to several blocks, each of the others sends one, which this one has not to ask
    L2 for.
    """
    register: Register = parse(_text(o)["address"]).registers[0]
    rows, box = o.state.registers["UR"], _box(o, memory)
    dimensions = next(int(m[0]) for m in o.instruction.modifiers if m in ("1D", "2D", "3D"))
    sent = "MULTICAST" in o.instruction.modifiers
    ranks = _word(o, o.instruction.operands[-1]) if sent else lambda: np.uint32([1 << 16])

    def run(mask: Mask) -> None:
        # shared memory, mbarrier, coordinates
        barriers, *at = rows[register.index + 1 :][: 1 + dimensions]
        for warp, lanes in _warps(o, mask):
            bytes_, of = box(lanes[:1])
            place = int(memory.blocks[lanes[0]]), int(barriers[lanes[0]])
            barrier = memory.mbarriers[place]
            blocks = int(np.broadcast_to(ranks(), o.state.lanes)[lanes[0]] >> 16).bit_count()
            asked = noted("copy", warp, barrier, blocks * bytes_, bytes_ // SECTOR)
            watch(asked._replace(box=(of, *(int(row[lanes[0]]) for row in at))))
            memory.change(place, 0, -blocks * bytes_)

    return run


def remote_store(o: Operands, memory: Memory, watch: Watch) -> Step:
    """STAS: each lane stores 16 bytes in another block, where an mbarrier counts them.

    As many come from there.
    """
    register: Register = parse(_text(o)["address"]).registers[0]
    rows = o.state.registers[register.file]

    def run(mask: Mask) -> None:
        for warp, lanes in _warps(o, mask):
            at = np.broadcast_to(rows[register.index + 1], o.state.lanes)
            place = int(memory.blocks[lanes[0]]), int(at[lanes[0]]) & OWN
            bytes_ = STORED * len(lanes)
            watch(noted("bytes", warp, memory.mbarriers[place], bytes_))
            memory.change(place, 0, -bytes_)

    return run


def tensor_store(o: Operands, memory: Memory, watch: Watch) -> Step:
    """UTMASTG: a box of a matrix from shared memory."""
    box = _box(o, memory)

    def run(mask: Mask) -> None:
        for warp, lanes in _warps(o, mask):
            one, none = np.array([warp]), np.zeros(1, np.int64)
            watch(Cost("tensor", "store", one, none, none + box(lanes[:1])[0] // SECTOR))

    return run


def standing_for(one: TensorMap) -> np.ndarray:
    """Make what stands for a tensor map in memory."""
    found = np.zeros(MAP, np.uint8)
    found[:4].view(np.uint32)[0] = one.rows
    return found


def elect(o: Operands) -> Step:
    """ELECT: the predicate holds in the first lane of each warp alone."""
    write = o.to_predicate(0)

    def run(mask: Mask) -> None:
        first = np.zeros(o.state.lanes, bool)
        for _, lanes in _warps(o, mask):
            first[lanes[0]] = True
        write(first, mask)

    return run


def set_registers(o: Operands) -> Step:
    """USETMAXREG: the registers are there."""
    if not o.is_predicate(0):
        return lambda mask: None
    write = o.to_predicate(0)
    return lambda mask: write(True, mask)


class Waits:
    """Here lanes wait for phases of mbarriers."""

    def __init__(self, memory: Memory, go_on: Callable[[int, np.ndarray, int], None]) -> None:
        """go_on(at, lanes, steps) : lets lanes go on at an instruction."""
        self.memory, self.go_on = memory, go_on
        self.waiting: list[tuple] = []
        memory.completed = self.release

    def wait(self, o: Operands, lanes: np.ndarray, after: int, steps: int, watch: Watch) -> None:
        """SYNCS.PHASECHK.TRYWAIT: lanes go on once the phase of a parity is complete."""
        found = _text(o)
        holds = parse(found["before"])
        row = o.state.predicates[holds.file][holds.index]
        at = np.broadcast_to(sum_of(o, parse(found["address"]))(), o.state.lanes)
        parities = _word(o, o.instruction.operands[-1])() >> np.uint32(31)
        for warp, of_warp in _warps(o, lanes):
            place = int(self.memory.blocks[of_warp[0]]), int(at[of_warp[0]])
            parity = int(parities[of_warp[0]])
            watch(noted("wait", warp, self.memory.mbarriers[place], 1 + parity))
            self.waiting.append((place, parity, of_warp, row, after, steps))
        for place in {entry[0] for entry in self.waiting}:
            self.release(place)

    def release(self, place: tuple[int, int]) -> None:
        """Let those go on for whom the mbarrier at a place is past the phase."""
        barrier, still = self.memory.mbarriers[place], []
        gone: dict[tuple[int, int], np.ndarray] = {}
        for entry in self.waiting:
            where, parity, of_warp, row, after, steps = entry
            if where != place or not barrier.is_past(parity):
                still.append(entry)
                continue
            row[of_warp] = True
            mask = gone.setdefault((after, steps), np.zeros(len(row), bool))
            mask[of_warp] = True
        self.waiting = still
        for (after, steps), mask in gone.items():
            self.go_on(after, mask, steps)
