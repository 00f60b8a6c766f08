"""Listings as text: what `Listing` prints is read again."""

from __future__ import annotations

import re

from gemmlab.compiled.sass.listing import BYTES, Control, Instruction

_ROW = re.compile(
    r"((?P<address>[0-9a-f]+)\s+)?"
    r"(?P<waits>[-0-5]{6}) W(?P<write>.) R(?P<read>.) (?P<yields>.) S(?P<stall>\d\d)\s+"
    r"(@(?P<guard>\S+) )?(?P<opcode>\S+)\s*(?P<operands>.*)"
)


def instructions(text: str) -> tuple[Instruction, ...]:
    """The instructions of a text as `str` makes it of a `Listing`, one a line.

    Addresses may be left out: then each instruction follows the one above.
    Raises ValueError, with the line, for one that is none.

    >>> (one,) = instructions("00020  -1---- W0 R- - S04  @!P0 LDS R2, [R4+0x10]")
    >>> one.address, one.guard, one.operands, one.control.waits
    (32, '!P0', ('R2', '[R4+0x10]'), (1,))
    """
    found: list[Instruction] = []
    for line in text.strip().splitlines():
        found.append(_instruction(line.strip(), found[-1].address + BYTES if found else 0))
    return tuple(found)


def _instruction(line: str, following: int) -> Instruction:
    row = _ROW.fullmatch(line)
    if row is None:
        raise ValueError(f"{line!r} is no instruction; they read as `Listing` prints them")
    write, read = (None if row[k] == "-" else int(row[k]) for k in ("write", "read"))
    return Instruction(
        int(row["address"], 16) if row["address"] else following,
        row["guard"] or "",
        row["opcode"],
        tuple(o.strip() for o in row["operands"].split(",")) if row["operands"] else (),
        Control(
            int(row["stall"]), row["yields"] == "Y", write, read,
            tuple(int(w) for w in row["waits"] if w != "-"),
        ),
    )  # fmt: skip
