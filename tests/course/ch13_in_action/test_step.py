"""A step as launches: what each computes on the simulated GPU, against NumPy and the network."""

import numpy as np
import pytest

from gemmlab import Gemm
from gemmlab.course.ch13_in_action import dense, network, step
from gemmlab.simt import simulate

SIZES, IMAGES, RATE = (5, 9, 7, 3), 6, np.float32(0.25)


def a_batch(sizes=SIZES, seed=1):
    rng = np.random.default_rng(seed)
    net = network.initial(sizes, seed)
    for b in net.biases:
        b += rng.standard_normal(b.shape).astype(np.float32) / 4
    pixels = rng.random((sizes[0], IMAGES), np.float32)
    targets = (rng.integers(0, sizes[-1], IMAGES) == np.arange(sizes[-1])[:, None]) * 1.0
    return net, pixels, targets.astype(np.float32)


@pytest.mark.parametrize(
    ("fused", "sizes"), [(True, (5, 9, 3)), (False, (5, 3, 2))], ids=["fused", "apart"]
)
def test_a_step_of_launches_is_that_of_the_network(fused, sizes):
    """A launch that raced would be a hazard, which `simulate` raises."""
    net, pixels, targets = a_batch(sizes)
    of = step.memory(net, pixels, targets)
    loss = step.simulate_step(of, RATE, fused)
    other, *_ = a_batch(sizes)
    right = network.step(other, pixels, targets, np.matmul, float(RATE))
    assert loss == pytest.approx(right, rel=1e-6)
    for mine, theirs in ((net.weights, other.weights), (net.biases, other.biases)):
        for x, y in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-6, atol=2e-7)


def test_weights_move_after_they_were_used():
    """∂X of a layer needs its weights as they were: its launch comes before their step."""
    names = [one.name for one in step.launches(step.memory(*a_batch()), RATE)]
    for layer in (2, 3):
        assert names.index(f"inputs {layer}") < names.index(f"weights {layer}")
    assert "inputs 1" not in names
    assert len(names) == 3 + 1 + 2 + 3 + 3


def test_apart_there_is_a_launch_more_for_each_epilogue():
    fused, apart = (
        list(step.launches(step.memory(*a_batch()), RATE, way)) for way in (True, False)
    )
    problems = [[one.problem for one in way if one.problem] for way in (fused, apart)]
    assert problems[0] == problems[1]
    assert len(apart) == len(fused) + len(problems[0])


# ------------------------------------------------------------------------------------- epilogues

EPILOGUES = {
    "store": (dense.STORE, lambda x, d: x),
    "bias": (dense.BIAS, lambda x, d: x + d[:, :1]),
    "rectifier": (dense.RECTIFIER, lambda x, d: np.maximum(x + d[:, :1], 0)),
    "mask": (dense.MASK, lambda x, d: np.where(d > 0, x, 0)),
    "step": (dense.step(0.5), lambda x, d: d - np.float32(0.5) * x),
}


@pytest.mark.parametrize("name", EPILOGUES)
def test_an_epilogue_makes_of_each_sum_what_numpy_does(name):
    epilogue, right = EPILOGUES[name]
    layout = {"mask": "tn", "step": "nt"}.get(name, "nn")
    problem = Gemm(9, 7, 5, layout=layout)
    rng = np.random.default_rng(3)
    a, b, d = (rng.integers(-4, 5, s).astype(np.float32) for s in (*problem.shapes[:2], (9, 7)))
    c = d if name == "step" else np.full((9, 7), np.nan, np.float32)
    expected = right((a.T if layout[0] == "t" else a) @ (b.T if layout[1] == "t" else b), d)
    grid, block, shared = dense.launch(problem)
    report = simulate(dense.kernel(problem, epilogue), grid, block, a, b, c, d, shared_bytes=shared)
    assert np.array_equal(c, expected)
    assert report.counters["global_store_bytes"] == 9 * 7 * 4  # each element once


# ----------------------------------------------------------------------------------- elementwise


def arrays(*shapes):
    rng = np.random.default_rng(7)
    return tuple(rng.standard_normal(s).astype(np.float32) for s in shapes)


PLANE = (2, 5), (32, 8)  # of 33×40 elements, with threads beyond its edge


def test_what_follows_a_product_element_by_element():
    y, x, w, b = arrays((33, 40), (33, 40), (33, 40), (33, 1))
    out = np.full_like(y, np.nan)
    for kernel, arguments, right in (
        (step.add_bias, (y, b, out), y + b),
        (step.rectify, (y, b, out), np.maximum(y + b, 0)),
        (step.mask, (y, x, out), np.where(x > 0, y, 0)),
    ):
        simulate(kernel, *PLANE, *arguments)
        assert np.array_equal(out, right), kernel.__name__
    moved = w - np.float32(0.5) * y
    simulate(step.subtract, *PLANE, y, w, np.float32(0.5))
    assert np.array_equal(w, moved)


def test_the_gradient_of_the_loss_by_the_scores():
    (scores,) = arrays((10, 37))
    scores[:, 3] += 80  # whose exponentials would overflow
    targets = (np.arange(37) % 10 == np.arange(10)[:, None]).astype(np.float32)
    gradient, losses = np.empty_like(scores), np.empty(37, np.float32)
    simulate(step.softmax_gradient, 2, 32, scores, targets, gradient, losses)
    loss, right = network.loss_and_gradient(scores.astype(np.float64), targets)
    assert losses.mean() == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(gradient, right, atol=1e-7)


def test_a_warp_sums_a_row_of_any_length_for_its_bias():
    for columns in (1, 31, 70):
        g, b = arrays((6, columns), (6, 1))
        right = b - np.float32(0.5) * g.sum(axis=1, keepdims=True)
        simulate(step.step_biases, (2, 1), (32, 4), g, b, np.float32(0.5))
        np.testing.assert_allclose(b, right, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------- prediction


@pytest.mark.numba_cuda  # whose code the numbers are of
@pytest.mark.ptxas
@pytest.mark.measuring
def test_a_step_takes_as_long_as_todays_code_predicts_within_a_tenth():
    """The record's own forecast is older than the model of memory (decision 036)."""
    from benchmarks import training as benchmark
    from gemmlab import device
    from gemmlab.measure.benchmarks import training

    told = step.predict_step(benchmark.a_step(64), benchmark.SLOW, device("h100_sxm"))
    recorded = next(s for s in training().steps if (s.batch, s.fused) == (64, True))
    assert sum(one.seconds for _, one in told) == pytest.approx(recorded.seconds, rel=0.1)
    for (_, one), launch in zip(told, recorded.launches, strict=True):
        assert one.seconds == pytest.approx(launch.seconds, rel=0.2)
