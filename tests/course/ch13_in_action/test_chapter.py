"""What chapter 13 says of learning, of a step's time and of a transformer's block."""

import json
from functools import cache

import numpy as np
import pytest

from gemmlab import Gemm, device, kernels, records
from gemmlab.course.ch13_in_action import block as transformer, digits, network, products, step
from gemmlab.measure.benchmarks import block_times, training
from tests.support.paths import ROOT

GPU, H200 = device("h100_sxm"), device("h200")
RECORD, TIMES = training(), block_times()
SMALL, RATE, EPOCHS, GONE = (64, 32, 10), 0.5, 4, 2.0**-25
MODEL = transformer.Block(104)
WORK = list(zip(transformer.products(MODEL), TIMES.products, strict=True))
LARGE = Gemm(4096, 4096, 4096)
LIBRARY = records.find(kernels.cublas, LARGE).flops_per_second / H200.peak_of("float32")
EXACT = products.rounded_to("float32")
CELLS = {
    one["id"]: "".join(one["source"])
    for one in json.loads((ROOT / "notebooks/13_in_action.ipynb").read_text("utf-8"))["cells"]
}


def a_step(batch=64, fused=True):
    (found,) = (s for s in RECORD.steps if (s.batch, s.fused) == (batch, fused))
    return found


def launch(name, batch=64, fused=True):
    return next(one for one in a_step(batch, fused).launches if one.name == name)


def parts(name, batch=64):
    (found,) = (s for s in RECORD.splits if (s.name, s.batch) == (name, batch))
    return found


@cache
def trained(dtype="float32", scale=1.0):
    """The chapter's small network after four epochs, by NumPy."""
    net, product = network.initial(SMALL), products.rounded_to(dtype)
    with np.errstate(all="ignore"):
        for _ in network.train(
            net, digits.load()[0], product, epochs=EPOCHS, rate=RATE, scale=scale
        ):
            pass
    return net


def known(net):
    return network.accuracy(net, digits.load()[1], EXACT)


def gradients(net=None):
    """Magnitudes of the gradients of a batch's scores, by default after learning in FP32."""
    some = digits.load()[0].some(slice(0, 64))
    scores = network.forward(net or trained(), some.pixels, EXACT)[-1]
    return np.abs(network.loss_and_gradient(scores, some.targets)[1]).ravel()


@cache
def predicted_of(work, of_peak):
    return transformer.predict(work, GPU, of_peak)


def of_block(predicted, *parts_of_name):
    """Seconds of products whose name begins so: predicted, or recorded where that is None."""
    return sum(
        timed.seconds if predicted is None else predicted_of(work, predicted)
        for work, timed in WORK
        if work.name.startswith(parts_of_name)
    )


LAYERS = tuple({work.name for work, _ in WORK if not work.name.startswith("attention")})


# ------------------------------------------------------------------------------------ sections 1, 2


def test_five_curves_lie_on_one_another():
    ends = {curve.accuracies[-1] for curve in RECORD.curves}
    assert len(RECORD.curves) == 5
    assert ends == {0.9167}
    first, *others = (np.array(curve.losses) for curve in RECORD.curves)
    assert max(np.abs(one / first - 1).max() for one in others) < 0.1
    by_name = {curve.way.name: curve for curve in RECORD.curves}
    np.testing.assert_allclose(by_name["TCEC"].losses, by_name["FP32"].losses, rtol=1e-3)
    assert by_name["FP16"].way.scale == 1 < by_name["FP16, scaled loss"].way.scale


def test_the_three_products_of_a_layer_have_the_same_work():
    some = digits.load()[0].some(slice(0, 64))
    of = step.memory(network.initial((64, 512, 512, 10)), some.pixels, some.targets)
    found = {one.name: one.problem for one in step.launches(of, 0.1) if one.name.endswith("2")}
    three = [found[f"{kind} 2"] for kind in ("forward", "inputs", "weights")]
    assert len({p.flops for p in three}) == 1
    assert [p.layout for p in three] == ["nn", "tn", "nt"]
    assert [(p.m, p.n, p.k).index(64) for p in three] == [1, 1, 2]


def test_the_epilogue_saves_each_sector_of_y_twice():
    assert 32 * 64 * 4 // 32 == 256


# ---------------------------------------------------------------------------------------- section 3


def test_accuracy_holds_until_nearly_all_gradients_are_gone_and_then_falls():
    plain = known(trained())
    assert abs(known(trained("float16", 2.0**-16)) - plain) < 0.04
    still = trained("float16", 2.0**-20)
    assert all(map(np.array_equal, still.weights, network.initial(SMALL).weights))
    assert known(still) < 0.4
    assert abs(known(trained("float16", 2.0**20)) - plain) < 0.01
    over = trained("float16", 2.0**22)
    assert np.isnan(over.weights[0]).any()
    assert (network.forward(over, digits.load()[1].pixels, EXACT)[-1].argmax(axis=0) == 0).all()
    assert known(over) < 0.2
    assert (gradients() * 2.0**-20 <= GONE).mean() > 0.97


def test_large_gradients_are_those_of_images_that_the_network_gets_wrong():
    some = digits.load()[0]
    scores = network.forward(trained(), some.pixels, EXACT)[-1]
    sizes = np.abs(network.loss_and_gradient(scores, some.targets)[1]).max(axis=0)
    right = scores.argmax(axis=0) == some.labels
    assert np.median(sizes[~right]) > 5 * np.median(sizes[right])


def test_some_gradients_that_are_kept_belong_to_images_of_which_the_network_is_not_sure():
    some = digits.load()[0].some(slice(0, 64))
    scores = network.forward(trained(), some.pixels, EXACT)[-1]
    right = scores.argmax(axis=0) == some.labels
    kept = (gradients().reshape(scores.shape) * 2.0**-16 > GONE).any(axis=0)
    top = np.sort(scores, axis=0)
    lead = top[-1] - top[-2]
    assert kept[~right].all()
    assert np.median(lead[right & kept]) < np.median(lead[right & ~kept])


# ---------------------------------------------------------------------------------------- section 4


def test_a_step_is_predicted_within_a_tenth():
    errors = [abs(one.predicted / one.seconds - 1) for one in RECORD.steps]
    assert len(errors) == 4
    assert max(errors) <= 0.10


def test_the_longest_launches_have_few_blocks():
    by_time = sorted(a_step().launches, key=lambda one: -one.seconds)[:3]
    assert {one.name for one in by_time} == {"forward 2", "forward 3", "inputs 2"}
    assert sum(one.seconds for one in by_time) > 0.5 * a_step().seconds


def test_forward_a_larger_batch_costs_nothing():
    for name in ("forward 1", "forward 2", "forward 3", "inputs 3", "inputs 2"):
        assert launch(name, 512).seconds == pytest.approx(launch(name).seconds, rel=0.05)
        assert launch(name, 512).blocks == 8 * launch(name).blocks
    for name in ("weights 1", "weights 2", "weights 3"):
        assert launch(name, 512).seconds > 2.5 * launch(name).seconds


# ------------------------------------------------------------------------------------ sections 5, 6


def test_corrected_products_are_nearer_than_those_of_fp32_units():
    by_name = {one.way: one for one in RECORD.eager}
    assert by_name["gemmlab.matmul"].error < by_name["PyTorch, FP32"].error
    assert by_name["PyTorch, TF32"].error == pytest.approx(3e-4, rel=0.05)


def test_the_losses_of_the_wide_network_agree():
    assert np.ptp([one.loss for one in RECORD.eager]) < 1e-6


def test_what_the_sizes_say_of_a_blocks_time():
    passes = sum(transformer.predict(w, GPU) for w in transformer.passes(MODEL))
    bound = of_block(1.0, "") + passes
    assert round(1e3 * bound, 2) == 3.50
    assert of_block(LIBRARY, *LAYERS) == pytest.approx(of_block(None, *LAYERS), rel=0.05)
    assert 1.8 < of_block(None, "attention") / of_block(1.0, "attention") < 2
    rest = TIMES.steps[0].seconds - of_block(None, "")
    assert 1.7 < rest / passes < 2


def test_some_characters_come_a_thousand_times():
    """A space, in the text that the block learns, is one character in eight at least."""
    from pydoc_data import topics

    written = "".join(topics.topics.values())
    assert written.count(" ") / len(written) * MODEL.tokens > 1000
