"""Whatever a kernel does wrong, a check answers with a verdict that explains it."""

import inspect
import itertools

import numpy as np
import pytest
from numpy import float32

from gemmlab import cuda, exercises
from gemmlab.course.judging import arrays_on_trial
from gemmlab.course.judging.diagnoses import about
from tests.course.answers import cell

KERNELS = ("09.1", "09.3", "10.1", "10.3", "12.1", "12.3")
# What each kernel does, in terms of its A and of its result C, and a name of the hazard.
DONE = {
    "a load outside": "C[0, 0] = A[9999, 0]",
    "a store outside": "C[9999, 0] = float32(1)",
    "two writers": "C[0, 0] = float32(cuda.threadIdx.x)",
    "a store to A": "A[0, 0] = float32(cuda.threadIdx.x)",
    "a barrier in a branch": "if cuda.threadIdx.x == 0:\n            cuda.syncthreads()",
    "a tile that nobody fills": "C[0, 0] = cuda.shared.array(4, float32)[0]",
    "a sum without a start": "C[0, 0] = cuda.local.array(4, float32)[0]",
    "no end": "while C.shape[0] > 0:\n            pass",
    "an error": "C[0, 0] = A[0, 0] + missing",
    "a failed assertion": "assert A.shape[0] > 9999",
    "nothing": "pass",
}


def builder(name, done):
    """A builder for the exercise, whose kernel does this alone."""
    (solution,) = exercises.get(name).task.answers
    sizes = list(inspect.signature(solution).parameters)
    kernel = solution(*[2] * len(sizes))
    names = ["C" if p == "W" else p for p in inspect.signature(kernel).parameters]
    done = done.replace("C[0, 0] =", "C[0, 0, 0] =") if name == "10.1" else done
    text = (
        f"def build({', '.join(sizes)}):\n"
        f"    def kernel({', '.join(names)}):\n        {done}\n    return kernel\n"
    ).replace("C", "W" if name == "10.1" else "C")
    return cell(text, {"cuda": cuda, "float32": float32})["build"]


@pytest.mark.parametrize(("name", "what"), list(itertools.product(KERNELS, DONE)))
def test_every_kind_of_hazard_gets_a_verdict_that_explains_it(name, what):
    q = exercises.get(name)
    verdict = q.check(builder(name, DONE[what]))
    assert not verdict.passed
    assert verdict.attempted, verdict.message
    assert about(verdict.diagnosis, verdict.details, q.task.diagnoses).cause in verdict.message
    assert q.hint()
    assert q.hint()


def test_a_missing_part_of_the_sums_is_not_called_rounding():
    """Rounding goes up and down; the last columns of positive operands go down in all sums."""
    rng = np.random.default_rng(1)
    a, b = rng.choice((9.25, 11.5, 13.75), (16, 4160)), rng.choice((9.25, 11.5), (4160, 8))
    short = a[:, :4096] @ b[:4096]
    assert arrays_on_trial.rounded(a @ b, short.astype(np.float32)) == ""
    assert arrays_on_trial.rounded(short, short * rng.choice((0.999, 1.001), short.shape)) == (
        "low-precision"
    )
