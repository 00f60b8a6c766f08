"""The same network in PyTorch, with the product of one's choice in the place of `@`.

PyTorch makes the gradients: `gemmlab.matmul` tells it how to go back through a product.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gemmlab.course.ch13_in_action.block import Block
from gemmlab.course.ch13_in_action.network import Network


def parameters(network: Network, device: str) -> list[tuple[Any, Any]]:
    """Give the weights and biases of each layer to PyTorch, which is to find their gradients."""
    import torch

    def parameter(x: Any) -> Any:
        return torch.tensor(x, device=device, requires_grad=True)

    return [
        (parameter(w), parameter(b)) for w, b in zip(network.weights, network.biases, strict=True)
    ]


def loss(layers: Sequence[tuple[Any, Any]], pixels: Any, labels: Any, multiply: Callable) -> Any:
    """Return the mean cross entropy of a batch; a column of `pixels` is an image."""
    import torch

    x = pixels
    for w, b in layers[:-1]:
        x = torch.relu(multiply(w, x) + b)
    w, b = layers[-1]
    return torch.nn.functional.cross_entropy((multiply(w, x) + b).T, labels)


def train(
    layers: Sequence[tuple[Any, Any]],
    batches: Iterator[tuple[Any, Any]],
    multiply: Callable,
    rate: float,
) -> Iterator[Any]:
    """Yield the loss of each step, a tensor: who reads it waits for the GPU."""
    import torch

    every = [x for layer in layers for x in layer]
    optimizer = torch.optim.SGD(every, lr=rate)
    for pixels, labels in batches:
        optimizer.zero_grad()
        found = loss(layers, pixels, labels, multiply)
        found.backward()
        optimizer.step()
        yield found.detach()


# ------------------------------------------------------------------ one block of a transformer


def weights(block: Block, device: str, seed: int = 0) -> dict[str, Any]:
    """Draw the weights of a block, of standard deviation 0.02, and biases and norms as usual."""
    import torch

    draw, d = torch.Generator().manual_seed(seed), block.width
    shapes = {
        "characters": (block.vocabulary, d),
        "places": (block.context, d),
        "qkv": (d, 3 * d),
        "together": (d, d),
        "up": (d, 4 * d),
        "down": (4 * d, d),
        "scores": (d, block.vocabulary),
    }
    made = {name: 0.02 * torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    made |= {name + "+": torch.zeros(shapes[name][1]) for name in ("qkv", "together", "up", "down")}
    for i in "123":
        made |= {"norm" + i: torch.ones(d), "norm" + i + "+": torch.zeros(d)}
    return {name: x.to(device).requires_grad_() for name, x in made.items()}


def characters(block: Block, w: dict[str, Any], text: Any, looked_up: bool = False) -> Any:
    """Return the scores of each next character; text : (batch, context) numbers of characters.

    looked_up : the vector of a character is a row of a table, as one usually writes it; else it is
        a product with a row that is 1 for this character and 0 for all others
    """
    import torch
    from torch.nn.functional import layer_norm, one_hot

    d, size = block.width, block.width // block.heads
    batch, context = text.shape

    def norm(x: Any, number: str) -> Any:
        return layer_norm(x, (d,), w["norm" + number], w["norm" + number + "+"])

    def layer(x: Any, name: str) -> Any:
        return torch.addmm(w[name + "+"], x, w[name])

    if looked_up:
        x = w["characters"][text]
    else:
        x = one_hot(text, block.vocabulary).float() @ w["characters"]
    x = (x + w["places"][:context]).view(-1, d)
    heads = layer(norm(x, "1"), "qkv").view(batch, context, 3, block.heads, size)
    q, k, v = (each.contiguous() for each in heads.permute(2, 0, 3, 1, 4))
    later = torch.ones(context, context, dtype=torch.bool, device=text.device).triu(1)
    scores = (q @ k.transpose(-2, -1)) * size**-0.5
    told = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
    x = x + layer(told.transpose(1, 2).reshape(-1, d), "together")
    x = x + layer(torch.relu(layer(norm(x, "2"), "up")), "down")
    return norm(x, "3") @ w["scores"]
