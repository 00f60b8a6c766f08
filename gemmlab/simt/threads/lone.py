"""A kernel written as the function of one thread, for launches whose lanes run one by one.

Lanes that wait for a lock run apart, in fibers (`machine.fibers`), where each operation of the
lock-step form costs as much for one lane as for all. So the kernel is written again: its numbers
are those of one thread, its loads, stores and atomics are noted and checked as lock-step does it
for a lane alone, and the loops are the machine's, so that a lane waits where it would wait.
Nothing is told from here: at the first index outside, race, or wrapped integer the function gives
up, as at a kernel that does more than that, and the lanes run again in lock-step form.
"""

import ast
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gemmlab.simt.builtins import atomics
from gemmlab.simt.memory.access import LOADS, STORES
from gemmlab.simt.memory.array import Array
from gemmlab.simt.numbers.overflow import Wrapped
from gemmlab.simt.races.visits import Now
from gemmlab.simt.syntax.rewrite import SOURCE, TREE
from gemmlab.simt.syntax.source import Source
from gemmlab.simt.threads.batch import LaneTally, LoneBatch
from gemmlab.simt.threads.rest import as_it_is, function_of
from gemmlab.simt.threads.statements import Statements
from gemmlab.simt.threads.text import BOOL, Body, Number, UnfitError, fits, method_of, type_name


class Place(NamedTuple):
    """A place of the source that touches an array: its elements are counted together, by lane."""

    source: Source
    line: int
    op: str
    array: Array

    @property
    def kind(self) -> str:
        """The instruction that it is counted as."""
        return {"load": LOADS, "store": STORES}.get(self.op, _ATOMICS)[self.array.space]


_ATOMICS = {"global": "inst_atomic"}

# A lane that has ended, how often it came to each block of statements, and the elements that it
# touched at each place.
Done = tuple[int, tuple[int, ...], tuple[list[int], ...]]


class Lone:
    """A kernel as a function of one thread; `run` runs a lane of a machine of one block.

    blocks : of statements, what each costs; places : of accesses
    m, lane, mask : of the lane that runs now: its machine, its number in the launch, its mask
    """

    def __init__(self, whole: LoneBatch, kernel: partial) -> None:
        """Write a kernel, bound to a machine of all blocks; UnfitError where that cannot be."""
        self.releases, self.threads = whole.report.releases, whole.lanes.threads
        self.watchers = whole.report.watchers
        self.m: Any = None
        self.lane, self.mask = 0, None
        self.places: list[Place] = []
        writer = _Writer(self, whole, kernel)
        self.blocks, self.given = writer.blocks, list(writer.parameters.values())
        self.function = function_of(writer.text(), as_it_is)

    def run(self, m: LoneBatch, thread: int) -> Done:
        """Run a lane to its end."""
        lane = thread + m.lanes.first_lane
        self.m, self.lane, self.mask = m, lane, m.masks[-1]
        return (lane, *self.function(lane, *self.given))

    def count(self, done: list[Done], counts: LaneTally) -> None:
        """Tell a tally of all lanes of the launch what those of some blocks have done."""
        lanes, times, kept = zip(*done, strict=True)
        where, size = list(lanes), counts.lanes.place.size
        for costs, of_block in zip(self.blocks, np.array(times, np.int64).T, strict=True):
            for key, each in costs.items() if of_block.any() else ():
                counts.ticks.setdefault(key, np.zeros(size, np.int64))[where] += each * of_block
        for place, made in zip(self.places, zip(*kept, strict=True), strict=True):
            by_lane = {lane: at for lane, at in zip(lanes, made, strict=True) if at}
            if by_lane:
                key = place.source, place.line, place.kind
                ticks = counts.ticks.setdefault(key, np.zeros(size, np.int64))
                ticks[list(by_lane)] += [len(elements) for elements in by_lane.values()]
                number = place.source, place.line, place.op, len(counts.accesses)
                counts.accesses[number] = place.array, by_lane

    # What the function calls

    def begin(self, line: int, endless: bool) -> Any:
        """Begin a loop."""
        loops = self.m.loops
        loops.begin()
        loop = loops.open[-1]
        loop.line, loop.endless = line, endless
        return loop

    def turn(self, loop: Any) -> bool:
        """Count a turn of a `while`; whether it is one to be watched."""
        loops = self.m.loops
        loop.turns += 1
        loops.steps += 1
        if loops.steps > loops.max_steps:
            raise UnfitError("steps")
        return loop.turns >= loop.look

    def look(self, loop: Any, variables: dict) -> None:
        """Watch a turn, or judge the last one, after which the lane may wait for others."""
        mine = self.m, self.lane, self.mask
        self.m.loops.look(loop, variables)
        self.m, self.lane, self.mask = mine

    def end(self) -> None:
        """End the innermost loop."""
        self.m.loops.end()

    def fence(self, of_block: bool) -> None:
        """Note a fence, for threads of all blocks or of this one."""
        self.releases.fence_one(self.lane, self.threads, self.m.waits.epoch, of_block)

    def noting(self, place: Place, counted: bool) -> Callable[[int], None]:
        """Return a function that checks a touch of an element; UnfitError where it is a hazard."""
        shadow, line = place.array.shadow, place.line
        watchers, releases = self.watchers, self.releases
        op = {"load": "read", "store": "write"}.get(place.op, place.op)

        def note(at: int) -> None:
            if watchers:
                self._show(place, at, counted)
            lane = self.lane
            now = Now(0, 0, line, None, None, lane if releases.fences else None)
            if not shadow.by_one(op, at, lane, now):
                raise UnfitError("clash")

        def show(at: int) -> None:
            if watchers:
                self._show(place, at, counted)

        return show if shadow is None else note

    def compare(self, shadow: Any, at: int) -> None:
        """Note that the lane compares an element with what it has read, perhaps."""
        shadow.compare(at, self.lane)

    def _show(self, place: Place, at: int, counted: bool) -> None:
        """Show an access to those who watch a turn."""
        for watch in self.watchers[:] if counted else self.m.memory.watchers:
            watch(self.m, place.line, place.op, place.array, np.int64(at), self.mask)


# Functions of `cuda` that a lone thread may call, beside those that loops call.
ATOMICS = {f"atomic.{name}": name for name in (*atomics.UPDATES, "cas", "compare_and_swap")}
FENCES = {"threadfence": False, "threadfence_system": False, "threadfence_block": True}
COUNTS = "COUNTS"  # stands for the counts of all blocks, until these are known


class _Writer(Statements):
    """Writes the text of a kernel, of one thread, whose lane in the launch is `p`.

    of_lanes : what has a value for each lane, by its identity, and the name of its parameter
    numbers : of places; bound : variables so far; open : the loops that are
    """

    def __init__(self, lone: Lone, whole: LoneBatch, kernel: partial) -> None:
        constants, (_, *values) = kernel.func.__globals__, kernel.args
        (node,) = constants[TREE].body
        names = [a.arg for a in node.args.args[1:]]
        body = Body(constants[SOURCE], constants, dict(zip(names, values, strict=True)))
        targets = [t for n in ast.walk(node) if isinstance(n, ast.Assign) for t in n.targets]
        super().__init__(whole, body, (0, 0), {t.id for t in targets}, sys.maxsize)
        self.lone = lone
        self.of_lanes: dict[int, tuple[Any, str]] = {}
        self.numbers: dict[tuple, int] = {}
        self.bound: dict[str, None] = {}
        self.open: list[str] = []
        cuda = whole.scope.cuda
        self.callable = {id(cuda[name]): name for name in (*ATOMICS, *FENCES, "nanosleep")}
        for name in ("begin", "turn", "look", "end", "fence", "compare"):
            self.parameters[name] = getattr(lone, name)
        self.indent = 1
        self.begin_block()
        self.statements(node.body)
        self.say(f"return {COUNTS}")
        self.parameters |= {f"s_{name}": values[names.index(name)] for name in self.state}

    def text(self) -> str:
        """Return the function's text."""
        counts = [f"n{i}" for i in range(len(self.blocks))]
        state = {v.text: f"s_{name}" for name, v in self.state.items()}
        own = {name: state.get(name, "None") for name in [*state, *self.bound]}
        kept = [f"at{i}" for i in range(len(self.lone.places))]
        start = [f"{' = '.join(counts)} = 0", *(f"{name} = []" for name in kept)]
        start += [f"own_{name} = {name}[p]" for _, name in self.of_lanes.values()]
        start += [f"{name} = {value}" for name, value in own.items()]
        lines = [*("    " + line for line in start), *self.lines]
        text = "\n".join([f"def run(p, {', '.join(self.parameters)}):", *lines])
        results = ["(" + "".join(f"{name}, " for name in names) + ")" for names in (counts, kept)]
        return text.replace(COUNTS, ", ".join(results))

    def give_up_unless(self, text: str) -> None:
        self.say(f"if not ({text}):", "    raise UnfitError")

    def made(self, value: Any) -> Any:
        """Return a value that the kernel does not change, as a number where it is one."""
        if not isinstance(value, np.ndarray) or type(value) is Wrapped:
            return super().made(value)
        _, name = self.of_lanes.setdefault(id(value), (value, f"a{len(self.parameters)}"))
        if name not in self.parameters:
            self.parameters[name] = self.m.lanes.spread(value).ravel()
        return Number(f"own_{name}", fits(value.dtype))

    def bind(self, name: str, value: Any) -> None:
        super().bind(name, value)
        known = self.body.known[name]
        if isinstance(known, Number) and not name.startswith("."):
            self.bound[known.text] = None

    # Statements

    def expression_statement(self, node: ast.expr) -> None:
        if method_of(node)[0] == "calls.return_" and self.body.prefix == "v_":
            self.say(*["end()"] * self.inside, f"return {COUNTS}")
        else:
            super().expression_statement(node)

    def inner(self, node: ast.For | ast.While) -> None:
        """Write a loop, which the machine knows while it is open."""
        self.loops, self.inside = self.loops + 1, self.inside + 1
        endless = isinstance(node, ast.While)
        own, call = f"loop{self.loops}", node.test if endless else node.iter
        self.open.append(own)
        line = method_of(call)[1][1].value
        self.say(f"{own} = begin({line}, {endless})")
        (self.while_ if endless else self.for_)(node)
        self.say("end()")
        self.inside -= 1
        self.open.pop()

    def while_(self, node: ast.While) -> None:
        own, line = self.open[-1], method_of(node.test)[1][1].value
        self.say("while True:")
        self.indent += 1
        before = self.begin_block()
        test = self.temporary(self.truth(self.value(method_of(node.test)[1][0])), BOOL)
        self.tick(line, "inst_control")
        self.say(f"due = turn({own})", f"if not {test.text}:", "    break")
        looks, bound = len(self.lines), self.bound
        self.bound = {}
        self.begin_block()
        self.statements(node.body)
        self.end_block(before)
        self.indent -= 1
        changed = ", ".join(f"{name!r}: {name}" for name in self.bound)
        look = ["if due:", f"    look({own}, {{{changed}}})"]
        self.lines[looks:looks] = ["    " * (self.indent + 1) + part for part in look]
        self.bound = bound | self.bound

    def count_turns(self, head: str) -> None:
        """Write the head of a loop, whose turns the machine counts."""
        self.say(head, f"    {self.open[-1]}.turns += 1")

    # Accesses

    def access(
        self, op: str, array: Any, index: Any, line: int, counted: bool, value: str = ""
    ) -> Number:
        place = self.touching("load" if op == "read" else "store", array, line)
        element = self.element(array, index)
        self.note(place, element, counted)
        buffer = self.parameter(array.buffer, "b")
        if op == "read":
            return self.temporary(f"{buffer}[{element}]", fits(array.dtype))
        self.say(f"{buffer}[{element}] = {value}")
        return Number(value, array.dtype)

    def note(self, place: Place, element: str, counted: bool) -> None:
        """Write that an element is touched."""
        if counted:
            self.say(f"at{self.numbered(place)}.append({element})")
        self.say(f"{self.parameter(self.lone.noting(place, counted), 'f')}({element})")

    def of_load_once(self, array: Any, index: Any, line: ast.Constant, loops: Any) -> Number:
        array = self.value(array)
        place = self.touching("load", array, line.value)
        element = self.element(array, self.value(index))
        self.say("if " + " and ".join(f"{o}.turns == 1" for o in self.open[-loops.value :]) + ":")
        self.indent += 1
        self.note(place, element, counted=True)
        self.indent -= 1
        self.say("else:")
        self.indent += 1
        self.note(place, element, counted=False)
        self.indent -= 1
        buffer = self.parameter(array.buffer, "b")
        return self.temporary(f"{buffer}[{element}]", fits(array.dtype))

    def index(self, value: Any) -> str:
        number = getattr(value, "number", value)
        known = self.parameters.get(number.text) if isinstance(number, Number) else None
        return super().index(value) if known is None else self.fixed(known)

    def touching(self, op: str, array: Any, line: int) -> Place:
        """Return a place that touches global memory; UnfitError for any other memory."""
        if not isinstance(array, Array) or array.space != "global":
            raise UnfitError("memory")
        if array.owner.exact is not None or (op != "load" and not array.owner.writeable):
            raise UnfitError("array")
        shadow = array.shadow
        if shadow is not None:
            if shadow.unwritten is not None or shadow.unit:
                raise UnfitError("shadow")
            shadow.leave_runs()
        return Place(self.body.source, line, op, array)

    def numbered(self, place: Place) -> int:
        """Return the number of a place, by which a machine counts its accesses together."""
        array = place.array
        key = place.source, place.line, place.op, id(array.buffer), type(array), array.itemsize
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers)
            self.lone.places.append(place)
        return self.numbers[key]

    # Calls

    def of_call(self, place: ast.expr, function: ast.expr, *args: ast.expr) -> Any:
        called = self.value(function)
        name = self.callable.get(id(called))
        if name is None:
            return super().of_call(place, function, *args)
        if name in ATOMICS:
            return self.atomic(ATOMICS[name], place.value[1], [self.value(a) for a in args])
        if name in FENCES:
            self.say(f"fence({FENCES[name]})")
        return None

    def device(self, function: Any, args: list) -> Any:
        if function not in self.m.scope.program:
            self.m.scope.bound(function)  # no lane of a batch has come to it yet
        return super().device(function, args)

    def atomic(self, name: str, line: int, args: list) -> Number:
        if name == "compare_and_swap":
            args.insert(1, self.made(np.int64(0)))
        array, index, *operands = args
        place = self.touching("atomic", array, line)
        name = "cas" if name == "compare_and_swap" else name
        if array.shadow is None or not atomics.takes(name, array.dtype):
            raise UnfitError(name)
        given = [self.operand(v, array.dtype) for v in operands]
        element, buffer = self.element(array, index), self.parameter(array.buffer, "b")
        self.note(place, element, counted=True)
        old = self.temporary(f"{buffer}[{element}]", fits(array.dtype))
        if name == "cas":
            self.say(f"compare({self.parameter(array.shadow, 'r')}, {element})")
            self.say(f"if {old.text} == {given[0]}:", f"    {buffer}[{element}] = {given[1]}")
        else:
            new = self.parameter(atomics.UPDATES[name], "u")
            self.say(f"{buffer}[{element}] = {new}({old.text}, {given[0]})")
        return old

    def operand(self, value: Any, dtype: np.dtype) -> str:
        """Return the text of a number in the type of the elements that it is for, wrapped."""
        if not isinstance(value, Number) or value.dtype == BOOL:
            raise UnfitError("operand")
        if value.dtype == dtype:
            return value.text
        known = self.parameters.get(value.text)
        if isinstance(known, np.generic):
            return self.made(known.astype(dtype)).text
        if "f" in value.dtype.kind and dtype.kind != "f":
            raise UnfitError("operand")
        return f"({value.text}).astype({type_name(dtype)})"
