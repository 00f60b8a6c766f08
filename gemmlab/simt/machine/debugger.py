"""`breakpoint()` in a kernel: Python's debugger, in one thread of the launch.

All lanes run in lock-step, so that a step of the debugger is a step of every thread; what it shows
is of one thread. A lock-step function has the lines and the names of its kernel, so that `pdb` does
the rest: `next`, `step` into a device function, `until`, `break`, `list`, `where`, `continue`.
"""

from __future__ import annotations

import dis
import pdb
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.memory.array import Array, Choice, Record, Records
from gemmlab.simt.numbers.lanes import Dim3, Lanes
from gemmlab.simt.numbers.values import NUMBER, Range, Triple, Unassigned
from gemmlab.simt.syntax import nodes
from gemmlab.simt.syntax.expressions import scope_of
from gemmlab.simt.syntax.rewrite import SOURCE

Place = int | tuple[int, ...]  # of a block or a thread: its linear index, or (x, y, z)
HINT = "vars, lanes EXPRESSION, shared, thread N, next, step, continue, quit; help explains each"
COLUMNS = 8  # lanes that share a line
ELEMENTS = 64  # of an array that are shown; of a longer one, those at its ends


@dataclass(frozen=True)
class Stop:
    """A thread is to stop at a line, in the file of which the name ends with `file`."""

    block: Place
    thread: Place
    line: int
    file: str = ""

    @classmethod
    def of(cls, text: str) -> Stop:
        """Read BLOCK,THREAD:LINE or BLOCK,THREAD:FILE:LINE; ValueError for what is none.

        >>> Stop.of("2,5:14")
        Stop(block=2, thread=5, line=14, file='')
        >>> Stop.of("(1,0),(3,2):matmul.py:14").thread
        (3, 2)
        """
        place = r"(\d+|\(\d+(?:, ?\d+){0,2}\))"
        found = re.fullmatch(rf"{place}, ?{place}:(?:(.+):)?(\d+)", text)
        if found is None:
            raise ValueError(
                f"{text!r} is no place; write BLOCK,THREAD:LINE, as in 2,5:14, "
                "(1,0),(3,2):14 or 2,5:kernels.py:14"
            )
        block, thread = (_place(part) for part in found.groups()[:2])
        return cls(block, thread, int(found[4]), found[3] or "")

    def __str__(self) -> str:
        return f"thread {self.thread} of block {self.block} at line {self.line}"


def _place(text: str) -> Place:
    numbers = tuple(int(number) for number in re.findall(r"\d+", text))
    return numbers if text.startswith("(") else numbers[0]


def _linear(place: Place, extent: Dim3) -> int:
    """Return a linear index; -1 for a place outside of the extent."""
    if isinstance(place, int):
        return place if place < extent[0] * extent[1] * extent[2] else -1
    x, y, z = [*place, 0, 0][:3]
    inside = x < extent[0] and y < extent[1] and z < extent[2]
    return x + extent[0] * (y + extent[1] * z) if inside else -1


def _machine(frame: FrameType) -> Any:
    return frame.f_locals[nodes.M]


def _is_kernels(frame: FrameType) -> bool:
    return SOURCE in frame.f_globals and nodes.M in frame.f_locals


def _is_aside(frame: FrameType) -> bool:
    """Say whether a statement of the rewriter comes next, which the kernel does not have."""
    if SOURCE not in frame.f_globals:
        return False
    _, _, first, last = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if first is None or first != last:
        return False
    # Since Python 3.13 a loop's next turn begins with a jump, placed as what stands before it.
    return not dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("JUMP_BACKWARD")


class Debugger(pdb.Pdb):
    """Python's debugger, which stops in kernels alone, and knows the values of one thread.

    stop : where it is to stop first; else it stops where `begin` is called
    row, thread : the thread: the place of its block in the batch, and its index in the block
    over : nobody answers, so that it stops no more
    """

    def __init__(self, stop: Stop | None = None) -> None:
        super().__init__(nosigint=True)
        self.stop, self.over = stop, False
        self.row: int | None = None
        self.thread = 0

    @property
    def chosen(self) -> bool:
        """Whether a thread has stopped."""
        return self.row is not None

    # Where it stops

    def begin(self, frame: FrameType) -> None:
        """Stop at the next line of a kernel, in the chosen thread or the first that runs."""
        m = _machine(frame)
        if not self.chosen:
            self.message(HINT)
        if not self.chosen or not self._runs(m):
            self.row, self.thread = m.lanes.first(m.masks[-1])
        self.set_trace(frame)

    def dispatch_call(self, frame: FrameType, arg: Any) -> Callable | None:
        if not self._waits():
            return super().dispatch_call(frame, arg)
        return self.trace_dispatch if SOURCE in frame.f_globals else None

    def dispatch_line(self, frame: FrameType) -> Callable:
        if _is_aside(frame):
            return self.trace_dispatch
        if self._waits():
            if not (_is_kernels(frame) and self._arrives(frame)):
                return self.trace_dispatch
            self.message(HINT)
            self.set_step()
            self.cmdframe = None  # Python 3.14 would leave out the line that it was told to stop at
        return super().dispatch_line(frame)

    def _waits(self) -> bool:
        return self.stop is not None and not self.chosen

    def _arrives(self, frame: FrameType) -> bool:
        """Choose the thread that is to stop, if it is about to execute its line."""
        stop, m = self.stop, _machine(frame)
        if (
            m.launch.unwritten
            or frame.f_lineno != stop.line
            or not frame.f_code.co_filename.endswith(stop.file)
        ):
            return False
        at = np.flatnonzero(m.lanes.blocks[:, 0] == _linear(stop.block, m.lanes.grid))
        thread = _linear(stop.thread, m.lanes.block)
        if not at.size or thread < 0:
            return False
        self.row, self.thread = int(at[0]), thread
        if not self._runs(m):
            self.row = None
        return self.chosen

    def _runs(self, m: Any) -> bool:
        """Say whether the thread is among the lanes that run now."""
        inside = self.row < len(m.lanes.blocks) and self.thread < m.lanes.threads
        return inside and bool(m.lanes.full(m.masks[-1])[self.row, self.thread])

    def set_stepinstr(self) -> None:
        """Stop at the line after `breakpoint()`; Python 3.13 and later would stop in it."""
        self.set_step()

    def stop_here(self, frame: FrameType) -> bool:
        return not self._waits() and _is_kernels(frame) and super().stop_here(frame)

    def user_return(self, frame: FrameType, value: Any) -> None:
        """Go on to the line that follows the call: where a function ends, no lane runs any more."""
        outer = frame.f_back
        while outer is not None and not _is_kernels(outer):
            outer = outer.f_back
        if outer is None:  # the kernel itself
            self.set_continue()
        else:
            self.set_step()

    def break_here(self, frame: FrameType) -> bool:
        """Stop at a breakpoint where the thread comes to it, not where others do."""
        return super().break_here(frame) and _is_kernels(frame) and self._runs(_machine(frame))

    def interaction(self, frame: FrameType, *of_what: Any) -> None:
        m = _machine(frame)
        self._ask_as(m)
        if not self._runs(m):
            self.message(f"thread {self._name(m)} takes no part in this line")
        try:
            super().interaction(frame, *of_what)
        except NotImplementedError:  # a notebook that is executed without anybody who could answer
            self.do_EOF("")

    def do_EOF(self, arg: str) -> bool:
        """Let the kernel go on, where nobody answers."""
        self.over = True
        self.clear_all_breaks()
        self.message("")
        return bool(self.do_continue(arg))

    # What it shows

    def _name(self, m: Any) -> str:
        block = int(m.lanes.blocks[self.row, 0])
        return f"{m.lanes.thread_name(self.thread)} of block {m.lanes.block_name(block)}"

    def _ask_as(self, m: Any) -> None:
        self.prompt = f"thread {self._name(m)} > "

    def names(self, thread: int) -> dict[str, Any]:
        """Return what the names of the kernel mean in a thread of the block."""
        frame = self.curframe
        m, source = _machine(frame), frame.f_globals[SOURCE]
        functions = [f for f, one in m.scope.program.items() if one.source is source]
        outside = scope_of(getattr(functions[0], "py_func", functions[0])) if functions else {}
        places = {
            "threadIdx": m.lanes.thread_at(thread),
            "blockIdx": m.lanes.block_at(int(m.lanes.blocks[self.row, 0])),
            "blockDim": m.lanes.block,
            "gridDim": m.lanes.grid,
        }
        triples = {
            n: SimpleNamespace(**dict(zip("xyz", at, strict=True))) for n, at in places.items()
        }
        return {
            **outside,
            "cuda": SimpleNamespace(laneid=thread % WARP, **triples),
            **{
                name: in_lane(value, m.lanes, self.row, thread)
                for name, value in self._variables().items()
            },
        }

    def _variables(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self.curframe.f_locals.items()
            if not name.startswith(".") and not isinstance(value, Unassigned)
        }

    def value(self, expression: str, thread: int) -> str:
        """Return the text of an expression's value in a thread, or of its error."""
        try:
            return text(eval(expression, self.names(thread)))
        except SyntaxError:
            return "no expression: values can be looked at, not changed"
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def default(self, line: str) -> None:
        self.message(self.value(line.removeprefix("!").strip(), self.thread))

    def do_p(self, arg: str) -> None:
        """Show the value of an expression in the thread, with or without the p."""
        self.default(arg)

    do_pp = do_p

    def get_stack(self, frame: FrameType, traceback: Any) -> tuple[list, int]:
        """Return the frames of the kernel and its device functions, and the place of the last."""
        stack = super().get_stack(frame, traceback)[0]
        kept = [entry for entry in stack if _is_kernels(entry[0])]
        return kept, len(kept) - 1

    def do_jump(self, arg: str) -> None:
        """Nothing can be left out of a kernel: j is a variable here, not the command."""
        self.default(f"j {arg}")

    do_j = do_jump

    def do_vars(self, arg: str) -> None:
        """Show all variables of the thread."""
        for name in self._variables():
            self.message(f"{name} = {self.value(name, self.thread)}")

    do_args = do_a = do_vars

    def do_lanes(self, arg: str) -> None:
        """Show the value of an expression in each lane of the thread's warp, as in: lanes acc

        Lanes in brackets take no part in the line.
        """
        if not arg:
            self.error("tell of what, as in: lanes acc")
            return
        m = _machine(self.curframe)
        first = self.thread // WARP * WARP
        on = m.lanes.full(m.masks[-1])[self.row]
        threads = range(first, min(first + WARP, m.lanes.threads))
        values = [self.value(arg, thread).replace("\n", " ") for thread in threads]
        if len(set(values)) == 1 and re.match(r"\w+Error: ", values[0]):
            self.error(values[0])  # once, not for each lane
            return
        shown = [
            f"{thread}: {value}" if on[thread] else f"[{thread}: {value}]"
            for thread, value in zip(threads, values, strict=True)
        ]
        width = max(map(len, shown)) + 2
        for i in range(0, len(shown), COLUMNS):
            self.message("".join(f"{one:<{width}}" for one in shown[i : i + COLUMNS]).rstrip())

    def do_shared(self, arg: str) -> None:
        """Show the arrays in shared memory of the thread's block."""
        arrays = [n for n, v in self._variables().items() if getattr(v, "space", "") == "shared"]
        for name in arrays:
            self.message(f"{name} = {self.value(name, self.thread)}")
        if not arrays:
            self.message("no variable is an array in shared memory")

    def do_thread(self, arg: str) -> None:
        """Look at another thread, as in: thread 5, or: thread (3, 2) of block 1"""
        m = _machine(self.curframe)
        places = [_place(part) for part in re.findall(r"\d+|\([\d, ]+\)", arg)]
        if not 1 <= len(places) <= 2:
            self.error("tell which, as in: thread 5, or: thread (3, 2) of block 1")
            return
        thread = _linear(places[0], m.lanes.block)
        block = (
            m.lanes.blocks[self.row, 0] if len(places) == 1 else _linear(places[1], m.lanes.grid)
        )
        at = np.flatnonzero(m.lanes.blocks[:, 0] == block)
        if thread < 0 or not at.size:
            self.error(f"blocks of {m.lanes.block} threads run in a grid of {m.lanes.grid}, and "
                       f"{len(m.lanes.blocks)} of them at once")  # fmt: skip
            return
        self.row, self.thread = int(at[0]), thread
        self._ask_as(m)


def in_lane(value: Any, lanes: Lanes, row: int, thread: int) -> Any:
    """Return a value of the lock-step function as one thread has it; arrays are views."""

    def one(part: Any) -> Any:
        return in_lane(part, lanes, row, thread)

    if isinstance(value, NUMBER):
        return np.broadcast_to(value, lanes.shape)[row, thread]
    if isinstance(value, Array):
        shape, strides = ([int(one(n)) for n in sizes] for sizes in (value.shape, value.strides))
        return _view(value, shape, strides, int(one(value.offset)), row, thread)
    if isinstance(value, Choice):
        return one(value.options[int(one(value.which))])
    if isinstance(value, Records):
        return SimpleNamespace(**{name: one(field) for name, field in value.fields.items()})
    if isinstance(value, Record):
        index = tuple(map(one, value.index if isinstance(value.index, tuple) else (value.index,)))
        fields = value.records.fields
        return SimpleNamespace(**{name: one(field)[index] for name, field in fields.items()})
    if isinstance(value, Triple):
        return SimpleNamespace(x=one(value.x), y=one(value.y), z=one(value.z))
    if isinstance(value, Range):
        return range(*map(int, map(one, value.bounds)))
    return tuple(map(one, value)) if isinstance(value, tuple) else value


def _view(
    array: Array, shape: list[int], strides: list[int], offset: int, row: int, thread: int
) -> np.ndarray:
    """Return an array as NumPy has it, in the memory of one thread, which is not written to."""
    flat = array.buffer
    if array.space == "shared":
        flat = flat[row if len(flat) > 1 else 0]
    elif array.space == "local":
        flat = flat[:, row if flat.shape[1] > 1 else 0, thread if flat.shape[2] > 1 else 0]
    steps = [stride * flat.strides[0] for stride in strides]
    view = np.lib.stride_tricks.as_strided(flat[offset:], shape, steps, writeable=False)
    return view


def text(value: Any) -> str:
    """Return a value as the debugger shows it."""
    if isinstance(value, np.ndarray):
        shown = np.array2string(value, threshold=ELEMENTS, separator=", ")
        return f"{'×'.join(map(str, value.shape))} {value.dtype}\n{shown}"
    if isinstance(value, np.generic):
        return str(value)
    if isinstance(value, SimpleNamespace):
        return ", ".join(f"{name} {text(part)}" for name, part in vars(value).items())
    if isinstance(value, tuple):
        return f"({', '.join(map(text, value))})"
    return repr(value)


def breakpoints(m: Any) -> Callable[[], None]:
    """Return `breakpoint` as the kernels of one machine call it: it stops where lanes run.

    In another thread of the process than the first, nobody could answer.
    """
    debugger: list[Debugger] = []

    def stop(*_: Any, **__: Any) -> None:
        if m.masks[-1] is False or m.launch.unwritten:  # nobody is here, or all is tried again
            return
        if threading.current_thread() is not threading.main_thread():
            return
        if not debugger:
            debugger.append(Debugger())
        frame = sys._getframe()
        while frame is not None and not _is_kernels(frame):
            frame = frame.f_back
        if frame is not None and not debugger[0].over:
            debugger[0].begin(frame)

    return stop


@contextmanager
def stopped_at(stop: Stop) -> Iterator[Debugger]:
    """Stop in the body where a kernel's thread is about to execute a line."""
    debugger, before = Debugger(stop), sys.gettrace()
    debugger.reset()
    sys.settrace(debugger.trace_dispatch)
    try:
        yield debugger
    finally:
        sys.settrace(before)
