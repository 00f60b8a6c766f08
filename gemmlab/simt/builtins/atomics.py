"""`cuda.atomic.*`: the updates of the lanes, made one after the other in the order of the lanes."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.memory import counting, indices, tracking
from gemmlab.simt.memory.array import Array


def _increment(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where(old >= limit, 0, old + 1)


def _decrement(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > limit), limit, old - 1)


def _greater(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where(value > old, value, old)  # a NaN is neither taken nor given up


def _less(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where(value < old, value, old)


NUMPYS: dict[Callable, Callable] = {_greater: np.maximum, _less: np.minimum}

# What an element becomes: a function of its old value and the lane's operand.
UPDATES: dict[str, Callable] = {
    "add": np.add,
    "sub": np.subtract,
    "max": _greater,
    "min": _less,
    "nanmax": np.fmax,
    "nanmin": np.fmin,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": _increment,
    "dec": _decrement,
    "exch": lambda old, value: value,
}


# Types of elements that Numba-CUDA's atomics take: numba.cuda.cudadecl.
UNSIGNED = "uint32", "uint64"
WHOLE = "int32", *UNSIGNED, "int64"
NUMBERS = *WHOLE, "float32", "float64"
TYPES = {
    **dict.fromkeys(("and_", "or_", "xor", "exch", "cas"), WHOLE),
    **dict.fromkeys(("inc", "dec"), UNSIGNED),
}


@cache
def takes(name: str, dtype: np.dtype) -> bool:
    """Say whether an atomic is there for elements of a type."""
    return dtype.name in TYPES.get(name, NUMBERS)


def update(m: BuiltinBatch, name: str, array: Any, index: Any, value: Any) -> Any:
    """Update `array[index]` for one active lane after the other; returns the old values."""
    return _atomic(m, name, array, index, UPDATES[name], (value,))


def exchange(m: BuiltinBatch, array: Any, index: Any, old: Any, value: Any) -> Any:
    """`cuda.atomic.cas`: store `value` where the element equals `old`; returns the old values."""
    return _atomic(m, "cas", array, index, _swap, (value, old))


def compare_and_swap(m: BuiltinBatch, array: Any, old: Any, value: Any) -> Any:
    """`cuda.atomic.cas` on the first element."""
    return exchange(m, array, np.int64(0), old, value)


def _swap(now: np.ndarray, value: np.ndarray, old: np.ndarray) -> np.ndarray:
    return np.where(now == old, value, now)


def _swaps(now: Any, values: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Return the values of an element: before each of several swaps, and after the last one.

    The element changes seldom: of the lanes that ask for a lock, the first one gets it.
    """
    chain, at = np.empty(len(values) + 1, values.dtype), 0
    while True:
        chain[at:] = now
        changes = (old[at:] == now) & (values[at:] != now)
        if not changes.any():
            return chain
        at += int(changes.argmax()) + 1
        now = values[at - 1]


def _atomic(
    m: BuiltinBatch, name: str, array: Any, index: Any, new: Callable, operands: tuple
) -> Any:
    line = m.calls.line
    if not isinstance(array, Array) or array.space not in ("global", "shared"):
        raise TypeError(f"cuda.atomic.{name} needs an array in global or shared memory")
    if not takes(name, array.dtype):
        known = TYPES.get(name, NUMBERS)
        cure = "its parts, array.real and array.imag" if array.dtype.kind == "c" else known[0]
        raise TypeError(
            f"cuda.atomic.{name} takes no {array.dtype} (No implementation of function "
            f"cuda.atomic.{name} found): it takes {', '.join(known)}; use an array of {cure}"
        )
    if array.ndim == 1:  # Numba makes an integer of the index, whatever it is
        index = index[0] if isinstance(index, tuple) and len(index) == 1 else index
        if getattr(index, "dtype", np.dtype(np.int64)).kind in "fb":
            index = index.astype(np.int64)
    found, mask = indices.locate(m, array, index, line, "atomic")
    if isinstance(found, Array):
        raise TypeError(f"{array.name} has {array.ndim} dimensions; index them all")
    result = np.zeros(m.lanes.shape, array.dtype)
    if mask is False:
        return result
    m.copies.check(m, line, "atomic", array, found, mask)
    m.tally.tick(line, "inst_atomic")
    places = m.lanes.places(mask)
    alone = int(places[0]) if len(places) == 1 else None
    if alone is None:
        given = [m.lanes.of(np.asarray(v).astype(array.dtype), mask)[0] for v in operands]
    else:
        given = [np.array([m.lanes.at(v, alone)]).astype(array.dtype) for v in operands]
    counting.count_access(m, line, "atomic", array, found, mask)
    if array.space == "global":
        tracking.track_global(m, line, "atomic", array, found, mask, compares=name == "cas")
        at = found
    else:
        tracking.track_shared(m, line, "atomic", array, found, mask, compares=name == "cas")
        at = found + m.lanes.row * array.buffer.shape[1]
    if alone is not None:
        buffer, cell = array.buffer.reshape(-1), int(m.lanes.at(at, alone))
        old = buffer[cell : cell + 1].copy()
        buffer[cell] = new(old, *given).astype(array.dtype)[0]
        array.owner.exact = None
        result.reshape(-1)[alone] = old[0]
        return result
    cells = m.lanes.of(at, mask)[0]
    if new in NUMPYS:
        numbers = array.buffer.reshape(-1)[cells], given[0]
        if array.dtype.kind in "iu" or not any(np.isnan(part).any() for part in numbers):
            new = NUMPYS[new]  # which is the same, and faster
    array.owner.exact = None  # of integers that had wrapped before
    result.reshape(-1)[places] = in_order(array.buffer.reshape(-1), cells, new, given)
    return result


def in_order(buffer: np.ndarray, cells: np.ndarray, new: Callable, given: list) -> np.ndarray:
    """Apply the updates of `cells` one after the other; returns the old value of each lane."""
    small = cells.max() < 1 << 16  # numbers of 16 bits are sorted by radix, much faster
    order = np.argsort(cells.astype(np.uint16) if small else cells, kind="stable")
    ordered = cells.take(order)
    first = np.flatnonzero(np.diff(ordered, prepend=-1))  # of the lanes of each element
    counts = np.diff(first, append=len(cells))
    old = np.empty(len(cells), buffer.dtype)
    if new is np.add and buffer.dtype.kind in "iu":  # exact, so that one running sum is enough
        elements = ordered[first]
        sums = np.cumsum(given[0].take(order), dtype=buffer.dtype)
        before = np.concatenate([np.zeros(1, buffer.dtype), sums])
        start = buffer[elements] - before[first]
        old[order] = before[:-1] + np.repeat(start, counts)
        buffer[elements] = start + before[first + counts]
        return old
    in_chains = new is _swap or isinstance(new, np.ufunc)
    if in_chains and len(first) < counts.max():  # few elements, many lanes each
        for start, count in zip(first, counts, strict=True):
            lanes = order[start : start + count]
            cell, values = ordered[start], [g[lanes] for g in given]
            if new is _swap:
                chain = _swaps(buffer[cell], *values)
            else:
                chain = np.concatenate([[buffer[cell]], values[0]]).astype(buffer.dtype)
                chain = new.accumulate(chain, dtype=buffer.dtype)
            old[lanes], buffer[cell] = chain[:-1], chain[-1]
        return old
    for turn in range(int(counts.max())):
        lanes = order[first[counts > turn] + turn]
        cell = cells[lanes]
        old[lanes] = buffer[cell]
        buffer[cell] = new(old[lanes], *(g[lanes] for g in given)).astype(buffer.dtype)
    return old
