"""Kernels of one's own, judged: what is said of right ones, of wrong ones, and of no kernels."""

import math
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from gemmlab import Gemm, Tiling, cuda, kernels
from gemmlab.measure.backends import stopping, trial
from gemmlab.measure.backends.stopping import OutOfTime, limited
from gemmlab.measure.backends.trial import RejectedError, judge, rehearse
from tests.support import own_kernels
from tests.support.fake_gpu import installed

PROBLEM = Gemm(32, 32, 32)


def said(kernel, backend="simulator", **launch):
    with pytest.raises(RejectedError) as error:
        judge(kernels.own(kernel, 16, **launch), PROBLEM, backend)
    return str(error.value)


# ------------------------------------------------------------------------------------ right ones


@pytest.mark.parametrize(
    "kernel", [own_kernels.right, own_kernels.build, cuda.jit(own_kernels.right)]
)
def test_a_right_kernel_is_counted(kernel):
    made, remark = judge(kernels.own(kernel, 8), PROBLEM, "simulator")
    assert made.passed
    assert made.counters["global_store_bytes"] == 4 * 32 * 32
    assert made.kernel in ("right (yours)", "build (yours)")
    assert "It passed the simulator on 13×11×19, which fills no tile" in remark


@pytest.mark.parametrize("grid", [(3,), (3, 1), lambda m, n: (math.ceil(m * n / 64), 1)])
def test_grid_and_block_are_those_that_are_given(grid):
    made, _ = judge(
        kernels.own(own_kernels.strided, grid=grid, block=(64, 1)), PROBLEM, "simulator"
    )
    assert made.passed


def test_a_kernel_of_the_ladder_may_be_tried():
    mine = kernels.own(kernels.tiled, 8)
    assert (mine.name, mine.default) == ("tiled (yours)", Tiling.square(8))
    made, _ = judge(mine, PROBLEM, "simulator")
    assert made.passed


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_every_rung_passes(kernel):
    smallest = min((*kernel.tilings, kernel.default), key=lambda t: t.block)
    assert rehearse(kernel, smallest) is None


@pytest.mark.parametrize(
    "tiling", [Tiling.square(16), Tiling((128, 256, 16), (16, 8)), Tiling((8, 8, 1))]
)
def test_the_small_problems_fill_no_tile(tiling):
    without, with_c = trial.problems(tiling)
    assert (without.beta, with_c.beta != 0, with_c.alpha != 1) == (0, True, True)
    for size, tile in zip((without.m, without.n, without.k), tiling.block, strict=True):
        assert size > tile
        assert size % tile or tile == 1


# ------------------------------------------------------------------------------------ wrong ones


def test_a_race_is_named_with_its_line():
    text = said(own_kernels.racing)
    assert "shared-race" in text
    assert "acc += As[y, p] * B[start + p, col]" in text


def test_an_endless_kernel_is_stopped_and_named():
    start = time.process_time()
    text = said(own_kernels.endless)
    assert "it was stopped. step-limit" in text
    assert "while p < A.shape[1]" in text
    assert time.process_time() - start < 20


def test_a_hole_that_only_small_problems_show_is_told():
    made, remark = judge(kernels.own(own_kernels.unguarded), PROBLEM, "simulator")
    assert made.passed  # 32 is two tiles of 16
    assert remark.startswith("on 25×19×33, simulated: out-of-bounds")


def test_wrong_values_are_told_with_the_first_of_them():
    _, remark = judge(kernels.own(own_kernels.without_alpha), PROBLEM, "simulator")
    assert "with α = 2, β = -3, simulated: 475 of 475 elements are wrong" in remark
    assert "the first is C[0, 0] = " in remark


def test_a_changed_operand_is_told():
    made, remark = judge(kernels.own(own_kernels.changes_a), PROBLEM, "simulator")
    assert made.passed
    assert remark == "on 25×19×33, simulated: it changes A, which belongs to the caller."


def test_errors_are_told_with_their_line():
    text = said(own_kernels.raises)
    assert "NameError: name 'undefined' is not defined" in text
    assert "C[row, col] = alpha * undefined" in text


def test_limits_are_told():
    assert "shared arrays of 262144 B a block are too large" in said(own_kernels.crowded)
    assert "4096 threads is too large" in said(own_kernels.right, block=(64, 64))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (own_kernels.build_endless, "TimeoutError: build(tiling) was stopped"),
        (
            own_kernels.build_other,
            "other_order(A, B, C, alpha, beta) is not a kernel; use a function",
        ),
        (own_kernels.build_nothing, "build(tiling) returned None, which is not a function"),
        (own_kernels.build_failing, "IndexError: tuple index out of range"),
    ],
)
def test_what_is_wrong_with_a_build_is_told(monkeypatch, build, words):
    monkeypatch.setattr(trial, "BUILDING", 0.3)
    assert words in said(build)


@pytest.mark.parametrize("given", [own_kernels.other_order, lambda: None, print, 3, "tiled"])
def test_what_is_no_kernel_says_what_is_accepted(given):
    with pytest.raises(TypeError, match=r"use a function kernel\(alpha, A, B, beta, C\)"):
        kernels.own(given)


@pytest.mark.parametrize("launch", [{"grid": 3.5}, {"block": (1, 2, 3)}, {"block": (0, 4)}])
def test_bad_grids_and_blocks_are_quoted(launch):
    (name,) = launch
    with pytest.raises(TypeError, match=f"{name}=.*is not a pair of sizes"):
        kernels.own(own_kernels.right, **launch)


# -------------------------------------------------------------------------------------- on a GPU


@pytest.fixture
def host(monkeypatch):
    yield from installed(monkeypatch)


def test_a_right_kernel_is_timed_on_a_gpu(host):
    made, remark = judge(kernels.own(own_kernels.right), PROBLEM, "gpu")
    assert made.passed
    assert made.seconds > 0
    assert "It passed the simulator" in remark
    assert made.provenance["source_sha256"] == trial.UNKNOWN


@pytest.mark.parametrize(
    "kernel", [own_kernels.racing, own_kernels.endless, own_kernels.unguarded, own_kernels.raises]
)
def test_a_wrong_kernel_never_reaches_the_gpu(host, kernel):
    text = said(kernel, "gpu")
    assert text.endswith("It was not run on the GPU.")
    assert not [entry for entry in host.log if entry[0] in ("compile", "launch")]


def test_what_a_compiler_says_is_cut_and_told():
    numba = type("TypingError", (Exception,), {"__module__": "numba.core.errors"})
    text = trial.told(numba("\x1b[1mFailed in cuda mode\x1b[0m\n\nNo type\n" + "more\n" * 40))
    assert text.startswith("Numba cannot compile it for the GPU: Failed in cuda mode\nNo type\n")
    assert len(text.splitlines()) == trial.LINES
    lost = type(
        "CudaAPIError", (Exception,), {"__module__": "numba_cuda.numba.cuda.cudadrv.driver"}
    )
    assert "restart the notebook's kernel" in trial.told(lost("[700] illegal address"))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "kernel",
    [
        kernels.own(own_kernels.right),
        kernels.own(own_kernels.build),
        kernels.own(own_kernels.strided, grid=(256, 1), block=(256, 1)),
    ],
    ids=lambda kernel: kernel.name,
)
def test_right_kernels_run_on_this_gpu(kernel):
    made, _ = judge(kernel, Gemm(256, 256, 256), "gpu")
    assert made.passed
    assert made.seconds > 0


@pytest.mark.gpu
def test_what_this_gpu_cannot_compile_is_told():
    assert "Numba cannot compile it for the GPU" in said(own_kernels.uncompilable, "gpu")
    made, _ = judge(kernels.own(own_kernels.right), PROBLEM, "gpu")  # and it goes on working
    assert made.passed


# ---------------------------------------------------------------------------------- running late


def test_what_is_stopped_in_the_last_moment_leaves_traced_code_able_to_end():
    """In a Python of its own: where this fails, no traced line of the process ends any more."""
    program = """
import sys
from gemmlab.measure.backends.stopping import OutOfTime, swallow
for _ in range(50):
    swallow(OutOfTime)
sys.settrace(lambda *event: None)
print(sum(i for i in range(10)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.stdout.split() == ["45"], ran.stderr


def stubborn(seconds, step):
    with limited(seconds, "the loop"):
        while True:
            try:
                step()
            except Exception:
                continue


def test_code_that_takes_too_long_is_stopped():
    with pytest.raises(TimeoutError, match=r"the loop was stopped: it was running after 0\.2 s"):
        stubborn(0.2, lambda: None)


def test_code_that_waits_is_stopped_by_the_clock_on_the_wall(monkeypatch):
    monkeypatch.setattr(stopping, "WAITING", 0.001)
    told = r"the loop was stopped: it had not ended after 0\.1 s"
    with pytest.raises(TimeoutError, match=told):
        stubborn(100, lambda: time.sleep(0.001))


def test_a_busy_machine_stops_no_code(monkeypatch):
    """The clock on the wall runs on, and the processor does nothing for this process."""
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    monkeypatch.setattr(stopping, "WAITING", math.inf)
    with limited(0.01, "little"):
        time.sleep(0.05)


def test_no_time_at_all_ends_as_an_end_of_time_does():
    for _ in range(20):  # the clock strikes before the code has begun
        with pytest.raises(TimeoutError, match="the loop was stopped"):
            stubborn(0, lambda: time.sleep(0.001))


def test_code_in_time_is_left_alone():
    for _ in range(200):  # some end just when they would be stopped
        with suppress(TimeoutError), limited(0.001, "little"):
            time.sleep(0.001)
    try:
        time.sleep(0.01)
    except OutOfTime:
        pytest.fail("struck too late")
    assert threading.active_count() < 50
