"""Values of which each lane has one of two: `p = a` in some lanes, `p = b` in others.

Numbers are merged into one array over the lanes. Local arrays are no numbers: a `Choice` keeps
them all, and which of them is that of each lane.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gemmlab.simt.memory.array import Array, Record
from gemmlab.simt.memory.batch import Batch
from gemmlab.simt.numbers.lanes import Mask, both
from gemmlab.simt.numbers.values import NUMBER, Range, Unassigned, like


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
    """The array `new` in the lanes of `mask`, and `old` in the others."""
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
    """The value `new` in the lanes of `mask`, and `old` in the others."""
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
