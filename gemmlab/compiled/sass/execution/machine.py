"""A machine executes a listing for the lanes of some blocks, all at once where they are together.

`launch` makes one for a kernel's arguments, as a GPU launches a kernel. `Machine.run` keeps what
each warp executed and what its accesses cost, and `counters` counts these costs.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution import (
    accounts,
    asynchronous,
    floats,
    integers,
    lanes,
    memory,
)
from gemmlab.compiled.sass.execution.asynchronous import Waits
from gemmlab.compiled.sass.execution.lanes import Directions, Group
from gemmlab.compiled.sass.execution.loops import Loops
from gemmlab.compiled.sass.execution.memory import LOCAL, SEGMENT, SHARED_START, Cost, Memory
from gemmlab.compiled.sass.execution.relevance import relevance
from gemmlab.compiled.sass.execution.state import Mask, Operands, State, Step
from gemmlab.compiled.sass.execution.visits import Visit
from gemmlab.compiled.sass.listing import Instruction, Listing
from gemmlab.model.counters import TransactionCounters
from gemmlab.model.transactions import SECTOR
from gemmlab.tiling import WARP

Dim = tuple[int, int, int]


def special_registers(
    grid: Dim, block: Dim, blocks: Sequence[Dim], room: int
) -> dict[str, np.ndarray]:
    """Make what S2R reads, a row each."""
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


# A name with U before it is the same for a whole warp at once.
MEANINGS = {
    "MOV": integers.mov, "LDC": integers.ldc, "CS2R": integers.cs2r, "SEL": integers.sel,
    "IMAD": integers.imad, "IADD3": integers.add3, "VIADD": integers.add3, "LEA": integers.lea,
    "IABS": integers.iabs, "IDP": integers.idp, "VIMNMX": integers.vimnmx,
    "VIADDMNMX": integers.viaddmnmx, "SHF": integers.shf, "LOP3": integers.lop3,
    "PRMT": integers.prmt, "POPC": integers.popc, "FLO": integers.flo, "BREV": integers.brev,
    "SGXT": integers.sgxt, "BMSK": integers.bmsk, "ISETP": integers.isetp,
    "FSETP": floats.fsetp, "DSETP": floats.dsetp, "PLOP3": integers.plop3,
    "FSEL": floats.fsel, "P2R": integers.p2r, "R2P": integers.r2p,
    "FFMA": floats.ffma, "FADD": floats.fadd, "FMUL": floats.fmul, "FMNMX": floats.fmnmx,
    "HFMA2": floats.hfma2, "DFMA": floats.dfma, "DADD": floats.dadd, "DMUL": floats.dmul,
    "MUFU": floats.mufu, "FCHK": floats.fchk, "I2F": floats.i2f, "I2FP": floats.i2f,
    "F2I": floats.f2i, "F2F": floats.f2f, "FRND": floats.frnd, "F2FP": floats.f2fp,
    "HADD2": floats.hadd2, "SHFL": lanes.shfl, "REDUX": lanes.redux, "MATCH": lanes.match,
    "R2UR": lanes.r2ur, "VOTE": lanes.vote, "VOTEU": lanes.vote, "HMMA": lanes.hmma,
    "ELECT": asynchronous.elect, "USETMAXREG": asynchronous.set_registers,
}  # fmt: skip
UNIFORM = (
    "MOV", "LDC", "IMAD", "IADD3", "LEA", "SHF", "LOP3", "PRMT", "POPC", "FLO", "BREV", "SGXT",
    "BMSK", "ISETP", "PLOP3", "SEL",
)  # fmt: skip
MEANINGS |= {f"U{name}": MEANINGS[name] for name in UNIFORM}
ACCESSES = {
    **dict.fromkeys(("LDG", "LDS", "LDL", "LD"), memory.load),
    **dict.fromkeys(("STG", "STS", "STL", "ST"), memory.store),
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS", "RED", "REDG"), memory.atomic),
    "LDGSTS": memory.copy,
    "LDSM": lanes.ldsm,
    "SYNCS": asynchronous.syncs,
    "UTMALDG": asynchronous.tensor_copy,
    "UTMASTG": asynchronous.tensor_store,
}
# The same where nobody asks for values: what they cost. Of mbarriers all is asked for.
ACCOUNTED = ACCESSES | {
    **dict.fromkeys(memory.SPACES, accounts.access),
    "LDGSTS": accounts.copy,
    "LDSM": accounts.ldsm,
}
# Their order with other threads is that in which lanes are executed here; there is nothing to do.
NOTHING = {
    *("NOP", "NANOSLEEP", "MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "FENCE"),
    *("DEPBAR", "LDGDEPBAR", "HGMMA", "WARPGROUP", "UTMACCTL", "UTMACMDFLUSH"),
}


CONDITIONED = ("BRA", "EXIT", "BREAK", "BSYNC")  # they may have a predicate beside their guard


class Machine:
    """A machine has the warps of some blocks of a grid, which execute a listing.

    blocks : their places in the grid
    constants : the constant banks, that of the parameters included
    places : for each lane, the number of its block among `blocks`
    values : whether all values are asked for, or only what is executed and what it costs
    loops : whether turns of loops that repeat may be left out; only without values
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
        values: bool = True,
        loops: bool = False,
    ) -> None:
        self.listing, self.memory = listing, memory
        self.relevance = None if values else relevance(listing)
        self.acts = [
            values or self.relevance.needed[at] or i.name in ACCESSES
            for at, i in enumerate(listing.instructions)
        ]
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
        self.loops = Loops(self, self.relevance) if loops and not values else None

    def run(self, most: int | None = None) -> list[Visit]:
        """Execute until all lanes have ended; return the visits in their order.

        Raises RuntimeError when lanes wait for each other for ever, or after `most` instructions.
        """
        groups, alive, done = self.directions.groups, self.directions.alive, 0
        groups.add(0, alive.copy(), 0)
        with np.errstate(all="ignore"):
            while groups.ready:
                done += self._advance(groups.take())
                if self.loops is not None:
                    self.loops.look()
                if most is not None and done > most:
                    raise RuntimeError(f"not at the end after {most} instructions")
        if alive.any():
            raise RuntimeError("lanes wait for each other for ever")
        if self.loops is not None:
            self.loops.end()
        return self.visits

    def _advance(self, group: Group) -> int:
        """Execute a group up to the next instruction that directs it; how many it executed."""
        instructions, directions = self.listing.instructions, self.directions
        mask = None if group.lanes.all() else group.lanes
        visit = Visit(group.at, group.warps)
        if self.loops is not None:
            visit.lanes = hash(group.lanes.tobytes())
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
                if self.loops is not None:
                    self.loops.follow(at, lanes)
                for condition in self.conditions[at]:
                    lanes = lanes & condition()
                direct(instruction, group, lanes)
                return visit.stop - visit.start
            if self.acts[at]:
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
            step = self.steps[at] = self._step(at, instruction)
        if self.loops is not None:
            self.loops.follow(at, mask)
        try:
            step(mask)
        except LookupError as error:
            raise type(error)(f"{instruction.address:#x} {instruction}: {error}") from None

    def _step(self, at: int, instruction: Instruction) -> Step:
        """Make what an instruction does, with its operands looked up."""
        operands, name = Operands(instruction, self.state), instruction.name
        if name in NOTHING:
            return lambda mask: None
        if name in ACCESSES:
            if self.relevance is not None and not self.relevance.needed[at]:
                return ACCOUNTED[name](operands, self.memory, self._watch)
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
        """Return the guard of an instruction that directs lanes, and a second condition."""
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


def counters(visits: Iterable[Visit]) -> TransactionCounters:
    """Count requests, sectors and wavefronts of global and shared memory, and the TMA's bytes."""
    found = TransactionCounters()
    for visit in visits:
        for _, cost in visit.costs:
            found.update(_counted(cost))
    return found


def _counted(cost: Cost) -> dict[str, int]:
    requests = {f"{cost.space}_{cost.op}_requests": len(cost.warps)}
    match cost.space, cost.op:
        case "global", _:
            return requests | {f"global_{cost.op}_sectors": int(cost.sectors.sum())}
        case "shared", _:
            return requests | {f"shared_{cost.op}_wavefronts": int(cost.cycles.sum())}
        case "mbarrier", "copy":
            return {"tensor_copy_bytes": cost.amount}
        case "tensor", "store":
            return {"tensor_store_bytes": int(cost.sectors.sum()) * SECTOR}
    return {}


PARAMETERS = {"sm_90": 0x210}  # of constant bank 0: where a kernel's parameters begin [B]
# Of constant bank 0: where generic addresses of local memory begin, the end of a thread's local
# memory, and the dynamic shared memory [B].
LOCAL_WINDOW, STACK, DYNAMIC = 0x20, 0x28, 0x2C


def dim(size: int | Sequence[int]) -> Dim:
    """Return three sizes of a grid or a block from one, two or three."""
    sizes = (size,) if isinstance(size, int) else tuple(size)
    return (*map(int, sizes), 1, 1)[:3]


def launch(
    listing: Listing,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *arguments: Any,
    shared_bytes: int = 0,
    blocks: Iterable[Dim] | None = None,
    values: bool = True,
    loops: bool = False,
) -> Machine:
    """Make a machine that is ready to run `listing` with arguments as Numba-CUDA passes them.

    arguments : arrays, whose elements change in place, and numbers; without `values` they stay
    shared_bytes : dynamic, of a block
    blocks : the places in the grid of those that run; all by default
    values, loops : as `Machine` takes them
    """
    grid, block = dim(grid), dim(block)
    chosen = list(blocks) if blocks is not None else _all(grid)
    room = -(-int(np.prod(block)) // WARP) * WARP
    places = np.repeat(np.arange(len(chosen)), room)
    local = -(-listing.local_bytes // 16) * 16 + 16
    shared = SHARED_START + listing.shared_bytes + shared_bytes
    memory = Memory(places, shared, local, keeps=not values)
    data = memory.add(np.frombuffer(bytearray(listing.data or bytes(16)), np.uint8))
    given = [v for argument in arguments for v in _flat(argument, memory)]
    start = PARAMETERS[listing.architecture]
    head = bytearray(start)
    struct.pack_into("<6I", head, 0, *block, *grid)
    struct.pack_into("<Q", head, LOCAL_WINDOW, LOCAL << SEGMENT)
    struct.pack_into("<I", head, STACK, local)
    struct.pack_into("<I", head, DYNAMIC, shared_bytes)
    banks = {bank: bytearray(text) for bank, text in listing.constants.items()}
    for offset, place in listing.pointers:
        struct.pack_into("<Q", banks[4], offset, data + place)
    constants = {0: bytes(head + _packed(given)), **{b: bytes(t) for b, t in banks.items()}}
    return Machine(listing, grid, block, chosen, constants, memory, places, values, loops)


def _all(grid: Dim) -> list[Dim]:
    return [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]


def _flat(argument: Any, memory: Memory) -> list[Any]:
    """Return the parameters that Numba makes of an argument: nine of an array of two dimensions."""
    if isinstance(argument, np.ndarray):
        address = memory.add(argument)
        if argument.ndim == 0 and argument.dtype.names:  # a record
            return [np.uint64(address)]
        sizes = (argument.size, argument.itemsize, address, *argument.shape, *argument.strides)
        return [np.uint64(0), np.uint64(0), *(np.int64(size) for size in sizes)]
    if isinstance(argument, tuple):
        return [v for part in argument for v in _flat(part, memory)]
    if isinstance(argument, (bool, np.bool_)):
        return [np.uint8(argument)]
    if isinstance(argument, int):
        return [np.int64(argument)]
    if isinstance(argument, float):
        return [np.float64(argument)]
    if isinstance(argument, (complex, np.complexfloating)):
        part = np.float32 if isinstance(argument, np.complex64) else np.float64
        return [part(argument.real), part(argument.imag)]
    return [argument]


def _packed(values: list[Any]) -> bytes:
    """Write parameters one after the other, each at a multiple of its size."""
    out = bytearray()
    for value in values:
        out += bytes(-len(out) % value.dtype.itemsize) + value.tobytes()
    return bytes(out)
