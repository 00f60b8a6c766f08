"""A launch has memories, in which loads, stores and atomics do what they do, at a cost."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gemmlab.compiled.sass.execution.halves import added_pairs
from gemmlab.compiled.sass.execution.state import WORD, Mask, Operands, Step
from gemmlab.compiled.sass.listing import Address, Register
from gemmlab.model import transactions
from gemmlab.tiling import WARP

SEGMENT = 40  # bits of an address below the number of its array
LOCAL = 1 << 20  # the number in generic addresses of local memory
SHARED = LOCAL + 1  # likewise of shared memory
WINDOWS = {LOCAL: "local", SHARED: "shared"}
SHARED_START = 0x400  # of a block on Hopper: what lies below belongs to the system [B]


class Memory:
    """A memory holds bytes by space, and turns addresses into elements of them."""

    def __init__(
        self, blocks: np.ndarray, shared_bytes: int, local_bytes: int, keeps: bool = False
    ) -> None:
        """`blocks` is, for each lane, the number of its block among those that run.

        keeps : arrays stay as they are; what is written to them is kept beside them
        """
        self.keeps, self.beside = keeps, {}
        self.segments: list[np.ndarray] = []
        self.touched: set[int] = set()  # numbers of segments that were accessed
        self.blocks = blocks
        self.mbarriers: dict[tuple[int, int], Any] = {}  # by block and address
        self.completed: Callable[[tuple[int, int]], None] = lambda place: None
        count = int(blocks.max()) + 1
        self.spaces = {
            "shared": np.zeros(count * shared_bytes, np.uint8),
            "local": np.zeros(blocks.size * local_bytes, np.uint8),
        }
        self.starts = {
            "shared": blocks.astype(np.int64) * shared_bytes,
            "local": np.arange(blocks.size, dtype=np.int64) * local_bytes,
        }
        self.sizes = {"shared": shared_bytes, "local": local_bytes}

    def change(self, place: tuple[int, int], arrivals: int, bytes_: int) -> None:
        """Let an mbarrier count, and `completed` know where that completes a phase."""
        if self.mbarriers[place].add(arrivals, bytes_):
            self.completed(place)

    def add(self, array: np.ndarray) -> int:
        """Return the address of `array`, with all that lies between its elements, from now on."""
        low, high = np.lib.array_utils.byte_bounds(array)
        owner = _owner(array)
        start = owner.__array_interface__["data"][0]
        flat = owner if owner.flags.c_contiguous else owner.T  # as its bytes lie
        memory = np.ndarray(high - low, np.uint8, buffer=flat, offset=low - start)
        self.segments.append(memory)
        return (len(self.segments) << SEGMENT) + array.__array_interface__["data"][0] - low

    @property
    def footprint(self) -> int:
        """The bytes of all arrays that were accessed, whole."""
        return sum(self.segments[number - 1].size for number in self.touched)

    def check(self, space: str, address: np.ndarray, width: int) -> None:
        """Raise what `place` raises for these addresses."""
        if not address.size:
            return
        least, most = int(address.min()), int(address.max())
        if space == "global":
            space = WINDOWS.get(least >> SEGMENT, space)
        if space == "global":
            self._segment(least, most, width)
        elif (most & ((1 << SEGMENT) - 1)) + width > self.sizes[space]:
            raise IndexError(f"address {most:#x} is beyond {space} memory")

    def place(
        self, space: str, address: np.ndarray, lanes: Any, width: int, writes: bool = False
    ) -> tuple:
        """Return the elements, of `width` bytes, at addresses of `lanes`: (array, indices)."""
        if space == "global":
            window = WINDOWS.get(int(address[0] >> np.uint64(SEGMENT))) if address.size else None
            if window:
                space, address = window, address & np.uint64((1 << SEGMENT) - 1)
            else:
                return self._global(address, width, writes)
        size = self.sizes[space]
        if address.size and int(address.max()) + width > size:
            raise IndexError(
                f"address {int(address.max()):#x} is beyond {size} B of {space} memory"
            )
        at = self.starts[space][lanes] + address.astype(np.int64)
        return self.spaces[space].view(f"u{width}"), at // width

    def _global(self, address: np.ndarray, width: int, writes: bool) -> tuple:
        number = self._segment(int(address.min()), int(address.max()), width)
        segment = self.segments[number - 1]
        at = (address & np.uint64((1 << SEGMENT) - 1)).astype(np.int64)
        if self.keeps and (writes or number in self.beside):
            segment = self._beside(number, at)
        whole = segment.size // width * width
        return segment[:whole].view(f"u{width}"), at // width

    def _segment(self, least: int, most: int, width: int) -> int:
        """Return the number of the array that has these addresses, and note that it was touched."""
        number = least >> SEGMENT
        if number != most >> SEGMENT:
            raise LookupError("one access to several arrays")
        if not 0 < number <= len(self.segments):
            raise IndexError(f"address {least:#x} is in no array")
        self.touched.add(number)
        last, size = most & ((1 << SEGMENT) - 1), self.segments[number - 1].size
        if last + width > size:
            raise IndexError(f"byte {last} is beyond an array of {size} B")
        return number

    def _beside(self, number: int, at: np.ndarray) -> np.ndarray:
        """Return what stands for an array that was written to: pages of it, copied when needed."""
        segment = self.segments[number - 1]
        if number not in self.beside:
            pages = -(-segment.size // PAGE)
            self.beside[number] = np.empty(segment.size, np.uint8), np.zeros(pages, bool)
        copy, there = self.beside[number]
        for page in np.unique(at // PAGE):
            if not there[page]:
                copy[page * PAGE : (page + 1) * PAGE] = segment[page * PAGE : (page + 1) * PAGE]
                there[page] = True
        return copy


PAGE = 1 << 16  # bytes of an array that are copied at once


def _owner(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


SPACES = {
    **dict.fromkeys(("LDG", "STG", "ATOMG", "REDG", "RED"), "global"),
    **dict.fromkeys(("LDS", "STS", "ATOMS", "LDSM", "LDGSTS"), "shared"),
    **dict.fromkeys(("LDL", "STL"), "local"),
    **dict.fromkeys(("LD", "ST", "ATOM"), "global"),  # generic: arrays are all that is asked for
}
NARROW = {"U8": np.uint8, "S8": np.int8, "U16": np.uint16, "S16": np.int16}
WIDE = {"64": 2, "128": 4}


class Cost(NamedTuple):
    """An access of each warp in `warps` asks for this, (warps,) each.

    cycles : of the pipe of L1 and shared memory
    sectors : of 32 bytes, in global memory
    pieces : the numbers of these sectors, (warps, 32), ascending after some -1; None elsewhere
    partial : how many of them a store fills in part; of an atomic, in how many passes L2 does it
    mbarrier, amount : of what is asynchronous, which mbarrier of the block, and how many arrivals
        or else bytes it counts; of a wait, 1 and the parity
    box : of what the TMA copies, the tensor map's address and the coordinates in it
    """

    space: str
    op: str
    warps: np.ndarray
    cycles: np.ndarray
    sectors: np.ndarray
    pieces: np.ndarray | None = None
    partial: np.ndarray | None = None
    mbarrier: int | None = None
    amount: int = 0
    box: tuple[int, ...] | None = None


Watch = Callable[[Cost], None]


def cost(space: str, op: str, address: np.ndarray, on: np.ndarray, width: int) -> Cost:
    """Count the cost of an access; `address` and `on` are (lanes,), `width` is in bytes."""
    on = on.reshape(-1, WARP)
    warps = np.flatnonzero(on.any(1))
    on, at = on[warps], address.reshape(-1, WARP)[warps].astype(np.int64)
    none = np.zeros(len(warps), np.int64)
    if space == "local":
        words = max(1, width // 4)
        return Cost(space, op, warps, none + words, none)
    # What it costs stays where all lanes of a warp move by the same words or lines.
    unit = transactions.WORD if space == "shared" else transactions.LINE
    first = np.where(on, at, at.max(initial=0)).min(axis=1, keepdims=True, initial=2**62)
    first = first // unit * unit
    asked = op, np.where(on, at - first, 0).tobytes(), on.tobytes(), width
    if space == "shared":
        return Cost(space, op, warps, _in_shared(*asked), none)
    cycles, sectors, moved, partial = _in_global(*asked)
    pieces = np.where(moved < 0, -1, moved + first // transactions.SECTOR)
    return Cost(space, op, warps, cycles, sectors, pieces, partial)


# A loop makes a like access in each turn, and so do the warps of a block.
@lru_cache(maxsize=1024)
def _in_shared(op: str, addresses: bytes, active: bytes, width: int) -> np.ndarray:
    """Count the wavefronts of each warp."""
    rule = transactions.load_wavefronts if op == "load" else transactions.wavefronts
    at, on = np.frombuffer(addresses, np.int64), np.frombuffer(active, bool)
    return _kept(rule(at.reshape(-1, WARP), on.reshape(-1, WARP), width))


@lru_cache(maxsize=1024)
def _in_global(
    op: str, addresses: bytes, active: bytes, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return cycles, sectors, their numbers and the `partial` of a cost, of each warp."""
    at = np.frombuffer(addresses, np.int64).reshape(-1, WARP)
    on = np.frombuffer(active, bool).reshape(-1, WARP)
    pieces = np.where(on, at // transactions.SECTOR, -1)
    pieces.sort(axis=1)
    partial = _kept(_partial(pieces, width)) if op == "store" else None
    if op == "atomic":
        partial = _kept(transactions.additions_in_turn(at, on))
    cycles, sectors = transactions.l1_cycles(at, on, width), transactions.sectors(at, on)
    return _kept(cycles), _kept(sectors), _kept(pieces), partial


def _kept(array: np.ndarray) -> np.ndarray:
    """Return an array that several accesses have in common, which nobody may change."""
    array.flags.writeable = False
    return array


def _partial(pieces: np.ndarray, width: int) -> np.ndarray:
    """Count the sectors in each row, ascending after some -1, of which lanes store but a part.

    Lanes that store at one address count as if they stored side by side.
    """
    lanes = np.ones(len(pieces), bool)
    count, of_sector = np.zeros(len(pieces), np.int64), np.zeros(len(pieces), np.int64)
    for lane in range(WARP):
        ends = pieces[:, lane] != pieces[:, lane + 1] if lane + 1 < WARP else lanes
        of_sector += 1
        count += ends & (pieces[:, lane] >= 0) & (of_sector * width < transactions.SECTOR)
        of_sector[ends] = 0
    return count


class Access:
    """Loads, stores and atomics have these parts in common."""

    def __init__(self, o: Operands, memory: Memory, watch: Watch, op: str) -> None:
        flags = o.instruction.modifiers
        self.o, self.memory, self.watch, self.op = o, memory, watch, op
        self.space = SPACES[o.instruction.name]
        self.generic = o.instruction.name in ("LD", "ST", "ATOM")
        self.narrow = next((NARROW[f] for f in flags if f in NARROW), None)
        self.words = next((WIDE[f] for f in flags if f in WIDE), 1)
        self.width = np.dtype(self.narrow).itemsize if self.narrow else 4 * self.words
        place = next(i for i, operand in enumerate(o.all) if isinstance(operand, Address))
        at: Address = o.all[place]
        wide = at.wide or self.space == "global"  # CAS does not say that its addresses are
        self.place, self.address = place, sum_of(o, replace(at, wide=wide))

    def lanes(self, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
        """Return (numbers of the lanes that take part, their addresses), and count the access."""
        lanes = self.o.state.lanes
        address = np.broadcast_to(self.address(), lanes)
        on = np.ones(lanes, bool) if mask is None else mask
        chosen = np.flatnonzero(on)
        space = self.space
        if self.generic:
            space = WINDOWS.get(int(address[chosen[0]] >> np.uint64(SEGMENT)), space)
        self.watch(cost(space, self.op, address, on, self.width))
        return chosen, address[chosen]

    def registers(self, index: int, count: int) -> list[np.ndarray | None]:
        """Return the rows of a register and its successors; None for RZ."""
        operand = self.o.all[index]
        if not isinstance(operand, Register) or operand.is_zero:
            return [None] * count
        rows = self.o.state.registers[operand.file]
        return [rows[operand.index + i] for i in range(count)]

    def values(self, index: int, lanes: np.ndarray, count: int) -> list[np.ndarray]:
        """Return what the lanes have in a register and its successors."""
        return [
            np.zeros(len(lanes), np.uint32) if row is None else row[lanes]
            for row in self.registers(index, count)
        ]


def sum_of(o: Operands, address: Address) -> Callable[[], Any]:
    """Return what adds up an address, as uint64."""
    parts = [
        _part(o, register, address, first=i == 0)
        for i, register in enumerate(address.registers)
        if not register.is_zero
    ]
    offset = np.uint64(address.offset % 2**64)
    bits = np.uint64(2**64 - 1 if address.wide else 2**32 - 1)

    def total() -> Any:
        value = offset
        for part in parts:
            value = value + part()
        return value & bits

    return total


def _part(o: Operands, register: Register, address: Address, first: bool) -> Callable[[], Any]:
    """Return what reads a register's part of an address, as uint64."""
    rows = o.state.registers[register.file]
    low = rows[register.index]
    if address.wide and (first or register.file == "UR"):
        high = rows[register.index + 1]
        return lambda: (high.astype(np.uint64) << WORD) | low
    scale = np.uint32(address.scale if first else 1)
    return lambda: (low * scale).astype(np.uint64)


def load(o: Operands, memory: Memory, watch: Watch) -> Step:
    """D = what lies at the address."""
    access = Access(o, memory, watch, "load")
    rows = access.registers(0, access.words)

    def run(mask: Mask) -> None:
        lanes, address = access.lanes(mask)
        width = min(access.width, 4)
        for i in range(access.words):
            array, at = memory.place(access.space, address + np.uint64(4 * i), lanes, width)
            if rows[i] is None:
                continue
            value = array[at]
            if access.narrow:
                value = value.view(access.narrow).astype(np.int64)
            rows[i][lanes] = value

    return run


def store(o: Operands, memory: Memory, watch: Watch) -> Step:
    """Put b where the address points."""
    access = Access(o, memory, watch, "store")
    index = access.place + 1

    def run(mask: Mask) -> None:
        lanes, address = access.lanes(mask)
        width = min(access.width, 4)
        for i, value in enumerate(access.values(index, lanes, access.words)):
            there = address + np.uint64(4 * i)
            array, at = memory.place(access.space, there, lanes, width, writes=True)
            array[at] = value.astype(array.dtype)

    return run


def copy(o: Operands, memory: Memory, watch: Watch) -> Step:
    """LDGSTS: shared memory = global memory, at once; who must wait for it is not looked after.

    One that goes past L1 keeps its pipe busy only with the store (`ldsm8_with_8_ldgsts`).
    """
    access = Access(o, memory, watch, "copy")
    asked = copied(o, access)

    def run(mask: Mask) -> None:
        target, origin, on, wanted = asked(mask)
        chosen, kept = np.flatnonzero(on), np.flatnonzero(wanted)
        for i in range(access.words):
            step = np.uint64(4 * i)
            to, at = memory.place("shared", target[chosen] + step, chosen, 4)
            to[at] = 0
            if kept.size:
                of, where = memory.place("global", origin[kept] + step, kept, 4)
                to, at = memory.place("shared", target[kept] + step, kept, 4)
                to[at] = of[where]

    return run


def copied(o: Operands, access: Access) -> Callable[[Mask], tuple]:
    """Return what counts a copy and finds (targets, origins, lanes, lanes that want something)."""
    past = "BYPASS" in o.instruction.modifiers
    source = sum_of(o, o.all[1])
    guard = o.predicate(2) if o.is_predicate(2) else None

    def run(mask: Mask) -> tuple:
        lanes = o.state.lanes
        on = np.ones(lanes, bool) if mask is None else mask
        wanted = on if guard is None else on & guard()
        target = np.broadcast_to(access.address(), lanes)
        origin = np.broadcast_to(source(), lanes)
        asked = cost("global", "load", origin, wanted, access.width)
        access.watch(asked._replace(cycles=0 * asked.cycles) if past else asked)
        access.watch(cost("shared", "store", target, on, access.width))
        return target, origin, on, wanted

    return run


_FORMATS = {
    "F32": np.float32, "F64": np.float64, "S32": np.int32, "U32": np.uint32, "S64": np.int64,
    "U64": np.uint64, "64": np.uint64,
}  # fmt: skip
_ATOMIC: dict[str, Callable[[Any, Any], Any]] = {
    "ADD": lambda old, new: old + new,
    "MIN": min,
    "MAX": max,
    "AND": lambda old, new: old & new,
    "OR": lambda old, new: old | new,
    "XOR": lambda old, new: old ^ new,
    "EXCH": lambda old, new: new,
    "INC": lambda old, new: old + type(old)(1) if old < new else type(old)(0),
    "DEC": lambda old, new: new if old == 0 or old > new else old - type(old)(1),
}


def atomic(o: Operands, memory: Memory, watch: Watch) -> Step:
    """D = what lay at the address, which becomes a function of it and b; one lane after another."""
    access = Access(o, memory, watch, "atomic")
    flags = o.instruction.modifiers
    kind = atomic_kind(o)
    words, access.width = kind.itemsize // 4, kind.itemsize
    name = next(f for f in flags if f in _ATOMIC or f in ("CAS", "POPC"))
    pairs = next((f for f in flags if f in ("F16x2", "BF16x2")), None)
    if pairs and name != "ADD":
        raise NotImplementedError(str(o.instruction))
    function = added_pairs(pairs == "BF16x2") if pairs else _ATOMIC.get(name)
    compares = name == "CAS" or "CAST" in flags
    returns = o.instruction.name not in ("RED", "REDG")
    target = 1 if o.is_predicate(0) else 0
    rows = access.registers(target, words) if returns else [None] * words
    source = access.place + 1

    def run(mask: Mask) -> None:
        lanes, address = access.lanes(mask)
        array, at = memory.place(access.space, address, lanes, kind.itemsize, writes=True)
        array = array.view(kind)
        first = _joined(access.values(source, lanes, words), kind) if name != "POPC" else None
        if compares:
            second = _joined(access.values(source + 1, lanes, words), kind)
        before = np.empty(len(lanes), kind)
        with np.errstate(over="ignore"):
            for i, place in enumerate(at):
                old = before[i] = array[place]
                if compares:
                    array[place] = second[i] if old == first[i] else old
                elif name == "POPC":
                    array[place] = old + kind.type(1)
                else:
                    array[place] = function(old, first[i])
        bits = before.view(np.uint32).reshape(-1, words)
        for i, row in enumerate(rows):
            if row is not None:
                row[lanes] = bits[:, i]

    return run


def atomic_kind(o: Operands) -> np.dtype:
    """Return what an atomic instruction makes of what lies in memory."""
    flags = o.instruction.modifiers
    return np.dtype(next((_FORMATS[f] for f in flags if f in _FORMATS), np.uint32))


def _joined(words: list[np.ndarray], kind: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(np.stack(words, axis=1)).view(kind).ravel()


Maker = Callable[[Operands, Memory, Watch], Step]


def parted(access: Maker) -> Maker:
    """Return an access that is made once for each array or memory that lanes point to."""

    def made(o: Operands, memory: Memory, watch: Watch) -> Step:
        step = access(o, memory, watch)
        place = next(operand for operand in o.all if isinstance(operand, Address))
        address = sum_of(o, replace(place, wide=True))

        def run(mask: Mask) -> None:
            on = np.ones(o.state.lanes, bool) if mask is None else mask
            number = np.broadcast_to(address(), o.state.lanes) >> np.uint64(SEGMENT)
            for one in np.unique(number[on]):
                step(on & (number == one))

        return run

    return made
