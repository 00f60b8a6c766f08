"""Listings written by hand, in the notation in which they are printed."""

import re

from gemmlab.sass.listing import BYTES, Control, Instruction, Listing

LINE = re.compile(
    r"(?P<waits>[-0-5]{6}) W(?P<write>.) R(?P<read>.) (?P<yields>.) S(?P<stall>\d\d)\s+"
    r"(@(?P<guard>\S+) )?(?P<opcode>\S+)\s*(?P<operands>.*)"
)


def listing(text: str) -> Listing:
    """The listing of lines such as "------ W- R- - S04  FFMA R0, R1, R2, R3"."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return Listing("sm_90", tuple(_instruction(i, line) for i, line in enumerate(lines)), 32)


def _instruction(index: int, line: str) -> Instruction:
    found = LINE.fullmatch(line)
    return Instruction(
        BYTES * index,
        found["guard"] or "",
        found["opcode"],
        tuple(o.strip() for o in found["operands"].split(",")) if found["operands"] else (),
        Control(
            int(found["stall"]),
            found["yields"] == "Y",
            *(None if found[k] == "-" else int(found[k]) for k in ("write", "read")),
            tuple(int(w) for w in found["waits"] if w != "-"),
        ),
    )
