"""Answers to the questions of chapter 04, shared-memory tiling."""

import numpy as np
from numpy import float32

from gemmlab import kernels
from gemmlab.course.guesses import Answer
from gemmlab.device import RECORDED
from gemmlab.measure.backends import run
from gemmlab.model import predict, transactions
from gemmlab.problem import Gemm
from gemmlab.simt import cuda, simulate
from gemmlab.tiling import Tiling

_T = 16
_SMALL = Gemm(64, 64, 64)
_BIG = Gemm(4096, 4096, 4096)


def reads() -> Answer:
    """Loads of each element of A by *coalesced*, 64×64×64."""
    p = _SMALL
    counters = run(kernels.coalesced, p, backend="simulator").counters
    of_a = counters["global_load_bytes"] / 4 / 2  # as many are of B
    blocks = p.n // _T
    return Answer(
        of_a / (p.m * p.k),
        f"Row $i$ of $C$ has $n = {p.n}$ elements. Each has a thread of its own, and each of these "
        "threads walks along row $i$ of $A$.",
        {
            1: "That is how often it has to be loaded; nobody here keeps it for the others.",
            2: "You counted the loads of one FMA.",
            blocks: "You counted blocks, or requests of warps; each thread has a load of its own.",
            p.m * p.n: "You counted all threads; those of other rows do not need it.",
        },
    )


def once() -> Answer:
    """Fetches of each element of A if a block of 16×16 fetched what it needs once, 64×64×64."""
    p = _SMALL
    across, down = Tiling.square(_T).grid(p)
    return Answer(
        across,
        f"Row $i$ of $C$ is computed by {across} blocks, {_T} columns each, and every one of them "
        "fetches row $i$ of $A$ once.",
        {
            1: "Once *by each block*: blocks cannot share, and several need this row.",
            p.n: "That is what the threads load when each loads for itself.",
            _T: f"{_T} threads now share a fetch, and there are {across * down} blocks. How many "
            "blocks need this row?",
        },
    )


def _without_second_barrier(A, B, C):
    As = cuda.shared.array((_T, _T), float32)
    Bs = cuda.shared.array((_T, _T), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for start in range(0, A.shape[1], _T):
        As[y, x] = A[row, start + x]
        Bs[y, x] = B[start + y, col]
        cuda.syncthreads()
        for p in range(_T):
            acc += As[y, p] * Bs[p, x]
    C[row, col] = acc


def spoilt() -> Answer:
    """Wrong elements of C that the simulator computes without the second barrier, 64×64×64."""
    p = _SMALL
    a, b, c = p.operands(kind="integers")
    simulate(_without_second_barrier, (4, 4), (_T, _T), a, b, c, on_hazard="collect")
    return Answer(
        int((c != p.reference((a, b, c))).sum()),
        "The simulator finishes each line in all threads before it starts the next, so no thread "
        "is ever ahead. A GPU promises nothing of the kind.",
        {
            p.m * p.n: "The race is everywhere, but a race is what *may* go wrong, not what does.",
            p.m * p.n // 2: "A race is what *may* go wrong, not what does.",
            _T * _T: "One tile? All blocks race; whether it shows depends on who runs when.",
        },
    )


def smaller() -> Answer:
    """Sectors loaded at n = 127, in percent of those at n = 128."""
    sectors = {}
    for n in (127, 128):
        counters = predict(Gemm(n, n, n), RECORDED, kernels.tiled).counters
        sectors[n] = counters["global_load_sectors"]
    flops = (127 / 128) ** 3
    return Answer(
        100 * sectors[127] / sectors[128],
        "127 is odd: the rows of $A$ and $B$ no longer start where a sector starts. The 64 bytes "
        "of a tile's row then touch three sectors in most cases, where two would hold them.",
        {
            100 * flops: "That is the arithmetic. The tiles are as many as before, and their rows "
            "no longer start at sectors.",
            100: "The tiles are as many as before, but their rows no longer start at sectors.",
            150: "Three sectors where two would do is the rule, but one row in eight still starts "
            "where a sector does.",
        },
        within=0.02,
    )


def column() -> Answer:
    """Wavefronts of one request for `Bs[x, 0]`, with rows of 16 words."""
    x = np.arange(32) % _T
    found = transactions.wavefronts(4 * _T * x, np.ones(32, bool), 4)
    return Answer(
        int(found),
        f"Lane $x$ wants word ${_T}x$, which lies in bank 0 where $x$ is even and in bank {_T} "
        f"where it is odd. Each of the two banks delivers {_T // 2} words, one after the other.",
        {
            1: "That holds if each word lies in a bank of its own, or if all lanes want one word.",
            2: "You counted banks; each of them delivers one word in a wavefront.",
            _T: f"{_T} words, yes, but from two banks, which deliver at the same time.",
            32: "Lanes 16 to 31 want the same words as lanes 0 to 15, and share them.",
        },
    )


def width() -> Answer:
    """Wavefronts of one request for `Bs[x, 0]`, with rows of 20 words."""
    words = 20
    x = np.arange(32) % _T
    found = transactions.wavefronts(4 * words * x, np.ones(32, bool), 4)
    return Answer(
        int(found),
        f"Lane $x$ wants word ${words}x$. {words} and 32 have the divisor 4 in common, so after 8 "
        "lanes the banks repeat: 16 words lie in 8 banks, two in each.",
        {
            1: "Padding helps only if it takes the rows apart: lanes 0 and 8 are 160 words apart, "
            "a multiple of 32.",
            4: "4 is the common divisor: only every fourth bank is used. There are 8 of those.",
            8: "That is without padding.",
        },
    )


def saved() -> Answer:
    """Percent of the pipe's work that T = 32 saves over T = 16, by wavefronts, n = 4096."""
    of = {
        side: kernels.tiled.work(_BIG, Tiling.square(side)).l1_wavefronts for side in (_T, 2 * _T)
    }
    return Answer(
        100 * (1 - of[2 * _T] / of[_T]),
        "For 16 FMAs of a warp, $T = 16$ takes 32 wavefronts for shared loads and 6 for copies. "
        "$T = 32$ takes 32 and 2.",
        {
            50: "You halved everything. Only the copies shrink; the shared loads stay as they are.",
            200 / 3: "That is by how much the copies shrink; they are the smaller part.",
            0: "A little: the copies shrink, and they are one wavefront in six.",
            200 / 38: "A copy now takes 4 wavefronts, but it serves 32 FMAs.",
        },
        within=0.1,
    )


def small() -> Answer:
    """Time of *coalesced* over that of tiles of 8×8, recorded, n = 4096."""
    times = {
        "coalesced": run(kernels.coalesced, _BIG, backend="recorded").seconds,
        "tiled": run(kernels.tiled, _BIG, backend="recorded", tiling=Tiling.square(8)).seconds,
    }
    bounds = (
        predict(_BIG, RECORDED, kernels.coalesced).seconds
        / predict(_BIG, RECORDED, kernels.tiled, Tiling.square(8)).seconds
    )
    return Answer(
        times["coalesced"] / times["tiled"],
        "The tiled kernel needs more wavefronts and is faster all the same.",
        {
            bounds: "That is the ratio of the wavefronts. It would hold if both kernels kept the "
            "pipe busy.",
            8: "Global loads fall by 8; they were not all that took time.",
            1: "The wavefronts are nearly equal; the times are not.",
        },
        within=0.05,
    )
