"""Nothing wraps where NumPy's own integers have 32 bits, as they have in the page of a browser.

Results for sizes beyond 2³¹ are those that there are with 64 bits. `python -m benchmarks.live`
compares many more, in Pyodide itself.
"""

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks.live import values
from benchmarks.live.told import Results
from gemmlab import Gemm, predict
from gemmlab.model import traffic
from tests.support.narrow import Narrow, StandIn, narrow


def predictions(rng: random.Random, out: Results) -> None:
    """Rungs in their usual tiling, and all steps in one row where k is divided."""
    for kernel in values.WITH_A_MODEL:
        form = kernel.arithmetic[0]._asdict()
        side = values.LARGE // 2 if kernel.splits else values.LARGE
        problem = Gemm(side, side, side, layout=kernel.layouts[0], **form)
        tiling = kernel.choose(None)
        tiling = replace(tiling, split=132) if kernel.splits else tiling
        out.note(kernel.name, partial(predict, problem, "h200", kernel, tiling))


PARTS = {
    "problems": (values.problems, 3),
    "models": (values.models, 2),
    "accesses": (values.accesses, 2),
    "formats": (values.formats, 2),
    "predictions": (predictions,),
}


@pytest.mark.parametrize("name", PARTS)
def test_results_are_those_of_64_bits(name):
    part, *times = PARTS[name]
    wide, small = Results(), Results()
    part(random.Random(name), wide, *times)
    traffic._of_matrix.cache_clear()
    with narrow():
        part(random.Random(name), small, *times)
    traffic._of_matrix.cache_clear()
    assert small.found == wide.found


def test_the_stand_in_wraps_as_numpy_does_in_pyodide():
    np32 = StandIn()
    for made in (np32.arange(3), np32.array([5]), np32.full(3, 2), np32.zeros(3, int)):
        assert (type(made), made.dtype) == (Narrow, np.int32)
    assert (np32.arange(3) * 2**20 * 2**20).tolist() == [0, 0, 0]
    assert np32.prod([2**20, 2**20]) == 0
    assert np32.array([2**30, 2**30]).sum() == -(2**31)
    assert np32.array([2**40]).dtype == np.int64
    assert (np32.arange(3) * np.int64(2**40)).tolist() == [0, 2**40, 2**41]
    assert np32.nonzero(np.ones(3))[0].dtype == np.int32
    assert np32.arange(3, dtype=np.int64).dtype == np.int64
