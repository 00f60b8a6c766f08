"""The kernel lab: run a kernel and lay its measurement over the prediction."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import ipywidgets as widgets

from gemmlab import backends, kernels, plots
from gemmlab.arguments import whole_number
from gemmlab.backends import simulator
from gemmlab.device import RECORDED, Device
from gemmlab.device import device as load_device
from gemmlab.explorers.base import Picture
from gemmlab.explorers.controls import Size, dropdown, field, sizes_of
from gemmlab.explorers.readout import expected, observed
from gemmlab.explorers.running import Choice, Runner
from gemmlab.kernels import Kernel
from gemmlab.model import Prediction, predict
from gemmlab.plots import si, style
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

SMALLEST, LARGEST = 4, 13  # 2^4 = 16, 2^13 = 8192
SIZES = tuple(2**i for i in range(SMALLEST, LARGEST + 1))  # where curves are predicted


class KernelLab(Runner):
    """Choose a kernel, a size and a tile; run it; compare with the prediction.

    kernel : a name of the ladder or its reference, or of a CPU kernel, which brings the others
    n : m = n = k, from 1 to 8192; tile : the side of the block tile, None for the kernel's own
    backend : as in `gemmlab.run`
    device : whose measurements are replayed, and for which simulated kernels are predicted

    `history` holds every `Measurement` made. Raises TypeError, ValueError or RuntimeError for
    values that no control could show.
    """

    def __init__(
        self,
        kernel: str = "tiled",
        n: int = 128,
        tile: int | None = None,
        backend: str = "auto",
        device: str = RECORDED,
    ) -> None:
        figure, (self.left, self.right) = plots.figure(9.8, 4.2, 2, wspace=0.6)
        super().__init__(Picture(figure), load_device(device))
        chosen = kernels.get(kernel)
        family = kernels.CPU if chosen in kernels.CPU else (*kernels.LADDER, kernels.REFERENCE)
        backends.choose(chosen, backend)
        sizes = sizes_of(Gemm(n, n, n), LARGEST)
        side = chosen.default.block[0] if chosen.default else 1
        if tile is not None:
            chosen.choose(_tiling(chosen, whole_number("tile", tile)))
        self._mode = ""

        self.kernel = dropdown("kernel", [k.name for k in family], kernel)
        self.backend = dropdown("backend", ("auto", *backends.available(chosen)), backend)
        self.size = Size("m = n = k", n, LARGEST, SMALLEST)
        self.tile = field("tile", tile or side, 1024)
        self.tile.disabled = chosen.default is None
        self.ragged = widgets.Checkbox(
            False,
            description="choose m, n and k one by one",
            indent=False,
            layout={"width": "auto", "margin": "0 0 0 6.5em"},
        )
        self.m, self.n, self.k = (
            field(name, value, 2**LARGEST, "2em") for name, value in sizes.items()
        )
        self.sides = widgets.HBox([self.m, self.n, self.k], layout={"display": "none"})

        self.kernel.observe(self._offer_backends, "value")
        self.ragged.observe(self._offer_sides, "value")
        watched = self.kernel, self.backend, self.size, self.tile, self.m, self.n, self.k
        self.arrange(
            [
                widgets.HBox([self.kernel, self.backend]),
                widgets.HBox([self.size, self.tile]),
                widgets.HBox([self.ragged, self.sides]),
                self.buttons,
            ],
            watched,
        )

    # ------------------------------------------------------------------ what the controls say

    @property
    def problem(self) -> Gemm:
        """The problem that the controls ask for."""
        if self.ragged.value:
            return Gemm(self.m.value, self.n.value, self.k.value)
        side = self.size.value
        return Gemm(side, side, side)

    @property
    def choice(self) -> Choice:
        """The kernel, its tiling and the backend that runs it; errors as `gemmlab.run` has."""
        kernel = kernels.get(self.kernel.value)
        tiling = kernel.choose(_tiling(kernel, self.tile.value))
        return kernel, tiling, backends.choose(kernel, self.backend.value)

    # ----------------------------------------------------------------------------- the picture

    def show(self) -> str:
        """Draw history, curves and residuals; return the prediction or, after a run, the result."""
        problem, (kernel, tiling, backend) = self.problem, self.choice
        target = self.target(backend)
        p = _predict(kernel, problem, tiling, target)
        if backend == "simulator" and tiling.padded_flops(problem) > simulator.LARGEST:
            raise ValueError(
                f"{problem} is too large to simulate while you wait: {si(problem.flops, 'FLOP')}, "
                f"and at most {si(simulator.LARGEST, 'FLOP')} are run; choose smaller sizes, or "
                'the backend "recorded"'
            )
        mine = [m for m in self.history if m.backend == backend]
        asked = kernel.name, problem, tiling
        latest = next((m for m in mine[::-1] if (m.kernel, m.problem, m.tiling) == asked), None)
        counted = backend == "simulator"
        self._prepare("counted" if counted else "timed")

        series = dict.fromkeys([(m.kernel, m.tiling) for m in mine] + [(kernel.name, tiling)])
        curves = [q for name, t in series for q in _curve(name, t, target, counted)]
        if plots.size(problem) < SIZES[0]:  # typed: the curve begins there
            curves.append(p)
        quantity = "global" if counted else "speed"
        self.sizes = plots.sizes(self.left, mine, curves, quantity, self.sizes)
        self.here.set_data([plots.size(problem)], [plots.value(p, quantity)])
        if counted:
            self.compared = plots.counters(self.right, p, latest, self.compared)
        else:
            pairs = [
                (m, _predict(kernels.get(m.kernel), m.problem, m.tiling, target)) for m in mine
            ]
            self.compared = plots.residual(self.right, pairs, self.compared)
        sources = dict.fromkeys(style.source(item) for item in (p, *mine[-1:]))
        self.origin = plots.provenance(self.left, " · ".join(sources), self.origin)
        self.moving = self.here, *(self.compared.moving if counted else ())
        limits = (ax.get_xlim() + ax.get_ylim() for ax in (self.left, self.right))
        self.frame = (*series, target, backend, len(self.history), *limits)
        return observed(latest, p, target) if latest else expected(p, kernel, target, backend)

    def _prepare(self, mode: str) -> None:
        """Begin both plots anew where they are to show something else than before."""
        if mode != self._mode:
            self._mode = mode
            self.left.clear()
            self.right.clear()
            self.sizes = self.compared = self.origin = None
            (self.here,) = self.left.plot([], [], "D", markersize=10, zorder=6)
            self.here.set(markerfacecolor="none", color=style.INK, markeredgewidth=1.5)

    def _offer_backends(self, _change: object) -> None:
        """Keep the backend where it can run the new kernel; else let it be chosen."""
        kernel, had = kernels.get(self.kernel.value), self.backend.value
        self.tile.disabled = kernel.default is None
        with self.together():
            self.backend.options = ("auto", *backends.available(kernel))
            self.backend.value = had if had in self.backend.options else "auto"

    def _offer_sides(self, _change: object) -> None:
        """Show one size or three."""
        self.sides.layout.display = "flex" if self.ragged.value else "none"
        self.size.layout.display = "none" if self.ragged.value else "flex"
        self.refresh()


def _tiling(kernel: Kernel, side: int) -> Tiling | None:
    """The kernel's own tiling, scaled so that the block tile is `side` high."""
    if kernel.default is None:
        return None
    block = kernel.default.block
    return replace(
        kernel.default, block=tuple(max(1, s * side // block[0]) if s > 1 else 1 for s in block)
    )


@lru_cache(maxsize=1024)
def _predict(kernel: Kernel, problem: Gemm, tiling: Tiling | None, target: Device) -> Prediction:
    """The kernel's prediction, or the ideal one where there is no model of the kernel."""
    if kernel.work is None:
        return predict(problem, target)
    return predict(problem, target, kernel, tiling)


def _curve(name: str, tiling: Tiling | None, target: Device, counted: bool) -> list[Prediction]:
    """Predictions over m = n = k, up to the largest that can be run."""
    most = simulator.LARGEST if counted else Gemm(*[2**LARGEST] * 3).flops
    problems = [p for n in SIZES if (p := Gemm(n, n, n)).flops <= most]
    return [_predict(kernels.get(name), p, tiling, target) for p in problems]
