"""Exercise 06.2: groups of four neighbours, moved by one instruction each."""

from dataclasses import replace
from typing import Any

from numpy import float32

from gemmlab import kernels
from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, matrices, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.matrices import Case, case
from gemmlab.instructions import load_v4, store_v4
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

CASES = (  # rows of A and B are whole fours
    case(1, 4, 4, tile=4),
    case(5, 4, 8, alpha=2, beta=-3, tile=4),
    case(9, 12, 4, tile=8),  # one tile along k, which k does not fill
    Case(Gemm(3, 20, 12), tile=4, large=True),
    case(17, 20, 8, alpha=-1, beta=2, tile=4),
    case(19, 36, 12, tile=4),
    case(33, 36, 20, alpha=2, beta=0.5, tile=8),
    case(64, 64, 32, tile=8),
)
ZEROS = (float32(0), float32(0), float32(0), float32(0))
TIMED = case(36, 68, 20, tile=16)
LIMIT = timed.Yardstick(kernels.register_tiled, Tiling(block=(64, 64, 8), thread=(4, 4)))


def tiling(T: int) -> Tiling:
    """T×T threads with 4×4 elements each, and steps of T along k."""
    return Tiling(block=(4 * T, 4 * T, T), thread=(4, 4))


def build_fours(T):
    """The kernel for T×T threads with 4×4 elements of C each; T is a multiple of 4."""
    wide, across = 4 * T, T // 4  # of a tile: its side, and groups of four in a row of A's tile
    padded = wide + 4  # words of a row of As

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, padded), float32, alignment=16)  # transposed: As[p, i]
        Bs = cuda.shared.array((T, wide), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * wide  # where the block's tile of C begins
        col = cuda.blockIdx.x * wide
        i, q = (y * T + x) // across, (y * T + x) % across * 4  # this thread's group of A's tile
        acc = cuda.local.array((4, 4), float32)
        for r in range(4):
            for c in range(4):
                acc[r, c] = 0

        start = 0
        while start < k:
            # Copy one group of A, from A[row + i, start + q] on, to column i of As. Copy one group
            # of B, from B[start + y, col + 4 * x] on, to Bs[y, 4 * x] and its neighbours.
            # [answer]
            v = load_v4(A, row + i, start + q) if row + i < m and start + q < k else ZEROS
            As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v
            inside = start + y < k and col + 4 * x < n
            store_v4(Bs, y, 4 * x, load_v4(B, start + y, col + 4 * x) if inside else ZEROS)
            # [end]
            cuda.syncthreads()
            # For each p: load rows 4y … 4y + 3 of As, columns 4x … 4x + 3 of Bs; make 16 FMAs.
            # [answer]
            for p in range(T):
                a = load_v4(As, p, 4 * y)
                b = load_v4(Bs, p, 4 * x)
                for r in range(4):
                    for c in range(4):
                        acc[r, c] += a[r] * b[c]
            # [end]
            cuda.syncthreads()
            start += T

        for r in range(4):
            for c in range(4):
                if row + 4 * y + r < m and col + 4 * x + c < n:
                    old = C[row + 4 * y + r, col + 4 * x + c] if beta != 0 else float32(0)
                    C[row + 4 * y + r, col + 4 * x + c] = alpha * acc[r, c] + beta * old

    return kernel


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, then who moves how much in the largest, and how."""
    trials = kernels_on_trial.judge(answer, CASES, tiling, anew=matrices.beyond(CASES, steps=26))
    if isinstance(trials, Finding):
        misaligned = trials.details.get("kind") == "misaligned"
        return replace(trials, diagnosis="misaligned") if misaligned else trials
    last = trials[-1]
    problem, counters = last.run.case.problem, last.report.counters
    across, down = last.tiling.grid(problem)
    warps = across * down * last.tiling.threads // WARP
    fetched = 2 * warps * last.tiling.steps(problem)  # a group of A and one of B, each thread
    used = 2 * warps * problem.k
    shared, loads = counters["shared_load_requests"], counters["global_load_requests"]
    found = kernels_on_trial.within_budgets(
        trials,
        (
            ("Shared loads of warps", f"{shared:,}; budget {used:,}, by single words {4 * used:,}"),
            ("Global loads of warps", f"{loads:,}; budget {fetched:,}, by words {4 * fetched:,}"),
        ),
    )
    copied = last.report.shares.of("load", "A", "B")
    if found.diagnosis in ("passed", "copy-not-coalesced") and loads > fetched:
        return replace(found, diagnosis="copies-over-budget")
    if found.diagnosis == "passed" and kernels_on_trial.uneven(copied, kernels_on_trial.ONE_EACH):
        return replace(found, diagnosis="few-threads-copy")
    if found.diagnosis == "passed" and shared > used:
        return replace(found, diagnosis="loads-over-budget")
    return timed.within(timed.judge(found, answer, tiling, TIMED, LIMIT), LIMIT)


TASK = Task(
    name="06.2",
    title="Four words at a time",
    section="chapter 06, How can one instruction bring four words?",
    asked="build_fours(T) returns a kernel whose T×T threads compute 4×4 elements of C each, with "
    "128-bit loads from global and from shared memory.",
    prompt=f"""
    `load_v4(X, i, j)` returns X[i, j] and its three right-hand neighbours, in one instruction;
    `store_v4(X, i, j, v)` stores four values there. `ZEROS` is four zeros. The first word must lie
    at a multiple of 16 bytes: here the rows of A and B are multiples of four elements long, so that
    a group of four is inside of its matrix or outside as a whole.

    Write both copies and the inner loop. The budget at m = n = {CASES[-1].problem.m},
    k = {CASES[-1].problem.k} and T = {CASES[-1].tile} is a quarter of the load instructions that
    single words take: one of A and one of B for each thread and step, then one of As and one of Bs
    for each p.

    The reward is time. At m = n = k = {timed.SIDE} and T = {TIMED.tile} the kernel must take less
    than the {timed.ms(LIMIT.seconds)} that an H200 took with single words and the same thread
    tiles. Its time is predicted from its compiled code, on any machine that can compile it.
    """,
    judge=judge,
    answers=(build_fours,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which four neighbours does thread (x, y) fetch from B, and where do they go?",
            "```python\ninside = start + y < k and col + 4 * x < n\n"
            "store_v4(Bs, y, 4 * x, load_v4(B, ..., ...) if inside else ZEROS)\n```",
        ),
        "misaligned": Diagnosis(
            "A group of four begins at an address that is no multiple of 16 bytes.",
            "Which index of the group that is named is not a multiple of four?",
            "```python\na = load_v4(As, p, 4 * ...)\nb = load_v4(Bs, p, 4 * ...)\n```",
        ),
        "tile-outside": Diagnosis(
            "An index into a tile is too large: As has T rows, one for each p, and a column for "
            "each of the 4T rows of A's tile; Bs has T rows of 4T columns.",
            "Which index of As is the row of A, and which one is its place along k?",
            "```python\nAs[q, ...], As[q + 1, ...], As[q + 2, ...], As[q + 3, ...] = v\n```",
        ),
        "tile-not-filled": Diagnosis(
            "An element of a tile was never written: where the matrix has no group of four, four "
            "zeros have to be stored, because shared memory does not start at zero.",
            "What does a thread store whose group lies outside?",
            "```python\nv = load_v4(A, ..., ...) if ... else ...\n```",
        ),
        "few-threads-copy": Diagnosis(
            "The result is right, but a few threads copy the tiles for all the others, which wait.",
            "A tile of A is T² groups of four, as is one of B, and the block has T² threads. How "
            "many groups does each of them copy?",
            "```python\nv = load_v4(A, row + i, ...)    # every thread its own i and q\n```",
        ),
        "copy-not-coalesced": Diagnosis(
            "The result is right and each group is loaded once, but neighbouring threads load "
            "groups of different rows: half of each sector is fetched in vain.",
            "Two groups fill a sector. Which thread should load the group to the right of yours?",
            "```python\ni, q = (y * T + x) // across, (y * T + x) % across * 4\n```",
        ),
        "shared-memory-not-used": Diagnosis(
            "The result is right, but no tile is read from shared memory: each product loads its "
            "operands from global memory again.",
            "From which memory do the operands of the inner loop come?",
            "```python\na = load_v4(As, p, ...)\nb = load_v4(Bs, p, ...)\n```",
        ),
        "copies-over-budget": Diagnosis(
            "The result is right, but elements are fetched from global memory one word at a time.",
            "How many load instructions does one thread need for its group of A, and how many for "
            "its group of B?",
            "```python\nv = load_v4(A, ..., ...) if ... else ZEROS\n"
            "store_v4(Bs, y, 4 * x, load_v4(B, ..., ...) if inside else ZEROS)\n```",
        ),
        "loads-over-budget": Diagnosis(
            "The result is right, but the inner loop has more than two loads for each p: single "
            "words, or the same group again.",
            "How many load instructions does your loop body execute for one p?",
            "```python\na = load_v4(As, p, 4 * y)    # once for each p: then a[0] … a[3]\n```",
        ),
        "time-over-limit": Diagnosis(
            "The result is right and the loads are few, but the compiled kernel takes longer than "
            "the one that loads single words: its issue slots go to something else.",
            "What do the issue slots issue beside float32 arithmetic, and which line of the inner "
            "loop asks for it: a number in another format, an index that is computed anew?",
            "```python\nacc = cuda.local.array((4, 4), ...)    # in which format?\n"
            "for p in range(...):                    # p: no % and no // to find it\n```",
        ),
    },
    praise="A quarter of the load instructions bring the same sectors: the slots that they leave "
    "are free for FMAs.",
)
