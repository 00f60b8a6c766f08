"""The kernel lab: run a kernel, see it beside the others and over its prediction."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import ipywidgets as widgets

from gemmlab import Gemm, Tiling, device as load_device, kernels, plots
from gemmlab.device import RECORDED, Device
from gemmlab.explorers.shared import offers, running
from gemmlab.explorers.shared.base import Picture, row
from gemmlab.explorers.shared.controls import Size, dropdown, field, offer, sizes_of
from gemmlab.kernels import Kernel
from gemmlab.measure import backends
from gemmlab.measure.backends import simulator, trial
from gemmlab.measure.measurement import Measurement
from gemmlab.plots import Row
from gemmlab.plots.shared import style

SMALLEST, LARGEST = 4, 13  # 2^4 = 16, 2^13 = 8192
SIZES = tuple(2**i for i in range(SMALLEST + 3, LARGEST + 1))  # where curves are predicted
FIRST = {"gpu": 4096, "recorded": 4096, "simulator": 128, "cpu": 256}  # sizes, by backend


class Place(NamedTuple):
    """A run is told from others by its place."""

    kernel: str
    tiling: Tiling | None
    problem: Gemm
    backend: str


class KernelLab(running.Runner):
    """Choose a kernel, a tile and a size; run it; see it beside the others.

    kernel : a name of the ladder or its reference, or of a CPU kernel, which brings the others; or
        a kernel of one's own, whatever `kernels.own` takes, which joins the ladder. It is judged
        before it is shown: see `gemmlab.measure.backends.trial`. After that its time is predicted
        from its compiled code, in the background
    n : m = n = k, from 1 to 8192, one that is recorded with the backend "recorded"; None for 4096
        where kernels are timed and 128 where they are simulated
    tile : a `Tiling`, or the side of the block tile; None for the kernel's own
    backend : as in `gemmlab.run`; "recorded" shows all that is recorded of a problem, at once
    device : whose measurements are replayed, and for which simulated kernels are predicted

    `history` holds every `Measurement` made. Raises TypeError, ValueError, LookupError or
    RuntimeError for values that no control could show.
    """

    def __init__(
        self,
        kernel: str | Kernel | Callable = "tiled",
        n: int | None = None,
        tile: int | Tiling | None = None,
        backend: str = "auto",
        device: str = RECORDED,
    ) -> None:
        bars, (self.left,) = plots.figure(4.5, 3.5)
        detail, (self.right,) = plots.figure(3.8, 3.5)
        for figure, left in ((bars, 0.5), (detail, 0.2)):
            figure.subplots_adjust(left=left, right=0.95, top=0.87)
        super().__init__(Picture(bars, detail), load_device(device))
        chosen = kernels.get(kernel) if isinstance(kernel, str) else kernels.own(kernel, tile)
        on_cpu = chosen in kernels.CPU
        family = kernels.CPU if on_cpu else (*kernels.LADDER, kernels.REFERENCE)
        self.family = {k.name: k for k in family} | {chosen.name: chosen}
        self.own = None if isinstance(kernel, str) else chosen
        self.remarks: dict[Place, str] = {}  # on kernels of one's own
        self.forecasts = running.Forecasts(self.device, self)
        self._recorded = offers.recorded(self.device)
        self._quantity = ""
        runs_on = backends.choose(chosen, backend)
        n = FIRST[runs_on] if n is None else n
        sizes = sizes_of(Gemm(n, n, n), LARGEST)  # refuses what no control could show
        problem, tiling = Gemm(n, n, n), offers.wanted(chosen, tile, self.device)
        if runs_on == "recorded":
            backends.run(chosen, problem, "recorded", tiling=tiling, device=self.device)

        self.kernel = dropdown("kernel", list(self.family), chosen.name)
        self.backend = dropdown("backend", [(backend, backend)], backend)
        self.tile = dropdown("tile", [("its own", tiling)], tiling, "38em")
        self.size = Size("m = n = k", n, LARGEST, SMALLEST)
        self.stored = dropdown("problem", [(str(problem), problem)], problem)
        self.ragged = widgets.Checkbox(
            False,
            description="choose m, n and k one by one",
            indent=False,
            layout={"width": "auto", "max_width": "100%", "margin": "2px 0 2px 2em"},
        )
        self.m, self.n, self.k = (
            field(name, value, 2**LARGEST, "2em") for name, value in sizes.items()
        )
        self.sides = row(self.m, self.n, self.k)
        self.sides.layout.display = "none"
        self._fill(its_own=False)
        self.enable()
        for control in (self.kernel, self.backend, self.stored, self.ragged):
            control.observe(self._offer, "value")
        asked = row(self.size, self.stored, self.sides, self.ragged)
        watched = self.tile, self.size, self.m, self.n, self.k  # others draw once they have offered
        self.arrange([row(self.kernel, self.backend), self.tile, asked, self.buttons], watched)

    # ------------------------------------------------------------------ what the controls say

    @property
    def problem(self) -> Gemm:
        if self._replays:
            return self.stored.value
        if self.ragged.value:
            return Gemm(self.m.value, self.n.value, self.k.value)
        side = self.size.value
        return Gemm(side, side, side)

    @property
    def choice(self) -> running.Choice:
        kernel = self.family[self.kernel.value]
        return kernel, self.tile.value, backends.choose(kernel, self.backend.value)

    @property
    def _replays(self) -> bool:
        return self.backend.value == "recorded"

    def execute(
        self, kernel: Kernel, problem: Gemm, tiling: Tiling | None, backend: str
    ) -> Measurement:  # fmt: skip
        """Run a rung as `gemmlab.run` does, and a kernel of one's own once it is judged."""
        if kernel is not self.own:
            return super().execute(kernel, problem, tiling, backend)
        try:
            m, remark = trial.judge(kernel, problem, backend, tiling=tiling, device=self.device)
        except trial.RejectedError as error:
            raise trial.RejectedError(f"{kernel.name}, {error}") from error
        self.remarks[Place(kernel.name, tiling, problem, backend)] = remark
        return m

    def _done(self, result: Measurement | None, error: BaseException | None) -> None:
        super()._done(result, error)
        if result and self.own and result.kernel == self.own.name:
            self.forecasts.begin(self.own, result)

    # ----------------------------------------------------------------------------- the picture

    def show(self) -> str:
        problem, (kernel, tiling, backend) = self.problem, self.choice
        target = self.target(backend)
        counted = backend == "simulator"
        if counted:
            simulator.check_size(problem, tiling)
        self._prepare("global" if counted else "speed")
        place = Place(kernel.name, tiling, problem, backend)
        rows = self._rows(place, target)
        chosen = next(i for i, r in enumerate(rows) if (r.kernel, r.tiling) == place[:2])
        latest = rows[chosen].observed
        p = offers.predicted(kernel, problem, tiling, target)
        self.rows = plots.beside(self.left, rows, chosen, self._quantity, self.rows)
        heading = style.title(self.left, f"{problem}")
        seen = latest or next((r.observed for r in rows if r.observed), None)
        sources = [style.source(item) for item in (p, seen) if item]
        self.origin = plots.provenance(self.left, " · ".join(sources), self.origin)
        self.origin.xy = 1, 1  # it ends where the axes do: names stand at their left
        self.origin.set_ha("right")
        moving = (*self.rows.moving, heading)
        if counted:
            model = p if kernel.work else None
            self.compared = plots.counters(self.right, model, latest, self.compared)
            moving, under = moving + self.compared.moving, self.compared.names
        else:
            under = self._draw_sizes(kernel, tiling, backend, target)
            known = plots.value(latest or p, "speed")
            self.here.set_data([plots.size(problem)], [known])
            moving += (self.here,)
        name = style.title(self.right, f"{kernel.name}: {'counters' if counted else 'all sizes'}")
        name.set_fontsize(style.LABEL)
        self.moving = moving
        self.frames = (
            (chosen, tuple(self.rows.rows), self.rows.marks, tuple(sources), self.left.get_xlim()),
            (*place[:2], backend, target, under, self.right.get_xlim() + self.right.get_ylim()),
        )
        if latest is None:
            return running.expected(p, kernel, target, backend)
        more = self.remarks.get(place), self.forecasts.text(kernel, latest, target)
        return "\n".join(filter(None, [running.observed(latest, p, target), *more]))

    def _rows(self, place: Place, target: Device) -> list[Row]:
        """Give the kernels beside each other: what was observed of each, and what is predicted."""
        had = {
            (m.kernel, m.tiling): m
            for m in self._all(target, place.backend)
            if m.problem == place.problem
        }
        mine = list(had)
        if place.backend != "recorded":
            mine += [
                (k.name, k.default)
                for k in self.family.values()
                if not (k.library or (k.default and k.default not in offers.tilings(k, target)))
            ]
        order = list(self.family)
        keys = sorted(
            offers.distinct([*mine, place[:2]]),
            key=lambda key: (order.index(key[0]), offers.order(key[1])),
        )
        rows = []
        for name, tiling in keys:
            kernel, p = self.family[name], None
            if kernel.work and (place.backend == "simulator" or (name, tiling) == place[:2]):
                p = offers.predicted(kernel, place.problem, tiling, target)
            rows.append(Row(name, tiling, p, had.get((name, tiling))))
        return rows

    def _all(self, target: Device, backend: str) -> list[Measurement]:
        """List what is recorded on the device and, after it, what was run here on this backend."""
        same = backend == "recorded" or (backend == "gpu" and target.name == self.device.name)
        stored = [m for m in self._recorded if m.kernel in self.family] if same else []
        return stored + [m for m in self.history if m.backend == backend]

    def _draw_sizes(
        self, kernel: Kernel, tiling: Tiling | None, backend: str, target: Device
    ) -> str:
        """Draw the speed of the chosen kernel over all sizes; return what stands there."""
        mine = [
            m
            for m in self._all(target, backend)
            if (m.kernel, m.tiling) == (kernel.name, tiling) and offers.cube(m.problem)
        ]
        drawn = kernel, tiling, target, mine
        if drawn != self._drawn:
            self._drawn = drawn
            curve = [offers.predicted(kernel, Gemm(n, n, n), tiling, target) for n in SIZES]
            self.over = plots.sizes(self.right, mine, curve, "speed", self.over)
            names = ["predicted" if kernel.work else "ideal, predicted"]
            names += [origin for _, origin in self.over.dots]
            handles = [next(iter(self.over.lines.values())), *self.over.dots.values()]
            if self.over.odd:
                handles.append(next(iter(self.over.odd.values())))
                names.append("n is no power of two")
            style.legend(self.right, handles, names, loc="lower right")
        return f"{len(mine)} runs"

    def _prepare(self, quantity: str) -> None:
        if quantity != self._quantity:
            self._quantity = quantity
            self.left.clear()
            self.right.clear()
            # The names of counters take more room than numbers do.
            self.right.figure.subplots_adjust(left=0.2 if quantity == "speed" else 0.43)
            self.rows = self.over = self.compared = self.origin = self._drawn = None
            if quantity == "speed":  # a mark for the chosen size
                (self.here,) = self.right.plot([], [], "o", markersize=15, zorder=6)
                self.here.set(markerfacecolor="none", color=style.GREY, markeredgewidth=1.2)

    # -------------------------------------------------------------------- what can be chosen

    @property
    def runnable(self) -> bool:
        """Whether there is something to run: what is recorded is all shown."""
        return not self._replays

    def _offer(self, change: Any = None) -> None:
        """Let only what is possible be chosen; keep what was, where it still is."""
        if not self._held:
            with self.together():
                self._fill(its_own=change.owner is self.kernel)
                self.enable()

    def _fill(self, its_own: bool) -> None:
        """The options of all lists; the tile becomes the kernel's own if `its_own`."""
        kernel = self.family[self.kernel.value]
        stored = [m for m in self._recorded if m.kernel == kernel.name]
        possible = [b for b in backends.available(kernel) if stored or b != "recorded"]
        offer(self.backend, {name: name for name in ("auto", *possible)}, self.backend.value)
        if stored:
            nearest = min(stored, key=lambda m: abs(math.log(m.flops / self.stored.value.flops)))
            known = {str(m.problem): m.problem for m in sorted(stored, key=lambda m: m.flops)}
            offer(self.stored, known, self.stored.value, nearest.problem)
        had = kernel.default if its_own else self.tile.value
        if self._replays:
            tiles = [m.tiling for m in stored if m.problem == self.stored.value]
        else:
            target = self.target(backends.choose(kernel, self.backend.value))
            tiles = [*offers.tilings(kernel, target), had]
        named = {str(t) if t else f"{kernel.name} chooses": t for t in offers.distinct(tiles)}
        offer(self.tile, named, had, kernel.default)
        self.tile.disabled = len(named) == 1
        self.ragged.layout.visibility = "hidden" if self._replays else "visible"
        one_by_one = self.ragged.value and not self._replays
        self.stored.layout.display = "flex" if self._replays else "none"
        self.sides.layout.display = "flex" if one_by_one else "none"
        self.size.layout.display = "none" if self._replays or one_by_one else "flex"
