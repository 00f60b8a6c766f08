"""The works of `benchmarks.simulator.work`, at small sizes: right when run, wrong before."""

import pytest

from benchmarks.simulator.work import WORKS
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


@pytest.mark.parametrize("name", WORKS)
def test_work(name):
    launch = WORKS[name].launch(SMALL[name])
    assert launch.turns > 0
    assert not launch.is_right()
    simulate(launch.kernel, launch.grid, launch.block, *launch.arguments, max_steps=2000)
    assert launch.is_right()
