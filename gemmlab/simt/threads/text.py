"""The text of a function of one thread, which is written from a loop in lock-step.

A value is a number of one thread, of the type that it has in lock-step, so that the results are the
same bits. What statements cost is counted by *block*: the statements that the same threads come to.
"""

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.simt.memory.array import Record
from gemmlab.simt.numbers import values
from gemmlab.simt.numbers.overflow import Wrapped
from gemmlab.simt.syntax.source import Source
from gemmlab.simt.threads.batch import LoopBatch

BOOL, INT, UINT, DOUBLE, SINGLE = (
    np.dtype(t) for t in (np.bool_, np.int64, np.uint64, np.float64, np.float32)
)


class UnfitError(Exception):
    """The loop does more than numbers, loads and stores, or what might come out otherwise."""


@dataclass(frozen=True)
class Number:
    """A number of one thread: the text that gives it, and its type."""

    text: str
    dtype: np.dtype


@dataclass
class Body:
    """A function whose statements are written: the loop's, or a device function that it calls.

    constants : what its names outside mean; variables : of the loop's function, what they hold
    prefix : of its variables; known : what its variables are, as far as it is written
    """

    source: Source
    constants: Mapping[str, Any]
    variables: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = "v_"
    known: dict[str, Any] = field(default_factory=dict)


class Text:
    """Writes lines, in blocks, with names for what they compute.

    alone : whether one thread runs; else those of a warp take turns, in compiled code
    place : the row and thread of one that is alone
    assigned : the variables that the loop assigns; state : those, as numbers
    most : elements of an array that may be copied, to be put back
    parameters : of the function, by name; ids : the names of those that are objects
    changed : the names of parameters that are arrays, and are stored to
    blocks : what each costs, by source, line and kind; block : the one that is written
    now : the turn of the loop in the loop that is written, "0" outside of one
    computed : in this block, of variables as they are now
    """

    def __init__(
        self, m: LoopBatch, body: Body, place: tuple | None, assigned: set[str], most: int
    ) -> None:
        self.m, self.body, self.alone, self.place = m, body, place is not None, place
        self.assigned, self.most = assigned, most
        self.state: dict[str, Number] = {}
        self.lines: list[str] = []
        self.indent = self.temporaries = 0
        self.parameters: dict[str, Any] = {}
        self.ids: dict[int, str] = {}
        self.sizes: dict[int, int] = {}
        self.changed: list[str] = []
        self.blocks: list[Counter] = []
        self.block, self.now = 0, "0"
        self.computed: dict[tuple, str] = {}

    def say(self, *lines: str) -> None:
        self.lines += ["    " * self.indent + line for line in lines]

    def temporary(self, text: str, dtype: np.dtype) -> Number:
        """Keep a number under a name of its own."""
        self.temporaries += 1
        self.say(f"t{self.temporaries} = {text}")
        return Number(f"t{self.temporaries}", dtype)

    def parameter(self, value: Any, letter: str) -> str:
        """Return the name of a parameter with this value."""
        name = self.ids.get(id(value))
        if name is None:
            name = self.ids[id(value)] = f"{letter}{len(self.parameters)}"
            self.parameters[name] = value
        return name

    def fixed(self, value: Any) -> str:
        """Return the name of a size that is the same for all threads."""
        return self.parameter(self.sizes.setdefault(int(value), int(value)), "k")

    def give_up_unless(self, text: str) -> None:
        self.say(f"if not ({text}):", f"    return {None if self.alone else -1}")

    # Blocks

    def begin_block(self) -> int:
        """Begin a block of statements that are counted together; returns the one before."""
        before, self.block = self.block, len(self.blocks)
        self.computed.clear()
        self.blocks.append(Counter())
        self.say(f"n{self.block} += 1" if self.alone else f"hits[{self.block}, {self.now}] += 1")
        return before

    def end_block(self, before: int) -> None:
        """Go on with the block before."""
        self.block = before
        self.computed.clear()

    def tick(self, line: int, kind: str) -> None:
        self.blocks[self.block][self.body.source, line, kind] += 1

    def once(self, *key: str) -> bool:
        """Say whether something is not known yet in this block."""
        new = key not in self.computed
        self.computed.setdefault(key, "")
        return new

    def known_as(self, text: str) -> str:
        """Return the name of a whole number that is computed once in this block."""
        if text.isidentifier() and text.startswith("t"):
            return text
        if (text,) not in self.computed:
            self.computed[text,] = self.temporary(text, INT).text
        return self.computed[text,]

    def index(self, value: Any) -> str:
        """Return the name of a number as a plain integer, which Python compares faster."""
        number = getattr(value, "number", value)
        if not isinstance(number, Number):
            return self.fixed(number)
        text = number.text if number.dtype == INT else f"int64({number.text})"
        return self.known_as(f"int({text})" if self.alone else text)

    # Names

    def name(self, name: str) -> Any:
        """Return what a name is: a number, or anything else that stays what it is."""
        known = self.body.known
        if name not in known:
            if name in self.body.constants:
                known[name] = self.made(self.body.constants[name])
            elif name in self.body.variables:
                value = self.body.variables[name]
                known[name] = self.variable(name) if name in self.assigned else self.made(value)
            else:
                raise UnfitError(name)
        return known[name]

    def variable(self, name: str) -> Number:
        """Return a variable that the loop changes; it must be a number already."""
        value = self.body.variables.get(name)
        if type(value) is Wrapped or not isinstance(value, values.NUMBER):
            raise UnfitError(name)
        self.state[name] = Number(f"v_{name}", fits(value.dtype))
        return self.state[name]

    def made(self, value: Any) -> Any:
        """Return a value that the loop does not change, as a number where it is one."""
        if type(value) is Wrapped:
            raise UnfitError(value)
        if isinstance(value, np.ndarray):
            dtype = fits(value.dtype)
            everywhere = self.m.lanes.spread(value)
            if self.alone:
                return Number(self.parameter(everywhere[self.place], "c"), dtype)
            self.parameters[f"a{len(self.parameters)}"] = np.ascontiguousarray(everywhere).ravel()
            return Number(f"{[*self.parameters][-1]}[p]", dtype)
        if isinstance(value, np.generic):
            return Number(self.parameter(value, "c"), fits(value.dtype))
        if isinstance(value, Record):
            parts = value.index if isinstance(value.index, tuple) else (value.index,)
            return Record(value.records, tuple(map(self.made, parts)))
        return value

    def bind(self, name: str, value: Any) -> None:
        """Give a variable of the function a value."""
        known = self.body.known
        if name.startswith("."):  # of the rewriter's own
            freeze = isinstance(value, Number)
            known[name] = self.temporary(value.text, value.dtype) if freeze else value
            return
        if name in self.body.variables:  # of the loop's function
            old = self.name(name)
        elif isinstance(value, Number):
            old = known.setdefault(name, Number(self.body.prefix + name, value.dtype))
        else:
            old = known.setdefault(name, value)
        if not isinstance(old, Number) or not isinstance(value, Number):
            if old is not value:
                raise UnfitError(name)
            return
        if old.dtype != value.dtype:
            raise UnfitError(name)
        text = f"bool_({value.text})" if value.dtype == BOOL else value.text
        self.say(f"{old.text} = {text}")
        stale = [key for key in self.computed if any(old.text in part for part in key)]
        for key in stale:
            del self.computed[key]


def method_of(node: ast.expr) -> tuple[str, list]:
    """Return the method of the machine that an expression calls, "" for none, and its arguments."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return "", []
    owner = node.func.value
    if node.keywords or not isinstance(owner, ast.Attribute):
        raise UnfitError("keywords")
    return f"{owner.attr}.{node.func.attr}", node.args


def fits(dtype: np.dtype) -> np.dtype:
    """Return a type of numbers that threads compute with as lock-step does."""
    if dtype.kind not in "biuf" or dtype == np.float16 or dtype == np.longdouble:
        raise UnfitError(dtype.name)
    return np.dtype(dtype)


def type_name(dtype: np.dtype) -> str:
    """Return the name of a type in the text."""
    return "bool_" if dtype == BOOL else dtype.name
