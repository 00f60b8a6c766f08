"""The answers of chapter 14, found another way."""

import json

import numpy as np
import pytest
from numpy import float32

from gemmlab import Gemm, Tiling, cuda, device, predict, predict_time
from gemmlab.course.ch14_capstone import guesses as answers
from tests.support.paths import ROOT

GPU = device("h200")


def test_bound():
    times = predict(Gemm(8192, 128, 8192), GPU).times
    assert answers.bound().number == pytest.approx(1e6 * times["math"], rel=0.01)
    assert max(times, key=times.get) == "math"


def test_busy():
    across, down = Tiling(block=(128, 128, 8)).grid(Gemm(8192, 128, 8192))
    assert answers.busy().number == pytest.approx(100 * across * down / GPU.sms, abs=0.1)


CELLS = json.loads((ROOT / "notebooks" / "14_capstone.ipynb").read_text("utf-8"))["cells"]


@pytest.mark.ptxas
@pytest.mark.measuring
def test_loop():
    """The kernel is the chapter's; an FMA is one slot of those that its two lines take."""
    (text,) = ("".join(c["source"]) for c in CELLS if c["id"] == "wrong")
    text, scope = text.partition("log.add")[0], {"cuda": cuda, "float32": float32}
    exec(compile(text, "plain.py", "exec"), scope)
    A, B, C = (np.zeros(s, float32) for s in ((1024, 128), (128, 1024), (1024, 1024)))
    found = predict_time(scope["plain"], (64, 64), (16, 16), float32(1), A, B, float32(0), C)
    code = dict(enumerate(text.splitlines(), 1))
    shares = {code[x.place.number].strip(): 100 * x.share for x in found.lines if x.place}
    loop, total = shares["for p in range(A.shape[1]):"], shares["acc += A[i, p] * B[p, j]"]
    assert loop == pytest.approx(answers.loop().number, abs=1.5)
    assert total == pytest.approx(62, abs=2)
    assert found.result.used["fma"] / found.result.slots == pytest.approx(0.03, abs=0.01)
