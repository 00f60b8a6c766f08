"""A machine executes a listing for the lanes of some blocks, all at once where they are together.

`launch` makes one for a kernel's arguments, as a GPU launches a kernel. `Machine.run` keeps what
each warp executed and what its accesses cost, and `counters` counts these costs.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gemmlab.compiled.sass.cubins import as_c, in_a_row, of_mlir, of_numba
from gemmlab.compiled.sass.execution import (
    accounts,
    asynchronous,
    floats,
    halves,
    integers,
    lanes,
    memory,
    moves,
    warp_products,
)
from gemmlab.compiled.sass.execution.asynchronous import Waits
from gemmlab.compiled.sass.execution.lanes import Directions, Group
from gemmlab.compiled.sass.execution.loops import Loops
from gemmlab.compiled.sass.execution.memory import (
    LOCAL,
    SEGMENT,
    SHARED,
    SHARED_START,
    Cost,
    Memory,
)
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
        "SR_SWINHI": 0 * lane + (SHARED << SEGMENT - 32),
    }  # fmt: skip
    special = {name: np.tile(row, len(blocks)).astype(np.uint32) for name, row in rows.items()}
    for axis, name in enumerate("XYZ"):
        special[f"SR_CTAID.{name}"] = np.repeat(at[:, axis], room).astype(np.uint32)
    return special


# A name with U before it is the same for a whole warp at once.
MEANINGS = {
    "MOV": moves.mov, "LDC": moves.ldc, "CS2R": moves.cs2r, "SEL": moves.sel,
    "IMAD": integers.imad, "IADD3": integers.add3, "VIADD": integers.viadd, "LEA": integers.lea,
    "IADD": integers.add3, "IMNMX": integers.imnmx, "LDCU": moves.ldc,
    "IABS": integers.iabs, "IDP": halves.idp, "VIMNMX": integers.vimnmx,
    "VIADDMNMX": integers.viaddmnmx, "SHF": integers.shf, "LOP3": integers.lop3,
    "PRMT": integers.prmt, "POPC": integers.popc, "FLO": integers.flo, "BREV": integers.brev,
    "SGXT": integers.sgxt, "BMSK": integers.bmsk, "ISETP": integers.isetp,
    "FSETP": floats.fsetp, "DSETP": floats.dsetp, "PLOP3": integers.plop3,
    "FSEL": floats.fsel, "P2R": moves.p2r, "R2P": moves.r2p,
    "FFMA": floats.ffma, "FADD": floats.fadd, "FMUL": floats.fmul, "FMNMX": floats.fmnmx,
    "HFMA2": halves.hfma2, "DFMA": floats.dfma, "DADD": floats.dadd, "DMUL": floats.dmul,
    "MUFU": floats.mufu, "FCHK": floats.fchk, "I2F": floats.i2f, "I2FP": floats.i2f,
    "F2I": floats.f2i, "F2F": floats.f2f, "FRND": floats.frnd, "F2FP": floats.f2fp,
    "HADD2": halves.hadd2, "HMUL2": halves.hmul2, "HMNMX2": halves.hmnmx2,
    "HSETP2": halves.hsetp2, "HSET2": halves.hset2, "I2I": halves.i2i, "I2IP": halves.i2ip,
    "F2IP": halves.f2ip, "VABSDIFF": halves.vabsdiff, "VABSDIFF4": halves.vabsdiff4,
    "SHFL": lanes.shfl, "REDUX": lanes.redux, "MATCH": lanes.match,
    "R2UR": lanes.r2ur, "VOTE": lanes.vote, "VOTEU": lanes.vote, "HMMA": warp_products.hmma,
    "IMMA": warp_products.imma, "DMMA": warp_products.dmma, "MOVM": warp_products.movm,
    "ELECT": asynchronous.elect, "USETMAXREG": asynchronous.set_registers,
}  # fmt: skip
UNIFORM = (
    "MOV", "LDC", "IMAD", "IADD3", "LEA", "SHF", "LOP3", "PRMT", "POPC", "FLO", "BREV", "SGXT",
    "BMSK", "ISETP", "PLOP3", "SEL", "VIMNMX", "IMNMX", "FSETP", "FADD", "FMUL", "FFMA", "FMNMX",
    "FSEL", "I2F", "F2I", "IABS",
)  # fmt: skip
MEANINGS |= {f"U{name}": MEANINGS[name] for name in UNIFORM}
ACCESSES = {
    **dict.fromkeys(("LDG", "LDS", "LDL"), memory.load),
    **dict.fromkeys(("STG", "STS", "STL"), memory.store),
    **dict.fromkeys(("ATOMG", "ATOMS", "RED", "REDG"), memory.atomic),
    **{"LD": memory.parted(memory.load), "ST": memory.parted(memory.store)},
    "ATOM": memory.parted(memory.atomic),
    "LDGSTS": memory.copy,
    "LDSM": warp_products.ldsm,
    "STSM": warp_products.stsm,
    "SYNCS": asynchronous.syncs,
    "UTMALDG": asynchronous.tensor_copy,
    "UTMASTG": asynchronous.tensor_store,
    "STAS": asynchronous.remote_store,
}
# The same where nobody asks for values: what they cost. Of mbarriers all is asked for.
ACCOUNTED = ACCESSES | {
    **dict.fromkeys(memory.SPACES, accounts.access),
    **dict.fromkeys(("LD", "ST", "ATOM"), memory.parted(accounts.access)),
    "LDGSTS": accounts.copy,
    "LDSM": accounts.ldsm,
}
# Their order with other threads is that in which lanes are executed here; there is nothing to do.
NOTHING = {
    *("NOP", "NANOSLEEP", "ENDCOLLECTIVE", "MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "FENCE"),
    *("DEPBAR", "LDGDEPBAR", "HGMMA", "QGMMA", "IGMMA", "WARPGROUP", "UTMACCTL", "UTMACMDFLUSH"),
}


CONDITIONED = ("BRA", "EXIT", "BREAK", "BSYNC")  # they may have a predicate beside their guard


class Machine:
    """A machine has the warps of some blocks of a grid, which execute a listing.

    blocks : their places in the grid
    constants : the constant banks, that of the parameters included
    places : for each lane, the number of its block among `blocks`
    lenient : what an instruction does that is not known is left out, and its results are zero;
        then addresses may be wrong, and accesses to no memory are left out, too
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
        lenient: bool = False,
        values: bool = True,
        loops: bool = False,
    ) -> None:
        self.listing, self.memory = listing, memory
        self.lenient = lenient
        self.unknown: set[int] = set()  # instructions that were executed as if they made zeros
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
            step = self.steps[at] = self._step_or_zeros(at, instruction)
        if self.loops is not None:
            self.loops.follow(at, mask)
        try:
            step(mask)
        except LookupError as error:
            if self.unknown:
                return
            raise type(error)(f"{instruction.address:#x} {instruction}: {error}") from None

    def _step_or_zeros(self, at: int, instruction: Instruction) -> Step:
        try:
            return self._step(at, instruction)
        except (NotImplementedError, LookupError, TypeError):  # the last two: another form of it
            if not self.lenient:
                raise
            self.unknown.add(self.at)
            return zeros(Operands(instruction, self.state))

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
        if name == "BMOV":
            return lanes.move_barrier(operands, self.directions.convergence)
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


def zeros(o: Operands) -> Step:
    """Put zeros where an instruction has results: the predicates and the register that begin it."""
    words, writes = _words(o.instruction.modifiers), []
    for i in range(len(o)):
        writes += [o.to_predicate(i)] if o.is_predicate(i) else [o.to(i, part=p) for p in words]
        if not o.is_predicate(i):
            break

    def run(mask: Mask) -> None:
        for write in writes:
            write(0, mask)

    return run


def _words(modifiers: Sequence[str]) -> range:
    """Return a range over the words that an instruction of these modifiers has as its result."""
    widths = {"64": 2, "F64": 2, "128": 4}
    return range(max((widths.get(m, 1) for m in modifiers), default=1))


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
        case "mbarrier", "bytes":
            return {"cluster_store_bytes": cost.amount}
        case "tensor", "store":
            return {"tensor_store_bytes": int(cost.sectors.sum()) * SECTOR}
    return {}


class Bank(NamedTuple):
    """Constant bank 0 has at these places [B] what a launch says to a kernel.

    block, grid : their sizes
    stack : the end of a thread's local memory
    local_window : where generic addresses of local memory begin, None for not known
    dynamic : the dynamic shared memory, None for not known
    """

    parameters: int
    block: int = 0
    grid: int = 0xC
    stack: int = 0x28
    local_window: int | None = 0x20
    dynamic: int | None = 0x2C


BANKS = {  # by architecture
    **dict.fromkeys(("sm_75", "sm_80", "sm_86", "sm_89"), Bank(0x160)),
    "sm_90": Bank(0x210),
    "sm_120": Bank(0x380, 0x360, 0x370, stack=0x37C, local_window=None, dynamic=None),
}


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
    lenient: bool = False,
    values: bool = True,
    loops: bool = False,
) -> Machine:
    """Make a machine that is ready to run `listing` with arguments as Numba-CUDA passes them.

    Where the listing says where its parameters lie, they are passed as C has them.
    arguments : arrays, whose elements change in place, and numbers; without `values` they stay
    shared_bytes : dynamic, of a block
    blocks : the places in the grid of those that run; all by default
    lenient, values, loops : as in `Machine`
    """
    grid, block = dim(grid), dim(block)
    chosen = list(blocks) if blocks is not None else _all(grid)
    room = -(-int(np.prod(block)) // WARP) * WARP
    places = np.repeat(np.arange(len(chosen)), room)
    local = -(-listing.local_bytes // 16) * 16 + 16
    shared = SHARED_START + listing.shared_bytes + shared_bytes
    memory = Memory(places, shared, local, keeps=not values)
    data = memory.add(np.frombuffer(bytearray(listing.data or bytes(16)), np.uint8))
    head = _head(listing, block, grid, local, shared_bytes)
    if listing.parameters is None:
        passed = in_a_row(arguments, of_mlir if listing.memrefs else of_numba, memory.add)
    else:
        passed = as_c(arguments, listing.parameters, memory.add)
    banks = {bank: bytearray(text) for bank, text in listing.constants.items()}
    for offset, place in listing.pointers:
        struct.pack_into("<Q", banks[4], offset, data + place)
    constants = {0: bytes(head + passed), **{b: bytes(t) for b, t in banks.items()}}
    return Machine(listing, grid, block, chosen, constants, memory, places, lenient, values, loops)


def _head(listing: Listing, block: Dim, grid: Dim, local: int, shared_bytes: int) -> bytearray:
    """Return what constant bank 0 has before the parameters."""
    if listing.architecture not in BANKS:
        raise NotImplementedError(
            f"where a kernel of {listing.architecture} finds its arguments is not known here; it "
            f"is for {', '.join(BANKS)}"
        )
    bank = BANKS[listing.architecture]
    head = bytearray(listing.parameters.start if listing.parameters else bank.parameters)
    if bank.local_window is not None:
        struct.pack_into("<Q", head, bank.local_window, LOCAL << SEGMENT)
    if bank.dynamic is not None:
        struct.pack_into("<I", head, bank.dynamic, shared_bytes)
    struct.pack_into("<I", head, bank.stack, local)
    struct.pack_into("<3I", head, bank.block, *block)
    struct.pack_into("<3I", head, bank.grid, *grid)
    return head


def _all(grid: Dim) -> list[Dim]:
    return [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
