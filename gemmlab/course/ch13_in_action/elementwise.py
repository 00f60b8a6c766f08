"""What a training step does beside its products: a kernel each, memory bound and short."""

import math

from numpy import float32

from gemmlab.simt import cuda

WARP = 32
ALL = 0xFFFFFFFF  # lanes of a warp


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
