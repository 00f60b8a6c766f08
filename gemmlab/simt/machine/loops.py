"""Loops: all lanes make an iteration together, and a loop ends when no lane is left in it.

A turn of a loop that leaves all local variables and all memory as they were will be followed by
the same turn again, until somebody else changes an element that it looks at. Its lanes *spin*.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gemmlab.simt.machine.endless import Touched, Watch, deciding, kept, unchanged
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.memory import Memory
from gemmlab.simt.numbers.lanes import Launch, Mask, Masks, both, either, without
from gemmlab.simt.numbers.values import Range, Together, shown, truth
from gemmlab.simt.report.tally import Findings, Tally
from gemmlab.simt.syntax.source import Source
from gemmlab.simt.threads import rest

FIRST = 16  # the turn that is watched first, where nothing is known to spin
# From this turn on a loop is also said to spin that looks at the same elements in two turns, and
# changes variables of its own alone: it may count its turns. It may compute, too, and fibers of
# it would take longer.
PATIENCE = 1024

LANES = {"warpgroup": 128, "warp": 32}  # of a fiber, where there are asynchronous instructions
ALONE = 0, 1  # lanes for which `Tally.seconds` tells what was done: all, or one
# What a lane does as a function of one thread takes this part of its time on the machine: 0.09 ms a
# thread of `benchmarks.simulator.work.spin_lock`, and 0.47 ms.
LONE = 0.2


@dataclass(frozen=True)
class Grain:
    """The lanes that run together, from coarse to fine.

    name : they are those of a "batch" of blocks, of a "block", of a "group", or a "lane" alone;
        "lone" is a lane that runs as a function of one thread (`threads.lone`); with asynchronous
        instructions they are those of a "warpgroup" or of a "warp"
    groups : of a block, by its linear index, the lanes that spin, (1, threads), and the others;
        blocks that are not there have the groups of the first one
    most : blocks of a batch, where a GPU holds no more of them at once; 0 for no such bound
    tried : whether "lone" has been tried in vain: the function cannot be written, or gave up
    """

    name: str
    groups: dict[int, np.ndarray] = field(default_factory=dict)
    most: int = 0
    tried: bool = False


class SpinsError(Exception):
    """Lanes that run together wait for each other; the launch must run again in `finer` grain."""

    def __init__(self, finer: Grain) -> None:
        super().__init__(finer.name)
        self.finer = finer


@dataclass(frozen=True)
class Spin:
    """Lanes of `mask` that spin in the loop of `line`, and the elements that they look at.

    exact : whether they are sure to do so until one of these changes
    """

    line: int
    mask: Mask
    touched: list[Touched]
    exact: bool

    @property
    def ready(self) -> bool:
        """Whether another turn may be different."""
        if not self.exact:
            return True
        return any(touched.changed for touched in self.touched)

    @property
    def until(self) -> str:
        """A sentence says what has to happen for the lanes to go on."""
        touched = next(t for t in self.touched if t.awaited)
        element = touched.array.element(touched.where[-1][0])
        return f"{element} changes, which is {touched.values[0]}"


@dataclass(frozen=True)
class Awaited(Spin):
    """Lanes that wait in one instruction until a condition holds; words : which one."""

    condition: Callable[[], bool]
    words: Callable[[], str]

    @property
    def ready(self) -> bool:
        return self.condition()

    @property
    def until(self) -> str:
        """A sentence says which condition has to hold."""
        return self.words()


class StepLimitError(Exception):
    """A loop ran longer than the step budget allows."""


class TooManyTurnsError(Exception):
    """A loop of a launch that is tried again turns more often than any did at first."""


class State(NamedTuple):
    """The variables at a turn of a loop of a function's source, and the lanes that are in it."""

    source: Source
    mask: Mask
    variables: Mapping[str, Any]


@dataclass
class Loop:
    """An open loop: the depth of its mask in the stack; the lanes that have met `break`.

    turns, line : its iterations so far, and where it stands; endless : whether it is a `while`
    look : the turn that is to be watched; gap : turns from one to the next, more each time
    watch, earlier : the turn that is watched, and one before
    spent : seconds before the turn that is watched, by counts: of all lanes, and of one alone
    states : the variables in some turns of a `while`, each twice as late as the one before
    bounds : of a `for`; ask : the turn that asks whether to run the rest thread by thread, after
        each as many again; counted : the turn before it from which on costs are known, and how
        many seconds had been spent then, by counts
    """

    depth: int
    gap: int
    broken: Mask = False
    turns: int = 0
    line: int = 0
    endless: bool = False
    look: int = 0
    watch: Watch | None = None
    earlier: Watch | None = None
    bounds: Range | None = None
    ask: int = 0
    counted: tuple[int, float] = (0, 0.0)
    spent: tuple[float, ...] = (0.0, 0.0)
    states: list[State] = field(default_factory=list)

    def unwatch(self) -> None:
        """Stop watching, until `gap` turns have passed."""
        if self.watch is not None:
            self.watch.end()
            self.watch, self.look = None, self.turns + self.gap


class Loops:
    """A rewritten kernel calls these methods in its loops.

    open : the loops that run, the innermost last; steps : the turns of a `while`, with those of
        every `while` in it
    wait : called where lanes spin; returns when another turn may be different; None in a batch
    first : the turn of a `while` that is watched first; patience : the turn from which on it may
        spin although its variables change
    """

    def __init__(
        self, masks: Masks, tally: Tally, findings: Findings, memory: Memory, launch: Launch
    ) -> None:
        self.masks, self.tally, self.findings, self.memory = masks, tally, findings, memory
        self.max_steps, self.most_turns, self.steps = launch.max_steps, launch.most_turns, 0
        self.open: list[Loop] = []
        self.wait: Callable[[Spin], None] | None = None
        self.may_be_lone = False  # lanes of a batch, as functions of one thread
        self.first, self.patience = FIRST, PATIENCE
        self.all_ways = False  # as of `Branches`
        # What variables are after a rest; the loops whose rest was tried in vain; about how long
        # loops take that asked for it.
        self.left: dict[str, Any] | None = None
        self.given_up: set[tuple] = set()
        self.seconds: dict[tuple, float] = {}

    def rest(self, number: int) -> bool:
        """Say whether the rest of the loop has run, thread by thread, from this turn on."""
        loop = self.open[-1]
        if loop.turns < loop.ask or self.all_ways:
            return False
        loop.ask *= 2
        if not loop.counted[0]:
            loop.counted = loop.turns, self.tally.seconds()
            return False
        m = self.memory.m
        if sys.gettrace() is not None or m.report.in_doubt or m.launch.unwritten:
            return False  # a debugger steps through it, or its turns are counted
        key = m.calls.source, number
        if key in self.given_up:
            return False
        frame, turns = sys._getframe(1), loop.turns  # a `while` turns about as often again
        if not loop.endless:
            if loop.bounds is None:
                return False
            turns = rest.turns_left(loop.bounds, frame.f_locals[".next"])
        since, spent = loop.counted
        seconds = (self.tally.seconds() - spent) / (loop.turns - since) * turns
        before = self.seconds.get(key, 0)  # in earlier loops of this place
        self.seconds[key] = before + seconds * (loop.turns == rest.FIRST)
        if not rest.pays(m, seconds, before):
            return False
        around = any(other.endless for other in self.open[:-1])
        scopes = frame.f_locals, frame.f_globals
        left = rest.Rest(number, *scopes, loop.bounds, self.steps, self.max_steps, around)
        try:
            self.left = rest.run(m, left, turns)
        except rest.GaveUpError:
            self.given_up.add(key)
            return False
        if self.left is None:
            return False
        self.may_be_lone = False  # what ran so is not counted among what was done
        return True

    def await_(
        self, line: int, mask: Mask, condition: Callable[[], bool], words: Callable[[], str]
    ) -> None:
        """Let others run until a condition holds for the lanes of `mask`; words : which one."""
        while not condition():
            self._wait(Awaited(line, mask, [], True, condition, words))

    def _wait(self, spin: Spin) -> None:
        """Let others run; where lanes of a batch spin, have the launch run again, block by block.

        Lane by lane at once, where lanes ask by an atomic for what others of their block have got:
        a lock, as it seems, which no larger group of lanes can give back.
        """
        if self.wait is not None:
            self.wait(spin)
            return
        lone = self.may_be_lone and any(touched.op == "atomic" for touched in spin.touched)
        raise SpinsError(Grain("lone" if lone and self._has_left(spin.mask) else "block"))

    def _has_left(self, mask: Mask) -> bool:
        """Say whether lanes of a block have left the innermost loop, in which others of it are."""
        lanes = self.memory.m.lanes
        inside = lanes.full(mask)
        left = lanes.full(self.masks[self.open[-1].depth - 1]) & ~inside
        return bool((inside.any(axis=1) & left.any(axis=1)).any())

    def divide(self) -> None:
        """Have the launch run again with each warpgroup by itself."""
        raise SpinsError(Grain("warpgroup"))

    def load_once(self, array: Any, index: Any, line: int, loops: int) -> Any:
        """Return an element that is loaded in the first turn alone of so many loops around it."""
        first = all(loop.turns == 1 for loop in self.open[-loops:])
        load = self.memory.load if first else self.memory.load_again
        return load(array, index, line)

    def begin(self) -> None:
        self.masks.append(self.masks[-1])
        self.open.append(
            Loop(len(self.masks) - 1, self.first, look=self.first, ask=rest.FIRST // 2)
        )

    def while_(self, test: Any, line: int) -> bool:
        """Say whether any lane begins another iteration."""
        loop = self._step(line)
        holds = truth(test)
        if self.all_ways and loop.turns == 1 and holds is not False:
            self.masks.append(False)
            return True
        self.masks[-1] = both(self.masks[-1], holds)
        if self.masks[-1] is False:
            return False
        if loop.turns >= FIRST and loop.turns & (loop.turns - 1) == 0:
            state = State(self.tally.calls.source, self.masks[-1], kept(sys._getframe(1).f_locals))
            loop.states = [*loop.states[-1:], state]
        if loop.turns >= loop.look:
            self.look(loop, dict(sys._getframe(1).f_locals))  # of a view since Python 3.13
        self.masks.append(self.masks[-1])
        return True

    def look(self, loop: Loop, variables: Mapping[str, Any]) -> None:
        """Watch the next turn, or judge the last one, after which lanes may have to wait."""
        watch, loop.watch = loop.watch, None
        if watch is None:
            self._watch(loop, variables)
            return
        watch.end()
        idle = watch.idle()
        if idle and watch.repeats(variables):
            self._wait(Spin(loop.line, watch.mask, watch.touched, exact=True))
            loop.gap = 1
            self._watch(loop, variables)
        elif idle and loop.turns >= self.patience and loop.earlier is None:
            loop.earlier = watch
            self._watch(loop, variables)
        elif watch.frozen(variables):
            why = "a turn of it leaves all variables and all memory as they were"
            self._stop(loop.line, watch.mask, f"thread {{thread}} never leaves this loop: {why}")
        elif self.may_be_lone and self._one_by_one(loop, watch, variables):
            raise SpinsError(Grain("lone"))
        else:
            loop.gap *= 2
            if idle and watch.looks_again(loop.earlier):
                self._wait(Spin(loop.line, watch.mask, watch.touched, exact=False))
                loop.gap = FIRST
            loop.look, loop.earlier = loop.turns + loop.gap, None

    def _one_by_one(self, loop: Loop, watch: Watch, variables: Mapping[str, Any]) -> bool:
        """Say whether lanes leave the loop so slowly that each had better run alone.

        So do lanes that hold a lock for a part of a turn: those that ask for it meanwhile spin, and
        all of them make as many turns as there are lanes. What each would do alone is all that was
        done before the loop, and a turn.
        """
        before, now = (self.tally.active(mask)[1] for mask in (watch.mask, self.masks[-1]))
        if now == before or not watch.spun(variables):
            return False
        together, alone = (self.tally.seconds(lanes) for lanes in ALONE)
        turn, own = together - loop.spent[0], alone - loop.spent[1]
        own += max(0, alone - loop.turns * own)
        launch = self.memory.m.launch
        return turn * now / (before - now) > own * LONE * launch.blocks * launch.threads

    def _watch(self, loop: Loop, variables: Mapping[str, Any]) -> None:
        loop.watch, loop.look = Watch(self.memory.m, variables), loop.turns + 1
        loop.spent = tuple(self.tally.seconds(lanes) for lanes in ALONE)

    def iterate(self, values: Any, line: int) -> Iterator[Any]:
        """The values of the variable of a `for` loop, one iteration after the other."""
        if self.all_ways:
            yield from self._once(values, line)
            return
        if not isinstance(values, Range):
            for value in self._items(values, line):
                if self.masks[-1] is False:
                    return
                self.open[-1].turns += 1
                self.masks.append(self.masks[-1])
                yield value
            return
        start, stop, step = values.start, values.stop, values.step
        self.open[-1].bounds = values
        if np.ndim(start) == np.ndim(stop) == np.ndim(step) == 0:
            if step == 0:
                raise ValueError("the step of range is 0")
            for value in range(int(start), int(stop), int(step)):
                if self.masks[-1] is False:
                    return
                self._turn(line)
                self.masks.append(self.masks[-1])
                yield np.int64(value)
            return
        value = np.asarray(start)
        while True:
            more = np.where(np.greater(step, 0), value < stop, value > stop)
            self.masks[-1] = both(self.masks[-1], more)
            if self.masks[-1] is False:
                return
            self._turn(line)
            self.masks.append(self.masks[-1])
            yield value
            value = value + step

    def _once(self, values: Any, line: int) -> Iterator[Any]:
        """One value of a loop's variable, of its type."""
        if isinstance(values, Range):
            found = iter([np.int64(0)])
        elif isinstance(values, Array):
            found = iter([self.memory.load(values, np.int64(0), line)])
        else:
            found = self._items(values, line)
        for value in found:
            self.masks.append(False)
            yield value
            if not isinstance(values, tuple):
                return

    def _items(self, values: Any, line: int) -> Iterator[Any]:
        """Return the items of a tuple, an array, `enumerate` or `zip`."""
        if isinstance(values, tuple):
            return iter(values)
        if isinstance(values, Together):
            return zip(*(self._items(source, line) for source in values.sources), strict=False)
        if isinstance(values, Range) and all(np.ndim(b) == 0 for b in values.bounds):
            return (np.int64(i) for i in range(*(int(b) for b in values.bounds)))
        if not isinstance(values, Array):
            raise TypeError(f"cannot iterate over {shown(values)}; use range")
        return (self.memory.load(values, np.int64(i), line) for i in range(int(values.shape[0])))

    def end_iteration(self) -> None:
        """Let the lanes that met `continue` run again."""
        self.masks.pop()

    def end(self) -> Mask:
        """Leave the loop: the lanes that met `break` run again; returns their mask."""
        self.masks.pop()
        loop = self.open.pop()
        loop.unwatch()
        report = self.tally.report
        report.turns = max(report.turns, loop.turns)
        if not any(around.endless for around in self.open):
            self.steps = 0
        return loop.broken

    def else_(self) -> bool:
        """Leave the loop for its `else`; returns whether any lane enters."""
        broken = self.end()
        self.masks.append(without(self.masks[-1], broken))
        return self.masks[-1] is not False

    def end_else(self) -> None:
        """Leave the `else` of a loop."""
        self.masks.pop()

    def break_(self) -> None:
        """Stop the active lanes until the end of the loop."""
        loop = self.open[-1]
        loop.broken = either(loop.broken, self.masks[-1])
        self.masks.drop(loop.depth)

    def continue_(self) -> None:
        """Stop the active lanes until the end of the iteration."""
        self.masks.drop(self.open[-1].depth + 1)

    def _turn(self, line: int) -> Loop:
        self.tally.tick(line, "inst_control")
        loop = self.open[-1]
        loop.turns, loop.line = loop.turns + 1, line
        if loop.turns > self.most_turns:
            raise TooManyTurnsError
        return loop

    def _step(self, line: int) -> Loop:
        """Count a turn of the innermost loop, a `while`, which must not make too many."""
        loop = self._turn(line)
        self.steps, loop.endless = self.steps + 1, True
        if self.steps > self.max_steps:
            whiles = [loop for loop in self.open if loop.endless]
            longest = max(whiles, key=lambda loop: loop.turns)  # not a short loop inside it
            text = (
                f"thread {{thread}} was stopped after max_steps={self.max_steps} turns of `while`; "
                "if this loop ends later, raise max_steps"
            )
            lanes, why = self.masks[-1], _endless(longest)
            if why:
                lanes = longest.states[-1].mask
                text = f"thread {{thread}} never leaves this loop: {why}"
            self._stop(longest.line, lanes, text)
        return loop

    def _stop(self, line: int, lanes: Mask, text: str) -> None:
        """End the launch at a loop that does not end, or not within its limit."""
        self.findings.hazard("step-limit", line, lanes, text)
        raise StepLimitError


def _endless(loop: Loop) -> str:
    """Say why a loop surely never ends; "" where it may."""
    if not loop.states:
        return ""
    *before, now = loop.states
    names = deciding(now.source.tree, loop.line)
    if names is None or without(now.mask, loop.broken) is False:
        return ""
    names = names & now.variables.keys()
    if not names:
        return "nothing in it changes what it looks at"
    if (
        before
        and names <= before[0].variables.keys()
        and unchanged(before[0].variables, now.variables, names, now.mask)
    ):
        alone = "alone decides that, and is" if len(names) == 1 else "alone decide that, and are"
        return f"{' and '.join(sorted(names))} {alone} the same again"
    return ""
