"""The answers of chapter 14, found another way."""

import pytest

from gemmlab import Gemm, Tiling, device, predict
from gemmlab.course.ch14_capstone import guesses as answers

GPU = device("h200")


def test_bound():
    times = predict(Gemm(8192, 128, 8192), GPU).times
    assert answers.bound().number == pytest.approx(1e6 * times["math"], rel=0.01)
    assert max(times, key=times.get) == "math"


def test_busy():
    across, down = Tiling(block=(128, 128, 8)).grid(Gemm(8192, 128, 8192))
    assert answers.busy().number == pytest.approx(100 * across * down / GPU.sms, abs=0.1)
