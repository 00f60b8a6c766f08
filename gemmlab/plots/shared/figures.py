"""Figures that show themselves in a notebook: sharp, in both themes, with alternative text."""

import html
from base64 import b64encode
from io import BytesIO
from struct import unpack

import matplotlib.figure
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from gemmlab.plots.shared.style import alt

DPI = 96  # of a CSS pixel: an inch of a figure is an inch of a page
DENSITY = 2  # pixels of the picture for one of the page, in each direction
# Narrower than this a picture does not shrink: it is moved sideways instead.
READABLE, LEAST = "36rem", 0.7  # and the least part of its own width

# A picture is drawn once, in dark ink on its own white paper. A dark theme turns its lightness over
# and keeps the hues: what stood out on white stands out on black, and texts keep their contrast.
PAPER = (
    "box-sizing:border-box; background:#fff; border:1px solid #d0d0d0; border-radius:6px; "
    "padding:4px"
)
DARK = (
    "<style>:is([data-jp-theme-light=false], [data-theme=dark], .vscode-dark) .gemmlab-picture"
    "{filter:invert(0.9) hue-rotate(180deg) saturate(1.2)}</style>"
)


class Figure(matplotlib.figure.Figure):
    """A figure without a window; Jupyter shows it as a picture whose `alt` says what it shows."""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple:
        """Return the picture as HTML for pages and as PNG for paper, as IPython asks for it."""
        picture = png(self, DENSITY)
        width, height = (side // DENSITY for side in unpack(">II", picture[16:24]))
        data = b64encode(picture).decode()
        page = (
            '<figure class="gemmlab-figure" tabindex="0" style="margin:0; overflow-x:auto">'
            f'{DARK}<img class="gemmlab-picture dark-light" alt="{html.escape(alt(self))}" '
            f'width="{width}" height="{height}" style="height:auto; '
            f'max-width:max(100%, {READABLE}, {LEAST * width:.0f}px); {PAPER}" '
            f'src="data:image/png;base64,{data}">'
            "</figure>"
        )
        return (
            {"text/html": page, "image/png": data},
            {"image/png": {"width": width, "height": height}},
        )


def png(figure: Figure, density: float) -> bytes:
    """Return the whole figure as PNG, with nothing cut off and no empty margin.

    Its description goes with it, for programs that read it from the file.
    """
    file = BytesIO()
    figure.savefig(
        file, format="png", dpi=density * DPI, bbox_inches="tight", pad_inches=0.08,
        metadata={"Description": alt(figure), "Software": None},
    )  # fmt: skip
    return file.getvalue()


def figure(
    width: float = 7.0, height: float = 4.0, columns: int = 1, rows: int = 1, **spacing: float
) -> tuple[Figure, list[Axes]]:
    """Return a figure of `width` × `height` inches without a window, and its axes, row by row.

    spacing : of `Figure.subplots_adjust`, as wspace
    """
    made = Figure(figsize=(width, height), dpi=DPI)
    FigureCanvasAgg(made)
    axes = made.subplots(rows, columns, squeeze=False).flat
    margins = {"left": 0.8 / width, "right": 1 - 0.2 / width}
    margins |= {"bottom": 0.55 / height, "top": 1 - 0.4 / height, "wspace": 0.35, "hspace": 0.6}
    made.subplots_adjust(**{**margins, **spacing})
    return made, list(axes)
