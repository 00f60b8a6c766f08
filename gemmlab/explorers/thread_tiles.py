"""The thread-tile explorer: the shared loads, the speed and the limit of each thread tile."""

from gemmlab import Gemm, Tiling, device as load_device, kernels, plots
from gemmlab.device import RECORDED
from gemmlab.explorers.shared import offers
from gemmlab.explorers.shared.base import Picture, row
from gemmlab.explorers.shared.controls import Size, dropdown
from gemmlab.explorers.shared.running import Choice, Runner, expected, observed
from gemmlab.kernels import Kernel
from gemmlab.measure import backends
from gemmlab.measure.backends import simulator
from gemmlab.measure.measurement import Measurement
from gemmlab.plots.shared import style

KERNELS = (kernels.register_tiled, kernels.vectorised)
THREADS = 16  # of a block along m, and along n
STEP = 8  # along k
THREAD_TILES = ((1, 1), (2, 2), (4, 4), (8, 4), (8, 8), (16, 8))
SMALLEST, LARGEST = 7, 13  # 2^7 = 128, 2^13 = 8192


def tiling(tm: int, tn: int) -> Tiling:
    """Return the tiling of 16×16 threads with tm×tn elements each."""
    return Tiling(block=(THREADS * tm, THREADS * tn, STEP), thread=(tm, tn))


def tilings(kernel: Kernel) -> list[Tiling]:
    """Find the tilings of the thread tiles that a kernel can use."""
    found = []
    for sides in THREAD_TILES:
        try:
            found.append(kernel.choose(tiling(*sides)))
        except ValueError:
            continue
    return found


class ThreadTiles(Runner):
    """Choose a rung and a thread tile for 16×16 threads; run it; compare with the prediction.

    kernel : "register_tiled" or "vectorised"; thread : (tm, tn), one of those offered
    n : m = n = k, from 1 to 8192; backend : as in `gemmlab.run`
    device : whose measurements are replayed, and for which simulated kernels are predicted

    Raises ValueError or RuntimeError for values that no control could show.
    """

    def __init__(
        self,
        kernel: str = "register_tiled",
        thread: tuple[int, int] = (8, 8),
        n: int = 256,
        backend: str = "auto",
        device: str = RECORDED,
    ) -> None:
        known = [k.name for k in KERNELS]
        if kernel not in known:
            raise ValueError(f"kernel={kernel!r} has no thread tiles; use {' or '.join(known)}")
        chosen = kernels.get(kernel)
        chosen.choose(tiling(*thread))
        backends.choose(chosen, backend)
        tiles, (self.left,) = plots.figure(4.5, 3.4)
        limits, (self.right,) = plots.figure(3.7, 3.4)
        plots.describe(limits, "The time that each resource needs for the chosen thread tile")
        super().__init__(Picture(tiles, limits), load_device(device))
        self._mode, self.limits = "", None
        self.kernel = dropdown("kernel", known, kernel)
        self.thread = dropdown("thread tile", self._offered(chosen), _name(thread))
        self.size = Size("m = n = k", n, LARGEST, SMALLEST)
        self.backend = dropdown("backend", ("auto", *backends.available(chosen)), backend)
        self.kernel.observe(self._offer_tiles, "value")
        self.arrange(
            [row(self.kernel, self.thread), row(self.size, self.backend), self.buttons],
            (self.thread, self.size, self.backend),  # another kernel draws once it has offered
        )

    @property
    def problem(self) -> Gemm:
        return Gemm(*[self.size.value] * 3)

    @property
    def choice(self) -> Choice:
        kernel = kernels.get(self.kernel.value)
        chosen = kernel.choose(tiling(*map(int, self.thread.value.split("×"))))
        return kernel, chosen, backends.choose(kernel, self.backend.value)

    @property
    def runnable(self) -> bool:
        """Whether there is something to run: what is recorded is all shown."""
        return self.backend.value != "recorded"

    def show(self) -> str:
        self.enable()
        problem, (kernel, chosen, backend) = self.problem, self.choice
        target, counted = self.target(backend), backend == "simulator"
        if counted:
            simulator.check_size(problem, chosen)
        predicted = [offers.predicted(kernel, problem, t, target) for t in tilings(kernel)]
        here = next(p for p in predicted if p.tiling == chosen)
        mine = self._observed(kernel, problem, backend)
        mode = "counted" if counted else "timed"
        if mode != self._mode:
            self._mode, self.tiles, self.origin = mode, None, None
            self.left.clear()
            (self.here,) = self.left.plot([], [], "o", markersize=17, zorder=4)
            self.here.set(markerfacecolor="none", color=style.GREY, markeredgewidth=1.2)
        self.tiles = plots.thread_tiles(self.left, mine, predicted, counted, self.tiles)
        place = predicted.index(here)
        self.here.set_data([place], [self.tiles.line.get_ydata()[place]])
        self.limits = plots.resources(self.right, here, self.limits)
        heading = style.title(self.right, f"predicted for {'×'.join(map(str, chosen.thread))}")
        sources = dict.fromkeys(style.source(item) for item in (here, *mine[-1:]))
        self.origin = plots.provenance(self.left, " · ".join(sources), self.origin)
        self.moving = self.tiles.line, self.here, *self.tiles.dots.values()
        self.moving += *self.limits.bars, *self.limits.texts, heading
        everywhere = kernel, target, backend, tuple(sources), tuple(self.tiles.dots)
        self.frames = (*everywhere, self.left.get_ylim()), "the resources stay"
        latest = next((m for m in mine[::-1] if m.tiling == chosen), None)
        first = (
            observed(latest, here, target) if latest else expected(here, kernel, target, backend)
        )
        return f"{first}\n{_costs(chosen)}"

    def _observed(self, kernel: Kernel, problem: Gemm, backend: str) -> list[Measurement]:
        """The history's runs of this kernel and problem, or its records on the recorded backend."""
        found = offers.recorded(self.device) if backend == "recorded" else self.history
        asked = kernel.name, problem, backend
        return [m for m in found if (m.kernel, m.problem, m.backend) == asked]

    def _offered(self, kernel: Kernel) -> list[str]:
        return [_name(t.thread) for t in tilings(kernel)]

    def _offer_tiles(self, _change: object) -> None:
        """Keep the thread tile where the new kernel can use it; else the largest square."""
        had, offered = self.thread.value, self._offered(kernels.get(self.kernel.value))
        with self.together():
            self.thread.options = offered
            self.thread.value = had if had in offered else "8×8"


def _name(thread: tuple[int, int]) -> str:
    return "×".join(map(str, thread))


def _costs(t: Tiling) -> str:
    tm, tn = t.thread
    words = (tm + tn) / (tm * tn)
    return (
        f"A thread's sums and operands take at least {tm * tn + tm + tn} registers; for each of "
        f"its FMAs it needs {words:.3g} word{'' if words == 1 else 's'} of shared memory."
    )
