"""A transformer's block by its sizes: operations, bytes, and the time they take."""

import pytest

from gemmlab import device
from gemmlab.course.ch13_in_action import block
from gemmlab.measure.benchmarks import block_times

MODEL = block.Block(104)
GPU = device("h100_sxm")
WORK = {work.name: work for work in block.products(MODEL)}


def test_training_takes_six_operations_for_each_weight_and_token():
    flops = {n: w.product.count * w.product.gemm.flops for n, w in WORK.items()}
    attention = sum(f for name, f in flops.items() if name.startswith("attention"))
    places = MODEL.context * MODEL.width  # are added, not multiplied
    no_gradient = 2 * MODEL.tokens * MODEL.vocabulary * MODEL.width  # of the characters themselves
    layers = 6 * MODEL.tokens * (MODEL.weights - places) - no_gradient
    assert sum(flops.values()) - attention == layers
    # Scores and values, each forward and twice backward, of every head.
    one = 2 * MODEL.context**2 * (MODEL.width // MODEL.heads)
    assert attention == 6 * MODEL.batch * MODEL.heads * one


def test_a_gradient_of_weights_sums_over_tokens():
    for name in ("queries, keys, values", "up", "down"):
        forward, inputs, weights = (
            WORK[name + end].product.gemm for end in ("", ", inputs", ", weights")
        )
        assert (forward.m, inputs.m, weights.k) == (MODEL.tokens,) * 3
        assert forward.flops == inputs.flops == weights.flops
        assert [x.layout for x in (forward, inputs, weights)] == ["nn", "nt", "tn"]


def test_what_is_no_product_goes_by_its_bytes():
    by_name = {(w.direction, w.name): w for w in block.passes(MODEL)}
    x = 4 * MODEL.tokens * MODEL.width
    assert by_name["forward", "rectifier"].bytes == 8 * x
    assert by_name["backward", "weights"].bytes == 7 * 4 * MODEL.weights
    mask = by_name["forward", "mask"]
    assert mask.bytes == 2 * 4 * MODEL.batch * MODEL.heads * MODEL.context**2
    expected = mask.bytes / GPU.dram_bandwidth + GPU.launch_interval
    assert block.predict(mask, GPU) == pytest.approx(expected)


def test_a_part_of_the_peak_lengthens_products_and_nothing_else():
    up = WORK["up"]
    whole, part = (block.predict(up, GPU, of) - GPU.launch_interval for of in (1.0, 0.5))
    assert part == pytest.approx(2 * whole)
    assert whole >= up.product.gemm.flops / GPU.peak_of("float32")
    (loss, *_) = (w for w in block.passes(MODEL) if w.name == "loss")
    assert block.predict(loss, GPU, 0.5) == block.predict(loss, GPU)


@pytest.mark.measuring
def test_no_recorded_product_is_faster_than_its_bound():
    """Those of the scores share operands of a launch before; the peak bounds all of them."""
    for work, timed in zip(block.products(MODEL), block_times().products, strict=True):
        assert (work.name, work.direction, work.product) == (
            timed.name, timed.direction, timed.product,
        )  # fmt: skip
        flops = work.product.count * work.product.gemm.flops
        assert timed.seconds > flops / GPU.peak_of("float32"), work.name
        assert timed.seconds > 0.95 * (block.predict(work, GPU) - GPU.launch_interval), work.name
