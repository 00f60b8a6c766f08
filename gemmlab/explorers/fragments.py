"""The explorer of fragments: a matrix and the registers of a warp, lit up together.

It is a page of its own, drawn by the script beside this file from the bits of each layout: it
answers without a kernel and without a network, in JupyterLab and in the book alike.
"""

import html
import json
from functools import cache
from importlib import resources

from gemmlab.arguments import whole_number
from gemmlab.instructions import fragments
from gemmlab.instructions.fragments import LANES, LAYOUTS, Layout


class Fragments:
    """Pick an instruction, an operand, a lane or an element; both maps show who holds what.

    instruction, operand, format, arch, major : as `gemmlab.instructions.layout` takes them
    lane, register : what is chosen first; register None chooses the whole lane

    Arrow keys move the choice, Tab goes from one map to the other. Raises ValueError or TypeError
    for a layout, a lane or a register that does not exist.

    >>> Fragments("m16n8k16", "A", lane=5, register=2).element
    (9, 2)
    """

    def __init__(
        self,
        instruction: str = "m16n8k16",
        operand: str = "A",
        format: str = "",
        *,
        arch: str = "sm_80",
        major: str = "",
        lane: int = 0,
        register: int | None = 0,
    ) -> None:
        self.layout = fragments.layout(instruction, operand, format, arch=arch, major=major)
        self.lane, self.register = lane, register
        _below("lane", lane, LANES)
        if register is not None:
            _below("register", register, self.layout.registers)

    @property
    def element(self) -> tuple[int, int] | None:
        """Row and column of the chosen element; None where a whole lane is chosen."""
        return None if self.register is None else self.layout.element(self.lane, self.register)

    def _repr_html_(self) -> str:
        start = {"layout": LAYOUTS.index(self.layout), "lane": self.lane, "register": self.register}
        data = html.escape(json.dumps([described(one) for one in LAYOUTS], separators=(",", ":")))
        return (
            f"<style>{_file('fragments.css')}</style>"
            '<div class="gemmlab-fragments" role="group" aria-label="Explorer of fragments" '
            f'data-layouts="{data}" '
            f'data-start="{html.escape(json.dumps(start))}">'
            '<p class="static">The maps are drawn by a script: run this cell, or open the page in '
            "a browser.</p></div>"
            f"<script>{_file('fragments.js')}</script>"
        )


def described(layout: Layout) -> dict[str, object]:
    """Return a layout as the script takes it: its sizes, and what each bit adds.

    steps : for matrix, row and column, as `Layout.steps`
    halves : whether two elements share a 32-bit register
    """
    rows, cols = layout.shape
    row, column, matrix = layout.steps
    return {
        "instruction": layout.instruction,
        "operand": layout.operand if not layout.instruction.startswith("ldmatrix") else "",
        "title": title(layout),
        "rows": rows,
        "cols": cols,
        "matrices": layout.matrices,
        "registers": layout.registers,
        "copies": layout.copies,
        "halves": "f32" not in layout.formats and "tf32" not in layout.formats,
        "wide": "-" in layout.lane,  # several lanes hold the same
        "steps": (matrix, row, column),
    }


def title(layout: Layout) -> str:
    """Return an operand as the list of operands names it.

    >>> title(fragments.layout("wmma.m16n16k16", "A", arch="sm_70", major="col"))
    'A: f16, stored by columns, sm_70'
    """
    if layout.instruction.startswith("ldmatrix"):  # serves A, B and C alike
        return ", ".join(layout.formats)
    stored = {"row": ["stored by rows"], "col": ["stored by columns"], "": []}[layout.major]
    return f"{layout.operand}: " + ", ".join(
        [" or ".join(layout.formats), *stored, *([layout.where] if layout.where else [])]
    )


def _below(name: str, value: int, count: int) -> None:
    whole_number(name, value, 0)
    if value >= count:
        raise ValueError(f"{name}={value!r} is too large; use 0 to {count - 1}")


@cache
def _file(name: str) -> str:
    return (resources.files("gemmlab.explorers") / name).read_text("utf-8")
