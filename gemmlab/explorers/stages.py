"""The explorer of stages: a ring's timeline, and its time by formula, by code and as recorded."""

from functools import lru_cache, partial
from typing import NamedTuple

import ipywidgets as widgets

from gemmlab import Gemm, Tiling, device as load_device, kernels, plots
from gemmlab.device import RECORDED, Device
from gemmlab.explorers.shared import controls, running
from gemmlab.explorers.shared.base import Picture, row
from gemmlab.here.compilers import lacking
from gemmlab.measure import records
from gemmlab.measure.backends.stopping import limited
from gemmlab.measure.backends.trial import told
from gemmlab.measure.measurement import Measurement
from gemmlab.model.pipeline import Pipeline, blocks_on, launch_seconds, pipeline_of, stages_needed
from gemmlab.plots import si
from gemmlab.plots.shared import style

KERNEL = kernels.mma_pipelined
PROBLEM = Gemm(4096, 4096, 4096, dtype="float16", out_dtype="float32")
STAGES = range(1, 6)
COMPILING = "it is being compiled …"
SHOWN = 6  # steps of a block in the timeline
SECONDS = 120.0  # of the processor, for one prediction; most take a few, the first some more
COUNTED = 8  # steps of the one block that is simulated
TILES = {
    tiling.block: tiling
    for tiling in (
        Tiling(block=(256, 128, 32), warp=(64, 64), thread=(8, 16)),
        KERNEL.default,
        Tiling(block=(64, 64, 32), warp=(32, 32), thread=(4, 8)),
    )
}


def ringed(block: tuple[int, int, int], stages: int) -> Tiling:
    """Return the tiling with this block's tile and so many stages."""
    one = TILES[block]
    return Tiling(one.block, one.thread, stages, one.warp)


class Code(NamedTuple):
    """The compiled code of a tiling tells this.

    seconds : of the launch; blocks : that share an SM; multiply : cycles of a block's step if no
    result had to be waited for
    """

    seconds: float
    blocks: int
    multiply: float


@lru_cache(maxsize=32)
def code(tiling: Tiling, device: Device, problem: Gemm = PROBLEM) -> Code:
    """Execute and simulate the compiled code of *mma_pipelined*; some seconds."""
    from gemmlab.compiled.forecast.rungs import execute_rung, forecast_rung
    from gemmlab.compiled.forecast.steps import steps
    from gemmlab.compiled.sm.streams import Effects

    executed = execute_rung(problem, device, KERNEL, tiling)
    blocks = next(iter(executed.values())).share.resident
    others = Effects.only(*(name for name in Effects().names if name != "scoreboards"))
    busy = steps(executed, tiling.block[2], others).cycles
    return Code(forecast_rung(problem, executed).seconds, blocks, busy / blocks)


def _limited(tiling: Tiling, device: Device) -> Code:
    with limited(SECONDS, "the prediction"):
        return code(tiling, device)


def _recorded(device: Device) -> dict[Tiling, Measurement]:
    """Find what is recorded on a device, by the tiling; nothing where nothing is."""
    try:
        found = records.load(device.name, KERNEL)
    except LookupError:
        return {}
    return {m.tiling: m for m in found if m.problem == PROBLEM}


class Stages(running.Runner):
    """Choose a block's tile and its stages; run the kernel, and its compiled code.

    tile : rows, columns and depth of a block's tile, a key of `TILES`; stages : 1 to 5
    device : for which times are predicted, and whose records are shown

    *Run* simulates one block of the kernel, whose result is checked and whose barriers are counted,
    and predicts the launch from its compiled code.
    Raises ValueError for values that no control could show.
    """

    def __init__(
        self,
        tile: tuple[int, int, int] = (256, 128, 32),
        stages: int = 1,
        device: str | Device = RECORDED,
    ) -> None:
        if tile not in TILES:
            raise ValueError(
                f"tile={tile!r} is not offered; use one of {', '.join(map(str, TILES))}"
            )
        if stages not in STAGES:
            raise ValueError(f"stages={stages!r}; use 1 to {STAGES[-1]}")
        left, (self.left,) = plots.figure(4.5, 3.5, left=0.95 / 4.5, bottom=0.95 / 3.5)
        right, (self.right,) = plots.figure(3.7, 3.5, bottom=0.95 / 3.5)
        super().__init__(Picture(left, right), load_device(device))
        self.tile = controls.dropdown("tile", [("×".join(map(str, t)), t) for t in TILES], tile)
        self.stages = widgets.IntSlider(
            stages, STAGES[0], STAGES[-1], description="stages", style=controls.NAMES,
            layout={"width": "24em", "max_width": "100%"},
        )  # fmt: skip
        self.codes: dict[Tiling, Code | str] = {}  # a text says why there is none
        self.recorded = _recorded(self.device)
        self._times: tuple = ()  # what the right picture is of
        self.coding: running.Job | None = None
        self.arrange([row(self.tile, self.stages), self.buttons], (self.tile, self.stages))

    @property
    def tiling(self) -> Tiling:
        return ringed(self.tile.value, self.stages.value)

    @property
    def problem(self) -> Gemm:
        """The product of one block, some steps deep."""
        bm, bn, bk = self.tile.value
        return Gemm(bm, bn, COUNTED * bk, dtype=PROBLEM.dtype, out_dtype=PROBLEM.out_dtype)

    @property
    def choice(self) -> running.Choice:
        return KERNEL, self.tiling, "simulator"

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the run, and for its compiled code; False if one takes longer than `seconds`."""
        return super().wait(seconds) and (self.coding is None or self.coding.wait(seconds))

    def _done(self, result: Measurement | None, error: BaseException | None) -> None:
        """Show the run, and go on with its compiled code where that is not known."""
        tiling = result and result.tiling
        if tiling is not None and tiling not in self.codes:
            self.codes[tiling] = lacking() or COMPILING
            if self.codes[tiling] is COMPILING:
                work, done = partial(_limited, tiling, self.device), partial(self._coded, tiling)
                self.coding = running.Job(work, lambda _: None, done)
        super()._done(result, error)
        if tiling is not None and self.codes[tiling] is COMPILING:
            self.coding.start()

    def _coded(self, tiling: Tiling, made: Code | None, error: BaseException | None) -> None:
        self.codes[tiling] = made or told(error)
        self.refresh()

    def show(self) -> str:
        chosen = self.tiling
        known = self._known(chosen)
        one = self._pipeline(chosen, known.multiply if known else None)
        self._draw_ring(one, "as compiled" if known else "at best")
        drawn = chosen.block, *((t, c) for t, c in self.codes.items() if t.block == chosen.block)
        if drawn != self._times:
            self._times = drawn
            self._draw_times(chosen)
        self.here.set_xdata([chosen.stages] * 2)
        self.moving, self.frames = (self.here,), (None, drawn)
        run = next((m for m in self.history[::-1] if m.tiling == chosen), None)
        return "\n".join([_ring(one), self._launch(chosen), self._ran(chosen, run)])

    def _pipeline(self, chosen: Tiling, multiply: float | None = None) -> Pipeline:
        """Return the loop of one block, with products at best, or of `multiply` cycles."""
        return pipeline_of(KERNEL, self.device, chosen, PROBLEM, multiply)

    def _known(self, chosen: Tiling) -> Code | None:
        """Find what the code says of products: of this tiling, or of another with its tile."""
        found = {t.stages: c for t, c in self.codes.items()
                 if t.block == chosen.block and isinstance(c, Code)}  # fmt: skip
        return found.get(chosen.stages) or next(iter(found.values()), None)

    def _draw_ring(self, one: Pipeline, how: str) -> None:
        self.left.clear()
        shown = Pipeline(SHOWN, one.stages, one.copy, one.multiply)
        longest = Pipeline(SHOWN, 1, one.copy, one.multiply)
        plots.timeline(self.left, plots.ring(shown, "products"), until=longest.cycles)
        style.title(self.left, f"{SHOWN} steps of one block, products {how}")
        plots.provenance(self.left, "predicted by the formula")

    def _draw_times(self, chosen: Tiling) -> None:
        self.right.clear()
        style.prepare(self.right)
        known, told = self._known(chosen), []
        tilings = [ringed(chosen.block, stages) for stages in STAGES]
        lines = [("formula, at best", "-", style.BLUE, None)]
        if known:
            lines.append(("formula, as compiled", "--", style.VERMILION, known.multiply))
        for name, dash, hue, multiply in lines:
            times = [launch_seconds(KERNEL, self.device, t, PROBLEM, multiply) for t in tilings]
            self.right.plot(STAGES, times, linestyle=dash, color=hue, label=name)
            told.append(f"{name}: {_listed(times)}")
        made = {t.stages: self.codes[t].seconds for t in tilings
                if isinstance(self.codes.get(t), Code)}  # fmt: skip
        runs = {t.stages: self.recorded[t] for t in tilings if t in self.recorded}
        seen = {stages: m.seconds for stages, m in runs.items()}
        for name, mark, hue, points in (
            ("compiled code", "predicted", style.VERMILION, made),
            ("recorded", "recorded", style.INK, seen),
        ):
            if points:
                look = style.MARKS[mark]
                face = hue if look.filled else "white"
                self.right.plot(list(points), list(points.values()), look.marker, color=hue,
                                markerfacecolor=face, markersize=7, label=name)  # fmt: skip
                told.append(f"{name}: {_listed(points.values())}")
        self.here = self.right.axvline(chosen.stages, color=style.GREY, linewidth=0.8, zorder=0)
        self.right.set(xlim=(0.7, 5.3), xticks=STAGES)
        self.right.set_ylim(0, 1.25 * self.right.get_ylim()[1])
        style.plain_axis(self.right.xaxis, "stages")
        style.si_axis(self.right.yaxis, "time of the launch", "s")
        style.legend(self.right, *self.right.get_legend_handles_labels(), loc="upper right")
        style.title(self.right, f"{KERNEL.name}, n = {PROBLEM.n}")
        sources = dict.fromkeys(["predicted", *(m.source for m in runs.values())])
        plots.provenance(self.right, " · ".join(sources))
        plots.describe(self.right, "; ".join(told) + ".")

    def _launch(self, chosen: Tiling) -> str:
        blocks = blocks_on(KERNEL, self.device, chosen, PROBLEM)
        shared = KERNEL.shared_bytes(PROBLEM, chosen)
        at_best = launch_seconds(KERNEL, self.device, chosen, PROBLEM)
        share = "a block has an SM to itself" if blocks == 1 else f"blocks share an SM: {blocks}"
        text = f"The ring takes {shared / 1024:g} KiB of shared memory; {share}. "
        text += f"The launch at best: {si(at_best, 's')}"
        if seen := self.recorded.get(chosen):
            text += f"; recorded {si(seen.seconds, 's')}"
        return text + "."

    def _ran(self, chosen: Tiling, run: Measurement | None) -> str:
        if run is None:
            return "Press Run to simulate a block, and the launch from its compiled code."
        made, verdict = self.codes[chosen], "right" if run.passed else "WRONG"
        text = (
            f"One block, {COUNTED} steps, simulated: the result is {verdict}, "
            f"{run.counters['barriers']} barriers. From its compiled code: "
        )
        if isinstance(made, str):
            return text + (made if made is COMPILING else f"nothing, {made}.")
        return text + (
            f"{si(made.seconds, 's')}; a product takes {plots.number(made.multiply)} cycles of an "
            f"SM, so that {stages_needed(self._pipeline(chosen).copy, made.multiply)} "
            "stages would do for a block alone."
        )


def _ring(one: Pipeline) -> str:
    waits = f"{plots.number(one.gap)} of them without a product" if one.gap else "and nobody waits"
    return (
        f"A copy takes {plots.number(one.copy)} cycles, a product {plots.number(one.multiply)}: "
        f"with {one.stages} stage{'s' * (one.stages > 1)} a step takes "
        f"{plots.number(one.period)}, {waits}. {stages_needed(one.copy, one.multiply)} would hide "
        "all copies."
    )


def _listed(times: object) -> str:
    return ", ".join(si(t, "s") for t in times)
