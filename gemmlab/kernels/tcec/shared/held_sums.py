"""Sums that a thread of a warpgroup holds beside those of `wgmma`: cleared, added, corrected."""

from __future__ import annotations

from collections.abc import Callable

from numpy import float32

from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tcec.shared.splitting import UNSCALE

EIGHT = 8  # sums that one device function names


def for_each(count: int, eight: Callable) -> Callable:
    """The device function (x, y) that does what eight(first) says for all groups of eight sums.

    Nesting writes out what a loop would index, so that sums stay in registers.
    """

    @on_device
    def nothing(x, y):
        pass

    def groups(first):
        others = groups(first + EIGHT) if first + EIGHT < count else nothing
        this = eight(first)

        @on_device
        def go(x, y):
            this(x, y)
            others(x, y)

        return go

    return groups(0)


def clearing(count: int) -> Callable:
    """The device function (main) that makes all sums 0."""

    def eight(first):
        @on_device
        def clear(main, _):
            for e in range(first, first + EIGHT):
                main[e] = float32(0)

        return clear

    every = for_each(count, eight)

    @on_device
    def clear_all(main):
        every(main, main)

    return clear_all


def adding(count: int) -> Callable:
    """The device function (main, part) that adds a part to the sums."""

    def eight(first):
        @on_device
        def add(main, part):
            for e in range(first, first + EIGHT):
                main[e] += part[e]

        return add

    return for_each(count, eight)


def joining(count: int) -> Callable:
    """The device function (main, cross) that adds the corrections to the sums."""

    def eight(first):
        @on_device
        def join(main, cross):
            for e in range(first, first + EIGHT):
                main[e] += cross[e] * UNSCALE

        return join

    return for_each(count, eight)
