"""The timeline explorer: what each warp of an SM issues, cycle by cycle, or what it waits for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import ipywidgets as widgets
import numpy as np

from gemmlab import Gemm, device as load_device, kernels, plots
from gemmlab.arguments import whole_number
from gemmlab.compiled.sass.execution.machine import dim
from gemmlab.compiled.sm.result import SCHEDULERS, Reason
from gemmlab.device import RECORDED
from gemmlab.explorers.shared.base import Picture, row
from gemmlab.explorers.shared.controls import NAMES, Number, dropdown
from gemmlab.explorers.shared.preparing import Preparer
from gemmlab.kernels import Kernel
from gemmlab.measure import records
from gemmlab.measure.backends import stopping
from gemmlab.measure.measurement import Measurement
from gemmlab.model.transactions import WARP
from gemmlab.plots import number, si
from gemmlab.plots.shared import style
from gemmlab.plots.slots import EMPTY, READY, USED, in_words, percent

if TYPE_CHECKING:
    from gemmlab.compiled.forecast.ready import Ready
    from gemmlab.compiled.forecast.steps import LineCost, Steps

PROBLEM = Gemm(4096, 4096, 4096)  # on Tensor Cores, in float16
LADDERS = kernels.LADDER, (*kernels.TENSOR_CORE, kernels.wgmma_pipelined)
SHOWN = 64  # cycles
STARTS = range(0, 8161, 32)  # from the middle of a run on: no step takes longer
LEFT_OUT = {  # effect -> its name in the list
    "": "nothing",
    "stalls": "fixed pauses",
    "scoreboards": "waits for results",
    "barriers": "barriers",
    "pipes": "busy pipes",
    "lsu": "the load/store unit",
    "banks": "register ports",
    "fetch": "instruction fetch",
    "l2": "the bandwidth of L2",
    "all": "all of these",
}
SCHEDULER, SM = "of one scheduler", "of the whole SM"
DEAREST = 3  # lines of the source that are named
LINES = "12em"  # as high as the caption is, with room for one line more
WIDTH = 64  # characters of such a line
IN_PAGE = 9.0  # seconds of the processor
REASONS = {member: look.name for look in (*EMPTY, READY) for member in look.members}


class Rung(NamedTuple):
    """A rung whose compiled code was executed on a product, with its predicted time [s].

    runs : k -> what the blocks of an SM do
    """

    kernel: Kernel
    problem: Gemm
    runs: Mapping[int, Ready]
    seconds: float

    @property
    def recorded(self) -> Measurement | None:
        """The measurement of this code; None where there is none, or code with other registers."""
        try:
            found = records.find(self.kernel, self.problem)
        except LookupError:
            return None
        registers = next(iter(self.runs.values())).code.registers
        return found if found.resources.get("registers", registers) == registers else None


@lru_cache(maxsize=16)
def rung(name: str) -> Rung:
    """Return a rung as it is recorded; of code that has changed since, execute it, in seconds."""
    from gemmlab.compiled.forecast.ready import shown_rung
    from gemmlab.compiled.forecast.rung_listings import usual

    kernel = kernels.get(name)
    problem = usual(kernel, PROBLEM)
    return Rung(kernel, problem, *shown_rung(kernel, problem))


@lru_cache(maxsize=16)
def warps(name: str) -> int:
    """Count the warps of a rung that an SM holds at once, without executing any."""
    from gemmlab.compiled.forecast.executed import share
    from gemmlab.compiled.forecast.rung_listings import rung_listing, usual

    kernel, target = kernels.get(name), load_device(RECORDED)
    problem = usual(kernel, PROBLEM)
    tiling = kernel.choose(None, problem)
    grid, block = kernel.launch(problem, tiling, target)
    code, threads = rung_listing(kernel, problem), math.prod(block)
    used = code.shared_bytes + kernel.dynamic_shared_bytes(problem, tiling)
    resident = share(target, dim(grid), threads, used, code.registers).resident
    return resident * -(-threads // WARP)


@lru_cache(maxsize=128)
def simulated(name: str, left_out: str) -> Steps:
    """Return the steps of a rung without the effect of this name in `LEFT_OUT`."""
    from gemmlab.compiled.forecast.steps import steps
    from gemmlab.compiled.sm.streams import Effects

    names = [] if left_out == "all" else [n for n in Effects().names if n != left_out]
    chosen = rung(name)
    return steps(chosen.runs, chosen.kernel.default.block[2], Effects.only(*names))


def in_time(simulate: Callable[[str, str], Steps], name: str, left_out: str) -> Steps:
    """Simulate; in the page of a browser no longer than a reader waits: TimeoutError, as advice.

    A page has no Numba: what is not recorded takes minutes there, and the page answers to nothing.
    """
    if stopping.THREADS:
        return simulate(name, left_out)
    try:
        with stopping.limited(IN_PAGE, "the simulation"):
            return simulate(name, left_out)
    except TimeoutError as late:
        raise TimeoutError(f"{late}; on your own machine, with Numba, it takes a second") from None


class Timeline(Preparer):
    """A window on one SM that runs a rung of a ladder, simulated from its compiled code.

    kernel : a rung's name, one of `LADDERS`, of which the others are offered, too
    left_out : an effect of the SM, a key of `LEFT_OUT`
    start : the first cycle that is shown, 0 to 8160, counted from the middle of a run
    cycle, warp : the chosen slot, 0 to 63 from `start`, and the number of one of the warps

    Raises TypeError or ValueError for values that no control could show.
    """

    def __init__(
        self,
        kernel: str = "register_tiled",
        left_out: str = "",
        start: int = 0,
        cycle: int = 0,
        warp: int = 0,
    ) -> None:
        ladders = ([k.name for k in ladder] for ladder in LADDERS)
        rungs = next((names for names in ladders if kernel in names), None)
        if rungs is None:
            known = ", ".join(k.name for ladder in LADDERS for k in ladder)
            raise ValueError(f"kernel={kernel!r} is no rung; use one of {known}")
        if left_out not in LEFT_OUT:
            raise ValueError(f"left_out={left_out!r}; use one of {', '.join(map(repr, LEFT_OUT))}")
        _within("start", start, STARTS[-1])
        _within("cycle", cycle, SHOWN - 1)
        cells, (self.left,) = plots.figure(4.3, 3.6, left=0.8 / 4.3)
        bars, (self.right,) = plots.figure(3.9, 3.6, left=1.4 / 3.9)
        super().__init__(Picture(cells, bars))
        self.kernel = dropdown("rung", rungs, kernel, "16em")
        self.left_out = dropdown(
            "leave out", [(n, k) for k, n in LEFT_OUT.items()], left_out, "16em"
        )
        self.view = dropdown("warps", (SCHEDULER, SM), SCHEDULER, "17em")
        self.start = Number("from cycle", start, STARTS, least=0)
        wide = {"width": "24em", "max_width": "100%"}
        self.cycle = widgets.IntSlider(
            cycle, 0, SHOWN - 1, description="cycle", style=NAMES, layout=wide
        )
        warps = self._warps(kernel)
        if warp not in warps:
            raise ValueError(f"warp={warp!r} is not shown; use one of {warps}")
        self.warp = dropdown("warp", warps, warp, "12em")
        self.cells = self.bars = self.origin = self.times = None
        self.steps: Steps | None = None
        self._shape: tuple = ()
        self.caption.layout.min_height = LINES  # what is below it stays where it is
        for control in (self.kernel, self.view):
            control.observe(self._offer_warps, "value")
        self.arrange(
            [
                row(self.kernel, self.left_out, self.view, self.progress),
                row(self.start, self.cycle, self.warp),
            ],
            (self.kernel, self.left_out, self.view, self.start, self.cycle, self.warp),
        )

    @property
    def wanted(self) -> tuple[str, str]:
        """The rung, and what is left out of its simulation."""
        return self.kernel.value, self.left_out.value

    def prepare(self, wanted: tuple[str, str]) -> Prepared:
        """Simulate a rung, with all effects and without one."""
        name, left_out = wanted
        chosen, whole = rung(name), simulated(name, "")
        return Prepared(chosen, chosen.recorded, in_time(simulated, name, left_out), whole)

    def choose(self, wanted: tuple[str, str]) -> None:
        with self.together():
            self.kernel.value, self.left_out.value = wanted

    def called(self, wanted: tuple[str, str]) -> str:
        name, left_out = wanted
        return f"{name} without {LEFT_OUT[left_out]}" if left_out else name

    def show(self) -> str:
        name = self.kernel.value
        chosen, recorded, found, whole = self.prepared
        window = self._window(found)
        at = window.warps.index(self.warp.value), self.cycle.value
        shape = (*window.warps, SHOWN)
        if shape != self._shape:
            self._shape, self.cells, self.origin = shape, None, None
        self.cells = plots.warps(
            self.left, window.kinds, window.reasons, window.warps, window.first, at, self.cells
        )
        self.bars = plots.slots(self.right, found.used, found.empty, self.bars)
        heading = style.title(self.left, f"{name}: tall issues, thin waits")
        right = style.title(self.right, f"{name}: a step along k")
        self.origin = plots.provenance(self.left, "simulated from compiled code", self.origin)
        self.times = plots.provenance(self.right, _beside(chosen, recorded), self.times)
        self.times.xy = 1, 1  # it ends where the axes do: names stand at their left
        self.times.set_ha("right")
        self.moving = *self.cells.moving, heading, *self.bars.moving, right, self.times
        self.frames = (shape, window.first), self.right.get_xlim()
        self.steps = found
        return "\n".join(
            [times(chosen, recorded), _step(found, whole, LEFT_OUT[self.left_out.value]),
             _dearest(found.lines), _slot(found, window, *at)]
        )  # fmt: skip

    def _window(self, found: Steps) -> Window:
        """Cut out of a run what is shown; a run that has ended has no warps."""
        timeline, first = found.run.timeline, found.run.cycles // 2 + self.start.value
        rows = self._rows
        issued = timeline.issued[rows, first : first + SHOWN]
        reasons = timeline.reasons[rows, first : first + SHOWN]
        beyond = ((0, 0), (0, SHOWN - issued.shape[1]))
        issued = np.pad(issued, beyond, constant_values=-1)
        reasons = np.pad(reasons, beyond, constant_values=int(Reason.IDLE))
        return Window(
            tuple(range(len(timeline.issued))[rows]),
            self.start.value,
            np.where(issued < 0, -1, found.run.kinds[issued]),
            np.where((issued < 0) & (reasons < 0), int(Reason.IDLE), reasons),
            timeline.issued[rows, first:],
        )

    def _warps(self, name: str) -> tuple[int, ...]:
        return tuple(range(warps(name)))[self._rows]

    @property
    def _rows(self) -> slice:
        return slice(None, None, 1 if self.view.value == SM else SCHEDULERS)

    def _offer_warps(self, _change: object) -> None:
        """Let a warp of the rung be chosen, the one there was if it is among them, at once."""
        offered = self._warps(self.kernel.value)
        had, held = self.warp.value, self._held
        self._held = True  # the picture that is drawn next is of the new choice
        self.warp.options = offered
        self.warp.value = had if had in offered else offered[0]
        self._held = held


class Prepared(NamedTuple):
    """A rung, its measurement, its steps without an effect, and those with all of them."""

    chosen: Rung
    recorded: Measurement | None
    found: Steps
    whole: Steps


class Window(NamedTuple):
    """The explorer shows a window: rows of warps, columns of cycles.

    first : the cycle of the first column, counted from the middle of the run
    kinds, reasons : as `plots.warps` takes them
    ahead : (warps, cycles to the end of the run), the instruction that each issues, -1 for none
    """

    warps: tuple[int, ...]
    first: int
    kinds: np.ndarray
    reasons: np.ndarray
    ahead: np.ndarray


def times(chosen: Rung, recorded: Measurement | None) -> str:
    """Predicted time, and recorded time where this code was measured, in words."""
    predicted = chosen.seconds
    text = f"{chosen.kernel.name} on {chosen.problem}: predicted from its compiled code "
    text += si(predicted, "s")
    if recorded is None:
        return f"{text}; this code is not recorded."
    ratio = number(recorded.seconds / predicted)
    return f"{text}, recorded {si(recorded.seconds, 's')}; recorded ÷ predicted = {ratio}."


def _beside(chosen: Rung, recorded: Measurement | None) -> str:
    predicted = si(chosen.seconds, "s")
    seen = f"recorded {si(recorded.seconds, 's')}" if recorded else "not recorded"
    return f"n = {PROBLEM.n}: predicted {predicted}, {seen}"


def _step(found: Steps, whole: Steps, left_out: str) -> str:
    """Say what a step takes and what its slots do, beside the step of the whole SM if it is not."""
    waits = in_words(found.empty, EMPTY, 3)
    slots = f"Of its issue slots {in_words(found.used, USED, 2)}" + f"; empty: {waits}" * bool(
        waits
    )
    step = f"step along k takes the blocks of an SM {number(found.cycles)} cycles"
    if found is whole:
        return f"A {step}. {slots}."
    told = f"Without {left_out} a {step} instead of {number(whole.cycles)}."
    if found.cycles > whole.cycles:
        told += (
            " Longer, with less to wait for: warps come in another order, and more of them at once "
            "ask for the same unit."
        )
    return f"{told} {slots}."


def _dearest(lines: list[LineCost]) -> str:
    told = [
        f"“{_short(cost.line.text)}” {percent(cost.share)}"
        + (f" ({used})" if (used := in_words(cost.used, USED, 1)) else "")
        for cost in lines[:DEAREST]
    ]
    return f"Lines that take most slots, used and empty: {'; '.join(told)}."


def _slot(found: Steps, window: Window, at: int, cycle: int) -> str:
    """Say what a warp does in a cycle: which instruction of which line, or why not yet."""
    who = f"Warp {window.warps[at]}, cycle {window.first + cycle:,}"
    after = window.ahead[at, cycle:]
    coming = after[after >= 0]
    if not len(coming):
        return f"{who}: no instruction is left."
    instruction = found.listing.instructions[coming[0]]
    line = found.listing.lines[coming[0]] if found.listing.lines else None
    what = f"{instruction}, of the line “{_short(line.text)}”" if line else str(instruction)
    if after[0] >= 0:
        return f"{who} issues {what}."
    reason = REASONS[Reason(window.reasons[at, cycle])]
    return f"{who} waits ({reason}) to issue {what}."


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def _within(name: str, value: int, most: int) -> None:
    if whole_number(name, value, 0) > most:
        raise ValueError(f"{name}={value!r} is too large; use 0 to {most}")
