"""The network and the block in PyTorch, where it is installed: the same losses as without it."""

import operator
from importlib.util import find_spec

import numpy as np
import pytest

from gemmlab.course.ch13_in_action import block, digits, in_torch, network, products
from gemmlab.multiplication import matmul

pytestmark = pytest.mark.skipif(not find_spec("torch"), reason="PyTorch is not installed")
if find_spec("torch"):
    import torch

MODEL = block.Block(vocabulary=11, context=5, batch=3, width=8, heads=2)


@pytest.mark.parametrize("multiply", [operator.matmul, matmul], ids=["@", "matmul"])
def test_it_learns_as_the_network_without_it(multiply):
    some = digits.load()[0].some(slice(0, 64))
    net = network.initial((64, 8, 10))
    layers = in_torch.parameters(net, "cpu")
    exact = products.rounded_to("float32")
    right = [network.step(net, some.pixels, some.targets, exact, 0.5) for _ in range(4)]
    pixels, labels = torch.tensor(some.pixels), torch.tensor(some.labels)
    losses = in_torch.train(layers, ((pixels, labels) for _ in range(4)), multiply, 0.5)
    np.testing.assert_allclose([float(x) for x in losses], right, rtol=1e-5)


def test_a_row_of_a_table_is_a_product_with_a_row_of_zeros_and_a_one():
    text = torch.randint(11, (3, 5), generator=torch.Generator().manual_seed(1))
    found = []
    for looked_up in (False, True):
        w = in_torch.weights(MODEL, "cpu")
        scores = in_torch.characters(MODEL, w, text, looked_up)
        torch.nn.functional.cross_entropy(scores, text.reshape(-1)).backward()
        found.append((scores.detach(), w["characters"].grad))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_a_character_looks_at_none_behind_it():
    text = torch.zeros(1, 5, dtype=torch.long)
    w = in_torch.weights(MODEL, "cpu")
    before = in_torch.characters(MODEL, w, text).detach()
    text[0, 3] = 7
    after = in_torch.characters(MODEL, w, text).detach()
    assert torch.equal(before[:3], after[:3])
    assert not torch.equal(before[3:], after[3:])


def test_weights_are_as_many_as_the_sizes_say():
    made = in_torch.weights(MODEL, "cpu")
    matrices = [x for name, x in made.items() if "+" not in name and "norm" not in name]
    assert sum(x.numel() for x in matrices) == MODEL.weights
