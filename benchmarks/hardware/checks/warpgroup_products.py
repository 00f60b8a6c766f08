"""The emulated Tensor Core and the GPU's, to the bit: products of FP8, which `wgmma` alone has.

A warpgroup multiplies random tiles of every family of `probes/tiles.py` by one instruction, and
every element is compared. A sample of operands and answers is recorded.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy import float32, uint8

from benchmarks.hardware import machine
from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.hardware.checks.dot_products import SAMPLE
from benchmarks.hardware.probes.tiles import FAMILIES, Draw
from gemmlab.device import Device
from gemmlab.formats import EIGHT_BITS
from gemmlab.instructions import (
    WGMMA_8,
    WGMMA_WAIT,
    fence_proxy_async,
    shared_view,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.instructions.warpgroup import K8, ROWS, WARPGROUP
from gemmlab.numerics import Mma, decode, fused_dot_add
from gemmlab.simt import cuda

TILES = 64  # of each family
COLUMNS = 64
HELD = COLUMNS // 2  # elements of D that a thread has
PIECE = 16  # bytes
SHARED = (ROWS + COLUMNS) * ROW


def pieces(device: Device) -> Mapping[str, str]:
    return dict.fromkeys(EIGHT_BITS, refusal(device))


def refusal(device: Device) -> str:
    if machine.tensor_core(device) is None:
        return machine.unknown_arithmetic(device)
    return WGMMA_8[COLUMNS, EIGHT_BITS[0]].refusal(device.compute_capability) or ""


def probe(form: str) -> Callable:
    """Return the kernel of (A, B, C, D), a block for each tile: A as m×k, B as n×k."""
    wgmma, wgmma_wait = WGMMA_8[COLUMNS, form], WGMMA_WAIT[COLUMNS]

    def multiplied(A, B, C, D):
        As = shared_view((ROWS, ROW), uint8, 0)
        Bs = shared_view((COLUMNS, ROW), uint8, ROWS * ROW)
        tile, thread = cuda.blockIdx.x, cuda.threadIdx.x
        for e in range(thread, ROWS * K8, WARPGROUP):
            r, p = e // K8, e % K8
            there = (p // PIECE ^ r % 8) * PIECE + p % PIECE  # in the swizzle
            As[r, there] = A[tile, r, p]
            Bs[r, there] = B[tile, r, p]
        row, col = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
        acc = cuda.local.array(HELD, float32)
        for e in range(HELD):
            acc[e] = C[tile, row + e % 4 // 2 * 8, e // 4 * 8 + col + e % 2]
        fence_proxy_async()
        cuda.syncthreads()
        wgmma_fence()
        wgmma(acc, As, 0, 0, Bs, 0, 0, True)
        wgmma_commit()
        wgmma_wait(0, acc)
        for e in range(HELD):
            D[tile, row + e % 4 // 2 * 8, e // 4 * 8 + col + e % 2] = acc[e]

    return multiplied


def draw(form: str, family: str, tiles: int) -> list[np.ndarray]:
    """A (tiles, m, k), B (tiles, n, k) and C (tiles, m, n) as words, the same at every call."""
    case = Mma(ROWS, COLUMNS, K8, form, "float32", "sm_90", "wgmma")
    seed = [EIGHT_BITS.index(form), FAMILIES.index(family)]
    a, b, c = Draw(case, tiles, seed).words(family)
    return [a, np.ascontiguousarray(b.swapaxes(1, 2)), c]


def measure(piece: str, device: Device) -> Measured:
    some = {key: [] for key in "abcd"}
    found = {"tiles": TILES, "families": FAMILIES}
    kernel = probe(piece)
    for family in FAMILIES:
        a, b, c = draw(piece, family, TILES)
        given = [a, b, c.view(np.float32), np.full(c.shape, np.nan, np.float32)]
        after = machine.launch(kernel, TILES, WARPGROUP, given, SHARED)
        d = found[family] = after[-1].view(np.uint32)
        t, i, j = np.random.default_rng(0).integers(0, d.shape, (SAMPLE, 3)).T
        for key, vectors in zip("abcd", (a[t, i], b[t, j], c[t, i, j], d[t, i, j]), strict=True):
            some[key].append(vectors)
    return {**found, **{key: np.concatenate(parts) for key, parts in some.items()}}


def kept(measured: Measured) -> Measured:
    return {k: v for k, v in measured.items() if k not in FAMILIES}


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    arch = machine.tensor_core(device)
    a, b, c, d = (measured[key] for key in "abcd")
    found.equal("dot product", d, emulate(piece, arch, a, b, c))
    for family in FAMILIES:
        if family in measured:
            a, b, c = draw(piece, family, measured["tiles"])
            model = emulate(piece, arch, a[:, :, None], b[:, None], c)
            found.equal(family, measured[family], model)
    return found


def emulate(form: str, arch: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The words that the emulated Tensor Core gives for words: a and b (…, k), c (…)."""
    x, y = (decode(words, form) for words in (a, b))
    return fused_dot_add(x, y, c.view(np.float32), dtype=form, arch=arch).view(np.uint32)


CHECK = Check(
    "warpgroup_products",
    "dot products of FP8 by wgmma: the GPU's and the emulator's",
    pieces,
    measure,
    compare,
    kept,
    quick=("float8_e4m3fn",),
)
