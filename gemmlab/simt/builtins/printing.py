"""`print` in a kernel: a line for each thread, in the order of the threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.numbers.no_numbers import NUMBER, shown

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


def print_lanes(m: Machine, *values: Any) -> None:
    """Print a line of text, numbers and tuples for each active lane, as Numba formats it."""
    if m.masks[-1] is False:
        return
    columns = [_column(m, value) for value in values]
    for lane in np.argwhere(m.lanes.full(m.masks[-1])):
        m.report.printed.append(" ".join(column(tuple(lane)) for column in columns))


def _column(m: Machine, value: Any) -> Any:
    """A value as a function of the lane, (block, thread), that gives its text."""
    if isinstance(value, str):
        return lambda lane: value
    if isinstance(value, tuple):
        parts = [_column(m, v) for v in value]
        end = ",)" if len(parts) == 1 else ")"
        return lambda lane: "(" + ", ".join(part(lane) for part in parts) + end
    if not isinstance(value, NUMBER) or value.dtype.kind not in "biuf":
        raise TypeError(f"print takes text, numbers and tuples, not {shown(value)}")
    lanes = m.lanes.spread(value)
    form = "{:f}" if value.dtype.kind == "f" else "{}"
    return lambda lane: form.format(lanes[lane].item())
