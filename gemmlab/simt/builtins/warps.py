"""Lanes of a warp vote, match and shuffle together."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.memory.batch import Batch


def taking_part(m: Batch, mask: Any, name: str, kind: str) -> np.ndarray:
    """The active lanes, (blocks, warps, 32); a hazard where `mask` names none or leaves out one.

    name : of the function, for messages; kind : of instruction that it counts as
    """
    line, lanes = m.calls.line, m.lanes
    m.tally.tick(line, kind)
    on = lanes.in_warps(lanes.full(m.masks[-1]))
    bits = lanes.in_warps(np.asarray(mask).astype(np.int64))
    own = (bits >> np.arange(WARP)) & 1 == 1
    if (on & ~own).any():
        text = f"thread {{thread}} calls cuda.{name} with a mask that leaves it out"
        m.findings.hazard("divergent-barrier", line, (on & ~own).reshape(lanes.shape), text)
    named = ((bits[..., :, None] >> np.arange(WARP)) & 1 == 1) & on[..., :, None]
    alive = lanes.in_warps(lanes.full(m.alive()))
    missing = named & (alive & ~on)[..., None, :]
    if missing.any():
        b, w, i, other = (int(v) for v in np.argwhere(missing)[0])
        waits = np.zeros(lanes.shape, bool)
        waits[b, w * WARP + i] = True
        text = f"thread {{thread}} waits in cuda.{name} for thread {{other}}, which is not there"
        m.findings.hazard("divergent-barrier", line, waits, text, other=w * WARP + other)
    return on


# Where a shuffle reads: from the lane and the operand to a lane, itself where that is outside.
def _up(lane: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.where(lane - delta >= 0, lane - delta, lane)


def _down(lane: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.where(lane + delta < WARP, lane + delta, lane)


SHUFFLES: dict[str, Callable] = {
    "shfl_sync": lambda lane, source: np.broadcast_to(source % WARP, lane.shape),
    "shfl_up_sync": _up,
    "shfl_down_sync": _down,
    "shfl_xor_sync": lambda lane, bits: (lane ^ bits) % WARP,
}


SHUFFLED = "int32", "int64", "float32", "float64"  # all that Numba-CUDA's shuffles take


def _wider(dtype: np.dtype) -> str:
    """Return the type to which a number is converted that cannot be shuffled."""
    if dtype.kind == "c":
        return "float32 of x.real and of x.imag"
    if dtype.kind == "f":
        return "float32"
    return "int64" if dtype.itemsize > 2 and dtype.kind == "u" else "int32"


class Offered(NamedTuple):
    """A value that lanes offer to others in a shuffle, and which of them have it."""

    value: Any
    has: Any


def shuffle(m: Batch, name: str, mask: Any, value: Any, where: Any) -> Any:
    """The `value` of another lane of the warp; a hazard where it takes no part, or has none."""
    given = np.asarray(value.value if isinstance(value, Offered) else value).dtype
    if (given.name not in SHUFFLED and given != np.bool_) or (
        given == np.bool_ and not isinstance(value, Offered)
    ):
        raise TypeError(
            f"cuda.{name} takes no {given} in Numba-CUDA (shfl_sync only supports 32- and 64-bit "
            f"ints and floats); convert it, as in np.{_wider(given)}(x)"
        )
    on = taking_part(m, mask, name, "inst_shuffle")
    operand = m.lanes.in_warps(np.asarray(where).astype(np.int64))
    lane = np.broadcast_to(np.arange(WARP), operand.shape)
    source = SHUFFLES[name](lane, operand)
    present = np.take_along_axis(on, source, axis=-1)
    lost = (on & ~present).reshape(m.lanes.shape)
    if lost.any():
        other = int(source.reshape(lost.shape)[m.lanes.first(lost)])
        text = f"thread {{thread}} reads lane {other} in cuda.{name}, which does not take part"
        m.findings.hazard("uninitialised-read", m.calls.line, lost, text)
    if isinstance(value, Offered):
        value, has = value
        there = np.take_along_axis(m.lanes.in_warps(has), source, axis=-1)
        unset = (on & present & ~there).reshape(m.lanes.shape)
        if unset.any():
            other = int(source.reshape(unset.shape)[m.lanes.first(unset)])
            text = f"thread {{thread}} reads lane {other} in cuda.{name}, which has no value"
            m.findings.hazard("uninitialised-read", m.calls.line, unset, text)
    return m.lanes.of_warps(np.take_along_axis(m.lanes.in_warps(value), source, axis=-1))


def check_predicate(name: str, predicate: Any, kinds: str) -> None:
    """Refuse a condition of a type that Numba does not take; `kinds` are NumPy's of those it does.

    Barriers that vote take integers alone, and not what a comparison gives.
    """
    kind = np.asarray(predicate).dtype
    if kind.kind not in kinds:
        instead = "int(condition)" if kind.kind == "b" else "a comparison"
        instead = instead if "b" in kinds or kind.kind == "b" else "int(x > 0), say"
        raise TypeError(f"cuda.{name} takes no {kind} in Numba-CUDA; write {instead}")


def _vote(m: Batch, name: str, mask: Any, predicate: Any) -> tuple[np.ndarray, np.ndarray]:
    """Give the lanes that take part, and those for which `predicate` holds, (blocks, warps, 32)."""
    check_predicate(name, predicate, "biu")
    on = taking_part(m, mask, name, "inst_vote")
    return on, m.lanes.in_warps(np.not_equal(predicate, 0))


def all_sync(m: Batch, mask: Any, predicate: Any) -> Any:
    """Say whether `predicate` holds in all lanes that take part."""
    on, yes = _vote(m, "all_sync", mask, predicate)
    return m.lanes.of_warps((yes | ~on).all(axis=-1, keepdims=True))


def any_sync(m: Batch, mask: Any, predicate: Any) -> Any:
    """Say whether `predicate` holds in any lane that takes part."""
    on, yes = _vote(m, "any_sync", mask, predicate)
    return m.lanes.of_warps((yes & on).any(axis=-1, keepdims=True))


def eq_sync(m: Batch, mask: Any, predicate: Any) -> Any:
    """Say whether `predicate` is the same in all lanes that take part."""
    on, yes = _vote(m, "eq_sync", mask, predicate)
    same = (yes | ~on).all(axis=-1, keepdims=True) | ~(yes & on).any(axis=-1, keepdims=True)
    return m.lanes.of_warps(same)


def _ballot(lanes: np.ndarray) -> np.ndarray:
    """Lanes as the bits of an integer, (…, 1); unsigned 32-bit, as the hardware's register."""
    return (lanes << np.arange(WARP)).sum(axis=-1, keepdims=True).astype(np.uint32)


def ballot_sync(m: Batch, mask: Any, predicate: Any) -> Any:
    """Return a bit for each lane that takes part and for which `predicate` holds."""
    on, yes = _vote(m, "ballot_sync", mask, predicate)
    return m.lanes.of_warps(_ballot(yes & on).astype(np.int32))


def match_any_sync(m: Batch, mask: Any, value: Any) -> Any:
    """Return a bit for each lane that takes part and has the same value."""
    on = taking_part(m, mask, "match_any_sync", "inst_vote")
    values = m.lanes.in_warps(value)
    same = (values[..., :, None] == values[..., None, :]) & on[..., None, :]
    return m.lanes.of_warps(_ballot(same)[..., 0].astype(np.int32))


def match_all_sync(m: Batch, mask: Any, value: Any) -> tuple:
    """Return the lanes that take part, or 0, and whether all of them have the same value."""
    on = taking_part(m, mask, "match_all_sync", "inst_vote")
    values = m.lanes.in_warps(value)
    first = np.take_along_axis(values, on.argmax(axis=-1)[..., None], axis=-1)
    same = ((values == first) | ~on).all(axis=-1, keepdims=True)
    lanes = np.where(same, _ballot(on), 0).astype(np.int32)
    return m.lanes.of_warps(lanes), m.lanes.of_warps(same)


def lanemask_lt(m: Batch) -> Any:
    """Return a bit for each lane of the warp with a smaller number."""
    return ((np.int64(1) << m.lanes.thread % WARP) - 1).astype(np.uint32)


def activemask(m: Batch) -> Any:
    """Return a bit for each active lane of the warp."""
    return m.lanes.of_warps(_ballot(m.lanes.in_warps(m.lanes.full(m.masks[-1]))))
