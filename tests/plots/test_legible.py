"""Each drawing as a picture: large enough, nothing covered, every series named, said in words."""

import ast
import json
from itertools import combinations

import numpy as np
import pytest
from matplotlib.legend import Legend
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from gemmlab import plots
from gemmlab.plots.shared import style
from gemmlab.plots.shared.style import described
from tests.plots.samples import DRAWINGS
from tests.support.paths import ROOT

TOOLS = {
    *("Row", "Span", "along_n", "alt", "describe", "figure", "make_room", "number", "provenance"),
    *("ring", "si", "size", "style", "turns", "value"),
}
# What the words of each drawing must contain: its quantities, and findings that data decide.
WORDS = {
    "access_map": ["32 lanes use 1 of 32 banks in 32 wavefronts", "1 line of 128 B"],
    "bars": ["tiles of 16×16 17.5 ms"],
    "beside": ["naive 16×16×1 977 GFLOP/s"],
    "alignment": ["bits of 4 terms", "a1·b1 loses 3 bits"],
    "counters": ["global load sectors", "the same, counter by counter"],
    "cover": ["2 by 3 tiles of 128×128, 6 in all", "66.9% of what they cover lies in C"],
    "fragment": ["16 rows and 16 columns", "Lane 5: (1, 2)"],
    "inside": ["63,328 cycles; 48,813 were simulated, −22.9%", "recorded on NVIDIA H100"],
    "ladder": ["Speed of 7 kernels", "of that of cublas", "53 times the speed of naive"],
    "lane_map": ["32 lanes own", "Lane 5: (1, 2)."],
    "memories": ["tiled, recorded, runs at 7.86 TFLOP/s", "683 FLOP/B at DRAM", "at shared memory"],
    "pieces": ["lie in 1 place: 8 wavefronts", "7.2 lie in 8 places: 1 wavefront."],
    "residual": ["Measured over predicted time", "naive 16×16×1, recorded: "],
    "resources": ["L1 and shared", "shared memory decides"],
    "roofline": ["139 FLOP/B", "thin, predicted, at 124 FLOP/B", "DRAM's 900 GB/s"],
    "sawtooth": ["steepest step is from 676 µs at n = 3,072 to 1.31 ms at 3,080"],
    "schedule": ["4 blocks on 4 SMs: the last step ends at 10", "6 pieces of shared tiles"],
    "sizes": ["Speed against n", "at n = 8,192 cublas is highest", "FP32 peak: 66.9 TFLOP/s"],
    "slots": ["70% used: 35% FMA, 24% integer", "empty: 13% a result, 10% fixed pause"],
    "speedups": ["Speedup of “registers” over “shared”", "5 of 8 gain"],
    "splits": ["recorded: 1.43 ms at 1, at least 373 µs at 4", "cuBLAS: 373 µs."],
    "thread_tiles": ["Speed of each thread tile", "8×8 53.2 TFLOP/s"],
    "tiles": ["rows 16 to 31 and columns 32 to 47", "8 rows and 8 columns of them beyond C"],
    "waves": ["117 tiles over 108 SMs: 2 waves", "9 tiles, 8.3% of the SMs", "54.2% of the SMs"],
    "timeline": ["multiply 600 to 1,000", "FMA units waits longest, 60% of that time"],
    "warps": ["cycles 128 to 191: 51 instructions are issued; warp 0 issues most, 40."],
}


@pytest.fixture(scope="module", params=DRAWINGS)
def drawn(request):
    """A drawing's name, and its figure as it is laid out on the page."""
    figure = DRAWINGS[request.param]()
    figure.canvas.draw()
    return request.param, figure


def texts(figure):
    """The texts that are drawn: of ticks, matplotlib keeps some that lie outside of the axes."""
    outside = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            outside |= set() if ax.axison else set(axis.get_majorticklabels())
            low, high = sorted(axis.get_view_interval())
            for at, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True):
                if not low <= at <= high:
                    outside.add(label)
    every = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    return [text for text in every if text not in outside]


def test_every_drawing_is_among_the_samples():
    assert set(plots.__all__) - TOOLS == {*DRAWINGS, "points"}  # points lie in a roofline
    assert set(WORDS) == set(DRAWINGS)


def test_words_name_quantities_and_findings(drawn):
    name, figure = drawn
    words = plots.alt(figure)
    assert described(figure)
    assert "Source: " in words
    for part in WORDS[name]:
        assert part in words


def test_every_text_can_be_read(drawn):
    _, figure = drawn
    small = [(t.get_text(), t.get_fontsize()) for t in texts(figure)
             if t.get_fontsize() < style.SMALLEST]  # fmt: skip
    assert small == []


def test_no_text_covers_another(drawn):
    _, figure = drawn
    boxes = [(t.get_text(), shrunk(t.get_window_extent())) for t in texts(figure)
             if t.get_rotation() == 0]  # fmt: skip
    over = [(one, two) for (one, a), (two, b) in combinations(boxes, 2) if Bbox.intersection(a, b)]
    assert over == []


def shrunk(box):
    """A text's box without the room above its letters; letters of two may lie side by side."""
    return Bbox.from_extents(box.x0 + 1, box.y0 + 2, max(box.x1 - 1, box.x0 + 2), box.y1 - 2)


def test_no_text_of_axes_is_cut_off_by_them(drawn):
    _, figure = drawn
    visible = set(texts(figure))
    written = [text for ax in figure.axes for text in ax.texts if text in visible]
    for text in written:
        if text.get_clip_on() and not isinstance(text, Annotation):  # annotations may lie outside
            inside, box = text.axes.get_window_extent().padded(1), text.get_window_extent()
            assert inside.x0 <= box.x0
            assert box.x1 <= inside.x1
            assert inside.y0 <= box.y0
            assert box.y1 <= inside.y1


def series(ax):
    """What a legend has to name: lines with data that are no rules."""
    rules = [line for line in ax.lines if len(set(np.atleast_1d(line.get_ydata()))) == 1]
    return [line for line in ax.lines if len(line.get_xdata()) > 1 and line not in rules]


def test_series_have_a_legend_that_is_in_the_picture_and_covers_nothing(drawn):
    name, figure = drawn
    for ax in figure.axes:
        if len(series(ax)) > 1 and name not in ("roofline", "memories"):  # where lines have names
            assert ax.get_legend() is not None
    page = Bbox.from_bounds(*figure.get_tightbbox().bounds)
    for legend in figure.findobj(Legend):
        box = legend.get_window_extent()
        inches = box.transformed(figure.dpi_scale_trans.inverted())
        assert page.x0 - 0.1 <= inches.x0
        assert inches.x1 <= page.x1 + 0.1
        assert page.y0 - 0.1 <= inches.y0
        assert all(text.get_text() for text in legend.get_texts())
        for line in legend.axes.lines:
            if line.get_gid() == "limit":
                continue
            points = line.get_transform().transform(np.column_stack(line.get_data()))
            assert not any(box.contains(*point) for point in points)


def test_lines_of_one_picture_differ_without_their_colours(drawn):
    _, figure = drawn
    for ax in figure.axes:
        joined = [line for line in series(ax) if line.get_markerfacecolor() != "white"]
        looks = [(str(line._dash_pattern), line.get_marker(), line.get_fillstyle())
                 for line in joined]  # fmt: skip
        assert len(set(looks)) == len(looks)


# ------------------------------------------------------------------------------ of the notebooks


def silent(source):
    """The figures of a cell of which nothing is said: made by hand, and never described."""
    calls = {
        node.func.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "plots"
    }
    return "figure" in calls and not calls & {"describe", "points", *DRAWINGS}


def unshown(source):
    """Whether a cell makes a figure of its own and does not end with it."""
    statements = ast.parse(source).body
    own = [s for s in statements if not isinstance(s, ast.FunctionDef)]
    return "plots.figure(" in "\n".join(map(ast.unparse, own)) and ast.unparse(own[-1]) != "figure"


def too_small(source):
    """The font sizes that a cell writes down and nobody can read."""
    keywords = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.keyword))
    sizes = [k.value.value for k in keywords if k.arg == "fontsize" and hasattr(k.value, "value")]
    return [size for size in sizes if isinstance(size, int | float) and size < style.SMALLEST]


def typed(source):
    """The descriptions of a cell that are written down, numbers and all, and not computed."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    said = [call.args[1] for call in calls if ast.unparse(call.func) == "plots.describe"]
    fixed = [words.value for words in said if isinstance(words, ast.Constant)]
    return [words for words in fixed if any(map(str.isdigit, words))]


@pytest.fixture(params=sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def code(request):
    """The code cells of a chapter, each with its id."""
    return {
        cell["id"]: "".join(line for line in cell["source"] if not line.startswith(("%", "!")))
        for cell in json.loads(request.param.read_text("utf-8"))["cells"]
        if cell["cell_type"] == "code"
    }


@pytest.mark.parametrize("fault", [silent, unshown, too_small, typed])
def test_every_figure_of_a_chapter_is_shown_legible_and_says_what_it_shows(code, fault):
    assert [name for name, source in code.items() if fault(source)] == []


def test_a_figure_that_is_not_shown_is_found():
    assert unshown("figure, (ax,) = plots.figure()\nplots.provenance(ax, 'computed')")
    assert not unshown("figure, (ax,) = plots.figure()\nfigure")
    assert not unshown("def draw():\n    figure, (ax,) = plots.figure()\n    return figure\ndraw()")


def test_a_font_too_small_and_numbers_typed_are_found():
    assert too_small("ax.text(0, 0, 'x', fontsize=7)") == [7]
    assert not too_small("ax.text(0, 0, 'x', fontsize=style.NOTE)")
    assert typed("plots.describe(ax, 'It falls after 1024.')")
    assert not typed("plots.describe(ax, f'It falls after {n}.')")


def test_a_silent_figure_is_found():
    by_hand = "figure, (ax,) = plots.figure()\nax.plot([1], [2])\nplots.provenance(ax, 'computed')"
    assert silent(by_hand)
    assert not silent(by_hand + "\nplots.describe(figure, 'One point.')")
    assert not silent(by_hand.replace("ax.plot([1], [2])", "plots.sizes(ax, [])"))
