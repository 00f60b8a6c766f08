"""Which lanes of a warp touch which bytes: sectors of global memory, banks of shared memory."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.image import AxesImage
from matplotlib.text import Text
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Bbox

from gemmlab.model.transactions import BANKS, LINE, SECTOR, WARP, WORD
from gemmlab.plots.shared import style
from gemmlab.simt import Access

COLUMNS = LINE // WORD  # words of a line, and as many banks
MOST_ROWS = 32  # that can be read; one warp never has more
MAP = colormaps["cividis"]  # told apart by everybody, and its lightness rises steadily
FETCHED = (0.87, 0.87, 0.87)
WIDEST, HIGHEST = 44, 16  # a cell, at most [pt]
DIGIT = 0.64  # the width of a digit, of the size of its font


class Cells(NamedTuple):
    """An access map has a row for each line or wavefront and a column for each word or bank.

    rows : the name of each row; users : (row, column) -> the lanes, or warps, that touch it
    fetched : (rows, 32), the words that move, used or not
    """

    rows: list[str]
    users: dict[tuple[int, int], list[int]]
    fetched: np.ndarray


class AccessArtists(NamedTuple):
    """`access_map` draws these: the coloured cells, their numbers, rules, and the provenance."""

    image: AxesImage
    numbers: list[Text]
    rules: LineCollection
    source: Text


def access_map(
    ax: Axes, access: Access, warp: int | None = 0, artists: AccessArtists | None = None
) -> AccessArtists:
    """Draw which lanes of `warp` touch which bytes; of all warps of the block where it is None.

    access : one of `Report.trace`
    In global memory a row is a 128-byte line and a cell one of its words, from the first sector
    that is moved to the last; grey words are moved, with their sector, and not used. In shared
    memory a row is a wavefront and a cell a bank. A cell's number is the lane, or the warp, that
    touches it, where it can be read. Raises ValueError for a warp that the access does not have.
    """
    warps = len(access.active)
    if warp is not None and not 0 <= warp < warps:
        raise ValueError(f"warp={warp} is outside; use 0 to {warps - 1}, or None for all")
    chosen = range(warps) if warp is None else [warp]
    found = (lines if access.space == "global" else wavefronts)(access, chosen)
    artists = artists or _new(ax)
    shown = min(len(found.rows), MOST_ROWS)
    columns = _moved(found) if access.space == "global" else range(BANKS)
    cell = _fit(ax, max(shown, 1), len(columns))
    _colour(artists, found, shown, top=(warps if warp is None else WARP) - 1)
    numbers = _number(artists, found, shown, cell)
    _rule(artists, shown, columns, sectors=access.space == "global")

    who = "all warps" if warp is None else f"warp {warp}"
    style.title(ax, f"{access.array}: {access.op} by {who}, {_summary(access, list(chosen))}")
    if access.space == "global":
        edges = np.arange(columns.start, columns.stop + 1, SECTOR // WORD)
        ax.set_xticks(edges - 0.5, edges * WORD)
        across, down = f"byte in the {LINE}-byte line", "line at byte"
    else:
        ax.set_xticks(range(0, BANKS, 4), range(0, BANKS, 4))
        across, down = "bank", "wavefront"
    more = f", the first {shown} of {len(found.rows)}" if shown < len(found.rows) else ""
    across += numbers.format("warps" if warp is None else "lanes")
    if found.fetched.sum() > len(found.users):
        across += "; grey is moved, not used"
    beside = len(down + more) * DIGIT * style.NOTE <= shown * cell[1]  # there is room for it
    across += "" if beside else f"\nrows: {down}"
    ax.set_xlabel(across, fontsize=style.NOTE, color=style.INK, loc="left")
    ax.set_ylabel(down + more if beside else "", fontsize=style.NOTE, color=style.INK)
    step = math.ceil(1.2 * style.TICK / cell[1])
    ax.set_yticks(range(0, shown, step), found.rows[:shown:step])
    ax.set_xlim(columns.start - 0.5, columns.stop - 0.5)
    ax.set_ylim(max(shown, 1) - 0.5, -0.5)
    style.describe(ax, _finding(access, found, list(chosen)), "access")
    return artists


def lines(access: Access, warps: Iterable[int]) -> Cells:
    """Give the 128-byte lines that warps touch, the lowest first; who touches each of their words.

    The users of a cell are lanes where there is one warp, and warps where there are several.
    """
    chosen = list(warps)
    words, users = [], []
    for w in chosen:
        for lane in np.flatnonzero(access.active[w]):
            for word in _words(access, w, lane):
                words.append(word)
                users.append(int(lane) if len(chosen) == 1 else w)
    starts = sorted({word // COLUMNS for word in words})
    place = {line: row for row, line in enumerate(starts)}
    cells: dict[tuple[int, int], list[int]] = {}
    fetched = np.zeros((len(starts), COLUMNS), bool)
    for word, user in zip(words, users, strict=True):
        row, column = place[word // COLUMNS], word % COLUMNS
        cells.setdefault((row, column), []).append(user)
        first = column - column % (SECTOR // WORD)
        fetched[row, first : first + SECTOR // WORD] = True
    return Cells([f"{line * LINE:,}" for line in starts], cells, fetched)


def wavefronts(access: Access, warps: Iterable[int]) -> Cells:
    """Return the wavefronts of shared memory, and who is served in each of them by each bank.

    A wavefront serves each bank one word, to any number of lanes; a bank that is asked for several
    words serves them in as many wavefronts, the lowest first.
    """
    chosen = list(warps)
    rows: list[str] = []
    cells: dict[tuple[int, int], list[int]] = {}
    for w in chosen:
        done = 0
        for part in access.groups(w):
            asked: dict[int, dict[int, list[int]]] = {}  # bank -> word -> users
            for lane in part[access.active[w, part]]:
                for word in _words(access, w, lane):
                    user = int(lane) if len(chosen) == 1 else w
                    asked.setdefault(word % BANKS, {}).setdefault(word, []).append(user)
            for bank, of_bank in asked.items():
                for turn, word in enumerate(sorted(of_bank)):
                    cells[len(rows) + turn, bank] = of_bank[word]
            passes = max(map(len, asked.values()), default=0)
            name = "" if len(chosen) == 1 else f"warp {w}: "
            rows += [f"{name}{done + turn}" for turn in range(passes)]
            done += passes
    return Cells(rows, cells, np.zeros((len(rows), BANKS), bool))


def _words(access: Access, warp: int, lane: int) -> range:
    """Return the 4-byte words that a lane touches."""
    first = int(access.addresses[warp, lane])
    return range(first // WORD, -(-(first + access.itemsize) // WORD))


def _summary(access: Access, warps: list[int]) -> str:
    if access.space == "shared":
        return style.count(int(access.wavefronts[warps].sum()), "wavefront")
    sectors = int(access.sectors[warps].sum())
    used = int(access.active[warps].sum()) * access.itemsize
    return f"{style.count(sectors, 'sector')} ({sectors * SECTOR:,} B) for {used:,} B"


def _finding(access: Access, found: Cells, warps: list[int]) -> str:
    lanes = int(access.active[warps].sum())
    if access.space == "global":
        unused = int(found.fetched.sum()) - len(found.users)
        return (
            f"{style.count(lanes, 'lane')} touch {style.count(len(found.users), 'word')} in "
            f"{style.count(len(found.rows), 'line')} of {LINE} B; with their sectors "
            f"{unused} words are moved that nobody uses."
        )
    load = Counter(bank for _, bank in found.users)
    bank, most = max(load.items(), key=lambda item: item[1], default=(0, 0))
    return (
        f"{style.count(lanes, 'lane')} use {len(load)} of {BANKS} banks in "
        f"{style.count(len(found.rows), 'wavefront')}; the busiest, bank {bank}, serves "
        f"{style.count(most, 'word')}."
    )


def _colour(artists: AccessArtists, found: Cells, shown: int, top: int) -> None:
    cells = np.ones((max(shown, 1), COLUMNS, 3))
    cells[:shown][found.fetched[:shown]] = FETCHED
    for (row, column), users in found.users.items():
        if row < shown:
            # From dark to light by the lane or the warp, without the darkest.
            cells[row, column] = MAP(0.15 + 0.85 * users[0] / max(top, 1))[:3]
    artists.image.set_data(cells)
    artists.image.set_extent((-0.5, COLUMNS - 0.5, max(shown, 1) - 0.5, -0.5))


def _moved(found: Cells) -> range:
    """Return the columns from the first sector that is moved in some row to the last."""
    moved = np.flatnonzero(found.fetched.any(axis=0))
    return range(moved[0], moved[-1] + 1) if moved.size else range(SECTOR // WORD)


def _fit(ax: Axes, rows: int, columns: int) -> tuple[float, float]:
    """Make `ax` as large as its cells, from its upper left corner; width and height of one [pt]."""

    def inner(axes: Axes, _renderer: object) -> Bbox:
        whole = axes.get_position(original=True)
        width, height = columns * cell[0] / page[0], rows * cell[1] / page[1]
        return Bbox.from_bounds(whole.x0, whole.y1 - height, width, height)

    page = 72 * ax.get_figure().get_size_inches()
    whole = ax.get_position(original=True)
    cell = (
        min(whole.width * page[0] / columns, WIDEST),
        min(whole.height * page[1] / rows, HIGHEST),
    )
    ax.set_axes_locator(inner)
    return cell


def _rule(artists: AccessArtists, shown: int, columns: range, sectors: bool) -> None:
    left, right, bottom = columns.start - 0.5, columns.stop - 0.5, shown - 0.5
    across = [((left, y - 0.5), (right, y - 0.5)) for y in range(shown + 1)]
    edges = range(columns.start, columns.stop + 1)
    down = [((x - 0.5, -0.5), (x - 0.5, bottom)) for x in edges]
    artists.rules.set_segments(across + down)
    step = SECTOR // WORD if sectors else COLUMNS
    thick = [1.4 if x % step == 0 else 0.4 for x in edges]
    artists.rules.set_linewidths([0.4] * len(across) + thick)


def _number(artists: AccessArtists, found: Cells, shown: int, cell: tuple[float, float]) -> str:
    """Write the users into their cells, the first alone where all do not fit.

    Where that cannot be read either, nothing is written. Returns what the numbers are, in words.
    """
    for name in (_span, _first):
        longest = max((len(name(users)) for users in found.users.values()), default=1)
        size = min(style.TICK, 0.8 * cell[1], cell[0] / DIGIT / longest)  # of the font [pt]
        if size >= style.SMALLEST:
            break
    drawn = [(place, users) for place, users in found.users.items() if place[0] < shown]
    while len(artists.numbers) < len(drawn):
        text = artists.image.axes.text(0, 0, "", ha="center", va="center_baseline")
        artists.numbers.append(text)
    image = artists.image.get_array()
    for text in artists.numbers[len(drawn) :]:
        text.set_text("")
    for text, ((row, column), users) in zip(artists.numbers, drawn, strict=False):
        text.set(position=(column, row), text=name(users), color=style.ink_on(image[row, column]))
        text.set(fontsize=size, visible=size >= style.SMALLEST)
    if size < style.SMALLEST:
        return ""
    return "; numbers are {}, + is others too" if name is _first else "; numbers are {}"


def _span(users: list[int]) -> str:
    """Name the lanes that touch a cell in few characters: 5, 0–31, or 0…30 with gaps."""
    distinct = sorted(set(users))
    if len(distinct) == 1:
        return str(distinct[0])
    whole = len(distinct) == distinct[-1] - distinct[0] + 1
    return f"{distinct[0]}{'–' if whole else '…'}{distinct[-1]}"


def _first(users: list[int]) -> str:
    """Return the first who touches a cell, and + where others do, too."""
    return f"{min(users)}{'+' * (len(set(users)) > 1)}"


def _new(ax: Axes) -> AccessArtists:
    style.prepare(ax)
    ax.xaxis.set_major_locator(NullLocator())
    ax.grid(False)
    ax.spines[["left", "bottom"]].set_visible(False)
    image = ax.imshow(np.ones((1, COLUMNS, 3)), aspect="auto", interpolation="nearest", zorder=0)
    rules = LineCollection([], colors=style.GREY)
    ax.add_collection(rules, autolim=False)
    return AccessArtists(image, [], rules, style.provenance(ax, "simulated"))
