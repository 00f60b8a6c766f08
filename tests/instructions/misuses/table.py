"""The table of instructions used wrongly: what the simulator says, and what the compiler says.

In each kernel the line at fault carries the comment `fault`. What the compiler cannot know, such as
where an array lies, it lets pass: there `compiled` is None.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gemmlab.instructions import (
    fragments,
)

F32 = np.arange(256, dtype=np.float32).reshape(32, 8)
F64 = np.zeros((32, 8))
F16 = np.zeros((32, 32), np.float16)
ZERO, WORD = np.float32(0), np.uint32(0)
ZEROS, WORDS = (ZERO, ZERO, ZERO, ZERO), (WORD, WORD, WORD, WORD)
TABLE = np.zeros((8, 8), np.float32)
form = fragments.layout("m16n8k16", "A")
element, holds = form.element, form.holds


@dataclass(frozen=True)
class Misuse:
    """A kernel that is wrong, with its arguments.

    refused : what an error of the simulator says; "" where it reports a hazard
    kind, message, thread : of the hazard
    compiled : what the compiler says; None where it does not refuse
    """

    kernel: Callable
    arrays: tuple
    refused: str
    kind: str
    message: str
    thread: int
    compiled: str | None
    options: dict


CASES: list[Misuse] = []


def refused(simulated: str, *arrays: np.ndarray, compiled: str | None, **options: object):
    """Note a kernel that the simulator does not run."""

    def note(kernel: Callable) -> Callable:
        CASES.append(Misuse(kernel, arrays, simulated, "", "", 0, compiled, options))
        return kernel

    return note


def hazard(kind: str, message: str, *arrays: np.ndarray, thread: int = 0, **options: object):
    """Note a kernel in which the simulator finds a fault that no compiler sees."""

    def note(kernel: Callable) -> Callable:
        CASES.append(Misuse(kernel, arrays, "", kind, message, thread, None, options))
        return kernel

    return note
