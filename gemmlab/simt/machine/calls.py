"""The functions of a kernel that are running, the place of the last call, and local variables.

A variable differs between lanes after an assignment by some of them.
"""

import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from gemmlab.model.counters import Counters
from gemmlab.simt.builtins import functions, warps
from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.memory.array import Array, Choice, Records, merged
from gemmlab.simt.numbers import overflow, values
from gemmlab.simt.numbers.garbage import garbage
from gemmlab.simt.numbers.lanes import Mask, Masks, either, without
from gemmlab.simt.numbers.values import NUMBER, NoNumber, Partly, Unassigned, several, shown
from gemmlab.simt.syntax.source import Source, unsupported

DEEPEST = 100  # calls of a function by itself; a thread's stack takes few more
_FUNCTIONS = values.__name__  # of the functions of Python that compute with numbers


@dataclass
class Frame:
    """A function that is running: the kernel, or a device function that it calls.

    depth : of the mask of its lanes in the stack of masks; function : it, in lock-step
    place : of the call; outer : the function in which this one is defined, if in one
    value : what it returns, by lane
    counters : of the lines that it has executed
    only : variables that no other lanes have assigned than those of a mask
    assigned : the lanes that have assigned a variable, where some may read it that have not
    without_value : the lanes that have ended without a value, where others return one
    """

    source: Source
    depth: int
    function: Callable | None = None
    place: tuple = ()
    outer: Self | None = None
    value: Any = None
    counters: dict[int, Counters] = field(default_factory=dict)
    only: dict[str, Mask] = field(default_factory=dict)
    assigned: dict[str, Mask] = field(default_factory=dict)
    without_value: Mask = False


class Calls:
    """The calls of a kernel: `frames`, the kernel first; `place` and `line` of the last call."""

    def __init__(self, masks: Masks, source: Source) -> None:
        self.masks = masks
        self.frames = [Frame(source, depth=0)]
        self.place: tuple = ()  # file, line, column
        self.line = 0

    @property
    def source(self) -> Source:
        return self.frames[-1].source

    def call(self, place: tuple, function: Callable, /, *args: Any, **keywords: Any) -> Any:
        """Call a function that the kernel names, and keep the place of the call."""
        self.place, self.line = place, place[1]
        try:
            value = function(*args, **keywords)
        except TypeError as error:
            if error.__traceback__.tb_next is None:  # of the call itself
                raise _wrong_arguments(self.called(), function, args) from None
            odd = [v for v in args if not isinstance(v, (*NUMBER, str))]
            if odd and getattr(function, "__module__", "") == _FUNCTIONS:
                text = f"{self.called()} takes numbers, not {shown(odd[0])}"
                raise TypeError(f"{text}; take one element, as in x[i]") from None
            raise
        if type(value) is overflow.Wrapped and not value.line:
            value.line = place[1]
        return value

    def of_caller(self, shape: Any, what: str, instead: str, line: int) -> Any:
        """Return a shape that is a parameter, which a device function alone may have."""
        sizes = shape if isinstance(shape, tuple) else (shape,)
        if len(self.frames) == 1 or any(np.ndim(size) for size in sizes):
            raise unsupported(self.source, line, what, instead)
        return shape

    def called(self) -> str:
        """Return the text of what the source calls at the place of the last call."""
        _, line, column = self.place
        text = linecache.getline(self.place[0], line)[column:]
        return text.partition("(")[0].strip() or "this function"

    def run(self, source: Source, function: Callable, *args: Any, **keywords: Any) -> Any:
        """Run a device function for the active lanes; returns its value."""
        return self._run(Frame(source, len(self.masks), function, self.place), args, keywords)

    def _run(self, frame: Frame, args: tuple, keywords: dict[str, Any]) -> Any:
        source, function, depth = frame.source, frame.function, frame.depth
        running = sum(one.function is function for one in self.frames)
        if running and self.masks[-1] is False:
            return np.False_  # a call that no lane makes changes no type
        if running >= DEEPEST:
            name = f"{source.tree.name}, which calls itself {running} times deep,"
            raise unsupported(self.source, self.line, name, "write a loop (Numba cannot type infer "
                              "runaway recursion)")  # fmt: skip
        self.masks.append(self.masks[-1])
        self.frames.append(frame)
        try:
            value = function(*args, **keywords)  # of a lambda; others leave theirs in the frame
        except TypeError as error:
            if error.__traceback__.tb_next is not None:
                raise
            raise _wrong_arguments(self.called(), function, args) from None
        del self.masks[depth:]
        self.frames.pop()
        if frame.without_value is not False:
            return Partly(source.tree.name, frame.value, frame.without_value)
        return frame.value if value is None else value

    def inner(self, function: Callable) -> Callable:
        """Return a function that a kernel defines itself, as the kernel calls it."""
        outer = self.frames[-1]

        def call(*args: Any) -> Any:
            frame = Frame(outer.source, len(self.masks), function, self.place, outer)
            return self._run(frame, args, {})

        return call

    def return_(self, value: Any, line: int) -> None:
        """Stop the active lanes until the end of the function, which gets `value` for them."""
        frame = self.frames[-1]
        if value is not None:
            if len(self.frames) == 1:
                raise unsupported(frame.source, line, "a value that a kernel returns",
                                  "write it to an array")  # fmt: skip
            earlier = Unassigned("") if frame.value is None else frame.value
            frame.value = merged(self.masks[-1], earlier, value, "return value")
        self.masks.drop(frame.depth)

    def without_value(self) -> None:
        """Note that the active lanes end without a value, where others return one."""
        frame = self.frames[-1]
        frame.without_value = either(frame.without_value, self.masks[-1])


def _wrong_arguments(name: str, function: Any, args: tuple) -> TypeError:
    """Return the error of a call with too few or too many arguments, or of what is no function."""
    if isinstance(function, NoNumber):
        function.refuse()
    code = getattr(function, "__code__", None)
    try:
        parameters = list(
            code.co_varnames[: code.co_argcount] if code else inspect.signature(function).parameters
        )
    except (TypeError, ValueError):
        return TypeError(f"{name} is {shown(function)}, and cannot be called")
    names = [p for p in parameters if not p.startswith(".")]  # but the machine
    given = len(args) - (len(parameters) - len(names))
    if not names:
        return TypeError(f"{name} takes no arguments")
    if given == len(names):
        return TypeError(f"{name} has no such named argument; use {', '.join(names)}")
    return TypeError(
        f"{name} takes {several(len(names), 'argument')} ({', '.join(names)}), not {given}"
    )


class Variables:
    """Local variables: a rewritten kernel calls these methods where it assigns or reads one.

    joined : whether one that a branch assigns by no lane has a type into which its old value fits
    """

    joined = False

    def __init__(self, m: BuiltinBatch) -> None:
        self.m, self.masks, self.calls = m, m.masks, m.calls

    def unassigned(self, name: str) -> Unassigned:
        """A local variable holds this value before its first assignment."""
        return Unassigned(name)

    def assign(self, old: Any, new: Any, name: str) -> Any:
        """Return the value of variable `name` after an assignment by the active lanes."""
        if isinstance(new, Array):
            new.name = new.name or name
        elif isinstance(new, Records):
            new.call(name)
        if isinstance(new, Unassigned):
            raise NameError(f"{new.name!r} is read before it is assigned")
        mask, frame = self.masks[-1], self.calls.frames[-1]
        if self.joined and len(self.masks) > frame.depth + 1 and isinstance(old, NUMBER):
            return np.where(False, new, old) if isinstance(new, NUMBER) else new
        if mask is self.masks[frame.depth]:  # all that have not returned
            frame.only.pop(name, None)
            return new
        # A variable that lanes share with no others is theirs alone, and can stay one number.
        if isinstance(old, Unassigned):
            frame.only[name] = mask
        elif name in frame.only:
            if frame.only[name] is mask:
                return new
            if without(mask, frame.only[name]) is not False:
                del frame.only[name]
        return merged(mask, old, new, name)

    def assign_noted(self, old: Any, new: Any, name: str) -> Any:
        """Assign to a variable that lanes may read without having assigned it."""
        assigned = self.calls.frames[-1].assigned
        assigned[name] = either(assigned.get(name, False), self.masks[-1])
        return self.assign(old, new, name)

    def read(self, value: Any, name: str, line: int) -> Any:
        """Read a variable; a hazard where a lane reads it that has not assigned it.

        What no lane reads is False, which changes the type of nothing that it is computed with.
        """
        return self._read(value, name, line, self.calls.frames[-1])

    def read_outer(self, value: Any, name: str, line: int) -> Any:
        """Read a variable of the function in which the one that runs is defined."""
        return self._read(value, name, line, self.calls.frames[-1].outer)

    def _read(self, value: Any, name: str, line: int, frame: Frame) -> Any:
        missing = without(self.masks[-1], frame.assigned.get(name, False))
        nobody = isinstance(value, Unassigned)
        if nobody:
            if missing is not False and self.m.apart is None:
                return value  # nobody has assigned it: an error wherever it is used
            value = np.False_
        if missing is False:
            return value
        text = f"thread {{thread}} reads {name}, which it has not assigned"
        return self._without(value, missing, text, line, in_doubt=not nobody)

    def _without(self, value: Any, missing: Mask, text: str, line: int, in_doubt: bool) -> Any:
        """Report that lanes have no value, and return one that has anything in these lanes."""
        in_doubt &= isinstance(value, NUMBER)
        self.m.findings.hazard("uninitialised-read", line, missing, text, in_doubt=in_doubt)
        if not in_doubt or not self.m.launch.unwritten:
            return value
        return np.where(missing, garbage(value.dtype, self.m.launch.unwritten), value)

    def offered(self, value: Any, name: str) -> warps.Offered:
        """Offer a variable to other lanes, with the mask of the lanes that have assigned it."""
        has = self.m.lanes.full(self.calls.frames[-1].assigned.get(name, False))
        return warps.Offered(np.False_ if isinstance(value, Unassigned) else value, has)

    def returned(self, value: Any, line: int) -> Any:
        """A device function returns this; a hazard if it ended without a value in some lanes."""
        if value is None and self.masks[-1] is False:
            return np.False_  # no lane has entered one of its branches
        if not isinstance(value, Partly):
            return value
        text = f"thread {{thread}} uses the value of {value.function}, which returns none there"
        known = np.False_ if value.value is None else value.value
        return self._without(known, value.missing, text, line, in_doubt=value.value is not None)

    def attribute(self, value: Any, name: str, line: int) -> Any:
        """Return `value.name`, which depends on what the value is."""
        return functions.attribute(self.m, value, name, line)

    def unpack(self, value: Any, count: int, line: int) -> tuple:
        """Return the `count` items of a tuple or of an array."""
        is_array = isinstance(value, (Array, Choice))
        if not is_array and not isinstance(value, tuple):
            raise TypeError(f"{shown(value)} cannot be unpacked into {count} names")
        sizes = value.shape[0] if is_array else len(value)
        if np.any(np.not_equal(sizes, count)):
            has = f"{int(np.max(sizes))} items"
            raise ValueError(f"{shown(value)} has {has}, which are not {count} names")
        if not is_array:
            return value
        return tuple(self.m.memory.load(value, np.int64(i), line) for i in range(count))
