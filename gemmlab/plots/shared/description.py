"""What a figure shows, in words: the alternative text for those who do not see it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from matplotlib.axes import Axes
from matplotlib.figure import Figure

SOURCE = "source"  # the part that says where the data come from; it is read last

# What has been said of a figure or of axes, by part: each drawing on the same axes has its own.
_SAID: WeakKeyDictionary[Figure | Axes, dict[str, str]] = WeakKeyDictionary()


def describe(shown: Figure | Axes, text: str, part: str = "") -> None:
    """Say what a figure, or one of its axes, shows: its quantities and what can be seen of them.

    The text of a figure stands for all that its axes say, except for the source of the data.
    part : the drawing that is described; another text for the same part replaces the first
    Raises ValueError where the text is empty.

    >>> from gemmlab import plots
    >>> figure, (ax,) = plots.figure()
    >>> plots.describe(figure, f"Speed against n: it doubles from {512} to {1024}.")
    >>> plots.alt(figure)
    'Speed against n: it doubles from 512 to 1024.'
    """
    words = " ".join(text.split())
    if not words:
        raise ValueError(f"the description is {text!r}; say what the figure shows")
    _SAID.setdefault(shown, {})[part] = words


def described(figure: Figure) -> bool:
    """Whether something says what the figure, or each of its axes, shows."""
    return bool(_own(figure)) or all(map(_own, figure.axes))


def alt(figure: Figure) -> str:
    """The alternative text: what figure or axes say, titles first, and the sources once, last."""
    parts = [_own(figure)] if _own(figure) else [_of_axes(ax) for ax in figure.axes]
    sources = dict.fromkeys(_SAID.get(ax, {}).get(SOURCE, "") for ax in figure.axes)
    return " ".join(filter(None, [*parts, *sources]))


def _own(shown: Figure | Axes) -> str:
    """Everything said of a figure or of axes, without the source."""
    return " ".join(text for part, text in _SAID.get(shown, {}).items() if part != SOURCE)


def _of_axes(ax: Axes) -> str:
    """The title and what is said of axes; where nothing is, their quantities."""
    title = " ".join(ax.get_title(loc="left").split())
    labels = [label for label in (ax.get_ylabel(), ax.get_xlabel()) if label]
    said = _own(ax) or " against ".join(labels)
    return f"{title}: {said}" if title and said else title or said
