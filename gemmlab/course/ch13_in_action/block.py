"""One block of a transformer: its products, its passes over memory, and how long a step takes.

All of it follows from five sizes. Rows are characters here, tokens × width, as PyTorch stores them:
a layer computes Y = XW. `products` lists the GEMMs of a training step, `passes` what else goes over
arrays in device memory, and `predict` gives each a time by chapter 2 and chapter 5, from the
device's numbers alone. Sources: A. Vaswani et al., "Attention is all you need", NeurIPS 2017; the
operations are those of `in_torch.characters`, each a launch of PyTorch's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gemmlab import Gemm
from gemmlab.device import Device
from gemmlab.formats import number_format
from gemmlab.model.in_tiles import choose
from gemmlab.model.layers import Attention, Batched

FLOAT = number_format("float32").bytes
ADAM = 7  # arrays of the weights' size: four are read, three written


@dataclass(frozen=True)
class Block:
    """A language model of characters with one block: attention, then two layers of four widths.

    vocabulary : characters that there are; context : of a text; batch : texts of a step
    """

    vocabulary: int
    context: int = 256
    batch: int = 32
    width: int = 512
    heads: int = 8

    @property
    def tokens(self) -> int:
        """Characters of a step."""
        return self.batch * self.context

    @property
    def weights(self) -> int:
        """Numbers that are learned, but for biases and norms."""
        return (12 * self.width + self.vocabulary * 2 + self.context) * self.width


class Work(NamedTuple):
    """A part of a step: what it is, whether forward or backward, and its product or its bytes."""

    name: str
    direction: str  # forward | backward
    product: Batched | None
    bytes: int


def products(block: Block) -> Iterator[Work]:
    """Yield the products of a step: forward, then two of each backward."""
    d, n = block.width, block.tokens
    layers = {
        "queries, keys, values": (d, 3 * d),
        "heads together": (d, d),
        "up": (d, 4 * d),
        "down": (4 * d, d),
        "scores of characters": (d, block.vocabulary),
    }
    for name, (inputs, outputs) in layers.items():
        yield _product(name, "forward", Gemm(n, outputs, inputs))
        yield _product(name + ", inputs", "backward", Gemm(n, inputs, outputs, layout="nt"))
        yield _product(name + ", weights", "backward", Gemm(inputs, outputs, n, layout="tn"))
    v = block.vocabulary
    yield _product("characters to vectors", "forward", Gemm(n, d, v))
    yield _product("characters to vectors, weights", "backward", Gemm(v, d, n, layout="tn"))
    heads = Attention(
        block.batch, block.heads, block.context, block.context, d // block.heads, "float32"
    )
    t, size, count = block.context, d // block.heads, block.batch * block.heads
    for name, of in (("attention, QKᵀ", heads.scores), ("attention, PV", heads.values)):
        yield _product(name, "forward", of.gemm, of.count)
    for name, one in (
        ("attention, ∂P", Gemm(t, t, size, layout="nt")),
        ("attention, ∂V", Gemm(t, size, t, layout="tn")),
        ("attention, ∂Q", Gemm(t, size, t)),
        ("attention, ∂K", Gemm(t, size, t, layout="tn")),
    ):
        yield _product(name, "backward", one, count)


def _product(name: str, direction: str, gemm: Gemm, count: int = 1) -> Work:
    return Work(name, direction, Batched(count, gemm), count * gemm.bytes)


def passes(block: Block) -> Iterator[Work]:
    """Yield what else a step does: each reads and writes arrays once.

    x is an array of tokens × width, s the scores of all heads.
    """
    x = FLOAT * block.tokens * block.width
    s = FLOAT * block.batch * block.heads * block.context**2
    p = FLOAT * block.tokens * block.vocabulary
    forward = {
        "characters as rows of 0 and 1": 3 * p,
        "places": 2 * x,
        "norms, three": 3 * 2 * x,
        "heads apart": 3 * 2 * x,
        "scale": 2 * s,
        "mask": 2 * s,
        "softmax": 2 * s,
        "heads together, copied": 2 * x,
        "rectifier": 2 * 4 * x,
        "residuals, two": 2 * 3 * x,
        "loss": 4 * p,
    }
    backward = {
        "loss": 3 * p,
        "norms, three": 3 * 5 * x,
        "rectifier": 3 * 4 * x,
        "biases": (3 + 1 + 4 + 1) * x,
        "softmax": 3 * s,
        "mask": 2 * s,
        "scale": 2 * s,
        "heads": (2 + 3 * 2 + 3 * 2) * x,
        "residuals, two": 2 * 3 * x,
        "vectors": 2 * x,
        "weights": ADAM * FLOAT * block.weights,
    }
    for direction, table in (("forward", forward), ("backward", backward)):
        yield from (Work(name, direction, None, size) for name, size in table.items())


def predict(work: Work, device: Device, of_peak: float = 1.0) -> float:
    """Return the time of a part of a step [s]: of its tiles, or of its bytes, and of a launch.

    A batch of products has as many tiles as one that is as many times as high.
    of_peak : the part of the peak that the library reaches with a large product; 1 for a bound
    """
    seconds = work.bytes / device.dram_bandwidth
    if work.product:
        count, one = work.product
        tall = Gemm(count * one.m, one.n, one.k, dtype=one.dtype)
        seconds = max(seconds, choose(tall, device).seconds / of_peak)
    return seconds + (device.launch_interval or 0.0)
