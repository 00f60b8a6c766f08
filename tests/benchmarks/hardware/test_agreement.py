"""Random kernels give the same results on the simulator and on other machines.

The kernels come from `agreement/grammar.py`. The other machines: plain Python, one thread after the
other, to the bit; Numba's own simulator, to the bit on whole-numbered data; and a GPU, in
`checks/random_kernels.py`, to the bit with a·b + c contracted as its compiler does it.
"""

import os
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from benchmarks.hardware.agreement.grammar import generate
from benchmarks.hardware.agreement.one_by_one import one_by_one
from benchmarks.hardware.checks.random_kernels import (
    PRODUCT_OF_CONSTANTS,
    apart,
    case_of,
    cases,
    simulated,
)
from benchmarks.hardware.store import recorded
from tests.support.paths import ROOT


def check_equal(case, results, out, fout):
    """Assert that `results` are `out` and `fout` to the bit, but for the sign of 0 and NaN."""
    np.testing.assert_array_equal(results[0], out, err_msg=case.source)
    np.testing.assert_array_equal(results[1], fout, err_msg=case.source)


def check_close(case, results, out, fout, bound):
    """Assert that `results` are `out` and, within twice the `bound`, `fout`."""
    np.testing.assert_array_equal(results[0], out, err_msg=case.source)
    assert not apart(results[1], fout, bound).any(), case.source


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
@given(st.randoms(use_true_random=False), st.booleans())
def test_the_simulator_agrees_with_plain_python(choices, whole):
    case = generate(choices, whole=whole, most=32)
    out, fout, bound = one_by_one(case)
    if whole:
        assert not bound.any()
    check_equal(case, simulated(case, contract=False), out, fout)
    check_close(case, simulated(case), out, fout, bound)


@pytest.mark.measuring
@pytest.mark.parametrize("number", range(len(cases())))
def test_the_fixed_set_agrees_with_plain_python(number):
    case = cases()[number]
    out, fout, bound = one_by_one(case)
    check_equal(case, simulated(case, contract=False), out, fout)
    check_close(case, simulated(case), out, fout, bound)


def test_the_fixed_set_holds_what_the_grammar_offers():
    text = "".join(case.source for case in cases())
    constructs = ["while ", "break", "continue", "return\n", "elif", "local.array", " = m[-1"]
    for construct in [*constructs, "atomic", "syncthreads_count"]:
        assert construct in text
    blocks = [int(np.prod(case.block)) for case in cases()]
    assert min(blocks) < 32 < max(blocks)
    assert any(b % 32 for b in blocks)
    assert {len(case.block) for case in cases()} == {1, 2, 3}


def test_contraction_shows_in_what_the_gpu_gave():
    """Some results are those of a contracting compiler alone; at most one has a folded product."""
    results = recorded("h200", "random_kernels").values()
    assert len(results) >= 40
    contracted, folded = False, 0
    for result in reversed(results):  # those that round come last
        case, fout = case_of(result.measured), result.measured["fout.after"]
        if contracted and not PRODUCT_OF_CONSTANTS.search(case.source):
            continue  # `test_recorded` finds each of these equal
        if not np.array_equal(simulated(case)[1], fout, equal_nan=True):
            folded += 1
        elif not contracted:
            plain = simulated(case, contract=False)[1]
            contracted = not np.array_equal(plain, fout, equal_nan=True)
    assert contracted
    assert folded <= 1


NUMBA_SIMULATOR = """
import pickle, sys
from dataclasses import replace
from numba import config, cuda
assert config.ENABLE_CUDASIM
results = []
for case in pickle.load(sys.stdin.buffer):
    arguments = case.fresh()
    source = case.source.replace("from gemmlab import cuda", "from numba import cuda")
    case = replace(case, source=source)
    cuda.jit(case.function())[case.grid, case.block](*arguments)
    results.append(arguments[-2:])
pickle.dump(results, sys.stdout.buffer)
"""


@pytest.mark.slow
def test_the_simulator_agrees_with_numbas_own():
    pytest.importorskip("numba_cuda")
    few = [generate(random.Random(i), int_type="int64", most=8) for i in range(8)]
    environment = {
        **os.environ,
        "NUMBA_ENABLE_CUDASIM": "1",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", NUMBA_SIMULATOR]
    run = subprocess.run(
        command, env=environment, input=pickle.dumps(few), capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr.decode()
    for case, (out, fout) in zip(few, pickle.loads(run.stdout), strict=True):
        check_equal(case, simulated(case), out, fout)
