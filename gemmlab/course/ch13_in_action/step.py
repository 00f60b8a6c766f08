"""A training step as the launches of a GPU: every product with its shape, and what lies between.

`launches` lists them in their order, for a network of `network` with its arrays in `Memory`. Fused,
an epilogue does what follows a product; else a launch of its own does. `simulate_step` runs them on
the simulated GPU, `predict_step` says how long they take. The kernels between the products stand at
the end: memory bound and short.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy import float32

from gemmlab import Gemm
from gemmlab.compiled.forecast.kernel import (
    Forecast,
    execute_launch,
    forecast_next,
    known_device,
)
from gemmlab.compiled.forecast.whole_gpu import launch_latency
from gemmlab.course.ch13_in_action import dense
from gemmlab.course.ch13_in_action.network import Network
from gemmlab.device import Device
from gemmlab.simt import cuda, simulate

WARP = 32
ALL = 0xFFFFFFFF  # lanes of a warp
PLANE = 8, 32  # rows and columns of a block of threads with an element each
ROWS = 4  # of a block of `step_biases`: a warp each


@dataclass(frozen=True)
class Memory:
    """The arrays of a step: the network, a batch, and what is computed on the way.

    values : the input of each layer, and last the scores; gradients : of the loss by each layer's
    WX + b; products : where an epilogue is a launch of its own, what it finds; losses : of images
    """

    network: Network
    targets: Any
    values: tuple[Any, ...]
    gradients: tuple[Any, ...]
    products: tuple[Any, ...]
    of_weights: tuple[Any, ...]
    losses: Any


@dataclass(frozen=True)
class Launch:
    """A kernel with its launch; problem : the product that it computes, None where it has none."""

    name: str
    function: Callable
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple
    shared_bytes: int = 0
    problem: Gemm | None = None


def memory(network: Network, pixels: np.ndarray, targets: np.ndarray) -> Memory:
    """Give a step its arrays, for one batch."""
    batch = pixels.shape[1]
    hidden = [np.zeros((size, batch), np.float32) for size in network.sizes[1:]]
    return Memory(
        network,
        targets,
        (pixels, *hidden),
        tuple(map(np.zeros_like, hidden)),
        tuple(map(np.zeros_like, hidden)),
        tuple(map(np.zeros_like, network.weights)),
        np.zeros(batch, np.float32),
    )


def launches(
    of: Memory,
    rate: float,
    fused: bool = True,
    capability: tuple[int, int] | None = None,
) -> Iterator[Launch]:
    """Yield the launches of a step; capability : of the GPU, None for the simulated one."""
    network, last = of.network, len(of.network.weights) - 1

    def product(name, a, b, c, d, layout, epilogue):
        """Multiply two stored operands; the epilogue makes of each sum and D what C holds."""
        left, right = layout
        m, k = a.shape if left == "n" else a.shape[::-1]
        problem = Gemm(m, b.shape[1] if right == "n" else b.shape[0], k, layout=layout)
        grid, block, shared = dense.launch(problem)
        function = dense.kernel(problem, epilogue, capability)
        return Launch(name, function, grid, block, (a, b, c, d), shared, problem)

    for i, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        x, y = of.values[i], of.values[i + 1]
        epilogue, alone = (dense.BIAS, add_bias) if i == last else (dense.RECTIFIER, rectify)
        if fused:
            yield product(f"forward {i + 1}", w, x, y, b, "nn", epilogue)
        else:
            yield product(f"forward {i + 1}", w, x, of.products[i], b, "nn", dense.STORE)
            yield each(f"bias {i + 1}", alone, of.products[i], b, y)
    scores, batch = of.values[-1], of.losses.size
    grid = -(-batch // PLANE[1]), 1
    yield Launch(
        "loss", softmax_gradient, grid, (PLANE[1], 1),
        (scores, of.targets, of.gradients[-1], of.losses),
    )  # fmt: skip
    for i in reversed(range(last + 1)):
        w, x, g = network.weights[i], of.values[i], of.gradients[i]
        if i and fused:  # before the weights move
            yield product(f"inputs {i + 1}", w, g, of.gradients[i - 1], x, "tn", dense.MASK)
        elif i:
            yield product(f"inputs {i + 1}", w, g, of.products[i - 1], x, "tn", dense.STORE)
            yield each(f"mask {i + 1}", mask, of.products[i - 1], x, of.gradients[i - 1])
        if fused:
            yield product(f"weights {i + 1}", g, x, w, w, "nt", dense.step(rate))
        else:
            yield product(f"weights {i + 1}", g, x, of.of_weights[i], w, "nt", dense.STORE)
            yield each(f"step {i + 1}", subtract, of.of_weights[i], w, np.float32(rate), of=w)
        yield Launch(
            f"biases {i + 1}", step_biases, (-(-g.shape[0] // ROWS), 1),
            (WARP, ROWS), (g, network.biases[i], np.float32(rate)),
        )  # fmt: skip


def each(name: str, function: Callable, *arguments: Any, of: Any = None) -> Launch:
    """A thread for each element of the first argument."""
    rows, columns = arguments[0].shape if of is None else of.shape
    down, across = PLANE
    grid = -(-columns // across), -(-rows // down)
    return Launch(name, function, grid, (across, down), arguments)


def simulate_step(of: Memory, rate: float, fused: bool = True) -> float:
    """Run a step on the simulated GPU; return its loss. HazardError where a launch is wrong."""
    for one in launches(of, rate, fused):
        simulate(one.function, one.grid, one.block, *one.arguments, shared_bytes=one.shared_bytes)
    return float(of.losses.mean())


def predict_step(
    of: Memory, rate: float, device: str | Device = "h200", fused: bool = True
) -> list[tuple[Launch, Forecast]]:
    """Forecast each launch of a step, which finds in L2 what the launches before it left there.

    The first one waits for the launch, each other for the time from one launch to the next.
    """
    target, found = known_device(device), []
    for one in launches(of, rate, fused, target.compute_capability):
        executed = execute_launch(
            one.function, one.grid, one.block, *one.arguments, device=target,
            shared_bytes=one.shared_bytes,
        )  # fmt: skip
        told = forecast_next(executed)
        found.append((one, told if found else replace(told, launch=launch_latency(target))))
    return found


# ------------------------------------------------------------------------- between the products


def add_bias(Y, b, H):
    """Store Y + b in H, a thread for each element."""
    c, r = cuda.grid(2)
    if r < Y.shape[0] and c < Y.shape[1]:
        H[r, c] = Y[r, c] + b[r, 0]


def rectify(Y, b, H):
    """Store max(0, Y + b) in H, a thread for each element."""
    c, r = cuda.grid(2)
    if r < Y.shape[0] and c < Y.shape[1]:
        y = Y[r, c] + b[r, 0]
        H[r, c] = y if y > 0 else float32(0)


def mask(Y, X, G):
    """Let the gradient Y pass to G where the layer's input X was positive."""
    c, r = cuda.grid(2)
    if r < Y.shape[0] and c < Y.shape[1]:
        G[r, c] = Y[r, c] if X[r, c] > 0 else float32(0)


def subtract(G, W, rate):
    """Move the weights W against their gradient G."""
    c, r = cuda.grid(2)
    if r < W.shape[0] and c < W.shape[1]:
        W[r, c] -= rate * G[r, c]


def softmax_gradient(S, T, G, losses):
    """Store the gradient of the mean cross entropy by the scores S: a thread for each image."""
    c = cuda.grid(1)
    if c < S.shape[1]:
        largest = S[0, c]
        for r in range(1, S.shape[0]):
            largest = max(largest, S[r, c])
        total = float32(0)
        for r in range(S.shape[0]):
            total += math.exp(S[r, c] - largest)
        loss = float32(0)
        for r in range(S.shape[0]):
            log_p = S[r, c] - largest - math.log(total)
            loss -= T[r, c] * log_p
            G[r, c] = (math.exp(log_p) - T[r, c]) / float32(S.shape[1])
        losses[c] = loss


def step_biases(G, b, rate):
    """Move the biases b against the sums of the rows of G: a warp for each row."""
    lane = cuda.threadIdx.x
    r = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    if r < G.shape[0]:
        total = float32(0)
        for c in range(lane, G.shape[1], WARP):
            total += G[r, c]
        for distance in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(ALL, total, distance)
        if lane == 0:
            b[r, 0] -= rate * total
