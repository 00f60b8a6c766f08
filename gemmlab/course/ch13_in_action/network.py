"""A network of fully-connected layers: forward, backward and the step of its weights, as products.

An image is a column, as in `gemmlab.model.layers`: a layer computes Y = f(WX + b), where W is
outputs×inputs, X is inputs×batch, and f is the rectifier max(0, y) in all layers but the last one.
With ∂Y, the gradient of the loss by WX + b, each layer has three products:

    forward               WX      outputs × batch × inputs     nn
    gradient of weights   ∂Y·Xᵀ   outputs × inputs × batch     nt
    gradient of inputs    Wᵀ·∂Y   inputs × batch × outputs     tn

Whoever calls says who multiplies: `product(a, b)` takes two matrices, of which some are transposed
views, and returns their product. Arrays are NumPy's, or CuPy's on a GPU.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gemmlab.course.ch13_in_action.digits import Digits

Product = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Network:
    """The weights and biases of each layer, first to last; a step changes them in place."""

    weights: tuple[Any, ...]  # outputs×inputs float32
    biases: tuple[Any, ...]  # outputs×1 float32

    @property
    def sizes(self) -> tuple[int, ...]:
        """The inputs of each layer, and the outputs of the last one."""
        return (*(w.shape[1] for w in self.weights), self.weights[-1].shape[0])


def initial(sizes: Sequence[int], seed: int = 0) -> Network:
    """Draw a network: normal weights of variance 2 ÷ inputs, and biases of 0.

    The variance keeps the outputs of rectified layers as large as their inputs. Source: K. He and
    others, "Delving Deep into Rectifiers", ICCV 2015.
    """
    draw = np.random.default_rng(seed)
    pairs = list(pairwise(sizes))
    weights = [draw.standard_normal((o, i)) * np.sqrt(2 / i) for i, o in pairs]
    return Network(
        tuple(w.astype(np.float32) for w in weights),
        tuple(np.zeros((o, 1), np.float32) for _, o in pairs),
    )


def forward(network: Network, pixels: Any, product: Product) -> list[Any]:
    """Give the input of each layer, and last what the last layer says: a score for each class."""
    values = [pixels]
    last = len(network.weights) - 1
    for layer, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        y = product(w, values[-1]) + b
        values.append(y if layer == last else y * (y > 0))
    return values


def loss_and_gradient(scores: Any, targets: Any) -> tuple[float, Any]:
    """Return the mean cross entropy of a batch, and its gradient by the scores.

    The probability of class c is p_c = e^(s_c) / Σ e^(s_j), the loss of an image −log p_label, and
    the gradient of the mean by the scores (p − target) / batch.
    targets : 1 for the label of an image, else 0
    """
    shifted = scores - scores.max(axis=0)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=0))
    batch = np.float32(targets.shape[1])
    loss = -float((targets * log_p).sum()) / float(batch)
    return loss, (np.exp(log_p) - targets) / batch


def gradients(
    network: Network, values: Sequence[Any], of_scores: Any, product: Product
) -> Iterator[tuple[int, Any, Any]]:
    """Go back through the layers: yield the number of each, and the gradients of its W and b.

    values : what `forward` gave; of_scores : the gradient of the loss by the scores
    """
    gradient = of_scores
    for layer in reversed(range(len(network.weights))):
        x = values[layer]
        yield layer, product(gradient, x.T), gradient.sum(axis=1, keepdims=True)
        if layer > 0:
            gradient = product(network.weights[layer].T, gradient) * (x > 0)


def step(
    network: Network,
    pixels: Any,
    targets: Any,
    product: Product,
    rate: float,
    scale: float = 1.0,
) -> float:
    """Move the weights against the gradient of a batch's loss; return the loss before that.

    rate : how far, in gradients. scale : of the loss on its way back, so that the gradients of a
        narrow format do not vanish; what arrives at the weights is divided by it
    """
    values = forward(network, pixels, product)
    loss, of_scores = loss_and_gradient(values[-1], targets)
    scaled = of_scores * np.float32(scale)
    found = list(gradients(network, values, scaled, product))  # by the weights as they were
    for layer, of_weights, of_biases in found:
        moved = np.float32(rate / scale)
        network.weights[layer][...] -= moved * of_weights
        network.biases[layer][...] -= moved * of_biases
    return loss


def batches(images: int, batch: int, epochs: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Yield the numbers of each batch's images: an epoch shows each once, in an order of its own.

    Images that do not fill a batch are left out of the epoch.
    """
    draw = np.random.default_rng(seed)
    for _ in range(epochs):
        order = draw.permutation(images)
        for first in range(0, images - batch + 1, batch):
            yield order[first : first + batch]


def train(
    network: Network,
    taught: Digits,
    product: Product,
    *,
    batch: int = 64,
    epochs: int = 1,
    rate: float = 0.1,
    scale: float = 1.0,
    seed: int = 0,
) -> Iterator[float]:
    """Yield the loss of each step of `epochs` epochs: a step is made when it is asked for."""
    for numbers in batches(len(taught), batch, epochs, seed):
        some = taught.some(numbers)
        yield step(network, some.pixels, some.targets, product, rate, scale)


def accuracy(network: Network, test: Digits, product: Product) -> float:
    """Return the part of the images whose label has the highest score."""
    scores = forward(network, test.pixels, product)[-1]
    return float((scores.argmax(axis=0) == test.labels).mean())
