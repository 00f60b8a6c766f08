"""The network of digits: its gradients by differences, its steps by any kernel, what it learns."""

from functools import lru_cache

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, exercises, kernels
from gemmlab.course.ch13_in_action import digits, network, products
from gemmlab.numerics import forward_error

TAUGHT, TEST = digits.load()
EXACT = products.rounded_to("float32")


# ------------------------------------------------------------------------------------------ digits


def test_the_digits_are_those_that_were_published():
    assert (TAUGHT.pixels.shape, len(TAUGHT), len(TEST)) == ((64, 1437), 1437, 360)
    every = np.concatenate([TAUGHT.labels, TEST.labels])
    # As many images of each digit as scikit-learn states of its copy.
    assert np.bincount(every).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert TAUGHT.labels[:10].tolist() == list(range(10))
    assert TAUGHT.pixels.dtype == np.float32
    assert (TAUGHT.pixels.min(), TAUGHT.pixels.max()) == (0, 1)
    assert (TAUGHT.pixels * 16 == np.round(TAUGHT.pixels * 16)).all()


def test_a_target_is_one_for_the_label_and_else_zero():
    assert (TEST.targets.argmax(axis=0) == TEST.labels).all()
    assert (TEST.targets.sum(axis=0) == 1).all()
    some = TAUGHT.some(np.array([4, 2]))
    assert some.labels.tolist() == [4, 2]
    assert some.pixels.flags.c_contiguous
    assert np.array_equal(some.pixels[:, 1], TAUGHT.pixels[:, 2])


# ----------------------------------------------------------------------------------------- network


def small(seed=0):
    """A network in float64 of odd sizes, and a batch for it."""
    net = network.initial((5, 4, 6, 3), seed)
    wide = network.Network(
        tuple(w.astype(np.float64) for w in net.weights),
        tuple(b + 0.1 for b in map(np.float64, net.biases)),
    )
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 7)
    return wide, rng.random((5, 7)), (labels == np.arange(3)[:, None]).astype(np.float64)


def loss_of(net, pixels, targets):
    return network.loss_and_gradient(network.forward(net, pixels, np.matmul)[-1], targets)[0]


def test_gradients_are_what_differences_say():
    net, pixels, targets = small()
    values = network.forward(net, pixels, np.matmul)
    _, of_scores = network.loss_and_gradient(values[-1], targets)
    h = 1e-6
    for layer, of_weights, of_biases in network.gradients(net, values, of_scores, np.matmul):
        pairs = (net.weights[layer], of_weights), (net.biases[layer], of_biases)
        for array, gradient in pairs:
            for at in np.ndindex(array.shape):
                was = array[at]
                sides = []
                for moved in (h, -h):
                    array[at] = was + moved
                    sides.append(loss_of(net, pixels, targets))
                array[at] = was
                assert gradient[at] == pytest.approx((sides[0] - sides[1]) / (2 * h), abs=1e-8)


def test_a_step_moves_against_the_gradient_whatever_the_scale():
    moved = []
    for scale in (1.0, 1024.0):
        net, pixels, targets = small()
        before = network.step(net, pixels, targets, np.matmul, rate=0.2, scale=scale)
        assert loss_of(net, pixels, targets) < before
        moved.append(net)
    for one, other in zip(*(n.weights for n in moved), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_an_epoch_shows_each_image_once():
    found = list(network.batches(200, 64, epochs=2, seed=3))
    assert len(found) == 6
    first, second = np.concatenate(found[:3]), np.concatenate(found[3:])
    assert len(set(first.tolist())) == len(set(second.tolist())) == 192
    assert first.tolist() != second.tolist()
    again = list(network.batches(200, 64, epochs=2, seed=3))
    assert all(map(np.array_equal, found, again))


def test_it_learns_the_digits():
    net = network.initial((64, 32, 10))
    assert net.sizes == (64, 32, 10)
    before = network.accuracy(net, TEST, EXACT)
    losses = list(network.train(net, TAUGHT, EXACT, epochs=3, rate=0.5))
    assert len(losses) == 3 * 22
    assert before < 0.3
    assert np.mean(losses[-20:]) < 0.6 < 2 < losses[0]
    assert network.accuracy(net, TEST, EXACT) > 0.8


# ---------------------------------------------------------------------------------------- products


def operands(m, n, k):
    rng = np.random.default_rng(m)
    return (rng.integers(-4, 5, s).astype(np.float32) for s in ((m, k), (k, n)))


@pytest.mark.parametrize(
    ("rung", "layout"),
    [
        (kernels.tiled, "nn"),
        (kernels.tiled, "tn"),  # which it does not take: a copy is made
        (kernels.split_k, "nt"),
        (kernels.split_k, "tn"),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_a_rung_multiplies_views_of_any_layout(rung, layout):
    a, b = operands(6, 5, 7)
    left = a if layout[0] == "n" else np.ascontiguousarray(a.T).T
    right = b if layout[1] == "n" else np.ascontiguousarray(b.T).T
    assert np.array_equal(products.by(rung, backend="simulator")(left, right), a @ b)
    problem, *stored = products.as_stored(rung, left, right)
    assert problem == Gemm(6, 5, 7, layout=layout if layout in rung.layouts else "nn")
    assert all(x.flags.c_contiguous for x in stored)


def test_where_a_gpu_is_the_rung_is_compiled_once_for_each_shape(monkeypatch):
    made = []

    class Runner:
        def __init__(self, kernel, problem, tiling):
            made.append(problem)

        def compute(self, problem, operands):
            return problem.reference(operands).astype(np.float32)

    monkeypatch.setattr(products, "choose", lambda kernel, backend: "gpu")
    monkeypatch.setattr(products, "_runner", lru_cache(Runner))
    product = products.by(kernels.tiled)
    for seed in (6, 6, 9):
        a, b = operands(seed, 5, 7)
        assert np.array_equal(product(a, b), a @ b)
        assert np.array_equal(product(b.T, a.T), b.T @ a.T)
    assert len(made) == 4  # two shapes of each sort


def test_a_kernel_of_ones_own_takes_part():
    (build,) = exercises.get("06.1").task.answers
    mine = kernels.own(build(4), Tiling((8, 8, 4), thread=(2, 2)))
    a, b = operands(9, 11, 6)
    assert np.array_equal(products.by(mine, backend="simulator")(a, b), a @ b)


def test_the_simulator_learns_as_numpy_does():
    some = {}
    for name, product in {
        "tiled": products.by(kernels.tiled, backend="simulator"), "NumPy": EXACT
    }.items():  # fmt: skip
        net = network.initial((64, 8, 10))
        losses = network.train(net, TAUGHT, product, batch=32, rate=0.5)
        some[name] = [loss for loss, _ in zip(losses, range(4), strict=False)]
    np.testing.assert_allclose(some["tiled"], some["NumPy"], rtol=3e-7)


def test_formats_round_operands_and_the_corrected_product_does_not():
    rng = np.random.default_rng(5)
    a, b = (rng.random((20, 20), np.float32) for _ in range(2))
    right = a.astype(np.float64) @ b
    error = {
        name: forward_error(product(a, b), right)
        for name, product in {
            **{f: products.rounded_to(f) for f in ("float32", "float16", "bfloat16")},
            "corrected": products.corrected,
        }.items()
    }
    assert error["corrected"] < 3 * error["float32"] < 1e-6 < 2e-5 < error["float16"]
    assert 4 < error["bfloat16"] / error["float16"] < 16


def test_what_is_too_large_for_a_format_becomes_infinite():
    a = np.full((1, 1), 1e5, np.float32)
    assert np.isinf(products.rounded_to("float16")(a, a)[0, 0])
    assert products.rounded_to("bfloat16")(a, a)[0, 0] == pytest.approx(1e10, rel=0.01)
