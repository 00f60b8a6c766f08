"""The predicted time of a learner's kernel: made beside the widget, never in its way."""

import threading
from dataclasses import replace

import pytest

from gemmlab import Gemm, device, kernels, plots
from gemmlab.compiled.forecast import rungs
from gemmlab.explorers import KernelLab
from gemmlab.explorers.shared import running
from gemmlab.explorers.shared.running import COMPILING, Forecasts
from tests.support import own_kernels
from tests.support.waiting import SECONDS

WHAT = "Predicted from its compiled code for NVIDIA H200 SXM, 4096×4096×4096 float32: "


def ran(kernel, **options):
    lab = KernelLab(kernel, **{"n": 32, "tile": 8, "backend": "simulator", **options})
    lab.start()
    assert lab.wait(SECONDS)
    return lab


@pytest.fixture
def compiler(monkeypatch):
    monkeypatch.setattr(running, "lacking", lambda: "")


@pytest.mark.ptxas
def test_a_kernel_is_predicted_where_it_is_timed(compiler):
    lab = ran(own_kernels.right)
    assert lab.forecasts.wait(SECONDS)
    expected = rungs.predict_rung(Gemm(4096, 4096, 4096), "h200", lab.own)
    line = lab.message.split("\n")[-1]
    assert line.startswith(WHAT + plots.si(expected.seconds, "s"))
    assert "the result is right" in lab.message
    assert "the others wait mostly for" in line


@pytest.mark.ptxas
def test_what_numba_refuses_is_one_line(compiler):
    lab = ran(own_kernels.uncompilable)
    assert lab.forecasts.wait(SECONDS)
    assert "the result is right" in lab.message
    assert WHAT + "nothing: Numba cannot compile it for the GPU: " in lab.message
    assert not lab.run.disabled


def test_without_the_tools_a_line_says_what_to_install():
    lab = ran(own_kernels.right)  # see conftest.py
    assert lab.message.endswith(WHAT + "there is no compiler in this test")


class Prediction:
    """Stands for `predict_rung`: it waits until it may go on, and fails or not."""

    def __init__(self, error=None):
        self.error, self.asked, self.may = error, [], threading.Event()

    def __call__(self, problem, target, kernel, tiling):
        self.asked.append((problem, kernel.name, tiling))
        assert self.may.wait(SECONDS)
        raise self.error


@pytest.mark.parametrize("error", [ValueError("no facts"), MemoryError("too large"), KeyError(3)])
def test_the_lab_lives_while_and_after_a_prediction_fails(compiler, monkeypatch, error):
    waiting = Prediction(error)
    monkeypatch.setattr(rungs, "predict_rung", waiting)
    lab = ran(own_kernels.right)
    assert lab.message.endswith(WHAT + COMPILING)
    assert not lab.run.disabled
    lab.size.value = 16  # the widget answers meanwhile, and another run needs no further forecast
    lab.start()
    assert lab.wait(SECONDS)
    assert lab.message.endswith(WHAT + COMPILING)
    assert lab.problem == Gemm(16, 16, 16)
    waiting.may.set()
    assert lab.forecasts.wait(SECONDS)
    assert lab.message.endswith(WHAT + f"nothing: {type(error).__name__}: {error}")
    assert len(waiting.asked) == 1
    assert len(lab.history) == 2


def test_a_refusal_is_not_overwritten(compiler, monkeypatch):
    waiting = Prediction(ValueError("no facts"))
    monkeypatch.setattr(rungs, "predict_rung", waiting)
    lab = ran(own_kernels.right)
    lab.refuse("something else")
    waiting.may.set()
    assert lab.forecasts.wait(SECONDS)
    assert lab.message == "Not possible: something else"


def test_the_courses_own_kernels_are_not_predicted(compiler):
    lab = KernelLab("tiled", n=32, backend="simulator")
    lab.start()
    assert lab.wait(SECONDS)
    assert "compiled code" not in lab.message


@pytest.mark.ptxas
def test_a_timed_run_is_set_beside_its_own_size(compiler):
    """A run on this device has the same problem, and the ratio of both times."""
    h200, kernel = device("h200"), kernels.own(own_kernels.right)
    counted = ran(kernel, n=64, tile=None).history[0]
    run = replace(counted, counters={}, samples=(1e-5,))
    made = Forecasts(h200, KernelLab(n=64, backend="simulator"))
    made.begin(kernel, run)
    assert made.wait(SECONDS)
    text = made.text(kernel, run, h200)
    assert "64×64×64 float32: " in text
    assert "\nMeasured ÷ predicted from its code = " in text
    assert "measured ÷" not in made.text(kernel, run, device("v100"))
