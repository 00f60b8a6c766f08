"""The split explorer: time over the parts of k, and which SM computes which part when."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gemmlab import Gemm, Tiling, device as load_device, kernels, plots
from gemmlab.device import RECORDED, Device
from gemmlab.explorers.shared import offers, running
from gemmlab.explorers.shared.base import Picture, row
from gemmlab.explorers.shared.controls import Number, Size, dropdown, offer
from gemmlab.kernels import Kernel
from gemmlab.measure import backends
from gemmlab.measure.backends import simulator
from gemmlab.measure.measurement import Measurement
from gemmlab.model import schedule
from gemmlab.model.schedule import Sharing, sharing
from gemmlab.plots import si
from gemmlab.plots.shared import style

KERNELS = kernels.SPLIT_K
MOST = 1024  # parts, or blocks
# Where the curve is drawn: every number up to 40, then those at which waves of an H200 end.
CURVE = (*range(1, 41), 44, 48, 52, 56, 60, 64, 65, 66, 67, 80, 96, 112, 128, 131, 132, 133, 160,
         192, 224, 256, 263, 264, 265, 330, 396, 397, 512, 768, MOST)  # fmt: skip
FEW = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # where traffic is counted beforehand
IN_A_ROW = 16  # pieces of an SM, one after the other, that can be told apart
FIRST, LAST = 12, 4  # SMs that have a row, of more: one reads no more, and the last ones idle first
HIGHEST = {"m": 12, "n": 12, "k": 16}  # powers of two at the ends of the sliders


class SplitK(running.Runner):
    """Share k among blocks: choose a kernel, a tile, sizes and a split; run it; compare.

    kernel : one of `kernels.SPLIT_K`, by name; m, n, k : of the product
    split : parts of k of each tile, or, of *stream_k*, blocks; what the kernel suggests where None
    block : (bm, bn), of a tile that the kernel offers; what it suggests where None
    backend : as in `gemmlab.run`
    device : whose measurements are replayed, and for which times are predicted

    Raises ValueError or RuntimeError for values that no control could show.
    """

    def __init__(
        self,
        kernel: str = "split_k",
        m: int = 1024,
        n: int = 1024,
        k: int = 8192,
        split: int | None = None,
        block: tuple[int, int] | None = None,
        backend: str = "recorded",
        device: str = RECORDED,
    ) -> None:
        known = [one.name for one in KERNELS]
        if kernel not in known:
            raise ValueError(f"kernel={kernel!r} does not share k; use {', '.join(known)}")
        chosen, target = kernels.get(kernel), load_device(device)
        backends.choose(chosen, backend)
        suggested = _suggested(chosen, Gemm(m, n, k), target)
        tiles = _tiles(chosen)
        wanted = _name(block or suggested.block)
        if wanted not in tiles:
            raise ValueError(f"block={block!r} is not offered; use one of {', '.join(tiles)}")
        curve, (self.left,) = plots.figure(4.4, 3.3, left=0.18, bottom=0.28)
        over_sms, (self.right,) = plots.figure(3.8, 3.3, bottom=0.28)
        super().__init__(Picture(curve, over_sms), target)
        self._kind: tuple = ()
        self._recorded = offers.recorded(target)
        self.curve = self.origin = self.placed = None
        self.kernel = dropdown("kernel", known, kernel)
        self.tile = dropdown("tile", list(tiles), wanted, "14em")
        sizes = {"m": m, "n": n, "k": k}
        self.sizes = {s: Size(s, v, HIGHEST[s]) for s, v in sizes.items()}
        self.split = Number("parts", split or suggested.split, CURVE, least=1)
        self.backend = dropdown("backend", ("auto", *backends.available(chosen)), backend)
        self.kernel.observe(self._offer, "value")
        self.arrange(
            [
                row(self.kernel, self.tile, self.backend),
                row(*self.sizes.values(), self.split),
                self.buttons,
            ],
            # Another kernel draws once it has offered its tiles.
            (self.tile, self.backend, *self.sizes.values(), self.split),
        )

    @property
    def problem(self) -> Gemm:
        return Gemm(**{name: size.value for name, size in self.sizes.items()})

    @property
    def choice(self) -> running.Choice:
        kernel = kernels.get(self.kernel.value)
        tiling = replace(_tiles(kernel)[self.tile.value], split=self.split.value)
        return kernel, tiling, backends.choose(kernel, self.backend.value)

    @property
    def runnable(self) -> bool:
        """Whether there is something to run: what is recorded is all shown."""
        return self.backend.value != "recorded"

    def show(self) -> str:
        self.enable()
        problem, (kernel, tiling, backend) = self.problem, self.choice
        target = self.target(backend)
        if backend == "simulator":
            simulator.check_size(problem, tiling)
        seen = self._observed(kernel, problem, tiling, backend)
        said = self._draw_curve(kernel, problem, tiling, target, backend, seen)
        shared = sharing(kernel.name, problem, target, tiling)
        self._draw_schedule(kernel, problem, tiling, target)
        own = _own(kernel, problem, target, tiling)
        return "\n".join([*_said(kernel, problem, tiling, target, shared), *said, *own])

    def _draw_curve(
        self, kernel: Kernel, problem: Gemm, tiling: Tiling, target: Device, backend: str,
        seen: Sequence[Measurement],
    ) -> list[str]:  # fmt: skip
        """Draw what is predicted and observed over the split; return the latter in words."""
        counted = backend == "simulator"
        at = sorted({*(FEW if counted else CURVE), tiling.split})
        value = _sectors if counted else _seconds
        values = [value(kernel, problem, replace(tiling, split=s), target) for s in at]
        marks: dict[str, list[Measurement]] = {}
        for m in seen:
            origin = {"simulator": "counted", "gpu": "measured"}.get(m.backend, m.backend)
            marks.setdefault(origin, []).append(m)
        observed = {
            name: ([m.tiling.split for m in found], [_value(m, counted) for m in found])
            for name, found in marks.items()
        }
        library = None if counted else self._library(problem)
        kind = counted, tuple(observed), library is None
        if kind != self._kind:
            self._kind, self.curve, self.origin = kind, None, None
            self.left.clear()
            style.title(self.left, "Traffic" if counted else "Time")
            (self.here,) = self.left.plot([], [], "|", color=style.GREY, markersize=500)
        self.moving = (self.here,)
        marked = tuple((name, tuple(at), tuple(y)) for name, (at, y) in observed.items())
        self.frames = (kernel, problem, tiling.unsplit, target, backend, tuple(at), marked), None
        along = "blocks" if kernel is kernels.stream_k else "parts of k"
        quantity = "sectors" if counted else "time"
        name = "predicted" if counted else "predicted, at least"
        curves = {name: (at, values)}
        self.curve = plots.splits(self.left, curves, observed, quantity, library, along, self.curve)
        self.here.set_data([tiling.split], [values[at.index(tiling.split)]])
        sources = dict.fromkeys(["predicted", *(m.source for m in seen)])
        self.origin = plots.provenance(self.left, " · ".join(sources), self.origin)
        latest = next((m for m in seen[::-1] if m.tiling.split == tiling.split), None)
        if latest is None:
            return [
                "Press Run to compare."
                if self.runnable
                else f"No run with {_cut(kernel, tiling)} is recorded."
            ]
        expected, shown = values[at.index(tiling.split)], _value(latest, counted)
        if counted:
            right = "right" if latest.passed else "WRONG"
            return [f"Counted: {shown:,} sectors, predicted {expected:,}; the result is {right}."]
        told = f"{style.sentence(latest.source)}: {si(shown, 's')}, {shown / expected:.2f} times "
        told += "what is predicted"
        return [told + (f"; cuBLAS takes {si(library, 's')}." if library else ".")]

    def _draw_schedule(self, kernel: Kernel, problem: Gemm, tiling: Tiling, target: Device) -> None:
        """Draw which SM has which piece when: the first SMs, and the last ones."""
        rows = (*range(FIRST), *range(target.sms - LAST, target.sms))
        if target.sms <= FIRST + LAST:
            rows = range(target.sms)
        blocks = math.prod(tiling.grid(problem))
        blocks = blocks * tiling.split if kernel is not kernels.stream_k else tiling.split
        many = blocks > IN_A_ROW * target.sms
        if many or self.placed is None:
            self.right.clear()
            self.placed = None
            style.title(self.right, "Which SM computes which tile when")
            told = f"predicted, steps equally long; {len(rows)} of {target.sms} SMs"
            plots.provenance(self.right, told)
            if len(rows) < target.sms:
                self.right.axhline(FIRST - 0.5, color=style.GREY, linewidth=1, linestyle=":")
        if many:
            self.right.set_axis_off()
            told = f"{blocks:,} blocks: too many to draw"
            self.right.text(0, 0.5, told, fontsize=style.LABEL, color=style.INK)
            plots.describe(self.right, told, "schedule")
            return
        self.right.set_axis_on()
        self.placed = plots.schedule(
            self.right, _placed(kernel, problem, tiling, target.sms), target.sms,
            artists=self.placed, shown=rows,
        )  # fmt: skip

    def _observed(
        self, kernel: Kernel, problem: Gemm, tiling: Tiling, backend: str
    ) -> list[Measurement]:
        """Runs of this kernel, tile and problem in any split: of the history, or recorded."""
        found = self._recorded if backend == "recorded" else self.history
        return [
            m
            for m in found
            if (m.kernel, m.problem, m.backend) == (kernel.name, problem, backend)
            and m.tiling.unsplit == tiling.unsplit
        ]

    def _library(self, problem: Gemm) -> float | None:
        times = (m.seconds for m in self._recorded if (m.kernel, m.problem) == ("cublas", problem))
        return next(times, None)

    def _offer(self, change: Any) -> None:
        """Keep the tile and the parts, so that kernels are compared at the same ones.

        A number of blocks, which *stream_k* has instead, becomes that of as many, and is one again.
        """
        before, kernel = kernels.get(change.old), kernels.get(change.new)
        with self.together():
            tiles = math.prod(_tiles(before)[self.tile.value].grid(self.problem))
            offer(self.tile, {name: name for name in _tiles(kernel)}, self.tile.value)
            self.split.slider.description = "blocks" if kernel is kernels.stream_k else "parts"
            if kernel is kernels.stream_k:
                self.split.value = min(MOST, self.split.value * tiles)
            elif before is kernels.stream_k:
                self.split.value = max(1, round(self.split.value / tiles))


def _tiles(kernel: Kernel) -> dict[str, Tiling]:
    return {_name(t.block): t for t in kernel.tilings}


def _name(block: tuple[int, ...]) -> str:
    return "×".join(map(str, block[:2]))


@lru_cache(maxsize=4096)
def _seconds(kernel: Kernel, problem: Gemm, tiling: Tiling, target: Device) -> float:
    return sharing(kernel.name, problem, target, tiling).seconds


@lru_cache(maxsize=256)
def _suggested(kernel: Kernel, problem: Gemm, target: Device) -> Tiling:
    return kernel.suggest(problem, target)


@lru_cache(maxsize=4096)
def _sectors(kernel: Kernel, problem: Gemm, tiling: Tiling, target: Device) -> int:
    counters = kernel.work(problem, tiling).counters
    return _global(counters)


def _value(m: Measurement, counted: bool) -> float:
    return _global(m.counters) if counted else m.seconds


def _global(counters: dict) -> int:
    """Sectors that pass between SMs and L2."""
    return sum(counters.get(f"global_{op}_sectors", 0) for op in ("load", "store", "atomic"))


def _placed(kernel: Kernel, problem: Gemm, tiling: Tiling, sms: int) -> list[schedule.Placed]:
    across, down = tiling.grid(problem)
    deal = schedule.stream_k if kernel is kernels.stream_k else schedule.split_k
    return schedule.schedule(deal(across * down, tiling.steps(problem), tiling.split), sms)


def _cut(kernel: Kernel, tiling: Tiling) -> str:
    return style.count(tiling.split, "block" if kernel is kernels.stream_k else "part")


def _own(kernel: Kernel, problem: Gemm, target: Device, tiling: Tiling) -> list[str]:
    """Say which tile and split the kernel takes where none is asked for, unless it has these."""
    own = _suggested(kernel, problem, target)
    if (own.block, own.split) == (tiling.block, tiling.split):
        return []
    return [f"By itself {kernel.name} takes {_name(own.block)} and {_cut(kernel, own)} here."]


def _said(
    kernel: Kernel, problem: Gemm, tiling: Tiling, target: Device, shared: Sharing
) -> list[str]:
    across, down = tiling.grid(problem)
    many = style.count(across * down, "tile")
    cut = f"With {_cut(kernel, tiling)} of k there" if kernel is not kernels.stream_k else "There"
    sums = "no sums wait" if not shared.stored else f"{si(shared.stored, 'B')} of sums wait"
    if kernel is kernels.split_k_atomics:
        sums = f"{si(tiling.split * problem.m * problem.n, '')} additions in L2"
    return [
        f"{kernel.name}, {problem}: {many} of {_name(tiling.block)}, "
        f"{style.count(tiling.steps(problem), 'step')} each. {cut} "
        f"{'is' if shared.blocks == 1 else 'are'} {style.count(shared.blocks, 'block')}; "
        f"{target.sms} SMs take {style.count(shared.waves, 'wave')}, "
        f"{style.count(shared.longest, 'step')}.",
        f"Predicted on {target.title}: {si(shared.product, 's')} to multiply; {sums}, "
        f"{si(shared.sums, 's')} to add up; {si(shared.seconds, 's')} at least.",
    ]
