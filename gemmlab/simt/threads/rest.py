"""The rest of a long loop, run thread by thread instead of in lock-step.

`statements` writes the function. For one thread alone Python runs it as it is; for more, Numba's
compiler for CPUs makes machine code of it, where it is installed and the loop is long enough to
pay for that. There the 32 threads of a warp make a turn one after the other, so that what a turn
costs is known by warps. Results, counts and touches are those of lock-step; where they would not
be, because threads touch each other's elements or an index is outside, all is put back, and the
loop goes on in lock-step.
"""

import ast
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from gemmlab.model.transactions import SECTOR, WARP
from gemmlab.simt.memory.counting import COUNTERS
from gemmlab.simt.numbers.values import Range
from gemmlab.simt.syntax.rewrite import SOURCE, TREE
from gemmlab.simt.threads.batch import LoopBatch
from gemmlab.simt.threads.statements import Statements
from gemmlab.simt.threads.text import INT, Body, Number, UnfitError

FIRST = 16  # the turn that asks first
# Seconds in lock-step, as counts tell them, for which the rest of a loop pays: of one thread alone;
# of more, to write and call the function, and, together with earlier loops of the same place, to
# compile it.
ALONE, CALLED, TOGETHER = 0.02, 0.01, 2.0
MOST = 512  # turns of a loop in the loop, where those of many threads are counted by warps
LARGEST = 1 << 22  # elements of an array whose touches are kept one by one for this
LONGEST = 300  # lines that are compiled, each of which takes some milliseconds
AT_ONCE = 10_000_000  # turns of threads in compiled code, which cannot be interrupted meanwhile
# After so many turns a loop that looks at memory may be one that waits for others: `machine.loops`.
PATIENT = 1000


class GaveUpError(Exception):
    """The rest did what lock-step reports, or what threads do to each other; all is put back."""


class Rest:
    """A loop in lock-step, where it stands: what the function of its rest is made from.

    node : of the lock-step form; assigned : the variables that it changes
    variables, constants : of its function; bounds : of a `for`
    steps, limit : turns of `while` so far, and at most; endless : whether it is, or is in, one
    """

    def __init__(
        self, number: int, variables: Mapping, constants: Mapping, bounds: Range | None,
        steps: int, limit: int, around: bool,
    ) -> None:  # fmt: skip
        self.variables, self.constants, self.bounds = variables, constants, bounds
        self.steps, self.limit, self.around = steps, limit, around
        self.node, self.assigned = _found(constants[TREE], number)
        self.endless = around or self.of_while

    @property
    def of_while(self) -> bool:
        return isinstance(self.node, ast.While)

    @property
    def line(self) -> int:
        """The line that its turns are counted in."""
        call = self.node.test if self.of_while else self.node.iter
        return call.args[1].value


def _found(tree: ast.AST, number: int) -> tuple[Any, set[str]]:
    """Return the loop of a lock-step form that asks for its rest by a number."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.While)):
            for part in node.body[:2]:
                if (
                    isinstance(part, ast.If)
                    and ast.unparse(part.test) == f".m.loops.rest({number})"
                ):
                    assigns = [s for s in part.body if isinstance(s, ast.Assign)]
                    return node, {s.targets[0].id for s in assigns}
    raise KeyError(number)


def turns_left(bounds: Range, now: Any) -> int:
    """Return how often a `for` loop turns from where it stands, in the thread with most turns."""
    left = np.ceil((np.asarray(bounds.stop, float) - now) / bounds.step)
    return max(0, int(left.max()))


def pays(m: LoopBatch, seconds: float, before: float) -> bool:
    """Say whether a loop is worth to be written again, whose rest takes so long in lock-step.

    before : seconds that earlier loops of the same place took
    """
    if seconds < min(ALONE, CALLED) or m.apart or m.under_way:
        return False
    seen = m.memory.watchers or m.report.watchers
    if seen or m.masks[-1] is False:
        return False
    if m.tally.active(m.masks[-1])[1] == 1:
        return seconds > ALONE
    return seconds > CALLED and seconds + before > TOGETHER and _has_numba()


@cache
def _has_numba() -> bool:
    try:
        from numba import config
    except ImportError:
        return False
    return not config.DISABLE_JIT


def run(m: LoopBatch, loop: Rest, turns: int) -> dict[str, Any] | None:
    """Run the rest of a loop, of about so many turns; returns what its variables are then.

    None where it cannot be written as it stands. Raises GaveUpError.
    """
    on = m.lanes.full(m.masks[-1])
    lanes = int(np.count_nonzero(on))
    place = m.lanes.first(on) if lanes == 1 else None
    body = Body(loop.constants[SOURCE], loop.constants, loop.variables)
    most = min(LARGEST, max(LARGEST >> 6, 8 * turns * lanes))
    writer = Statements(m, body, place, loop.assigned, most)
    writer.endless = loop.endless
    try:
        return (_together if place is None else _alone)(m, loop, writer)
    except UnfitError:
        return None


# One thread


def _alone(m: LoopBatch, loop: Rest, w: Statements) -> dict[str, Any]:
    """Write and run the rest of a loop for one thread, whose variables are Python's own."""
    w.indent = 1
    if loop.of_while:
        w.leaves = ("steps += 1; break", "continue")
        w.say("while True:", "    if turns:", "        steps += 1")
        w.indent = 3
        w.give_up_unless("steps <= limit and turns <= patient")
        w.begin_block()
        w.test(loop.node, "break")
        w.indent = 2
        w.say("turns += 1")
    else:
        start, stop, step = (
            w.index(w.made(value))
            for value in (loop.variables[".next"], loop.bounds.stop, loop.bounds.step)
        )
        w.say(f"for q in range({start}, {stop}, {step}):")
        w.blocks.append(Counter({(w.body.source, loop.line, "inst_control"): 1}))
        w.body.known[".next"] = Number("int64(q)", INT)
        w.indent = 2
    w.begin_block()
    w.statements(loop.node.body)
    reads = [i for i, site in enumerate(w.sites) if site.op == "read" and site.array.shadow]
    blocks = [f"n{i}" for i in range(len(w.blocks))]
    elements = [f"last_{i}" for i in reads]
    start = [f"{name} = 0" for name in blocks] + [f"{name} = -1" for name in elements]
    start += [f"{v.text} = s_{name}" for name, v in w.state.items()]
    end = [] if loop.of_while else ["n0 = n1 - 1"]  # lock-step has begun the first turn
    end += ["if steps > limit:", "    return None"]
    results = blocks, [v.text for v in w.state.values()], elements
    end += [f"return {', '.join(map(_listed, results))}, steps"]
    w.parameters |= {f"s_{n}": m.lanes.spread(loop.variables[n])[w.place] for n in w.state}
    w.parameters |= {"steps": loop.steps, "limit": loop.limit, "turns": 0}
    w.parameters["patient"] = PATIENT if w.awaits() else loop.limit
    _add_limits(w, loop)
    place = int(m.lanes.place[w.place])
    lane = place + m.lanes.first_lane
    _add_touches(m, w, place, lane)
    function = function_of(_text(w, start, end), as_it_is)
    counts, left, elements, steps = _or_put_back(w, lambda: function(*w.parameters.values()))
    _count(m, w, counts, counts, [counts[site.block] for site in w.sites])
    for i, element in zip(reads, elements, strict=True):
        if element >= 0:
            w.sites[i].array.shadow.last_reads[w.sites[i].line] = element, lane
    m.loops.steps = steps
    variables: dict[str, Any] = {}
    for name, value in zip(w.state, left, strict=True):
        variables[name], old = value, loop.variables[name]
        if np.ndim(old):
            variables[name] = m.lanes.spread(old).copy()
            variables[name][w.place] = value
    return variables


# The threads of a batch, warp by warp


def _together(m: LoopBatch, loop: Rest, w: Statements) -> dict[str, Any]:
    """Write and run it for many: a turn of one after the other, each with arrays of its own."""
    w.leaves = ("stays = False; break", "break")
    w.indent = 5
    w.say("if turn > 0:")
    w.indent = 6
    if loop.of_while:
        w.begin_block()
        w.test(loop.node, w.leaves[0])
    else:
        stop, step = (w.made(_whole(v)) for v in (loop.bounds.stop, loop.bounds.step))
        w.say(f"q += {step.text}")
        w.say(f"if not (q < {stop.text} if {step.text} > 0 else q > {stop.text}):")
        w.say("    stays = False", "    break")
        w.begin_block()
        w.tick(loop.line, "inst_control")
        w.body.known[".next"] = Number("q", INT)
    w.indent = 5
    w.say("if turn >= longest:", "    longest = turn + 1")
    w.begin_block()
    w.statements(loop.node.body)
    if len(w.lines) > LONGEST:
        raise UnfitError("long")
    flat = {n: m.lanes.spread(loop.variables[n]).ravel().copy() for n in w.state}
    next_ = np.zeros(m.lanes.place.size, np.int64)
    if not loop.of_while:
        next_ = np.ascontiguousarray(m.lanes.spread(loop.variables[".next"])).ravel().copy()
    sites, blocks, most = max(1, len(w.sites)), len(w.blocks), MOST if w.loops else 1
    counts, sectors = np.zeros((2, blocks), np.int64), np.zeros(len(w.rows), np.int64)
    last, when = np.zeros((sites, len(next_)), np.int64), np.full((sites, len(next_)), -1)
    limit = loop.limit - loop.steps if loop.endless else 1 << 62
    w.parameters |= {f"s_{name}": values for name, values in flat.items()}
    w.parameters |= {
        "on": m.lanes.full(m.masks[-1]).ravel().copy(), "next_": next_, "counts": counts,
        "sectors": sectors, "last": last, "when": when, "threads": m.lanes.threads,
        "first": m.lanes.first_lane,
        "limit": min(limit, PATIENT) if loop.of_while and w.awaits() else limit,
        "sizes": np.array([size for *_, size in w.rows], np.int64),
        "hits": np.zeros((blocks, most), np.int64), "most": most, "steps": loop.steps,
        "begin": 0, "end": 0, "longest": 0,
        "at": np.zeros((len(w.rows), most, WARP), np.int64),
        "within": np.array([block for block, *_ in w.rows], np.int64),
    }  # fmt: skip
    _add_touches(m, w, 0, 0)
    _add_limits(w, loop)
    function = function_of(_text(w, *_around(w)), _compiled)
    steps = _or_put_back(w, lambda: _in_parts(w, function))
    pieces = [int(sectors[site.row]) for site in w.sites]
    _count(m, w, counts[0].tolist(), counts[1].tolist(), pieces)
    for i, site in enumerate(w.sites):
        on = (when[i] == when[i].max()) & (when[i] >= 0)
        if on.any() and site.array.shadow is not None:
            lanes = np.flatnonzero(on) + w.parameters["first"]
            site.array.shadow.last_reads[site.line] = last[i][on], lanes
    m.loops.steps += steps if loop.of_while else 0
    on = m.lanes.full(m.masks[-1]).ravel()
    return {n: _by_lane(m, loop.variables[n], values, on) for n, values in flat.items()}


def _by_lane(m: LoopBatch, old: Any, values: np.ndarray, on: np.ndarray) -> Any:
    """Return a variable over all lanes; one number, where it was one and is the same for all."""
    own = values[on]
    if np.ndim(old) == 0 and own.tobytes() == own[:1].tobytes() * len(own):
        return own[0]
    return values.reshape(m.lanes.shape)


def _whole(bound: Any) -> Any:
    return np.int64(bound) if np.ndim(bound) == 0 else bound


def _around(w: Statements) -> tuple[list[str], list[str]]:
    """Return the lines around those of a turn of a thread."""
    state = [(v.text, f"s_{name}[p]") for name, v in w.state.items()]
    start = [
        "deepest = 0",
        f"for warp in range(len(on) // {WARP}):",
        "    turn = begin",
        "    going = True",
        "    while going and turn < end:",
        "        going = False",
        f"        for p in range(warp * {WARP}, (warp + 1) * {WARP}):",
        "            if not on[p]:",
        "                continue",
        "            me, row, thread = p + first, p // threads, p % threads",
        "            q = next_[p]",
        *(f"            {own} = {kept}" for own, kept in state),
        "            stays = True",
        "            while True:",
    ]
    end = [
        "                break",
        "            next_[p] = q",
        *(f"            {kept} = {own}" for own, kept in state),
        "            on[p] = stays",
        "            going = going or stays",
        "        turn += 1",
        "        if turn > limit:",
        "            return -1",
        "        count(hits, counts, at, sizes, within, sectors, deepest)",
        "return longest",
    ]
    return start, end


def _add_limits(w: Statements, loop: Rest) -> None:
    """Add how often each `while` in the loop may turn."""
    w.parameters |= {name: PATIENT if looks else loop.limit for name, looks in w.limits}


def _add_touches(m: LoopBatch, w: Statements, place: int, lane: int) -> None:
    """Add the touch of each place of memory to the parameters, of a lane or of the first one."""
    for i, site in enumerate(w.sites):
        shadow = site.array.shadow
        now = m.waits.now(site.line, np.array([place]))
        now = now.of_one() if w.alone else now
        if isinstance(now.epoch, np.ndarray) or isinstance(now.sync, np.ndarray):
            raise UnfitError("moments")
        if shadow is not None:
            w.parameters[f"touch_{i}"] = int(shadow.visits.touch(lane, now, shadow.fences))


def _text(w: Statements, start: list[str], end: list[str]) -> str:
    lines = [*("    " + s for s in start), *w.lines, *("    " + s for s in end)]
    return "\n".join([f"def run({', '.join(w.parameters)}):", *lines])


def _in_parts(w: Statements, function: Callable) -> int | None:
    """Run compiled code for some turns at a time, so that Ctrl-C can come between."""
    on, turns = w.parameters["on"], max(1, AT_ONCE // len(w.parameters["on"]))
    while on.any():
        w.parameters["end"] += turns
        try:
            longest = function(*w.parameters.values())
        except Exception as error:
            if not type(error).__module__.startswith("numba"):
                raise
            return None  # what it does not compile
        if longest < 0:
            return None
        w.parameters |= {"longest": longest, "begin": w.parameters["end"]}
    return longest


def _or_put_back(w: Statements, run: Callable[[], Any]) -> Any:
    """Run the function; where it gives up, put back what it has stored, and raise GaveUpError."""
    arrays = {name: w.parameters[name] for name in w.changed}
    kept = {name: array.copy() for name, array in arrays.items()}
    found = run()
    if found is None:
        for name, array in arrays.items():
            array[...] = kept[name]
        raise GaveUpError
    for site in w.sites:
        if site.op == "write" and site.array.shadow is not None:
            site.array.shadow.written = True
    return found


def _count(
    m: LoopBatch, w: Statements, warps: list[int], lanes: list[int], sectors: list[int]
) -> None:
    """Count what the blocks of the function cost, which so many warps and lanes have run."""
    for block, costs in enumerate(w.blocks):
        for (source, line, kind), times in costs.items() if warps[block] else ():
            counters = m.report.counters_of(source, line)
            counters["inst_executed"] += times * warps[block]
            counters["thread_inst_executed"] += times * lanes[block]
            counters[kind] += times * warps[block]
    for site, pieces in zip(w.sites, sectors, strict=True):
        if site.counted and warps[site.block]:
            names = COUNTERS["global", "load" if site.op == "read" else "store"]
            of_lanes = lanes[site.block] * site.array.itemsize
            counters = m.report.counters_of(site.source, site.line)
            for name, amount in zip(names, (warps[site.block], pieces, of_lanes), strict=True):
                counters[name] += amount
    for line, test, way in w.ways:
        m.branches.took(line, lanes[way] > 0, lanes[test] > lanes[way])


def _listed(names: Iterable[str]) -> str:
    return "(" + "".join(f"{name}, " for name in names) + ")"


@lru_cache(maxsize=256)
def function_of(text: str, wrap: Callable) -> Callable:
    """Return the function of a text; `wrap` compiles a function, or returns it as it is."""
    types = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    names = (*types, "bool_", "float32", "float64", "sqrt")
    scope = {name: getattr(np, name) for name in names}
    scope |= {"fma": wrap(_fma), "count": wrap(_count_turn), "UnfitError": UnfitError}
    exec(text, scope)
    return wrap(scope["run"])


def as_it_is(function: Callable) -> Callable:
    """Return a function that Python runs."""
    return function


def _compiled(function: Callable) -> Callable:
    """Return a function as machine code, which is made when it is first called."""
    from numba import njit

    return njit(function, error_model="numpy")


def _fma(a: Any, b: Any, c: Any) -> Any:
    """a·b + c of float32, rounded once: the sum in float64 is rounded to odd first."""
    product, c = np.float64(a) * np.float64(b), np.float64(c)
    total = product + c
    part = total - product
    rest = (product - (total - part)) + (c - part)
    bits = np.float64(total).view(np.int64)
    if rest != 0 and math.isfinite(total) and bits & 1 == 0:
        bits += 1 if (rest > 0) == (total > 0) else -1
    return np.float32(np.int64(bits).view(np.float64))


def _count_turn(
    hits: Any, counts: Any, at: Any, sizes: Any, within: Any, sectors: Any, deepest: int
) -> None:
    """Count the sectors and the blocks of a turn of a warp, and in it of a loop in the loop."""
    for i in range(len(within)):
        for j in range(deepest + 1):
            highest = -1
            for k in range(hits[within[i], j]):
                piece = at[i, j, k] * sizes[i] // SECTOR
                at[i, j, k] = piece
                if piece > highest:  # mostly, the next lane asks for what comes next
                    highest = piece
                    sectors[i] += 1
                    continue
                before = k - 1
                while before >= 0 and at[i, j, before] != piece:
                    before -= 1
                sectors[i] += before < 0
    for i in range(len(hits)):
        for j in range(deepest + 1):
            if hits[i, j]:
                counts[0, i] += 1
                counts[1, i] += hits[i, j]
                hits[i, j] = 0
