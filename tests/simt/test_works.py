"""The works of `benchmarks.simulator_work`, at small sizes: right when run, wrong before."""

import pytest

from benchmarks.simulator_work import WORKS
from gemmlab import simulate

SMALL = {
    "one_thread": 100,
    "spin_lock": 1,
    "spin_lock_flag": 1,
    "saxpy": 3,
    "reduction": 1000,
    "reduction_strided": 70_000,
    "histogram": 70_000,
    "mandelbrot": 20,
    "gemm": 40,
    "transposition": 40,
    "transposition_tiled": 40,
}
SPINS = pytest.mark.xfail(
    strict=True, reason="a lane that spins keeps from running the one that it waits for"
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=SPINS) if n == "spin_lock" else n for n in WORKS]
)
def test_work(name):
    launch = WORKS[name].launch(SMALL[name])
    assert launch.turns > 0
    assert not launch.is_right()
    simulate(launch.kernel, launch.grid, launch.block, *launch.arguments, max_steps=2000)
    assert launch.is_right()
