"""The explorer of stages: its picture is of the formula, of the code, and of what is recorded."""

import threading

import pytest

from gemmlab import device, kernels, plots, records
from gemmlab.explorers import Stages, stages as module
from gemmlab.explorers.stages import (
    KERNEL,
    PROBLEM,
    TILES,
    Code,
    code,
    ringed,
)
from gemmlab.model.pipeline import blocks_on, launch_seconds, pipeline_of
from tests.support.waiting import SECONDS, until

GPU = device("h200")
ALONE, TWO = (256, 128, 32), (128, 128, 32)


@pytest.fixture
def explorer(monkeypatch):
    monkeypatch.setattr(module, "lacking", lambda: "there is no compiler in this test")
    return Stages(ALONE, stages=1)


def lines(explorer):
    return {line.get_label(): list(line.get_ydata()) for line in explorer.right.get_lines()}


def test_every_tile_can_have_every_number_of_stages():
    for block in TILES:
        for stages in module.STAGES:
            chosen = kernels.mma_pipelined.choose(ringed(block, stages))
            assert (chosen.block, chosen.stages) == (block, stages)
            assert blocks_on(KERNEL, GPU, chosen, PROBLEM) >= 1
    recorded = {(t.block, t.stages) for t in kernels.mma_pipelined.tilings}
    assert recorded <= {(block, s) for block in TILES for s in module.STAGES}


def test_a_block_is_alone_where_its_sums_fill_the_registers():
    assert blocks_on(KERNEL, GPU, ringed(ALONE, 1), PROBLEM) == 1
    assert blocks_on(KERNEL, GPU, ringed(TWO, 1), PROBLEM) == 2


def test_sizes_on_the_chip_are_binary(explorer):
    held = KERNEL.shared_bytes(PROBLEM, ringed(ALONE, 1))
    assert f"The ring takes {held / 1024:g} KiB of shared memory" in explorer.message


def test_the_line_is_the_formula(explorer):
    times = [launch_seconds(KERNEL, GPU, ringed(ALONE, s), PROBLEM) for s in module.STAGES]
    assert lines(explorer)["formula, at best"] == times
    assert times == sorted(times, reverse=True)
    assert times[3] == times[4]
    rounds = -(-(4096 // 256) * (4096 // 128) // GPU.sms)
    assert times[0] == pytest.approx(
        rounds * pipeline_of(KERNEL, GPU, ringed(ALONE, 1), PROBLEM).cycles / GPU.clock
    )


def test_the_slider_moves_ring_line_and_words(explorer):
    before = explorer.picture.png
    assert "with 1 stage a step takes" in explorer.message
    explorer.stages.value = 3
    assert explorer.here.get_xdata()[0] == 3
    assert [t.get_text() for t in explorer.left.get_yticklabels()][:3] == [
        "stage 0", "stage 1", "stage 2"
    ]  # fmt: skip
    assert "with 3 stages a step takes" in explorer.message
    assert explorer.picture.png != before
    explorer.tile.value = TWO
    assert "blocks share an SM: 2" in explorer.message


def test_a_run_is_checked_and_counted_without_a_compiler(explorer):
    explorer.start()
    assert explorer.wait(SECONDS)
    assert "the result is right, 16 barriers" in explorer.message
    assert "nothing, there is no compiler in this test" in explorer.message
    explorer.stages.value = 2
    assert "Press Run" in explorer.message
    explorer.start()
    assert explorer.wait(SECONDS)
    assert "the result is right, 8 barriers" in explorer.message


def test_what_the_code_tells_is_drawn_for_its_tile_alone(explorer):
    explorer.codes[ringed(ALONE, 1)] = Code(700e-6, 1, 1700.0)
    explorer.refresh()
    drawn = lines(explorer)
    assert drawn["compiled code"] == [700e-6]
    slower = [launch_seconds(KERNEL, GPU, ringed(ALONE, s), PROBLEM, 1700.0) for s in module.STAGES]
    assert drawn["formula, as compiled"] == slower
    assert slower[0] > slower[1] == slower[4]
    assert "a product 1,700" in explorer.message
    explorer.tile.value = TWO
    assert "compiled code" not in lines(explorer)


def test_records_are_drawn_where_there_are_some(explorer):
    class Run:
        seconds, source = 480e-6, "recorded on a GPU"

    explorer.recorded = {ringed(TWO, 2): Run()}
    explorer.tile.value = TWO
    explorer.stages.value = 2
    assert lines(explorer)["recorded"] == [480e-6]
    assert "recorded 480 µs" in explorer.message
    assert "recorded on a GPU" in {t.get_text().rpartition(" · ")[2] for t in explorer.right.texts}
    assert "recorded: 480 µs" in plots.alt(explorer.right.figure)


def test_values_that_no_control_could_show():
    with pytest.raises(ValueError, match="tile=\\(1, 2, 3\\)"):
        Stages((1, 2, 3))
    with pytest.raises(ValueError, match="stages=6; use 1 to 5"):
        Stages(stages=6)


def test_the_run_is_shown_while_its_code_is_compiled(explorer, monkeypatch):
    gate = threading.Event()

    def slow(tiling, device):
        gate.wait(SECONDS)
        return Code(700e-6, 1, 1700.0)

    monkeypatch.setattr(module, "lacking", lambda: "")
    monkeypatch.setattr(module, "code", slow)
    explorer.start()
    until(lambda: "16 barriers. From its compiled code: it is being compiled" in explorer.message)
    explorer.stages.value = 2  # the controls are alive
    gate.set()
    assert explorer.wait(SECONDS)
    explorer.stages.value = 1
    assert "From its compiled code: 700 µs" in explorer.message
    assert lines(explorer)["compiled code"] == [700e-6]


def test_code_that_cannot_be_predicted_says_why(explorer, monkeypatch):
    def fails(tiling, device):
        raise RuntimeError("ptxas fell over")

    monkeypatch.setattr(module, "lacking", lambda: "")
    monkeypatch.setattr(module, "code", fails)
    explorer.start()
    assert explorer.wait(SECONDS)
    assert "ptxas fell over" in explorer.message


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.measuring
def test_the_formula_with_the_codes_products_comes_close_to_the_code():
    """What chapter 09 says of a block alone: the second stage gains, the third does not."""
    made = {s: code(ringed(ALONE, s), GPU) for s in (1, 2, 3)}
    assert {c.blocks for c in made.values()} == {1}
    for stages, found in made.items():
        formula = launch_seconds(KERNEL, GPU, ringed(ALONE, stages), PROBLEM, found.multiply)
        assert formula == pytest.approx(found.seconds, rel=0.16)
    at_best = pipeline_of(KERNEL, GPU, ringed(ALONE, 1), PROBLEM)
    assert module.stages_needed(at_best.copy, at_best.multiply) == 4
    assert module.stages_needed(at_best.copy, made[1].multiply) == 2
    assert 2.5 < made[1].multiply / at_best.multiply < 3  # "nearly three times"
    assert 0.6 < made[2].seconds / made[1].seconds < 2 / 3  # "more than a third off"
    assert made[3].seconds == pytest.approx(made[2].seconds, rel=0.05)


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.measuring
def test_where_the_prediction_from_code_is_furthest_off():
    """Two blocks on an SM: four stages within a tenth, one a twelfth off, two almost a fifth."""
    ratio = {}
    for stages in (1, 2, 4):
        tiling = ringed(TWO, stages)
        seen = records.find(kernels.mma_pipelined, module.PROBLEM, tiling).seconds
        ratio[stages] = code(tiling, GPU).seconds / seen
    assert ratio[1] == pytest.approx(1 - 1 / 12, abs=0.01)
    assert abs(ratio[4] - 1) < 0.1
    assert 1.17 < ratio[2] < 1.2
