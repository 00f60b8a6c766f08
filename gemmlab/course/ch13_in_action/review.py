"""Review questions of chapter 13, with tiles, fusion, splits and formats of chapters 1 to 11."""

from math import ceil
from random import Random

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.formats import FORMATS


@mixes("05", "10", read="13.1 10.6")
def tiles_of_gradient(draw: Random) -> Question:
    """Tiles of the gradient of a layer's weights."""
    outputs, inputs = (128 * draw.randint(2, 9) for _ in range(2))
    batch, tile = draw.choice((64, 128, 1024, 4096)), 128
    tiles = (ceil(a / tile) * ceil(b / tile) for a, b in
             ((outputs, inputs), (outputs, batch), (inputs, batch)))  # fmt: skip
    weights, forward, back = tiles
    return Question(
        f"A layer has {inputs} inputs and {outputs} outputs, and the batch has {batch} images. Of "
        f"how many tiles of {tile}×{tile} is the product that gives the gradient of its weights?",
        Answer(
            weights,
            f"The gradient is {outputs}×{inputs}, as the weights are. The batch is its k, which "
            "can be split.",
            {
                forward: "That is the way forward, outputs × batch.",
                back: "That is the gradient of the input, inputs × batch.",
                weights
                * ceil(batch / tile): "The batch is k: it makes the tiles longer, not more.",
            },
        ),
        "tiles",
    )


@mixes("11", read="13.3 11.6")
def scale_of_loss(draw: Random) -> Question:
    """The scale of a loss that makes a gradient normal."""
    form, least = FORMATS["float16"], draw.randint(20, 40)
    return Question(
        f"The smallest gradients that you want to keep are $2^{{-{least}}}$. float16 has normal "
        f"numbers from $2^{{{form.emin}}}$ on and no number but 0 below "
        f"$2^{{{form.emin - form.fraction_bits}}}$. By which power of two must the loss be scaled "
        "at least, so that they are normal? Give the exponent.",
        Answer(
            least + form.emin,
            f"$2^{{-{least}}} \\cdot 2^{{{least + form.emin}}} = 2^{{{form.emin}}}$.",
            {
                least + form.emin - form.fraction_bits: "Then they are the last numbers above 0, "
                "with one bit left.",
                least: "Then they are 1; less is enough.",
                least - form.emax: "Then they are half of the smallest normal number.",
            },
            exponent=True,
        ),
        "",
    )


@mixes("02", read="13.2 2.2")
def saved_by_epilogue(draw: Random) -> Question:
    """The time that an epilogue saves, by bytes."""
    m, n = 512 * draw.randint(1, 8), draw.choice((512, 1024, 2048, 4096))
    launches, bandwidth = draw.choice((2, 3)), draw.choice((2.0, 3.35, 4.8))
    each = 4 * m * n / bandwidth / 1e6
    named = {2: "bias and rectifier", 3: "bias, rectifier and a mask"}[launches]
    return Question(
        f"Y is {m}×{n} in FP32. {named.capitalize()} have launches of their own, {launches} in "
        "all, each of which reads Y and writes it. An epilogue does all that before the product "
        f"stores Y. How many µs of DRAM's time does it save at {bandwidth} TB/s, the small "
        "operands aside?",
        Answer(
            2 * launches * each,
            f"Y has {4 * m * n / 1e6:.3g} MB, and {launches} launches move it twice each.",
            {
                launches * each: "A launch reads and writes.",
                2 * (launches - 1) * each: "The product stores Y once either way, and no launch "
                "is left.",
                2 * each: f"There are {launches} launches.",
                4 * launches * each: "A number of FP32 has 4 bytes.",
            },
            within=0.03,
        ),
        "µs",
    )
