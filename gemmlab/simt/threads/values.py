"""Expressions of a thread: computed in the types, and counted as the operations, of lock-step.

Loads and stores among them say what they find, what they cost, and who touched the elements. The
loop gives up where lock-step would tell of a hazard or of a note: outside of an array, before the
first store to an element of a local array, and where another thread has touched an element of
global memory that others may store to.
"""

import ast
import builtins
import math
from typing import Any, NamedTuple

import numpy as np

from gemmlab.simt.builtins import functions
from gemmlab.simt.memory.access import LOADS, STORES
from gemmlab.simt.memory.array import Array, Record, Records
from gemmlab.simt.numbers import arithmetic, values
from gemmlab.simt.numbers.overflow import NARROW
from gemmlab.simt.numbers.values import Cast, Range
from gemmlab.simt.races.memories import GlobalShadow
from gemmlab.simt.syntax.source import Source
from gemmlab.simt.threads.text import (
    BOOL,
    DOUBLE,
    INT,
    SINGLE,
    UINT,
    Number,
    Text,
    UnfitError,
    fits,
    method_of,
    type_name,
)


class Site(NamedTuple):
    """A place of the source that loads or stores elements of global memory.

    block : of statements; counted : whether it is a request, or in a register already
    row : of the elements of a warp's threads, the same for sites of a block at the same elements
    """

    op: str
    source: Source
    line: int
    array: Array
    block: int
    counted: bool
    row: int


class Elements(Text):
    """Writes accesses to elements.

    sites : of global memory; shadows : of those that others may store to
    rows : of elements, by block and the text that tells them
    raced : of a thread alone, the elements of a shadow, by its identity, that another one touched
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sites: list[Site] = []
        self.shadows: list[GlobalShadow] = []
        self.rows: dict[tuple[int, str, int], int] = {}
        self.raced: dict[int, np.ndarray] = {}

    def load(self, array: Any, index: Any, line: int, counted: bool = True) -> Any:
        if isinstance(array, tuple) and isinstance(index, Number):
            place = self.parameters.get(index.text)
            if place is None or not 0 <= int(place) < len(array):
                raise UnfitError("item")
            item = array[int(place)]
            return item if isinstance(item, Number) else self.made(item)
        if isinstance(array, Records) and not isinstance(index, str):
            return Record(array, index)
        if isinstance(array, Record):
            array, index = array.field(index), array.index
        return self.access("read", array, index, line, counted)

    def store(self, array: Any, index: Any, value: Any, line: int) -> None:
        if isinstance(array, Record):
            array, index = array.field(index), array.index
        if not isinstance(value, Number) or not isinstance(array, Array):
            raise UnfitError("store")
        text = self.temporary(self.converted(value, array.dtype), array.dtype).text
        self.access("write", array, index, line, True, text)

    def access(
        self, op: str, array: Any, index: Any, line: int, counted: bool, value: str = ""
    ) -> Number:
        """Write an access to an element; returns what is loaded."""
        if not isinstance(array, Array) or array.space == "shared" or array.owner.exact is not None:
            raise UnfitError("array")
        if op == "write" and (array.space == "constant" or not array.owner.writeable):
            raise UnfitError("write")
        dtype = fits(array.dtype)
        element = self.element(array, index)
        buffer = self.parameter(array.buffer, "b")
        if op == "write":
            self.changed.append(buffer)
            if array.buffer.size > self.most:
                raise UnfitError("size")
        if counted:
            self.tick(line, (LOADS if op == "read" else STORES)[array.space])
        if array.space == "local":
            element = self.local(op, array, element)
        elif array.space == "global":
            self.touch(op, array, element, line, counted)
        if op == "read":
            return self.temporary(f"{buffer}[{element}]", dtype)
        self.say(f"{buffer}[{element}] = {value}")
        return Number(value, dtype)

    def element(self, array: Array, index: Any) -> str:
        """Write the place of an element in its buffer; the loop gives up outside of the array."""
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) != array.ndim or type(array.offset) is not np.int64:
            raise UnfitError("view")
        text = self.parameter(int(array.offset), "k") if array.offset else ""
        for part, extent, stride in zip(parts, array.shape, array.strides, strict=True):
            if not isinstance(part, Number) or part.dtype.kind not in "iu":
                raise UnfitError("index")
            if np.ndim(extent) or np.ndim(stride):
                raise UnfitError("extent")
            at = self.index(part)
            size = self.fixed(extent)
            if self.once(at, size):
                self.give_up_unless(f"0 <= {at} < {size}")
            step = at if int(stride) == 1 else f"{at} * {self.fixed(stride)}"
            text = f"{text} + {step}" if text else step
        return self.known_as(text or "0")

    def local(self, op: str, array: Array, element: str) -> str:
        """Return the place of an element of a thread's own array, which must have been written."""
        owner = array.owner
        if owner.shadow.shape != array.buffer.shape:
            owner.shadow = np.broadcast_to(owner.shadow, array.buffer.shape).copy()
        set_ = self.parameter(owner.shadow, "w")
        lane = ", ".join(map(str, self.place)) if self.alone else "row, thread"
        if op == "read":
            self.give_up_unless(f"{set_}[{element}, {lane}]")
        else:
            self.changed.append(set_)
            self.say(f"{set_}[{element}, {lane}] = True")
        return f"{element}, {lane}"

    def touch(self, op: str, array: Array, element: str, line: int, counted: bool) -> None:
        """Write what is kept of an access to global memory."""
        number, key = len(self.sites), (self.block, element, array.itemsize)
        if key not in self.rows:
            self.rows[key] = row = len(self.rows)
            if not self.alone:
                self.say(f"at[{row}, {self.now}, hits[{self.block}, {self.now}] - 1] = {element}")
        place = array, self.block, counted, self.rows[key]
        self.sites.append(Site(op, self.body.source, line, *place))
        shadow = array.shadow
        if shadow is None:
            return
        self.keep_touches(shadow, array)
        new = self.once(element, str(id(shadow)))
        if id(shadow) in self.raced and new:
            self.give_up_unless(f"not {self.parameter(self.raced[id(shadow)], 'u')}[{element}]")
        for name in ("writers", "readers", "updaters"):
            rows = getattr(shadow, name).first
            if rows is not None and new and not self.alone:
                known = self.parameter(rows, "r")
                self.say(f"touch = {known}[{element}]")
                low, floor = self.fixed(shadow.visits.low), self.fixed(shadow.floor)
                self.give_up_unless(f"touch < {floor} or touch & {low} == me")
        kept = self.parameter((shadow.readers if op == "read" else shadow.writers).first, "r")
        self.changed.append(kept)
        self.say(f"{kept}[{element}] = touch_{number}" + ("" if self.alone else " + me"))
        if op == "read":
            if self.alone:
                self.say(f"last_{number} = {element}")
            else:
                self.say(f"last[{number}, p] = {element}")
                self.say(f"when[{number}, p] = turn * most + {self.now}")

    def keep_touches(self, shadow: Any, array: Array) -> None:
        """Make room for the last touch of each element, which nobody else races with so far."""
        if shadow in self.shadows:
            return
        kinds = shadow.writers, shadow.readers, shadow.updaters
        several = any(kind.second is not None for kind in kinds)
        if several or shadow.size != len(array.buffer) or shadow.unwritten is not None:
            raise UnfitError("touches")
        if shadow.size > self.most:
            raise UnfitError("size")
        shadow.leave_runs()
        for kind in kinds[:2]:
            kind.begin()
        self.shadows.append(shadow)
        shadow.fences = self.m.report.releases.fences
        if self.alone:
            place = int(self.m.lanes.place[self.place])
            now = self.m.waits.now(0, np.array([place]))
            if now.heard is not None:
                raise UnfitError("waits")
            raced = shadow.raced(place + self.m.lanes.first_lane, now.of_one())
            if raced.any():
                self.raced[id(shadow)] = raced

    def awaits(self, since: int = 0) -> bool:
        """Say whether threads look at memory that others may change."""
        return any(site.op == "read" and site.array.shadow for site in self.sites[since:])


SYMBOLS = {
    **{"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%"},
    **{"BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>"},
    **{"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="},
}
OF_TRUTH = {"BitAnd": "and", "BitOr": "or", "BitXor": "!="}
FUNCTIONS = {
    **{functions.FUNCTIONS[builtins.min]: "min", functions.FUNCTIONS[builtins.max]: "max"},
    **{values.translate(builtins.abs): "abs", values.translate(builtins.int): "int"},
    **{values.translate(builtins.float): "float", values.translate(math.sqrt): "sqrt"},
}


class Values(Elements):
    """Writes expressions: `of_binary` that of `operations.binary`, say.

    inside : loops in the loop that are open
    """

    inside = 0

    def value(self, node: ast.expr) -> Any:
        """Return what an expression of the lock-step form gives."""
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, Number):
                raise UnfitError(node.attr)
            return self.made(getattr(owner, node.attr))
        if isinstance(node, ast.Tuple):  # whose items may be assigned to each other
            items = [self.value(item) for item in node.elts]
            return tuple(
                self.temporary(i.text, i.dtype) if isinstance(i, Number) else i for i in items
            )
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return self.value(node.value)[node.slice.value]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Lambda):  # a < b < c
            (middle,) = node.func.args.args
            self.bind(middle.arg, self.number(node.args[0]))
            return self.value(node.func.body)
        method, args = method_of(node)
        write = getattr(self, "of_" + method.partition(".")[2], None) if method else None
        if write is None:
            raise UnfitError(method or type(node).__name__)
        return write(*args)

    def of_unpack(self, value: ast.expr, count: ast.Constant, _: ast.expr) -> tuple:
        items = self.value(value)
        if not isinstance(items, tuple) or len(items) != count.value:
            raise UnfitError("unpack")
        return items

    def of_returned(self, value: ast.expr, _: ast.expr) -> Any:
        return self.value(value)

    def of_attribute(self, owner: ast.expr, name: ast.expr, line: ast.Constant) -> Any:
        record, field_ = self.value(owner), self.value(name)
        if not isinstance(record, Record):
            raise UnfitError(field_)
        return self.load(record, field_, line.value)

    # Operators

    def of_binary(self, op: Any, a: ast.expr, b: ast.expr, line: ast.Constant) -> Number:
        return self.binary(op.value, self.number(a), self.number(b), line.value)

    def binary(self, op: str, a: Number, b: Number, line: int) -> Number:
        if op == "Pow" or op not in SYMBOLS:
            raise UnfitError(op)
        first, second = arithmetic.operands(op, a.dtype, b.dtype)
        symbol = SYMBOLS[op]
        if first == BOOL:
            symbol = OF_TRUTH[op]
        elif op in ("FloorDiv", "Mod"):
            if first.kind == "f" and not self.alone:
                raise UnfitError(op)
            if first.kind != "f":
                b = self.divisor(b)
        elif op in ("LShift", "RShift"):
            known = self.parameters.get(b.text)
            if known is None or not 0 <= int(known) < 64:  # NumPy shifts all bits out
                b = self.temporary(b.text, b.dtype)
                self.give_up_unless(f"0 <= {b.text} < 64")
        self.tick(line, "inst_fp" if first.kind == "f" else "inst_integer")
        return Number(f"({self.cast(a, first)} {symbol} {self.cast(b, second)})", first)

    def divisor(self, b: Number) -> Number:
        """Return a divisor that is neither 0, which is noted, nor -1, by which the least wraps."""
        if self.parameters.get(b.text) is None or int(self.parameters[b.text]) in (0, -1):
            b = self.temporary(b.text, b.dtype)
            self.give_up_unless(f"{b.text} != 0 and {b.text} != -1")
        return b

    def of_fused_left(self, op: Any, a: Any, b: Any, c: Any, line: ast.Constant) -> Number:
        a, b, c = map(self.number, (a, b, c))
        if not (self.m.operations.contract and arithmetic.fuses(a, b, c)):
            return self.binary(op.value, self.binary("Mult", a, b, line.value), c, line.value)
        return self.fma(a, b, c if op.value == "Add" else _negative(c), line.value)

    def of_fused_right(self, op: Any, c: Any, a: Any, b: Any, line: ast.Constant) -> Number:
        c, a, b = map(self.number, (c, a, b))
        if not (self.m.operations.contract and arithmetic.fuses(a, b, c)):
            return self.binary(op.value, c, self.binary("Mult", a, b, line.value), line.value)
        return self.fma(a if op.value == "Add" else _negative(a), b, c, line.value)

    def fma(self, a: Number, b: Number, c: Number, line: int) -> Number:
        if {a.dtype, b.dtype, c.dtype} != {SINGLE}:
            raise UnfitError("fma")
        self.tick(line, "inst_fp")
        return Number(f"fma({a.text}, {b.text}, {c.text})", SINGLE)

    def of_unary(self, op: Any, a: ast.expr, line: ast.Constant) -> Number:
        a = self.number(a)
        if op.value == "Invert" and a.dtype in (INT, UINT):
            text = f"(~{a.text})"
        elif op.value == "USub" and a.dtype in (INT, DOUBLE, SINGLE):
            text = f"(-{a.text})"
        else:
            raise UnfitError(op.value)
        self.tick(line.value, "inst_fp" if a.dtype.kind == "f" else "inst_integer")
        return Number(text, a.dtype)

    def of_not_(self, value: ast.expr) -> Number:
        return Number(f"(not {self.truth(self.value(value))})", BOOL)

    def of_compare(self, op: Any, a: ast.expr, b: ast.expr, line: ast.Constant) -> Number:
        a, b = self.number(a), self.number(b)
        kinds = a.dtype.kind + b.dtype.kind
        common = np.promote_types(a.dtype, b.dtype)
        self.tick(line.value, "inst_fp" if "f" in kinds else "inst_integer")
        text = f"({self.cast(a, common)} {SYMBOLS[op.value]} {self.cast(b, common)})"
        return Number(text, BOOL)

    def of_and_(self, first: ast.expr, second: ast.Lambda) -> Number:
        return self.chosen(first, "", second)

    def of_or_(self, first: ast.expr, second: ast.Lambda) -> Number:
        return self.chosen(first, "not ", second)

    of_and_last, of_or_last = of_and_, of_or_

    def chosen(self, first: ast.expr, where: str, second: ast.Lambda) -> Number:
        """Write `and` or `or` of two truths; the second where the first does not decide."""
        test = self.temporary(self.truth(self.number(first), only=True), BOOL)
        self.say(f"if {where}{test.text}:")
        self.indent += 1
        before = self.begin_block()
        self.say(f"{test.text} = {self.truth(self.number(second.body), only=True)}")
        self.end_block(before)
        self.indent -= 1
        return test

    def of_select(self, test: Any, then: Any, other: Any, line: ast.Constant) -> Number:
        truth = self.truth(self.value(test))
        self.tick(line.value, "inst_control")
        results = []
        self.temporaries += 1
        name = f"t{self.temporaries}"
        for head, node in ((f"if {truth}:", then), ("else:", other)):
            self.say(head)
            self.indent += 1
            before = self.begin_block()
            results.append(self.number(node.body))
            self.say(f"{name} = {results[-1].text}")
            self.end_block(before)
            self.indent -= 1
        if results[0].dtype != results[1].dtype:
            raise UnfitError("select")
        return Number(name, results[0].dtype)

    # Calls and loads

    def of_call(self, _: ast.expr, function: ast.expr, *args: ast.expr) -> Any:
        called = self.value(function)
        if called is Range:
            return Range(*(_Bound(self.number(a)) for a in args))
        device = [f for f, made in self.m.scope.functions.items() if made is called]
        if device:
            return self.device(device[0], [self.value(a) for a in args])
        if called in (self.m.scope.cuda["grid"], self.m.scope.cuda["gridsize"]):
            dimensions = self.value(args[0])
            if not isinstance(dimensions, Number) or dimensions.text not in self.parameters:
                raise UnfitError("grid")
            found = called(self.parameters[dimensions.text])
            return tuple(map(self.made, found)) if type(found) is tuple else self.made(found)
        if isinstance(called, Cast):
            number = self.number(args[0])
            known = self.parameters.get(number.text)
            if isinstance(known, np.generic):
                return self.made(called(known))
            return Number(self.converted(number, called.dtype), fits(called.dtype))
        try:
            name = FUNCTIONS[getattr(called, "func", called)]
        except (KeyError, TypeError):
            raise UnfitError(ast.unparse(function)) from None
        return self.function(name, [self.number(a) for a in args])

    def function(self, name: str, args: list[Number]) -> Number:
        """Write a call of a function of Python."""
        types = [a.dtype for a in args]
        if name in ("min", "max"):
            if len(args) != 2 or types != [INT, INT]:
                raise UnfitError(name)
            a, b = (self.temporary(a.text, a.dtype) for a in args)
            sign = "<" if name == "min" else ">"
            return Number(f"({a.text} if {a.text} {sign} {b.text} else {b.text})", INT)
        (a,) = args
        if name == "int":
            return a if a.dtype.kind in "iu" else Number(self.converted(a, INT), INT)
        if name == "float":
            return a if a.dtype.kind == "f" else Number(self.cast(a, DOUBLE), DOUBLE)
        if name == "abs" and a.dtype not in (INT, DOUBLE, SINGLE):
            raise UnfitError(name)
        if name == "sqrt" and a.dtype.kind != "f":
            a = Number(self.cast(a, DOUBLE), DOUBLE)
        return Number(f"{name}({a.text})", a.dtype)

    def of_load(self, array: ast.expr, index: ast.expr, line: ast.Constant) -> Any:
        return self.load(self.value(array), self.value(index), line.value)

    def of_load_again(self, array: ast.expr, index: ast.expr, line: ast.Constant) -> Any:
        return self.load(self.value(array), self.value(index), line.value, counted=False)

    def of_load_once(self, array: Any, index: Any, line: ast.Constant, loops: Any) -> Any:
        if loops.value <= self.inside:  # its first turn is one of a loop in here
            raise UnfitError("once")
        return self.load(self.value(array), self.value(index), line.value, counted=False)

    # Types

    def number(self, node: ast.expr) -> Number:
        value = self.value(node)
        if not isinstance(value, Number):
            raise UnfitError(ast.unparse(node))
        return value

    def truth(self, value: Any, only: bool = False) -> str:
        """Return the text of a test; `only` of what is a truth value already."""
        if not isinstance(value, Number) or (only and value.dtype != BOOL):
            raise UnfitError("truth")
        return value.text if value.dtype == BOOL else f"({value.text} != 0)"

    def cast(self, value: Number, dtype: np.dtype) -> str:
        """Return the text of a number in a type that it surely fits into, or wraps in as here."""
        return value.text if value.dtype == dtype else f"{type_name(dtype)}({value.text})"

    def converted(self, value: Number, dtype: np.dtype) -> str:
        """Return the text of a number put into a type; where it may not fit, the loop gives up."""
        fits(dtype)
        if np.can_cast(value.dtype, dtype) or dtype.kind == "f":
            return self.cast(value, dtype)
        if value.dtype.kind == "f" and dtype == INT:
            value = self.temporary(value.text, value.dtype)
            self.give_up_unless(f"-9e18 < {value.text} < 9e18")
        elif value.dtype.kind in "iu" and dtype in NARROW:
            value, limits = self.temporary(value.text, value.dtype), np.iinfo(dtype)
            self.give_up_unless(f"{limits.min} <= {value.text} <= {limits.max}")
        elif {value.dtype, dtype} != {INT, UINT}:
            raise UnfitError(dtype.name)
        return self.cast(value, dtype)


class _Bound:
    """A bound of a loop in the loop, which `Range` takes for an integer."""

    def __init__(self, number: Number) -> None:
        if number.dtype.kind not in "iu":
            raise UnfitError("range")
        self.number, self.dtype = number, INT


def _negative(number: Number) -> Number:
    return Number(f"(-{number.text})", number.dtype)
