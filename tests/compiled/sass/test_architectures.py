"""Code for other GPUs than an H200: compiled for them, executed, and right."""

import math

import numpy as np
import pytest

from benchmarks.forecast.others.case import cases
from benchmarks.samples.realistic import is_right
from gemmlab.compiled.sass.compiling import lacking, listing
from gemmlab.compiled.sass.execution.machine import BANKS, dim, launch

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking())
OTHERS = tuple(name for name in BANKS if name != "sm_90")


def right(name, architecture):
    case = cases()[name]
    grid, block, arguments = case.launch(case.small)
    code = listing(
        case.kernel, arguments, architecture, launch_bounds=math.prod(dim(block)), **case.options
    )
    assert code.architecture == architecture
    after = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    launch(code, grid, block, *after).run()
    return is_right(list(case.check(*after)))


@pytest.mark.parametrize("architecture", ["sm_75", "sm_86", "sm_120"])
def test_a_kernel_is_right_on(architecture):
    """A barrier, a loop of unknown length, atomics; what sm_75 saves of barriers, 64-bit sums."""
    assert right("histogram", architecture)


@pytest.mark.measuring
@pytest.mark.parametrize("architecture", OTHERS)
@pytest.mark.parametrize("name", ["softmax", "sparse_product"])
def test_kernels_are_right_on(name, architecture):
    assert right(name, architecture)


def test_code_for_a_gpu_that_nobody_described_is_refused():
    case = cases()["triad"]
    grid, block, arguments = case.launch(case.small)
    code = listing(case.kernel, arguments, "sm_100")
    with pytest.raises(NotImplementedError, match=r"sm_100 finds its arguments.*sm_75, sm_80"):
        launch(code, grid, block, *arguments)
