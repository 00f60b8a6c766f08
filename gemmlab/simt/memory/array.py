"""Arrays as a kernel sees them, in global, shared, local and constant memory; arrays of records.

An array is a flat buffer with a shape and strides, so that a row or a slice of it is one too.
Global buffers are flat, (size,); shared ones (blocks, size); local ones (size, blocks, threads).
Records, such as the states of random numbers, are one array for each field. The fields overlap in
memory as they do on the host, so that an access is counted where it goes.

Where a variable is assigned in a branch, each lane has one of two values. Numbers are merged into
one array over the lanes. Local arrays are no numbers: a `Choice` keeps them all, and which of them
is that of each lane.
"""

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from gemmlab.simt.memory.batch import Batch
from gemmlab.simt.numbers.lanes import Mask, both
from gemmlab.simt.numbers.values import NUMBER, Range, Unassigned, like
from gemmlab.simt.races import hazards, memories


class Array:
    """A view of a buffer: element (i, j, …) lies at offset + i·strides[0] + j·strides[1] + …"""

    in_rows = False  # whether lanes point at rows that a warp reads together

    def merges(self, op: str) -> bool:
        """Whether shared memory may serve neighbouring groups of lanes of a wide access at once."""
        return op == "load" and not self.in_rows

    def __init__(
        self,
        space: str,
        buffer: np.ndarray,
        shape: tuple,
        strides: tuple | None = None,
        offset: Any = np.int64(0),  # noqa: B008, a NumPy integer is a value
        name: str = "",
        shadow: memories.SharedShadow | memories.GlobalShadow | None = None,
        owner: Self | None = None,
    ) -> None:
        self.space, self.buffer, self.shape = space, buffer, shape
        self.strides = row_major(shape) if strides is None else strides
        self.offset, self.name, self.shadow = offset, name, shadow
        self._owner = owner
        self.alignment = 256  # bytes of which its address is a multiple; what cudaMalloc gives
        self.writeable = True  # whether the host lets it be stored to
        # Of integers that wrapped: what each element would be, the type, and the line.
        self.exact: np.ndarray | None = None
        self.narrow = ("", 0)
        # Of an accumulator of `wgmma`: the last one that updates it, and its group; what fences
        # came before the last store to it (`builtins.warpgroups`).
        self.updating: Any = None
        self.group = 0
        self.stored: Any = None
        # Of registers: by element, the loads whose values are on their way (`builtins.loads`).
        self.coming: dict[int, Any] = {}

    @property
    def owner(self) -> Self:
        """The array that this one is a view of; itself, where it is none."""
        # No attribute: an array that refers to itself would stay until cycles are collected.
        return self if self._owner is None else self._owner

    @property
    def dtype(self) -> np.dtype:
        return self.buffer.dtype

    @property
    def itemsize(self) -> int:
        return self.buffer.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Any:
        return math.prod(self.shape, start=np.int64(1))  # of a view, it may differ between lanes

    @property
    def written(self) -> bool:
        """Whether a global array has been stored to."""
        return self.shadow is not None and self.shadow.written

    def view(self, shape: tuple, strides: tuple, offset: Any) -> Self:
        return Array(
            self.space, self.buffer, shape, strides, offset, self.name, self.shadow, self.owner
        )

    def element(self, flat: Any) -> hazards.Element:
        """An element of the buffer, by its indices in the array that owns it, such as As[3, 0]."""
        owner, rest = self.owner, int(flat) - int(self.owner.offset)
        index = dict.fromkeys(range(owner.ndim), 0)
        for axis in sorted(index, key=lambda i: -owner.strides[i]):
            if owner.shape[axis] > 1:
                index[axis], rest = divmod(rest, int(owner.strides[axis]))
        return hazards.Element(owner.name, owner.space, tuple(index.values()))


def part_of_complex(array: Array, imaginary: bool) -> Array:
    """Return the real or the imaginary parts of an array of complex numbers, in its memory."""
    half = array.itemsize // 2
    buffer = array.buffer.view(f"f{half}")
    strides = tuple(2 * stride for stride in array.strides)
    name = f"{array.name}.{'imag' if imaginary else 'real'}"
    if array.space == "shared":
        array.shadow.unit = array.shadow.unit or array.itemsize
        array.shadow.refine(half)
    part = Array(array.space, buffer, array.shape, strides, 2 * array.offset + imaginary, name,
                 array.shadow)  # fmt: skip
    part.writeable = array.owner.writeable
    return part


def row_major(shape: tuple) -> tuple:
    """Strides in elements of a C-contiguous array."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * int(shape[i + 1])
    return tuple(strides)


class Records:
    """An array of records: `fields` are arrays by name, or records in records.

    ndim : the dimensions of the array; fields that are arrays in a record have more
    """

    def __init__(self, name: str, fields: dict[str, Any], ndim: int | None = None) -> None:
        self.name, self.fields = name, fields
        first = next(iter(fields.values()))
        self.ndim = first.ndim if ndim is None else ndim
        self.shape = tuple(first.shape[: self.ndim])

    @property
    def size(self) -> Any:
        return math.prod(self.shape, start=np.int64(1))

    def call(self, name: str) -> None:
        """Give the records a name, where they have none."""
        if not self.name:
            self.name = name
            for field, array in self.fields.items():
                if isinstance(array, Records):
                    array.call(f"{name}.{field}")
                else:
                    array.name = f"{name}.{field}"

    def field(self, name: str) -> Array:
        if name not in self.fields:
            raise AttributeError(
                f"{self.name} has no field {name!r}; use one of {', '.join(self.fields)}"
            )
        return self.fields[name]


class Record:
    """One record for each lane: the element `index` of an array of records."""

    def __init__(self, records: Records, index: Any) -> None:
        self.records, self.index = records, index
        self.name = records.name

    def field(self, name: Any) -> Array:
        """Return the array that has one field of all records."""
        if not isinstance(name, str):
            first = next(iter(self.records.fields))
            raise TypeError(f"a record of {self.name} has fields; write .{first} or [{first!r}]")
        return self.records.field(name)


class Choice:
    """Arrays of one type, and which of them is that of each lane.

    options : the arrays; which : the place in `options` of each lane's array
    """

    space = "local"

    def __init__(self, options: tuple[Array, ...], which: Any) -> None:
        self.options, self.which = options, which
        first = options[0]
        self.name, self.dtype, self.ndim = first.name, first.dtype, first.ndim
        self.itemsize = first.itemsize

    @property
    def shape(self) -> tuple:
        return tuple(
            np.choose(self.which, sizes) if len(set(sizes)) > 1 else sizes[0]
            for sizes in zip(*(option.shape for option in self.options), strict=True)
        )

    @property
    def size(self) -> Any:
        return np.choose(self.which, [option.size for option in self.options])

    def in_turn(self, m: Batch) -> Iterator[tuple[Array, Mask]]:
        """Each array that active lanes have chosen, while the mask of these lanes is the last."""
        here = m.masks[-1]
        for place, option in enumerate(self.options):
            lanes = both(here, np.equal(self.which, place))
            if lanes is not False:
                m.masks.append(lanes)
                yield option, lanes
                m.masks.pop()


def chosen(mask: Mask, old: Array | Choice, new: Array | Choice) -> Array | Choice:
    """Return the array `new` in the lanes of `mask`, and `old` in the others."""
    options: list[Array] = []
    places = []
    for value in (new, old):
        own = value.options if isinstance(value, Choice) else (value,)
        place = []
        for option in own:
            same = [i for i, known in enumerate(options) if known is option]
            place.append(same[0] if same else len(options))
            if not same:
                options.append(option)
        places.append(np.choose(value.which, place) if isinstance(value, Choice) else place[0])
    return Choice(tuple(options), np.where(mask, *places)) if len(options) > 1 else options[0]


def merged(mask: Mask, old: Any, new: Any, name: str) -> Any:
    """Return the value `new` in the lanes of `mask`, and `old` in the others."""
    if mask is None or new is old or isinstance(old, Unassigned):
        return new
    if mask is False:
        return old
    if isinstance(new, NUMBER) and isinstance(old, NUMBER):
        return np.where(mask, new, old)
    for kind in (tuple, Range, Record, (Array, Choice)):
        if isinstance(old, kind) != isinstance(new, kind):
            raise TypeError(f"{name!r} changes its type between branches")
    if isinstance(new, tuple):
        if len(new) != len(old):
            raise TypeError(f"{name!r} changes its length between branches")
        return like(old, (merged(mask, *pair, name) for pair in zip(old, new, strict=True)))
    if isinstance(new, Range):
        pairs = zip(old.bounds, new.bounds, strict=True)
        return Range(*(merged(mask, *pair, name) for pair in pairs))
    if isinstance(new, Record) and new.records is old.records:
        return Record(new.records, merged(mask, old.index, new.index, name))
    if isinstance(new, (Array, Choice)):
        return _merged_view(mask, old, new, name)
    if (new is None) != (old is None):
        raise TypeError(f"{name!r} is None in some threads; give it a number in all")
    return np.where(mask, new, old)


def _merged_view(mask: Mask, old: Array, new: Array, name: str) -> Array | Choice:
    """A view of one array whose offset and shape may differ between lanes; or a choice of two."""
    if new.dtype != old.dtype or new.ndim != old.ndim:
        raise TypeError(f"{name!r} changes its type between branches")
    if new.space == old.space == "local":
        return chosen(mask, old, new)
    if new.space != old.space or new.buffer is not old.buffer or new.strides != old.strides:
        raise TypeError(
            f"{name!r} is one array in some threads and another one in others; "
            "choose between elements, not between arrays"
        )
    pairs = zip(old.shape, new.shape, strict=True)
    shape = tuple(merged(mask, *pair, name) for pair in pairs)
    return new.view(shape, new.strides, merged(mask, old.offset, new.offset, name))
