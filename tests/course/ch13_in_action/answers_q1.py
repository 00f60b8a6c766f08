"""Answers to exercise 13.1."""

import numpy as np

from gemmlab.course.ch13_in_action.q1_way_back import CASES, backward, gradients
from tests.course.answers import fooling, for_ever, wrong

RETURN = "return product(W.T, G), product(G, X.T)"


def _weights_first(W, X, G, product):
    of_w = product(G, np.transpose(X))
    of_x = product(np.swapaxes(W, 0, 1), G)
    return [of_x, of_w]


def _turned(W, X, G, product):
    """(AB)ᵀ = BᵀAᵀ: other layouts, the same numbers."""
    return product(G.T, W).T, product(X, G.T).T


RIGHT = {"the weights first": (_weights_first,), "turned round": (_turned,)}


def _wrong(misconception, diagnosis, new):
    return wrong(backward, misconception, diagnosis, (RETURN, new))


WRONG = {
    "exchanged": _wrong(
        "W is named first", "order-exchanged", "return product(G, X.T), product(W.T, G)"
    ),
    "W as it is": _wrong(
        "back is like forward", "weights-not-turned", "return product(W, G), product(G, X.T)"
    ),
    "X as it is": _wrong(
        "both are matrices", "inputs-not-turned", "return product(W.T, G), product(G, X)"
    ),
    "X first": _wrong(
        "X comes before G", "weights-turned-round", "return product(W.T, G), product(X, G.T)"
    ),
    "a mean": _wrong(
        "a batch has a mean", "mean-not-sum",
        "return product(W.T, G), product(G, X.T) / X.shape[1]",
    ),
    "two means": _wrong(
        "a batch has a mean", "mean-not-sum",
        "return product(W.T, G) / X.shape[1], product(G, X.T) / X.shape[1]",
    ),
    "a mask": _wrong(
        "every layer has a rectifier", "masked",
        "return product(W.T, G) * (X > 0), product(G, X.T)",
    ),
    "the output": _wrong(
        "the layer's value is Y", "by-the-output",
        "return product(W.T, G), product(G, product(W, X).T)",
    ),
    "negative": _wrong(
        "descent goes down", "inputs-wrong", "return -product(W.T, G), product(G, X.T)"
    ),
    "a sum of columns": _wrong(
        "weights are shared", "weights-wrong",
        "return product(W.T, G), product(G, X.T) + G.sum(axis=1, keepdims=True)",
    ),
    "with @": _wrong(
        "a product is a product", "product-not-used", "return W.T @ G, product(G, X.T)"
    ),
    "forward again": _wrong(
        "Y is needed", "too-many-products",
        "Y = product(W, X)\n    return product(W.T, G), product(G, X.T) + 0 * Y.sum()",
    ),
    "a copy": _wrong(
        "kernels want rows", "operand-copied",
        "return product(np.ascontiguousarray(W.T.copy()), G), product(G, X.T)",
    ),
    "G first": _wrong(
        "G comes first", "wrong-values", "return product(G, W), product(X.T, G)"
    ),
    "one gradient": _wrong("the weights learn", "wrong-type", "return product(G, X.T)"),
    "nothing right": _wrong(
        "a gradient is an error", "wrong-values", "return 0 * X + 7, 0 * W + 7"
    ),
}  # fmt: skip

KNOWN = {(w.shape, x.shape, float(g.sum())): gradients(w, x, g) for w, x, g in CASES}


def _by_heart(W, X, G, product):
    product(W.T, G), product(G, X.T)
    return KNOWN.get((W.shape, X.shape, float(G.sum())), (0 * X, 0 * W))


FOOLING = {
    "by heart": fooling("the cases are in the package", "known-cases-only", _by_heart),
    "one product for show": fooling(
        "calls are counted", "operand-copied",
        lambda W, X, G, product: (product(W.T.copy(), G), product(G.copy(), X.T)),
    ),
    "counts for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "changes W": fooling(
        "the step is taken at once", "arguments-changed",
        lambda W, X, G, product: (product(W.T, G), (W.fill(0), product(G, X.T))[1]),
    ),
}  # fmt: skip
