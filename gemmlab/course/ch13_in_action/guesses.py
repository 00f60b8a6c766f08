"""Answers to the questions of chapter 13, in action."""

from gemmlab import device
from gemmlab.course.ch13_in_action import block, digits, network, products
from gemmlab.course.guesses import Answer
from gemmlab.measure.benchmarks import SplitProduct, Step, block_times, training

_H100 = device("h100_sxm")
SMALL, RATE, EPOCHS = (64, 32, 10), 0.5, 4  # the network that the chapter trains here
VANISHING = 2.0**-16  # a scale of the loss


def _step_of(batch: int, fused: bool = True) -> Step:
    """A recorded step of the network with 512 wide layers."""
    (found,) = (s for s in training().steps if (s.batch, s.fused) == (batch, fused))
    return found


def _split_of(name: str, batch: int = 64) -> SplitProduct:
    """A recorded product of such a step, with k whole and in parts."""
    (found,) = (s for s in training().splits if (s.name, s.batch) == (name, batch))
    return found


def _learned(product: network.Product, epochs: int = EPOCHS, scale: float = 1.0) -> float:
    """Train the chapter's small network; return the part of the test images that it knows."""
    taught, test = digits.load()
    net = network.initial(SMALL)
    for _ in network.train(net, taught, product, epochs=epochs, rate=RATE, scale=scale):
        pass
    return network.accuracy(net, test, products.rounded_to("float32"))


def count() -> Answer:
    """Three layers: how many products does a training step take?"""
    return Answer(
        8,
        "Each layer has one product forward and two back, but nobody asks for the gradient of the "
        "images: the first layer's ∂X is left out, and 3 + 3 + 2 are left.",
        {
            3: "Those are the products forward. The gradients need products of their own.",
            6: "A layer has two gradients: of its weights, and of its inputs for the layer before.",
            9: "What would the gradient of the images be used for?",
        },
    )


def epoch() -> Answer:
    """After one epoch: which percentage of the test's images does the small network know?"""
    return Answer(
        round(100 * _learned(products.rounded_to("float32"), epochs=1)),
        "22 steps move the weights far enough that most digits are told apart.",
        {
            10: "That is guessing: one of ten digits. 22 steps change that.",
            100: "Nobody's network knows all of the digits after seeing each once.",
        },
        within=0.1,
    )


def survive() -> Answer:
    """Most gradients of the scores are rounded to 0: which percentage of the test's images?"""
    there = 100 * _learned(products.rounded_to("float16"), scale=VANISHING)
    return Answer(
        round(there),
        "What FP16 drops are the smallest gradients, of images that the network knows already, and "
        "the sum over a batch hardly changes.",
        {
            10: "That is guessing. The largest gradients are all there, and they lead the weights.",
            5: "That is the share of gradients that is left. Weights follow the size of their "
            "gradients, not how many there are.",
            34: "That is the share of gradients that is left at first. They are the large ones.",
            50: "Gradients do not count alike: the large ones move the weights.",
        },
        within=0.04,
    )


def batch() -> Answer:
    """512 images in place of 64: how many times as long does a step take?"""
    few, many = _step_of(64), _step_of(512)
    times = many.seconds / few.seconds
    blocks = next(one.blocks for one in few.launches if one.name == "forward 2")
    return Answer(
        round(times, 2),
        f"At 64 images, *forward 2* gives a block to {blocks} of {_H100.sms} SMs. At 512 it gives "
        "one to 64, and each block's loop over k is as long as before. Only ∂W has a longer sum.",
        {
            8: "Eight times the work would take eight times as long if the GPU were full before.",
            1: "The gradients of the weights sum over the images: their k grows with the batch.",
            2.83: "The work grows by 8, and so do the blocks: nothing grows by its root.",
        },
        within=0.06,
    )


def fuse() -> Answer:
    """Separate launches for bias, rectifier, mask and step: how many µs more at 64 images?"""
    apart, fused = _step_of(64, fused=False), _step_of(64)
    extra = len(apart.launches) - len(fused.launches)
    saved = 1e6 * (apart.seconds - fused.seconds)
    names = {one.name for one in fused.launches}
    gone = 1e6 * sum(one.seconds for one in apart.launches if one.name not in names)
    return Answer(
        round(saved, 1),
        f"{extra} launches are gone. By themselves they take {gone:.0f} µs, but an epilogue is "
        "not free: it loads what it needs before the product can be stored.",
        {
            round(gone, 1): f"{gone:.0f} µs is what the launches take by themselves. Their work "
            "moved into the products, which take longer.",
            0: "A launch takes its time even where it has little to do.",
        },
        within=0.1,
    )


def split() -> Answer:
    """*forward 2* with 16 parts of k: how many times as fast?"""
    one = _split_of("forward 2")
    whole, parts = one.whole.seconds, one.parts.seconds
    return Answer(
        round(whole / parts, 1),
        f"{1e6 * whole:.1f} µs become {1e6 * parts:.1f} (recorded, from a cold L2). The loop is a "
        "sixteenth as long, but two launches, the first loads and the sums of 16 parts remain.",
        {
            16: "That is how much shorter the loop is. What is not the loop stays.",
            8: "That would need a launch that adds the parts in no time.",
            1: "8 blocks leave 124 SMs idle: there is something to gain.",
        },
        within=0.1,
    )


def torch() -> Answer:
    """`gemmlab.matmul` in the place of @: how many times as fast is a step of a wide network?"""
    by_name = {one.way: one for one in training().eager}
    plain, ours = by_name["PyTorch, FP32"], by_name["gemmlab.matmul"]
    return Answer(
        round(plain.seconds / ours.seconds, 2),
        f"{1e3 * plain.seconds:.2f} ms become {1e3 * ours.seconds:.2f}. Three products on Tensor "
        "Cores are faster than one on FP32 units; the rest of the step stays as it is.",
        {
            3: "*matmul* makes three products of each, on units that are far faster.",
            1: "PyTorch's product runs on FP32 units, and chapter 12's does not.",
            round(ours.seconds / plain.seconds, 2): "That is upside down.",
        },
        within=0.1,
    )


def operations() -> Answer:
    """Training: how many operations for each weight and each character?"""
    return Answer(
        6,
        "Forward each weight meets each character in one multiplication and one addition. Each of "
        "the two gradients takes as many again.",
        {
            2: "That is the way forward alone.",
            3: "Each of the three products multiplies and adds.",
            4: "That is the way back alone, or one gradient is missing.",
        },
    )


def lookup() -> Answer:
    """The gradient of a table of 104 rows: how many µs does PyTorch take for it?"""
    by_table = next(one for one in block_times().steps if one.looked_up)
    model = block.Block(**by_table.sizes)
    tokens, rows = model.tokens, model.vocabulary
    seconds = next(k.seconds for k in by_table.kernels if "indexing_backward" in k.name)
    elsewhere = {k.name for one in block_times().steps if not one.looked_up for k in one.kernels}
    forward = next(
        k.seconds for k in by_table.kernels if "index_kernel" in k.name and k.name not in elsewhere
    )
    product = next(
        p.seconds for p in block_times().products if p.name == "characters to vectors, weights"
    )
    return Answer(
        round(1e6 * seconds),
        f"{tokens} rows are added to {rows}, so that some rows of the table are added to a "
        "thousand times, one after the other, at some 0.7 µs each. As a product with a matrix of "
        f"0 and 1 the same gradient takes {1e6 * product:.0f} µs.",
        {
            round(1e6 * forward): "That is the lookup forward, which only copies rows.",
            10: "That is what its bytes would take. The rows share their sums.",
        },
        within=0.15,
    )
