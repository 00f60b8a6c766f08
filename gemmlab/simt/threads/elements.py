"""A thread's loads and stores: what they find, what they cost, and who touched the elements.

The loop gives up where lock-step would tell of a hazard or of a note: outside of an array, before
the first store to an element of a local array, and where another thread has touched an element of
global memory that others may store to.
"""

from typing import Any, NamedTuple

import numpy as np

from gemmlab.simt.memory.access import LOADS, STORES
from gemmlab.simt.memory.array import Array, Record, Records
from gemmlab.simt.races.memories import GlobalShadow
from gemmlab.simt.syntax.source import Source
from gemmlab.simt.threads.text import Number, Text, UnfitError, fits


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
