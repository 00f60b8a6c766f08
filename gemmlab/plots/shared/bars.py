"""A few numbers of one kind, as bars that say their values."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.container import BarContainer

from gemmlab.plots.shared import style
from gemmlab.plots.shared.description import describe

HEIGHT = 0.62  # of a bar, of the distance between two


def bars(ax: Axes, values: Mapping[str, float], unit: str) -> BarContainer:
    """Draw each value as a bar from the first at the top down, with its value beside it.

    values : name -> number of at least 0, in `unit`
    Raises ValueError where there are no values, or one below 0.

    >>> from gemmlab import plots
    >>> figure, (ax,) = plots.figure(5, 1.5)
    >>> artists = plots.bars(ax, {"before": 2e-3, "after": 5e-4}, "s")
    >>> plots.alt(figure)
    'Bars: before 2 ms, after 500 µs.'
    """
    if not values or min(values.values()) < 0:
        raise ValueError(f"values={dict(values)!r}; use at least one, and none below 0")
    style.prepare(ax)
    drawn = ax.barh(list(range(len(values))), list(values.values()), HEIGHT, color=style.SKY)
    texts = [style.si(value, unit) for value in values.values()]
    ax.bar_label(drawn, texts, padding=5, fontsize=style.LABEL, color=style.INK)
    ax.set_yticks(range(len(values)), list(values))
    ax.tick_params(axis="y", labelsize=style.LABEL)
    ax.set(xticks=[], ylim=(len(values) - 0.5, -0.5), xlim=(0, 1.25 * max(values.values()) or 1))
    ax.spines["bottom"].set_visible(False)
    ax.grid(visible=False)
    pairs = [f"{name} {text}" for name, text in zip(values, texts, strict=True)]
    describe(ax, f"Bars: {', '.join(pairs)}.", "bars")
    return drawn
