"""The shape of a check: pieces that are measured on a GPU one by one and compared with the library.

A check is one file of `checks`. Each of its pieces (an instruction, a kernel, a group of launches)
is measured, compared and kept by itself, so that a long check can be interrupted and resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.device import Device

Measured = dict[str, Any]  # arrays, and what JSON can hold
Note = Callable[[tuple[int, ...]], str]
SHOWN = 5  # differences of a piece that are put into words


class UnavailableError(Exception):
    """A piece cannot be measured here, although the GPU could; the message says why."""


@dataclass
class Comparison:
    """How many values were compared, how many of them differ, and the first of these in words."""

    compared: int = 0
    differing: int = 0
    texts: list[str] = field(default_factory=list)

    def equal(self, what: str, measured: Any, expected: Any, note: Note | None = None) -> None:
        """Compare two arrays, or two single things, as they are; NaN equals NaN of the same bits.

        note : index of an element that differs -> what else is to be said of it

        Raises ValueError for arrays of different shapes or dtypes.
        """
        if not isinstance(measured, np.ndarray):
            self.holds(measured == expected, f"{what}: measured {measured!r}, here {expected!r}")
            return
        if (measured.shape, measured.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"{what}: measured {measured.dtype} {measured.shape}, "
                f"here {expected.dtype} {expected.shape}"
            )
        self.elements(what, bits(measured) != bits(expected), measured, expected, note)

    def elements(
        self,
        what: str,
        wrong: np.ndarray,
        measured: np.ndarray,
        expected: np.ndarray,
        note: Note | None = None,
    ) -> None:
        """Count the elements of an array, `wrong` those that differ; `note` as in `equal`."""
        self.compared += wrong.size
        self.differing += int(wrong.sum())
        for index in np.argwhere(wrong)[: SHOWN - len(self.texts)]:
            at = tuple(int(i) for i in index)
            said = f"{what}{list(at)}: measured {show(measured, at)}, here {show(expected, at)}"
            self.texts.append(said + (f"; {note(at)}" if note else ""))

    def holds(self, true: Any, text: str) -> None:
        """Count one comparison, which `text` describes where it is not true."""
        self.compared += 1
        if not true:
            self.differing += 1
            self.texts += [text] if len(self.texts) < SHOWN else []


def bits(array: np.ndarray) -> np.ndarray:
    """An array's elements as unsigned integers."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)


def show(array: np.ndarray, at: tuple[int, ...]) -> str:
    """An element, a float with its bits."""
    value = array[at]
    return f"{value} ({int(bits(array)[at]):#x})" if array.dtype.kind == "f" else f"{value}"


def everything(measured: Measured) -> Measured:
    """Keep all that was measured."""
    return measured


@dataclass(frozen=True)
class Check:
    """One thing that is compared with a GPU.

    name : of its file, and of its records
    about : what is compared with what, in a line
    pieces : device -> every piece, and why this device cannot run it, "" if it can
    measure : (piece, device) -> what this machine's GPU gave
    compare : (piece, measured, device) -> how that differs from what is expected of the device
    kept : the part of what was measured that is recorded; None for a check without records
    tool : program that measures, "ncu" or "compute-sanitizer"; "" where the GPU's answers are read
    launch : piece -> None, what runs under the tool
    quick : pieces that stand for the check in `pytest -m gpu`
    """

    name: str
    about: str
    pieces: Callable[[Device], Mapping[str, str]]
    measure: Callable[[str, Device], Measured]
    compare: Callable[[str, Measured, Device], Comparison]
    kept: Callable[[Measured], Measured] | None = everything
    tool: str = ""
    launch: Callable[[str], None] | None = None
    quick: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The result of a piece.

    measured : what is kept of it
    origin : device, driver, versions and date
    compared, differing : numbers of values; None where they were not written down
    texts : the first differences
    failed : why it could not be measured or compared; `left_out` where that is no fault
    """

    piece: str
    measured: Measured = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    compared: int | None = None
    differing: int | None = None
    seconds: float | None = None
    texts: tuple[str, ...] = ()
    failed: str = ""
    left_out: str = ""
