"""Warps by cycles: what each warp issues, or what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import SCHEDULERS, Reason
from gemmlab.plots.shared import style
from gemmlab.plots.shared.description import describe
from gemmlab.plots.slots import EMPTY, READY, USED

MANY = 16  # warps: of more, each is drawn in fewer rows of pixels
TICKS = 16  # cycles between two


def _palette(looks: Sequence, members: type) -> np.ndarray:
    """The colour of each member, (members, 3)."""
    found = np.ones((len(members), 3))
    for look in looks:
        found[list(look.members)] = to_rgb(look.colour)
    return found


ISSUES = _palette(USED, Kind)
WAITS = _palette((*EMPTY, READY), Reason)


class Grain(NamedTuple):
    """Rows of pixels for a warp; of them, where an instruction is drawn, and where a wait is."""

    rows: int
    tall: slice
    thin: slice


FINE, COARSE = Grain(12, slice(1, 11), slice(5, 7)), Grain(4, slice(0, 3), slice(1, 2))


class WarpArtists(NamedTuple):
    """What `warps` draws: the cells, the scheduler's own row below them, and the chosen slot."""

    cells: AxesImage
    slots: AxesImage
    chosen: Rectangle

    @property
    def moving(self) -> tuple:
        """All that changes while the same warps are shown."""
        return self.cells, self.slots, self.chosen


def warps(
    ax: Axes,
    kinds: np.ndarray,
    reasons: np.ndarray,
    numbers: Sequence[int],
    first: int,
    chosen: tuple[int, int] = (0, 0),
    artists: WarpArtists | None = None,
) -> WarpArtists:
    """Draw warps from the top down, cycles from left to right, a cell for each.

    A tall cell is an instruction of that kind, a thin one a wait. The lowest row has the slots of
    the warps' schedulers together: how many of them issue in a cycle, as a height.

    kinds : (warps, cycles), the `Kind` that a warp issues, -1 for none
    reasons : (warps, cycles), the `Reason` why it does not, -1 where it issues
    numbers : of the warps; first : the first cycle
    chosen : row and column of the cell that is framed
    """
    rows, cycles = kinds.shape
    if artists is None:
        artists = _new(ax, rows, cycles, numbers)
    grain = FINE if rows <= MANY else COARSE
    picture = np.ones((rows, grain.rows, cycles, 3))
    picture[:, grain.thin] = np.where((kinds < 0)[..., None], WAITS[reasons], 1)[:, None]
    picture[:, grain.tall] = np.where(
        (kinds >= 0)[:, None, :, None], ISSUES[kinds][:, None], picture[:, grain.tall]
    )
    artists.cells.set_data(picture.reshape(-1, cycles, 3))
    artists.slots.set_data(_stacked(kinds, min(SCHEDULERS, len({w % SCHEDULERS for w in numbers}))))
    row, column = chosen
    artists.chosen.set_bounds(column, row, 1, 1)
    ax.set_xticklabels([f"{first + tick:,}" for tick in range(0, cycles + 1, TICKS)])
    describe(ax, _finding(kinds, numbers, first), "warps")
    return artists


def _stacked(kinds: np.ndarray, schedulers: int) -> np.ndarray:
    """A column for each cycle: what is issued in it, one above the other."""
    picture = np.ones((schedulers, kinds.shape[1], 3))
    issued = np.sort(kinds, axis=0)[::-1][:schedulers]
    for i, row in enumerate(issued):
        where = np.flatnonzero(row >= 0)
        picture[schedulers - 1 - i, where] = ISSUES[row[where]]
    return picture


def _finding(kinds: np.ndarray, numbers: Sequence[int], first: int) -> str:
    issued = kinds >= 0
    last = first + kinds.shape[1] - 1
    busiest = int(issued.sum(axis=1).argmax())
    return (
        f"Warps {', '.join(map(str, numbers))} in the cycles {first:,} to {last:,}: "
        f"{int(issued.sum())} instructions are issued; warp {numbers[busiest]} issues most, "
        f"{int(issued[busiest].sum())}."
    )


def _new(ax: Axes, rows: int, cycles: int, numbers: Sequence[int]) -> WarpArtists:
    ax.clear()
    style.prepare(ax)
    gap, strip = 0.04 * rows, max(1.0, 0.14 * rows)
    bottom = rows + gap + strip
    look = {"aspect": "auto", "interpolation": "nearest", "origin": "upper"}
    cells = ax.imshow(np.ones((1, 1, 3)), extent=(0, cycles, rows, 0), **look)
    slots = ax.imshow(np.ones((1, 1, 3)), extent=(0, cycles, bottom, rows + gap), **look)
    chosen = Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=style.BLACK, linewidth=1.6)
    chosen.set_clip_on(False)
    ax.add_patch(chosen)
    ax.set(xlim=(0, cycles), ylim=(bottom, 0))
    step = -(-rows // 16)
    ticks = [row + 0.5 for row in range(0, rows, step)]
    names = [f"warp {numbers[row]}" for row in range(0, rows, step)]
    ax.set_yticks([*ticks, rows + gap + strip / 2], [*names, "issued"])
    ax.set_xticks(range(0, cycles + 1, TICKS))
    ax.grid(visible=False)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlabel(
        "cycle (light: ready, another warp goes first)", fontsize=style.NOTE, color=style.INK
    )
    return WarpArtists(cells, slots, chosen)
