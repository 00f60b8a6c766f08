"""What explorers say and draw agrees: bars and counters, legends and marks, times and latencies."""

import re

from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from gemmlab.explorers import KernelLab, Roofline
from tests.support.waiting import ran


def test_there_are_as_many_bars_as_counters(lab):
    told = re.search(r"for all (\d+) counters", ran(lab))[1]
    assert int(told) == len(lab.compared.names)
    assert "shared_bank_conflicts" in lab.compared.names


def test_an_error_has_no_hyphen_at_which_a_line_breaks(lab):
    error = re.search(r"\(error (.*), at most (.*)\)", ran(lab))
    assert "e-" not in error[0]
    assert "·10⁻" in error[2]


def test_nothing_is_cleared_where_nothing_was_run(lab):
    assert lab.clear.disabled
    ran(lab)
    assert not lab.clear.disabled
    lab.clear.click()
    assert lab.clear.disabled


def test_the_legends_of_the_lab_have_what_is_drawn():
    lab = KernelLab("tiled", n=4096, backend="recorded")
    texts = [text.get_text() for text in lab.right.get_legend().get_texts()]
    assert lab.over.odd
    assert texts == ["predicted", "recorded", "n is no power of two"]
    bars = {to_hex(bar.get_facecolor()) for bar in lab.rows.bars}
    shown = {to_hex(patch.get_facecolor()) for patch in lab.left.get_legend().findobj(Rectangle)}
    assert bars <= shown


def test_a_latency_that_is_not_recorded_is_said_in_place_of_a_time():
    explorer = Roofline("rtx2060", "float64", m=1, n=1, k=1)
    assert "latency limits it, and the latency of this device is not recorded" in explorer.message
    assert "Predicted" not in explorer.message
    assert not len(explorer.points["predicted"].get_xdata())
    for side in (explorer.m, explorer.n, explorer.k):
        side.value = 4096
    assert "is not recorded for this device.\nPredicted: " in explorer.message
    assert len(explorer.points["predicted"].get_xdata()) == 1
    lab = KernelLab("tiled", n=16, backend="simulator", device="rtx2060")
    assert "no time, as its latency is not recorded" in lab.message
