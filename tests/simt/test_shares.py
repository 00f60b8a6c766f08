"""Who does how much: bytes by thread add up to the counters."""

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, cuda, kernels, simulate


@pytest.mark.parametrize("shape", [(16, 16, 16), (9, 7, 11)])
def test_shares_add_up_to_the_counters(shape):
    problem, tiling = Gemm(*shape), Tiling.square(4)
    a, b, c = problem.operands(0)
    one, zero = np.float32(1), np.float32(0)
    grid = tiling.grid(problem)
    report = simulate(kernels.tiled.build(tiling), grid, (4, 4), one, a, b, zero, c, shares=True)
    for op in ("load", "store"):
        total = report.shares.of(op, "A", "B", "C")
        assert total.shape == (grid[0] * grid[1], 16)
        assert total.sum() == report.counters[f"global_{op}_bytes"]
    assert report.shares.shared_bytes == 2 * 4 * 4 * 4


def test_a_share_is_that_of_its_thread():
    def kernel(x, y):
        i = cuda.grid(1)
        for step in range(i):
            y[i] = x[step]

    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    shares = simulate(kernel, 2, 4, x, y, shares=True).shares
    assert shares.of("load", "x").ravel().tolist() == [4 * i for i in range(8)]
    assert shares.of("store", "y").ravel().tolist() == [4 * i for i in range(8)]
    assert not shares.of("load", "y").any()


def test_shares_of_several_batches(monkeypatch):
    from gemmlab.simt import launch

    monkeypatch.setattr(launch, "LANES", 64)

    def kernel(y):
        y[cuda.grid(1)] = 1

    y = np.zeros(256, np.float32)
    shares = simulate(kernel, 8, 32, y, shares=True).shares
    assert (shares.of("store", "y") == 4).all()


def test_shares_are_not_counted_unasked():
    def kernel(y):
        y[0] = 1

    assert simulate(kernel, 1, 1, np.zeros(1, np.float32)).shares is None
