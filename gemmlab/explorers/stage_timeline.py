"""The explorer of rings that the TMA fills: stage by stage, as an SM is simulated."""

from functools import lru_cache

import ipywidgets as widgets

from gemmlab import kernels, plots
from gemmlab.compiled.forecast.rings import Doing, Ring, Turn, ring
from gemmlab.explorers.shared.base import Picture, row
from gemmlab.explorers.shared.controls import NAMES, dropdown
from gemmlab.explorers.shared.preparing import Preparer
from gemmlab.explorers.timeline import LINES, Rung, rung, simulated, times
from gemmlab.measure.measurement import Measurement
from gemmlab.plots import number
from gemmlab.plots.shared import style
from gemmlab.plots.slots import percent
from gemmlab.plots.timeline import TURNS

KERNELS = (*kernels.TENSOR_CORE_TMA, kernels.warp_specialised)
STEPS = 16  # that can be chosen: two tiles of C
SHOWN = 16_000  # cycles


@lru_cache(maxsize=8)
def found(name: str) -> Ring:
    """Return the ring of a rung's block, from its compiled code."""
    runs = rung(name).runs
    one, run = runs[min(runs)], simulated(name, "").run
    return ring(one.code, one.blocks[0], run.timeline, one.facts)


class StageTimeline(Preparer):
    """The explorer shows, cycle by cycle, each stage of a ring and those who fill and empty it.

    kernel : one of `KERNELS`, by name
    step : the step of a block, 0 to 15, from which on cycles are shown: its stage is asked for

    The block is simulated from its compiled code, with a k that is shorter than the problem's.
    Raises ValueError for values that no control could show.
    """

    def __init__(self, kernel: str = "warp_specialised", step: int = 0) -> None:
        known = [k.name for k in KERNELS]
        if kernel not in known:
            raise ValueError(
                f"kernel={kernel!r} has no ring that the TMA fills; use {' or '.join(known)}"
            )
        if step not in range(STEPS):
            raise ValueError(f"step={step!r}; use 0 to {STEPS - 1}")
        figure, (self.ax,) = plots.figure(7.8, 3.6, left=1.35 / 7.8, bottom=0.85 / 3.6)
        super().__init__(Picture(figure))
        self.kernel = dropdown("rung", known, kernel, "18em")
        self.step = widgets.IntSlider(
            step, 0, STEPS - 1, description="from step", style=NAMES,
            layout={"width": "24em", "max_width": "100%"},
        )  # fmt: skip
        self.caption.layout.min_height = LINES
        self.arrange([row(self.kernel, self.step, self.progress)], (self.kernel, self.step))

    @property
    def wanted(self) -> str:
        """The rung."""
        return self.kernel.value

    def prepare(self, wanted: str) -> tuple[Ring, Rung, Measurement | None]:
        """Simulate a rung's block."""
        chosen = rung(wanted)
        return found(wanted), chosen, chosen.recorded

    def choose(self, wanted: str) -> None:
        self.kernel.value = wanted

    def called(self, wanted: str) -> str:
        return wanted

    def show(self) -> str:
        name, step = self.kernel.value, self.step.value
        one, chosen, recorded = self.prepared
        turn = one.turns[step]
        self.ax.clear()
        rows = plots.turns(one, turn.asked, turn.asked + SHOWN)
        plots.timeline(self.ax, rows, SHOWN, f"cycles, from step {step} on", TURNS)
        style.title(self.ax, f"{name}: one block on an SM")
        plots.provenance(self.ax, "simulated from compiled code")
        depth = min(chosen.runs)
        steps = depth // chosen.kernel.default.block[2]
        block = f"The simulated block takes {steps} steps for each tile of C, as k is {depth} here."
        return "\n".join(
            [times(chosen, recorded), f"{block} {_told(step, turn)}", _shares(one, turn.asked)]
        )


def _told(step: int, turn: Turn) -> str:
    asked, copied, held, read = (
        number(n)
        for n in (turn.asked, turn.full - turn.asked, turn.read - turn.full, turn.free - turn.read)
    )
    return (
        f"Step {step} has stage {turn.stage}: it is asked for in cycle {asked} of the block, 0 of "
        f"the picture. Its bytes are there after {copied} cycles, a consumer begins to read after "
        f"{held} more, and after {read} more all have read."
    )


def _shares(one: Ring, first: int) -> str:
    """Say for which part of the cycles shown the Tensor Cores multiply and others wait."""

    def share(role: str, what: str) -> str:
        spans = [_inside(span, first) for span in one.roles[role] if span.what == what]
        return percent(sum(spans) / SHOWN)

    *waiting, cores = one.roles
    waits = ", ".join(f"{role} in {share(role, 'wait')}" for role in waiting)
    return (
        f"Of these {SHOWN:,} cycles the {cores} multiply in {share(cores, 'multiply')}. "
        f"Waiting for a stage: {waits}."
    )


def _inside(span: Doing, first: int) -> int:
    return max(0, min(span.end, first + SHOWN) - max(span.start, first))
