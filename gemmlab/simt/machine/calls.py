"""The functions of a kernel that are running, and where the last call was made."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gemmlab.model.counters import Counters
from gemmlab.simt.machine.variables import merged
from gemmlab.simt.numbers.masks import Mask, Masks, either
from gemmlab.simt.numbers.no_numbers import NUMBER, NoNumber, Partly, Unassigned, several, shown
from gemmlab.simt.numbers.overflow import Wrapped
from gemmlab.simt.numbers.values import translate
from gemmlab.simt.syntax.source import Source, unsupported

_FUNCTIONS = translate.__module__  # of the functions of Python that compute with numbers


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
    outer: Frame | None = None
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
        """The source of the function that is running."""
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
        if type(value) is Wrapped and not value.line:
            value.line = place[1]
        return value

    def called(self) -> str:
        """What the source calls at the place of the last call."""
        _, line, column = self.place
        text = linecache.getline(self.place[0], line)[column:]
        return text.partition("(")[0].strip() or "this function"

    def run(self, source: Source, function: Callable, *args: Any, **keywords: Any) -> Any:
        """Run a device function for the active lanes; returns its value."""
        return self._run(Frame(source, len(self.masks), function, self.place), args, keywords)

    def _run(self, frame: Frame, args: tuple, keywords: dict[str, Any]) -> Any:
        source, function, depth = frame.source, frame.function, frame.depth
        if any(running.function is function for running in self.frames):
            name = f"{source.tree.name}, which calls itself,"
            raise unsupported(self.source, self.line, name, "write a loop")
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
        """What a kernel calls by the name of a function that it defines itself."""
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
    """The error of a call with too few or too many arguments, or of what is no function."""
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
