"""The coalescing explorer: where the lanes of a warp point, and how many sectors that takes."""

from collections.abc import Callable

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from gemmlab import plots, simulate
from gemmlab.arguments import whole_number
from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.explorers.shared.controls import Number, dropdown
from gemmlab.formats import number_format
from gemmlab.model import transactions
from gemmlab.plots import number
from gemmlab.plots.shared import style
from gemmlab.simt import cuda

ELEMENTS = {number_format(name).bytes: name for name in ("float16", "float32", "float64")}
STRIDES, OFFSETS = range(33), range(32)
ROW = 1024  # bytes in a row of the map
LANES = np.arange(transactions.WARP)
ALL = np.ones(transactions.WARP, bool)


def copy(stride: int, offset: int) -> Callable:
    """Return the kernel that is counted: lane i loads element stride · i + offset."""

    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = x[stride * i + offset]

    return kernel


def sectors(stride: int, offset: int, itemsize: int) -> int:
    """Sectors that one such load is predicted to touch.

    >>> sectors(1, 0, 4), sectors(2, 0, 4), sectors(8, 0, 4), sectors(1, 1, 4)
    (4, 8, 32, 5)
    """
    return int(transactions.sectors(itemsize * (stride * LANES + offset), ALL))


class Coalescing(Explorer):
    """One load of one warp: a kernel is simulated at each change, over the predicted curve.

    stride : elements from one lane's to the next lane's, 0 to 32
    offset : elements from the start of a 128-byte line to lane 0's, 0 to 31
    itemsize : bytes of an element, 2, 4 or 8

    Raises TypeError or ValueError for values that no control could show.

    >>> explorer = Coalescing(stride=2)
    >>> explorer.counted, explorer.predicted
    (8, 8)
    """

    def __init__(self, stride: int = 1, offset: int = 0, itemsize: int = 4) -> None:
        curve, (self.curve_axes,) = plots.figure(3.9, 3.4)
        map_, (self.map_axes,) = plots.figure(4.3, 3.4)
        plots.describe(map_, "Map of the sectors that the load touches, 1024 bytes in a row")
        super().__init__(Picture(curve, map_))
        if itemsize not in ELEMENTS:
            raise ValueError(f"itemsize={itemsize!r} is not offered; use 2, 4 or 8")
        self.stride = _slider("stride", stride, STRIDES)
        self.offset = _slider("offset", offset, OFFSETS)
        sizes = [(f"{size} B ({name})", size) for size, name in ELEMENTS.items()]
        self.itemsize = dropdown("element", sizes, itemsize, "18em")
        self.predicted = self.counted = 0
        self._draw_axes()
        controls = self.stride, self.offset, self.itemsize
        self.arrange([row(*controls)], watched=controls)

    def show(self) -> str:
        stride, offset, size = self.stride.value, self.offset.value, self.itemsize.value
        x = np.zeros(max(STRIDES) * transactions.WARP, ELEMENTS[size])
        y = np.zeros(transactions.WARP, x.dtype)
        counters = simulate(copy(stride, offset), 1, transactions.WARP, x, y).counters
        self.counted = counters["global_load_sectors"]
        self.predicted = sectors(stride, offset, size)

        self.curve.set_data(STRIDES, [sectors(s, offset, size) for s in STRIDES])
        self.mark.set_data([stride], [self.counted])
        used = _used(stride, offset, size)
        self.map.set_array(np.where(used > 0, 0.25 + 0.75 * used / transactions.SECTOR, 0))
        self.heading.set_text(
            f"Stride {stride}, offset {offset}: {style.count(self.counted, 'sector')}"
        )
        self.moving = self.curve, self.mark, self.map, self.edges, self.heading
        self.frames = "the axes stay", "and so do those of the map"
        return self._describe(int(used.sum()))

    def _describe(self, used: int) -> str:
        moved = self.counted * transactions.SECTOR
        return "\n".join([
            f"Lane i loads element {self.stride.value}·i + {self.offset.value}, of "
            f"{self.itemsize.value} bytes: one request of the warp.",
            f"Predicted: {style.count(self.predicted, 'sector')}. Counted: "
            f"{style.count(self.counted, 'sector')} (simulated).",
            f"{moved} bytes are moved, and the lanes use {used} different ones of them: "
            f"{number(100 * used / moved)} %.",
        ])  # fmt: skip

    def _draw_axes(self) -> None:
        ax = self.curve_axes
        style.prepare(ax)
        style.plain_axis(ax.xaxis, "stride", "elements")
        style.plain_axis(ax.yaxis, "sectors per request")
        ax.set(xlim=(-0.7, 32.7), ylim=(0, 34), xticks=range(0, 33, 4), yticks=range(0, 33, 4))
        (self.curve,) = ax.plot(
            [], [], "D-", color=style.BLUE, markersize=4, markerfacecolor="white", linewidth=1,
            label="predicted",
        )  # fmt: skip
        marker, _ = style.MARKS["simulated"]
        (self.mark,) = ax.plot(
            [], [], marker, color=style.VERMILION, markersize=10, label="counted (simulated)"
        )
        ax.legend(loc="lower right", frameon=False, fontsize=style.NOTE)
        style.title(ax, "All strides at this offset")

        ax = self.map_axes
        across = ROW // transactions.SECTOR
        down = -(-max(STRIDES) * transactions.WARP * max(ELEMENTS) // ROW)
        shades = LinearSegmentedColormap.from_list("used", ["white", style.BLUE])
        self.map = ax.pcolormesh(
            np.zeros((down, across)), cmap=shades, vmin=0, vmax=1, edgecolors=style.GRID,
            linewidth=0.5,
        )  # fmt: skip
        per_line = transactions.LINE // transactions.SECTOR
        ax.set_xticks(
            range(0, across + 1, per_line),
            range(0, ROW + 1, transactions.LINE),
            fontsize=style.TICK,
        )
        ax.set_yticks(np.arange(down) + 0.5, [f"{row * ROW}" for row in range(down)])
        ax.tick_params(labelsize=style.TICK, length=0)
        ax.invert_yaxis()
        ax.set_xlabel("address [B]; a box is a sector: more colour, more used", fontsize=style.NOTE)
        ax.spines[:].set_visible(False)
        edges = range(0, across + 1, per_line)
        self.edges = ax.vlines(edges, 0, down, color=style.GREY, linewidth=1)
        self.heading = style.title(ax, "")


def _slider(name: str, value: int, values: range) -> Number:
    least, most = min(values), max(values)
    whole_number(name, value, least)
    if value > most:
        raise ValueError(f"{name}={value!r} is too large; use {least} to {most}")
    return Number(name, value, values, least)


def _used(stride: int, offset: int, itemsize: int) -> np.ndarray:
    """Bytes of each sector of the map that some lane asked for, (rows, sectors of a row)."""
    first = itemsize * (stride * LANES + offset)
    bytes_ = np.unique(first[:, None] + np.arange(itemsize))
    whole = max(STRIDES) * transactions.WARP * max(ELEMENTS)
    pieces = np.bincount(bytes_ // transactions.SECTOR, minlength=whole // transactions.SECTOR)
    return pieces.reshape(-1, ROW // transactions.SECTOR)
