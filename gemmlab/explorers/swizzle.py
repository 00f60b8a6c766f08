"""The swizzle explorer: where pieces of a tile lie, and what a rung's loads of them cost."""

from collections.abc import Callable

import numpy as np

from gemmlab import Gemm, Tiling, device as load_device, kernels, plots
from gemmlab.device import RECORDED
from gemmlab.explorers.shared import offers
from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.explorers.shared.controls import dropdown, offer
from gemmlab.kernels import Kernel
from gemmlab.kernels.tensor_core.shared.shared_layouts import LINE, PIECE, in_rows, swizzled
from gemmlab.measure import backends
from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.plots import number
from gemmlab.plots.shared import style

PLACED: dict[str, Callable] = {"mma_shared": in_rows, "mma_swizzled": swizzled}
LENGTHS = (16, 32, 64, 128)  # elements of a row of A's tile, which are those of a step along k
LINES = 16  # of 128 bytes that are shown
ROWS = 8  # of a matrix
PRODUCT = 2 * 16 * 8 * 16  # FLOP of one `mma`
PROBLEM = Gemm(64, 64, 128, dtype="float16", out_dtype="float32")  # one block, for all lengths
COLOURS = dict(zip(PLACED, (style.ORANGE, style.BLUE), strict=True))


def tiling(length: int) -> Tiling:
    """Four warps with tiles of 32×32, and a step of `length` along k."""
    return Tiling(block=(64, 64, length), warp=(32, 32), thread=(4, 8))


def of_an_mma(item: Prediction | Measurement) -> float:
    """Wavefronts of shared loads for each `mma`."""
    return item.counters["shared_load_wavefronts"] / (item.problem.flops / PRODUCT)


class Swizzle(Explorer):
    """A rung runs on the simulator at each change; beside it, where the pieces of A's tile lie.

    kernel : "mma_shared" or "mma_swizzled"
    length : elements of a row of A's tile, 16, 32, 64 or 128
    piece : of the rows 0 to 7, the one that is marked: an 8×8 matrix of `ldmatrix`

    `counted` and `predicted` are the wavefronts of shared loads for each `mma`. Raises ValueError
    for values that no control could show.

    >>> explorer = Swizzle("mma_swizzled")
    >>> explorer.counted, explorer.predicted, explorer.wavefronts
    (2.0, 2.0, 1)
    """

    def __init__(self, kernel: str = "mma_shared", length: int = 64, piece: int = 0) -> None:
        if kernel not in PLACED:
            raise ValueError(f"kernel={kernel!r} is not offered; use {' or '.join(PLACED)}")
        if length not in LENGTHS:
            known = ", ".join(map(str, LENGTHS))
            raise ValueError(f"length={length!r} is not offered; use one of {known}")
        if piece not in range(length // PIECE):
            raise ValueError(f"piece={piece!r} is not in a row; use 0 to {length // PIECE - 1}")
        tile, (self.tile_axes,) = plots.figure(4.5, 3.9, bottom=0.17)
        costs, (self.cost_axes,) = plots.figure(3.7, 3.9, bottom=0.17)
        super().__init__(Picture(tile, costs))
        self.device = load_device(RECORDED)
        self.runs: dict[tuple[str, int], Measurement] = {}
        self.counted = self.predicted = 0.0
        self.wavefronts = 0
        self.kernel = dropdown("kernel", list(PLACED), kernel)
        lengths = [(f"{n} elements, {2 * n} bytes", n) for n in LENGTHS]
        self.length = dropdown("row of A's tile", lengths, length)
        self.piece = dropdown("marked piece", _pieces(length), piece)
        for control in (self.length, self.piece):
            control.style.description_width = "8em"
        self._draw_axes()
        self.length.observe(self._offer_pieces, "value")
        # Another length draws once it has offered its pieces.
        controls = self.kernel, self.piece
        self.arrange([row(self.kernel, self.length), self.piece], watched=controls)

    def show(self) -> str:
        kernel, length, piece = kernels.get(self.kernel.value), self.length.value, self.piece.value
        run = self._run(kernel, length)
        expected = offers.predicted(kernel, PROBLEM, tiling(length), self.device)
        self.counted, self.predicted = of_an_mma(run), of_an_mma(expected)
        self.wavefronts = self._draw_tile(kernel.name, length, piece)
        self._draw_costs(kernel.name, length)
        places = "1 place" if self.wavefronts == ROWS else f"{ROWS // self.wavefronts} places"
        return "\n".join([
            f"Rows of {length} elements, pieces as {kernel.name} lays them. Piece {piece} of the "
            f"rows 0 to 7, one 8×8 matrix of ldmatrix, lies in {places} of a line: it takes "
            f"{style.count(self.wavefronts, 'wavefront')}.",
            f"{kernel.name} {run.tiling} on {PROBLEM}: the result is "
            f"{'right' if run.passed else 'WRONG'}. Wavefronts of shared loads for each mma: "
            f"{number(self.predicted)} predicted, {number(self.counted)} counted (simulated).",
        ])  # fmt: skip

    def _run(self, kernel: Kernel, length: int) -> Measurement:
        key = kernel.name, length
        if key not in self.runs:
            self.runs[key] = backends.run(kernel, PROBLEM, "simulator", tiling=tiling(length))
        return self.runs[key]

    def _draw_tile(self, name: str, length: int, piece: int) -> int:
        """Draw the tile, and return the wavefronts of its marked matrix."""
        rows, each = np.arange(LINES * LINE // length)[:, None], np.arange(length // PIECE)
        elements = PLACED[name](length)(rows, each)
        marked = [(i, piece) for i in range(ROWS)]
        self.tile = plots.pieces(
            self.tile_axes, elements, f"{name}: rows of {length} elements", marked, self.tile
        )
        self.origin = plots.provenance(self.tile_axes, "predicted", self.origin)
        return int(np.bincount(elements[:ROWS, piece] % LINE // PIECE).max())

    def _draw_costs(self, name: str, length: int) -> None:
        for kernel, dots in self.dots.items():
            seen = [
                (LENGTHS.index(n), of_an_mma(m)) for (k, n), m in self.runs.items() if k == kernel
            ]
            dots.set_data(*(zip(*seen, strict=True) if seen else ([], [])))
        self.here.set_data([LENGTHS.index(length)], [self.counted])
        told = [
            f"{kernel} {', '.join(number(y) for y in line.get_ydata())}"
            for kernel, line in self.lines.items()
        ]
        plots.describe(
            self.cost_axes,
            f"Wavefronts of shared loads for each mma, with rows of {', '.join(map(str, LENGTHS))} "
            f"elements, predicted: {'; '.join(told)}. Counted: {name} with {length}: "
            f"{number(self.counted)}.",
        )

    def _draw_axes(self) -> None:
        ax = self.cost_axes
        style.prepare(ax)
        style.plain_axis(ax.yaxis, "wavefronts of shared loads per mma")
        ax.set_xlabel("elements of a row of A's tile", fontsize=style.LABEL, color=style.INK)
        ax.set_xticks(range(len(LENGTHS)), LENGTHS)
        ax.set(xlim=(-0.5, len(LENGTHS) - 0.5), ylim=(0, 24))
        self.tile, self.origin, self.lines, self.dots = None, None, {}, {}
        for (name, colour), dash in zip(COLOURS.items(), ("--", "-"), strict=True):
            kernel = kernels.get(name)
            heights = [
                of_an_mma(offers.predicted(kernel, PROBLEM, tiling(n), self.device))
                for n in LENGTHS
            ]
            (self.lines[name],) = ax.plot(
                range(len(LENGTHS)), heights, "D", linestyle=dash, color=colour,
                markerfacecolor="white", markersize=7, label=f"{name}, predicted",
            )  # fmt: skip
            marker, _ = style.MARKS["simulated"]
            (self.dots[name],) = ax.plot([], [], marker, color=colour, markersize=9, zorder=5)
        (self.here,) = ax.plot([], [], "o", markersize=17, zorder=4, markerfacecolor="none")
        self.here.set(color=style.GREY, markeredgewidth=1.2)
        # Whatever its colour, a triangle was counted.
        ax.plot([], [], marker, color=style.INK, markersize=9, label="counted (simulated)")
        ax.legend(loc="upper left", frameon=False, fontsize=style.NOTE)
        style.title(ax, "A whole block, both kernels")
        plots.provenance(ax, "predicted, and simulated")

    def _offer_pieces(self, _change: object) -> None:
        """Keep the piece where the new row has it."""
        with self.together():
            offer(self.piece, dict(_pieces(self.length.value)), self.piece.value)


def _pieces(length: int) -> list[tuple[str, int]]:
    return [(f"piece {i}", i) for i in range(length // PIECE)]
