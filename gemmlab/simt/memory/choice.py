"""Local arrays of which each lane has chosen one: `p = a` in some lanes, `p = b` in others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.memory import access
from gemmlab.simt.memory.array import Array
from gemmlab.simt.numbers.masks import Mask, both

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


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
        """The sizes of each lane's array."""
        return tuple(
            np.choose(self.which, sizes) if len(set(sizes)) > 1 else sizes[0]
            for sizes in zip(*(option.shape for option in self.options), strict=True)
        )

    @property
    def size(self) -> Any:
        """The number of elements of each lane's array."""
        return np.choose(self.which, [option.size for option in self.options])

    def in_turn(self, m: Machine) -> Iterator[tuple[Array, Mask]]:
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


def load(m: Machine, array: Choice, index: Any, line: int) -> Any:
    """`array[index]` of each lane's own array; a view where dimensions are left open."""
    result: Any = None
    for option, lanes in array.in_turn(m):
        value = access.load(m, option, index, line)
        if result is None:
            result = value
        elif isinstance(value, Array):
            result = chosen(lanes, result, value)
        else:
            result = np.where(lanes, value, result)
    return array.dtype.type(0) if result is None else result


def store(m: Machine, array: Choice, index: Any, value: Any, line: int) -> None:
    """`array[index] = value` in each lane's own array."""
    for option, _ in array.in_turn(m):
        access.store(m, option, index, value, line)
