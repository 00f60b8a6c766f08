"""Ten kernels of Triton with their launches, and what NumPy says of them."""

from __future__ import annotations

import numpy as np
from numpy import float16, float32, int32, uint32

from benchmarks.forecast.compiled.case import Case, Launch, Made
from benchmarks.forecast.compiled.of_nvcc import normal, softmax_of
from benchmarks.forecast.others.case import compared

BLOCK = 1024


def bfloat16(x):
    """Cut float32 numbers to bfloat16, as the words that they are in memory."""
    return (x.view(uint32) >> uint32(16)).astype(np.uint16)


def float32_of(words):
    return (words.astype(uint32) << uint32(16)).view(float32)


def vector_add(size):
    x, y = normal(1, size), normal(2, size)
    return Launch(-(-size // BLOCK), (x, y, np.zeros_like(x), int32(size)))


def vector_add_check(x, y, z, n):
    yield z, x + y


def gelu(size):
    x = bfloat16(normal(3, size))
    return Launch(-(-size // BLOCK), (x, np.zeros_like(x), int32(size)))


def gelu_check(x, y, n):
    v = float32_of(x).astype(float)
    expected = 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))
    yield float32_of(y).astype(float), expected, 2**-8


def fused_softmax(size):
    x = normal(4, size, 4000)
    return Launch(size, (x, np.zeros_like(x), int32(4000)))


def fused_softmax_check(x, y, columns):
    yield compared(y, softmax_of(x), float32(1), columns)


def layer_norm(size):
    x, columns = normal(5, size, 4096), 4096
    rest = normal(6, columns), normal(7, columns), int32(columns), float32(1e-5)
    return Launch(size, (x, np.zeros_like(x), *rest))


def layer_norm_check(x, y, weight, bias, columns, epsilon):
    wide = x.astype(float)
    off = wide - wide.mean(1, keepdims=True)
    expected = off / np.sqrt((off**2).mean(1, keepdims=True) + epsilon) * weight + bias
    yield y, expected.astype(float32), 1e-5


def matmul(size):
    a, b = (normal(seed, size, size).astype(float16) for seed in (8, 9))
    tiles = (size // 128) ** 2
    return Launch(tiles, (a, b, np.zeros_like(a), *3 * (int32(size),)))


def matmul_check(a, b, c, m, n, k):
    yield c.astype(float32), a.astype(float32) @ b.astype(float32), 2e-3


HEAD = 64


def attention(size):
    """Of as many heads as 1/64 of the length."""
    heads = max(1, size // 64)
    q, k, v = (normal(seed, heads, size, HEAD).astype(float16) for seed in (10, 11, 12))
    scale = float32(np.log2(np.e) / np.sqrt(HEAD))
    return Launch((size // 128, heads), (q, k, v, np.zeros_like(q), scale, int32(size)))


def attention_check(q, k, v, out, scale, length):
    for head in range(min(2, len(q))):  # of the others there are only more
        one, two, three = (x[head].astype(float32) for x in (q, k, v))
        s = one @ two.T * (scale * np.log(2))
        yield out[head].astype(float32), softmax_of(s) @ three, 4e-3


def embedding(size):
    table = normal(13, size, 512)
    numbers = np.random.default_rng(14).integers(0, size, size, int32)
    return Launch(size, (table, numbers, np.zeros_like(table), int32(512)))


def embedding_check(table, numbers, out, columns):
    yield out, table[numbers]


def dropout(size):
    x = normal(15, size)
    rest = int32(size), float32(0.25), int32(4096)
    return Launch(-(-size // BLOCK), (x, np.zeros_like(x), *rest))


def philox(seed, at):
    """Philox4x32-10 with Triton's counter: the first of four words, as a float from 0 to 1.

    Source: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.
    """
    mask = np.uint64(0xFFFFFFFF)
    c = [at.astype(np.uint64), *(np.zeros_like(at, np.uint64) for _ in range(3))]
    keys = [int(seed), 0]
    for _ in range(10):
        one, two = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [two >> np.uint64(32) ^ c[1] ^ np.uint64(keys[0]), two & mask,
             one >> np.uint64(32) ^ c[3] ^ np.uint64(keys[1]), one & mask]  # fmt: skip
        keys = [(k + step) % 2**32 for k, step in zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)]
    word = c[0].astype(uint32).view(int32)
    return np.where(word < 0, -word - 1, word).astype(float32) * float32(4.6566127342e-10)


def dropout_check(x, y, n, p, seed):
    keep = philox(seed, np.arange(n)) > p
    yield compared(y, np.where(keep, x / (1 - p), float32(0)), float32(1), 1)


WORDS = 50_304


def cross_entropy(size):
    logits = bfloat16(normal(16, size, WORDS))
    labels = np.random.default_rng(17).integers(0, WORDS, size, int32)
    return Launch(size, (logits, labels, np.zeros(size, float32), int32(WORDS)))


def cross_entropy_check(logits, labels, losses, columns):
    wide = float32_of(logits).astype(float)
    most = wide.max(1)
    expected = most + np.log(np.exp(wide - most[:, None]).sum(1)) - wide[range(len(wide)), labels]
    yield losses, expected.astype(float32), 1e-5


def running_sums(size):
    x = normal(18, size, 2048)
    return Launch(size, (x, np.zeros_like(x), int32(2048)))


def running_sums_check(x, y, columns):
    yield compared(y, np.cumsum(x, axis=1, dtype=float), np.abs(x).sum(1, keepdims=True), columns)


F32, F16, BF16, I32 = "*fp32", "*fp16", "*bf16", "i32"
FOUR, EIGHT = {"num_warps": 4}, {"num_warps": 8}
CASES = (
    Case("vector_add", "z = x + y", vector_add, vector_add_check, 20_000_000, 3000,
         made=Made({"x": F32, "y": F32, "z": F32, "n": I32}, {"BLOCK": BLOCK})),
    Case("gelu", "GELU in bfloat16", gelu, gelu_check, 64_000_000, 3000,
         made=Made({"x": BF16, "y": BF16, "n": I32}, {"BLOCK": BLOCK})),
    Case("fused_softmax", "softmax of rows, held whole", fused_softmax, fused_softmax_check,
         8192, 2, made=Made({"x": F32, "y": F32, "columns": I32}, {"BLOCK": 4096}, EIGHT)),
    Case("layer_norm", "layer norm of rows, read three times", layer_norm, layer_norm_check,
         8192, 2, made=Made({"x": F32, "y": F32, "weight": F32, "bias": F32, "columns": I32,
                             "epsilon": "fp32"}, {"BLOCK": BLOCK}, EIGHT)),
    Case("matmul", "a float16 product on Tensor Cores", matmul, matmul_check, 4096, 1024,
         made=Made({"a": F16, "b": F16, "c": F16, "m": I32, "n": I32, "k": I32},
                   {"M": 128, "N": 128, "K": 64, "GROUP": 8}, FOUR | {"num_stages": 3})),
    Case("attention", "attention with a running softmax", attention, attention_check, 2048, 128,
         made=Made({"q": F16, "k": F16, "v": F16, "out": F16, "scale": "fp32", "length": I32},
                   {"M": 128, "N": 64, "D": HEAD}, FOUR | {"num_stages": 2})),
    Case("embedding", "rows gathered from a table", embedding, embedding_check, 100_000, 60,
         made=Made({"table": F32, "numbers": "*i32", "out": F32, "columns": I32}, {"BLOCK": 512})),
    Case("dropout", "dropout by Philox", dropout, dropout_check, 32_000_000, 3000,
         made=Made({"x": F32, "y": F32, "n": I32, "p": "fp32", "seed": I32}, {"BLOCK": BLOCK})),
    Case("cross_entropy", "cross entropy of 50,304 logits", cross_entropy, cross_entropy_check,
         2048, 2, made=Made({"logits": BF16, "labels": "*i32", "losses": F32, "columns": I32},
                            {"BLOCK": 2048}, EIGHT)),
    Case("running_sums", "running sums along rows", running_sums, running_sums_check, 16_384, 2,
         made=Made({"x": F32, "y": F32, "columns": I32}, {"BLOCK": 2048})),
)  # fmt: skip
