"""The answers of chapter 01, found another way: by loops, arrays, and the lines of records."""

import itertools

import numpy as np
import pytest

from gemmlab import Gemm, device, predict
from gemmlab.course.ch01_what_is_gemm import guesses as answers
from gemmlab.model import occupancy
from tests.support.record_lines import time


def fmas(m, n, k):
    return sum(1 for _ in itertools.product(range(m), range(n), range(k)))


def test_work():
    assert answers.work().number == fmas(10, 14, 6) / fmas(5, 7, 3)


def test_bytes():
    def held(m, n, k):
        return sum(np.empty(shape, np.float32).nbytes for shape in ((m, k), (k, n), (m, n)))

    assert answers.bytes().number == held(10, 14, 6) / held(5, 7, 3)


def test_gemv():
    v100, long = device("v100"), 2**40
    reached = predict(Gemm(long, 1, long, dtype="float16"), v100).flops_per_second
    assert answers.gemv().number == pytest.approx(100 * reached / v100.peak_of("float16"))


def test_loads():
    a = np.zeros((64, 64), int)
    b = np.zeros((64, 64), int)
    for i, j, p in itertools.product(range(64), repeat=3):
        a[i, p] += 1
        b[p, j] += 1
    assert answers.loads().number == (a.sum() + b.sum()) / (a.size + b.size)


def test_places():
    h200 = device("h200")
    blocks = h200.sms * occupancy.resident_blocks(h200, 256)
    at_work = np.zeros((64, 64)).size
    assert answers.places().number == pytest.approx(100 * at_work / (256 * blocks))


def test_ragged():
    longer = time("cublas", 2049) / time("cublas", 2048)
    assert answers.ragged().number == pytest.approx(100 * (longer - 1))
