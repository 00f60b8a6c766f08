"""Work logs of chapter 14: five kernels for each shape, as a learner's.

`entries` has them in the order in which they were tried, with their tilings and sentences. Those of
a batch are the others with two lines changed: where a block's B begins.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple

from numpy import float32

from gemmlab import Tiling, cuda
from gemmlab.course.text import rewritten
from gemmlab.instructions import load_v4, store_v4

SLICES = 4  # of k, in a block
ZEROS = (float32(0), float32(0), float32(0), float32(0))


def naive(alpha, A, B, beta, C):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        acc = float32(0)
        p = 0
        while p < A.shape[1]:
            acc += A[i, p] * B[p, j]
            p += 1
        C[i, j] = alpha * acc if beta == 0 else alpha * acc + beta * C[i, j]


def by_rows(m, n):
    return -(-m // 16), -(-n // 16)


def tiled(tiling):
    T = tiling.block[0]

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        acc = float32(0)
        p = 0
        while p < k:
            As[y, x] = A[row, p + x] if row < m and p + x < k else float32(0)
            Bs[y, x] = B[p + y, col] if p + y < k and col < n else float32(0)
            cuda.syncthreads()
            for q in range(T):
                acc += As[y, q] * Bs[q, x]
            cuda.syncthreads()
            p += T
        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


def register_tile(tiling):
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    DOWN, ACROSS = BM // TM, BN // TN
    THREADS = DOWN * ACROSS

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        top, left = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = float32(0)
        p = 0
        while p < k:
            e = y * ACROSS + x
            while e < BM * BK:
                i, q = e // BK, e % BK
                As[i, q] = A[top + i, p + q] if top + i < m and p + q < k else float32(0)
                e += THREADS
            e = y * ACROSS + x
            while e < BK * BN:
                q, j = e // BN, e % BN
                Bs[q, j] = B[p + q, left + j] if p + q < k and left + j < n else float32(0)
                e += THREADS
            cuda.syncthreads()
            for q in range(BK):
                for i in range(TM):
                    a[i] = As[y + i * DOWN, q]
                for j in range(TN):
                    b[j] = Bs[q, x + j * ACROSS]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            p += BK
        for i in range(TM):
            for j in range(TN):
                r, c = top + y + i * DOWN, left + x + j * ACROSS
                if r < m and c < n:
                    old = C[r, c] if beta != 0 else float32(0)
                    C[r, c] = alpha * acc[i, j] + beta * old

    return kernel


def fours(tiling):
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    DOWN, ACROSS = BM // TM, BN // TN
    THREADS = DOWN * ACROSS
    LONG = BM + 4  # words of a row of As, which is A's tile transposed

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((BK, LONG), float32, alignment=16)
        Bs = cuda.shared.array((BK, BN), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        t = cuda.threadIdx.y * ACROSS + cuda.threadIdx.x
        down, across = 4 * cuda.threadIdx.y, 4 * cuda.threadIdx.x
        top, left = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = float32(0)
        p = 0
        while p < k:
            e = 4 * t
            while e < BM * BK:
                i, q = e // BK, e % BK
                v = load_v4(A, top + i, p + q) if top + i < m and p + q < k else ZEROS
                As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v
                e += 4 * THREADS
            e = 4 * t
            while e < BK * BN:
                q, j = e // BN, e % BN
                v = load_v4(B, p + q, left + j) if p + q < k and left + j < n else ZEROS
                store_v4(Bs, q, j, v)
                e += 4 * THREADS
            cuda.syncthreads()
            for q in range(BK):
                for i in range(0, TM, 4):
                    a[i], a[i + 1], a[i + 2], a[i + 3] = load_v4(As, q, down + i * DOWN)
                for j in range(0, TN, 4):
                    b[j], b[j + 1], b[j + 2], b[j + 3] = load_v4(Bs, q, across + j * ACROSS)
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            p += BK
        for i in range(TM):
            for j in range(TN):
                r = top + down + i // 4 * 4 * DOWN + i % 4
                c = left + across + j // 4 * 4 * ACROSS + j % 4
                if r < m and c < n:
                    old = C[r, c] if beta != 0 else float32(0)
                    C[r, c] = alpha * acc[i, j] + beta * old

    return kernel


def warp_tile(tiling):
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    WM, WN = tiling.warp
    DOWN, ACROSS = WM // TM, WN // TN  # lanes of a warp
    THREADS = BM * BN // TM // TN
    WIDE = BN // TN  # threads of a row of the block, as it is launched
    LONG = BM + 4  # words of a row of As, which is A's tile transposed

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((BK, LONG), float32, alignment=16)
        Bs = cuda.shared.array((BK, BN), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        t = cuda.threadIdx.y * WIDE + cuda.threadIdx.x
        warp, lane = t // 32, t % 32
        down = warp // (BN // WN) * WM + 4 * (lane // 2 % DOWN)
        across = warp % (BN // WN) * WN + 4 * (lane // 2 // DOWN * 2 + lane % 2)
        top, left = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = float32(0)
        p = 0
        while p < k:
            e = 4 * t
            while e < BM * BK:
                i, q = e // BK, e % BK
                v = load_v4(A, top + i, p + q) if top + i < m and p + q < k else ZEROS
                As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v
                e += 4 * THREADS
            e = 4 * t
            while e < BK * BN:
                q, j = e // BN, e % BN
                v = load_v4(B, p + q, left + j) if p + q < k and left + j < n else ZEROS
                store_v4(Bs, q, j, v)
                e += 4 * THREADS
            cuda.syncthreads()
            for q in range(BK):
                for i in range(0, TM, 4):
                    a[i], a[i + 1], a[i + 2], a[i + 3] = load_v4(As, q, down + i * DOWN)
                for j in range(0, TN, 4):
                    b[j], b[j + 1], b[j + 2], b[j + 3] = load_v4(Bs, q, across + j * ACROSS)
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            p += BK
        for i in range(TM):
            for j in range(TN):
                r = top + down + i // 4 * 4 * DOWN + i % 4
                c = left + across + j // 4 * 4 * ACROSS + j % 4
                if r < m and c < n:
                    old = C[r, c] if beta != 0 else float32(0)
                    C[r, c] = alpha * acc[i, j] + beta * old

    return kernel


def sliced(tiling):
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    WM, WN = tiling.warp
    DOWN, ACROSS = WM // TM, WN // TN  # lanes of a warp
    THREADS = BM * BN // TM // TN
    WIDE = BN // TN  # threads of a row of the block, as it is launched
    OTHERS, PART = SLICES - 1, BK // SLICES
    LONG = BM + 4  # words of a row of As, which is A's tile transposed

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((BK, LONG), float32, alignment=16)
        Bs = cuda.shared.array((BK, BN), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        Rs = cuda.shared.array((OTHERS, THREADS, TN), float32)
        t = cuda.threadIdx.y * WIDE + cuda.threadIdx.x
        slice, u = t // THREADS, t % THREADS  # a slice has a part of each tile's k, and all of C's
        warp, lane = u // 32, u % 32
        down = warp // (BN // WN) * WM + 4 * (lane // 2 % DOWN)
        across = warp % (BN // WN) * WN + 4 * (lane // 2 // DOWN * 2 + lane % 2)
        top, left = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = float32(0)
        p = 0
        while p < k:
            e = 4 * t
            while e < BM * BK:
                i, q = e // BK, e % BK
                v = load_v4(A, top + i, p + q) if top + i < m and p + q < k else ZEROS
                As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v
                e += 4 * THREADS * SLICES
            e = 4 * t
            while e < BK * BN:
                q, j = e // BN, e % BN
                v = load_v4(B, p + q, left + j) if p + q < k and left + j < n else ZEROS
                store_v4(Bs, q, j, v)
                e += 4 * THREADS * SLICES
            cuda.syncthreads()
            for q in range(slice * PART, (slice + 1) * PART):
                for i in range(0, TM, 4):
                    a[i], a[i + 1], a[i + 2], a[i + 3] = load_v4(As, q, down + i * DOWN)
                for j in range(0, TN, 4):
                    b[j], b[j + 1], b[j + 2], b[j + 3] = load_v4(Bs, q, across + j * ACROSS)
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            p += BK
        for i in range(TM):
            if slice > 0:
                for j in range(TN):
                    Rs[slice - 1, u, j] = acc[i, j]
            cuda.syncthreads()
            r = top + down + i // 4 * 4 * DOWN + i % 4
            for j in range(TN):
                c = left + across + j // 4 * 4 * ACROSS + j % 4
                if slice == 0 and r < m and c < n:
                    total = acc[i, j]
                    for other in range(OTHERS):
                        total += Rs[other, u, j]
                    old = C[r, c] if beta != 0 else float32(0)
                    C[r, c] = alpha * total + beta * old
            cuda.syncthreads()

    return kernel


def of_batch(kernel: Callable, after: str, row: str, loaded: str) -> Callable:
    """A kernel for a batch: behind a piece of its source it finds where the B of a row begins."""
    first = f"first = {row} // (C.shape[0] // (B.shape[0] // A.shape[1])) * A.shape[1]"
    (line,) = (one for one in inspect.getsource(kernel).splitlines() if after in one)
    indent = line[: len(line) - len(line.lstrip())]
    found = rewritten(kernel, after, f"{after}\n{indent}{first}")
    return rewritten(
        found, loaded, loaded.replace("B, p", "B, first + p").replace("B[p", "B[first + p")
    )


def stored_by_fours(kernel: Callable) -> Callable:
    """A kernel that stores four neighbours of C at a time."""
    found = rewritten(
        kernel,
        """            for j in range(TN):
                r = top""",
        """            for j in range(0, TN, 4):
                r = top""",
    )
    return rewritten(
        found,
        """                c = left + across + j // 4 * 4 * ACROSS + j % 4
                if r < m and c < n:
                    old = C[r, c] if beta != 0 else float32(0)
                    C[r, c] = alpha * acc[i, j] + beta * old
""",
        """                c = left + across + j * ACROSS
                if r < m and c < n:
                    c0, c1, c2, c3 = load_v4(C, r, c) if beta != 0 else ZEROS
                    v0, v1 = alpha * acc[i, j] + beta * c0, alpha * acc[i, j + 1] + beta * c1
                    v2, v3 = alpha * acc[i, j + 2] + beta * c2, alpha * acc[i, j + 3] + beta * c3
                    store_v4(C, r, c, (v0, v1, v2, v3))
""",
    )


class Tried(NamedTuple):
    """A kernel that was tried, its tilings by shape, and what was said of it, of two the skinny."""

    kernel: Callable
    tilings: dict[str, Tiling]
    changed: str = ""
    expected: str = ""
    came: str = ""
    grid: Callable | None = None
    block: tuple[int, int] | None = None


def entries(shape: str) -> list[Tried]:
    """The five of a shape, in the order in which they were tried."""
    return [tried for tried in TRIED if shape in tried.tilings]


def _both(tiling: Tiling) -> dict[str, Tiling]:
    return {"square": tiling, "skinny": tiling}


TOP, FOURS = "cuda.blockIdx.x * BN", "load_v4(B, p + q, left + j)"
BATCHED = (
    of_batch(naive, "acc = float32(0)", "i", "B[p, j]"),
    of_batch(tiled, "cuda.blockIdx.x * T + x", "cuda.blockIdx.y * T", "B[p + y, col]"),
    of_batch(register_tile, TOP, "top", "B[p + q, left + j]"),
    of_batch(fours, TOP, "top", FOURS),
    stored_by_fours(of_batch(warp_tile, TOP, "top", FOURS)),
)
TRIED = (
    Tried(
        naive,
        _both(Tiling(block=(16, 16, 1))),
        "Chapter 3's first kernel, x along the rows of C.",
        "Slow: the lanes of a warp load from 16 rows of A at once.",
        "Slow it is. Nearly all slots wait for a place in the load/store unit's queue.",
        by_rows,
    ),
    Tried(
        tiled,
        _both(Tiling.square(32)),
        "Tiles of 32×32 in shared memory, x along the columns.",
        "A 32nd of the loads from global memory: 32 times the speed.",
        "Eight times. The loads from shared memory stand in the same queue now.",
    ),
    Tried(
        register_tile,
        {"skinny": Tiling(block=(64, 64, 8), thread=(4, 4))},
        "4×4 sums a thread.",
        "Half a load for each FMA in place of two: twice the speed at least.",
        "Slower! The queue is short, but a third of the slots compute where to copy from and to.",
    ),
    Tried(
        register_tile,
        {"square": Tiling(block=(64, 64, 8), thread=(4, 4))},
        "4×4 sums a thread.",
        "Half a load for each FMA in place of two: twice the speed at least.",
        "Hardly faster. The queue is short, but four slots in ten compute where to copy from and "
        "to.",
    ),
    Tried(
        fours,
        _both(Tiling(block=(64, 64, 16), thread=(4, 4))),
        "Four words at a time, A's tile transposed.",
        "A quarter of the copies, and of their addresses: half of entry 3's time.",
        "Better than half. FMAs take a quarter of the slots, and memory is waited for.",
    ),
    Tried(
        warp_tile,
        {"square": Tiling(block=(128, 128, 16), warp=(64, 32), thread=(8, 8))},
        "8×8 sums a thread, in warp tiles.",
        "Half the shared loads for each FMA: a third less time.",
        "A tenth less. FMAs have a third of the slots now; few warps find room, and memory is "
        "waited for.",
    ),
    Tried(
        sliced,
        {"skinny": Tiling(block=(64, 64, 32), warp=(32, 64), thread=(8, 8))},
        "8×8 sums a thread in warp tiles. A block would have 64 threads, so four slices share k.",
        "Half the shared loads for each FMA, and as many warps as before: a third less time.",
        "A third less, as expected. Addresses still take a fifth of the slots.",
        block=(8, 32),
    ),
    Tried(
        BATCHED[0],
        {"batched": Tiling(block=(16, 16, 1))},
        "Chapter 3's first kernel; each row finds where the B of its matrix begins.",
        "The FMAs take 16 µs and k is short: some 200 µs.",
        "More than a millisecond. Nearly all of it goes to one line, the sum, which waits for the "
        "load/store unit's queue as on every shape.",
        by_rows,
    ),
    Tried(
        BATCHED[1],
        {"batched": Tiling.square(32)},
        "Tiles of 32×32 in shared memory, x along the columns.",
        "A 32nd of the loads from global memory: a tenth of the time.",
        "A sixth. There are two tiles along k, so beginning and end of a block count.",
    ),
    Tried(
        BATCHED[2],
        {"batched": Tiling(block=(64, 64, 8), thread=(4, 4))},
        "4×4 sums a thread.",
        "Half a load for each FMA in place of two: half the time.",
        "Two thirds. Integer arithmetic takes three slots for each that an FMA gets: addresses of "
        "copies.",
    ),
    Tried(
        BATCHED[3],
        {"batched": Tiling(block=(64, 64, 16), thread=(4, 4))},
        "Loads of four words, A's tile transposed.",
        "A quarter of the copies, and of their addresses: half the time.",
        "A seventh less on an H200, and slower on an H100. Global memory is waited for: I had not "
        "thought of C, which is stored word by word.",
    ),
    Tried(
        BATCHED[4],
        {"batched": Tiling(block=(128, 128, 16), warp=(64, 32), thread=(8, 8))},
        "C is stored in fours, too, and a thread has 8×8 sums, in warp tiles.",
        "The store was the wait, and shared loads are halved: half the time.",
        "Better than that. k has four steps, so what stands before and behind the loop counts as "
        "much as the loop.",
    ),
)
