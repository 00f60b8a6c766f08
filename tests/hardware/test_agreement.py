"""Random kernels give the same results on the simulator and on other machines.

The kernels come from `agreement/grammar.py`. The other machines: plain Python, one thread after the
other, to the bit; Numba's own simulator, to the bit on whole-numbered data; and a GPU, whose
results are stored in `data/`, to the bit with a·b + c contracted as its compiler does it. Two right
machines, one of which contracts, differ at most by twice the bound of the rounding error that
`one_by_one` carries along: nothing where no operation rounds.
"""

import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemmlab import simulate

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from agreement import cases  # noqa: E402
from agreement.grammar import PARAMETERS, generate  # noqa: E402
from agreement.one_by_one import one_by_one  # noqa: E402

DATA = ROOT / "tests" / "data"
STORED = sorted(DATA.glob("*_agreement.npz"))


# The compiler folds such a product and rounds it; the simulator may contract it with what follows.
CONSTANT = r"\(?float32\(-?[0-9.]+\)\)?"
PRODUCT_OF_CONSTANTS = re.compile(rf"{CONSTANT} \* {CONSTANT}")


def simulated(case, contract=True):
    """(out, fout) of a case on the simulator, which must find no hazard in it."""
    arguments = case.fresh()
    report = simulate(case.function(), case.grid, case.block, *arguments, contract=contract)
    assert not report.hazards
    return arguments[-2], arguments[-1]


def check_equal(case, results, out, fout):
    """Assert that `results` are `out` and `fout` to the bit, but for the sign of 0 and NaN."""
    np.testing.assert_array_equal(results[0], out, err_msg=case.source)
    np.testing.assert_array_equal(results[1], fout, err_msg=case.source)


def check_close(case, results, out, fout, bound):
    """Assert that `results` are `out` and, within twice the `bound`, `fout`."""
    np.testing.assert_array_equal(results[0], out, err_msg=case.source)
    np.testing.assert_array_equal(np.isnan(results[1]), np.isnan(fout), err_msg=case.source)
    outside = np.abs(results[1].astype(float) - fout) > 2 * bound  # False for NaN: not stored to
    assert not outside.any(), case.source


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
@given(st.randoms(use_true_random=False), st.booleans())
def test_the_simulator_agrees_with_plain_python(choices, whole):
    case = generate(choices, whole=whole, most=32)
    out, fout, bound = one_by_one(case)
    if whole:
        assert not bound.any()
    check_equal(case, simulated(case, contract=False), out, fout)
    check_close(case, simulated(case), out, fout, bound)


@pytest.mark.parametrize("number", range(cases.WHOLE + cases.ROUNDED))
def test_the_fixed_set_agrees_with_plain_python(number):
    case = cases.cases()[number]
    out, fout, bound = one_by_one(case)
    check_equal(case, simulated(case, contract=False), out, fout)
    check_close(case, simulated(case), out, fout, bound)


def test_the_fixed_set_holds_what_the_grammar_offers():
    text = "".join(case.source for case in cases.cases())
    constructs = ["while ", "break", "continue", "return\n", "elif", "local.array", " = m[-1"]
    for construct in [*constructs, "atomic", "syncthreads_count"]:
        assert construct in text
    blocks = [int(np.prod(case.block)) for case in cases.cases()]
    assert min(blocks) < 32 < max(blocks)
    assert any(b % 32 for b in blocks)
    assert {len(case.block) for case in cases.cases()} == {1, 2, 3}


@pytest.mark.parametrize("path", STORED, ids=lambda p: p.stem)
def test_the_simulator_agrees_with_the_gpu(path):
    about, found = cases.recorded(path)
    assert about["device"]
    assert len(found) >= 40
    contracted = folded = 0
    for case, out, fout in found:
        results = simulated(case)
        *plain, bound = one_by_one(case)
        check_close(case, results, out, fout, bound)
        check_close(case, plain, out, fout, bound)
        if np.array_equal(results[1], fout, equal_nan=True):
            contracted += not np.array_equal(plain[1], fout, equal_nan=True)
        else:
            folded += 1
            assert PRODUCT_OF_CONSTANTS.search(case.source), case.source
    assert contracted  # the set holds kernels in which the compiler's contraction shows
    assert folded <= 1


def test_a_stored_set_comes_back_as_it_was(tmp_path):
    def launch(case, arguments):
        simulate(case.function(), case.grid, case.block, *arguments)

    few = cases.cases()[::8]
    cases.record(tmp_path / "set.npz", few, launch, lambda: {"device": "simulator"})
    about, found = cases.recorded(tmp_path / "set.npz")
    assert about["device"] == "simulator"
    for before, (case, out, fout) in zip(few, found, strict=True):
        assert case.source == before.source
        for name in PARAMETERS:
            np.testing.assert_array_equal(case.arguments[name], before.arguments[name])
        check_equal(case, simulated(case), out, fout)


NUMBA_SIMULATOR = """
import pickle, sys
from numba import config, cuda
assert config.ENABLE_CUDASIM
results = []
for case in pickle.load(sys.stdin.buffer):
    arguments = case.fresh()
    cuda.jit(case.function())[case.grid, case.block](*arguments)
    results.append(arguments[-2:])
pickle.dump(results, sys.stdout.buffer)
"""


@pytest.mark.slow
def test_the_simulator_agrees_with_numbas_own():
    pytest.importorskip("numba_cuda")
    few = [generate(random.Random(i), int_type="int64", most=8) for i in range(12)]
    environment = {
        **os.environ,
        "NUMBA_ENABLE_CUDASIM": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    }
    command = [sys.executable, "-c", NUMBA_SIMULATOR]
    run = subprocess.run(
        command, env=environment, input=pickle.dumps(few), capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr.decode()
    for case, (out, fout) in zip(few, pickle.loads(run.stdout), strict=True):
        check_equal(case, simulated(case), out, fout)
