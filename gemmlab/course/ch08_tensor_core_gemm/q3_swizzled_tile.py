"""Exercise 08.3: a tile whose pieces change places as they are copied, and are found again."""

from typing import Any

import numpy as np
from numpy import float16, float32

from gemmlab.course.judging import (
    FAILING,
    Diagnosis,
    Finding,
    Task,
    matrices,
    one_warp,
    timed,
)
from gemmlab.course.judging.one_warp import OneWarp, product
from gemmlab.instructions import (
    layout,
    ldmatrix_x2_trans,
    ldmatrix_x4,
    load_v8,
    mma_m16n8k16_f32_f16,
    store_v8,
)
from gemmlab.simt import Report, cuda

element_c = layout("m16n8k16", "C").element
STEP = 64  # elements of k in a tile
CASES = (64, 128, 192)  # k, smallest first
WAVEFRONTS = 4 * 6  # of shared loads: for four slices, one for each 8×8 matrix of A and B
STORES = 2 * STEP * (16 + 8) // 128  # wavefronts of shared stores, if all of them are full
SLICES = 4  # of a tile, one for each `mma`
PIECES = 2 * STEP * (16 + 8) // (16 * 32)  # stores of the warp, if each lane has 16 bytes
SHARED = 2 * STEP * (16 + 8)  # bytes of both tiles


def build_swizzled_tile():
    """The kernel of one warp that stores A·B in C, with a swizzled tile of A."""

    def kernel(A, B, C):
        As = cuda.shared.array(1024, float16, alignment=16)  # 16 rows of 64 elements
        Bs = cuda.shared.array((64, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 64):
            for e in range(lane, 64, 32):
                store_v8(Bs, e, 0, load_v8(B, p + e, 0))
            for e in range(lane, 128, 32):
                row, piece = e // 8, e % 8
                # Bring the piece that begins at A[row, p + 8 * piece] to its place in As.
                # [answer]
                there = row * 64 + (piece ^ row % 8) * 8
                store_v8(As, there, load_v8(A, row, p + 8 * piece))
                # [end]
            cuda.syncwarp()
            for s in range(4):
                # Slice s, columns 16 * s to 16 * s + 15 of the tile: load a and b, multiply.
                # [answer]
                row, piece = lane % 16, 2 * s + lane // 16
                a = ldmatrix_x4(As, row * 64 + (piece ^ row % 8) * 8)
                b = ldmatrix_x2_trans(Bs, 16 * s + lane % 16, 0)
                c = mma_m16n8k16_f32_f16(a, b, c)
                # [end]
            cuda.syncwarp()
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]

    return kernel


def _why(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> str:
    """The mistake that gives just this result."""
    if np.isnan(c).any():
        return "not-finite"
    slices = a.reshape(16, -1, 4, 2, 8)  # row, step, slice, half, column
    first_of_a = np.repeat(slices[:, :, :1], 4, axis=2).reshape(a.shape)
    first_of_b = np.repeat(b.reshape(-1, 4, 16, 8)[:, :1], 4, axis=1).reshape(b.shape)
    left = np.repeat(slices[:, :, :, :1], 2, axis=3).reshape(a.shape)
    turned = b.reshape(-1, 8, 8).transpose(0, 2, 1).reshape(b.shape)
    instead = {
        "one-side-only": product(_swizzled(a, 1), b),
        "one-side-only, turned": product(_swizzled(a, 0, turn=1), b),
        "one-side-only, turned back": product(_swizzled(a, 0, turn=-1), b),
        "one-slice": product(first_of_a, b),
        "one-slice, of B": product(a, first_of_b),
        "one-slice, of both": product(first_of_a, first_of_b),
        "left-half-twice": product(left, b),
        "not-transposed": product(a, turned),
        "last-tile-only": product(a[:, -STEP:], b[-STEP:]),
    }
    for name, wrong in instead.items():
        if np.array_equal(c, wrong):
            return name.partition(",")[0]
    return matrices.pattern(product(a, b), c)


def _swizzled(a: np.ndarray, by: int, turn: int = 0) -> np.ndarray:
    """`a` with the pieces of each tile where an exclusive or, or a turn, by the row puts them."""
    row, piece = np.arange(16)[:, None], np.arange(8)
    places = (piece ^ by * row % 8) if by else (piece + turn * row) % 8
    pieces = a.reshape(16, -1, 8, 8)
    return np.take_along_axis(pieces, places[:, None, :, None], axis=2).reshape(a.shape)


def _costly(report: Report, steps: int, case: str) -> Finding | None:
    """Find what a kernel without conflicts pays in another way; None where it pays nothing."""
    taken, stored = report.shares.shared_bytes, report.counters["shared_store_wavefronts"]
    done = report.instructions["inst_mma"]
    if done > SLICES * steps:
        fact = ("Products", f"{done} mma, where {SLICES * steps} make C")
        return Finding("multiplied-twice", ((FAILING, case), fact))
    if taken > SHARED:
        fact = ("Shared memory", f"{taken} bytes, where the tiles have {SHARED}")
        return Finding("padded", ((FAILING, case), fact))
    if stored > STORES * steps:
        fact = ("Wavefronts", f"{stored} of shared stores, where {STORES * steps} are enough")
        whole = report.counters["shared_store_requests"] <= PIECES * steps
        diagnosis = "stores-meet" if whole else "stored-by-elements"
        return Finding(diagnosis, ((FAILING, case), fact))
    return None


ASKED = OneWarp(
    16, 8, step=STEP, cases=CASES, wavefronts=WAVEFRONTS, why=_why, costly=_costly, long=4096
)
EXAMPLE = one_warp.example(16, 8, 1024)


def judge(answer: Any) -> Finding:
    """The smallest k for which the kernel is wrong: hazards, then values; then what it costs."""
    return timed.beside(one_warp.judge(answer, ASKED), answer, build_swizzled_tile, EXAMPLE)


TASK = Task(
    name="08.3",
    title="Copy and find again",
    section="chapter 08, Pieces that change places",
    asked="build_swizzled_tile() returns a kernel (A, B, C) in which one warp stores A·B in C, "
    "from a tile of A without a bank conflict and without padding.",
    prompt=f"""
    One warp multiplies A (16×k) by B (k×8) in steps of 64 along k. The rows of its tile of A have
    64 elements, so that rows below each other have the same banks, and there is no room for
    padding: `As` is just as large as the tile. Write both sides of the swizzle:

    - the copy: bring each piece, with one `load_v8(A, row, col)` and one `store_v8(As, index, …)`,
      to the place that your rule gives it (`store_v8` takes what `load_v8` returned);
    - the product of a slice: `a` by one `ldmatrix_x4(As, index)`, `b` by one
      `ldmatrix_x2_trans(Bs, row, 0)`, and the `mma` that adds to `c`.

    An index counts elements from the start of `As`, where row r begins at 64·r. Write the rule out,
    without a call of `place_of`. The check wants the right values, at most **{WAVEFRONTS}
    wavefronts** of shared loads for a tile, one for each 8×8 matrix, and {SHARED} bytes of shared
    memory.
    """,
    judge=judge,
    answers=(build_swizzled_tile,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Without a swizzle the piece would lie at 64 * row + 8 * piece. What replaces piece?",
            "```python\nstore_v8(As, row * 64 + (...) * 8, load_v8(A, row, p + 8 * piece))\n```",
        ),
        "wrong-type": Diagnosis(
            "build_swizzled_tile() is to return the kernel, a function of (A, B, C).",
            "What does the last line of build_swizzled_tile say?",
            "```python\nreturn kernel\n```",
        ),
        "no-barrier": Diagnosis(
            "Lanes load what others have not finished writing, or overwrite what others still "
            "load: a syncwarp is missing.",
            "Of the two threads that are named, which one writes, and what tells the other?",
            "```python\ncuda.syncwarp()  # copied\n...\ncuda.syncwarp()  # loaded\n```",
        ),
        "two-writers": Diagnosis(
            "Two lanes write the same place: two pieces have one place, or each lane copies all.",
            "For the two threads that are named, which row and which piece do they copy?",
            "```python\nthere = row * 64 + (piece ^ row % ...) * 8\n```",
        ),
        "misaligned": Diagnosis(
            "An index is no multiple of eight: it does not begin a piece.",
            "The rule gives the number of a place. How many elements has a place?",
            "```python\nrow * 64 + (...) * 8\n```",
        ),
        "outside": Diagnosis(
            "An index lies outside of its array.",
            "How large does the place in the row become, and how large may it be?",
            "```python\npiece ^ row % 8    # 0 to 7\n```",
        ),
        "unused": Diagnosis(
            "A lane names elements of a tile that nobody has written.",
            "At which indices does your copy store, and which one does this lane name?",
            "```python\nrow * 64 + (piece ^ row % 8) * 8    # the same rule on both sides\n```",
        ),
        "not-finite": Diagnosis(
            "Some elements of C are NaN: they are not stored, or were made from a NaN.",
            "Which values go into `mma`?",
            "```python\nc = mma_m16n8k16_f32_f16(a, b, c)\n```",
        ),
        "one-side-only": Diagnosis(
            "Pieces are moved on one side alone: stored by the rule and loaded from where they "
            "were, or the other way round.",
            "Which of your two indices has the row's number in its second summand?",
            "```python\nrow * 64 + (piece ^ row % 8) * 8    # in the copy and in the load\n```",
        ),
        "one-slice": Diagnosis(
            "All four slices multiply the same columns of A, or the same rows of B.",
            "Where does s stand in the address of a, and where in that of b?",
            "```python\npiece = 2 * s + ...\nb = ldmatrix_x2_trans(Bs, 16 * s + ..., 0)\n```",
        ),
        "left-half-twice": Diagnosis(
            "Both halves of a are the first piece of the slice.",
            "Which piece do lanes 16 to 31 name?",
            "```python\npiece = 2 * s + lane // ...\n```",
        ),
        "not-transposed": Diagnosis(
            "Each 8×8 matrix of B arrives transposed: pairs of B lie in a column.",
            "What do the two halves of a register of B hold, and what lies side by side in Bs?",
            "```python\nb = ldmatrix_x2_...(Bs, 16 * s + lane % 16, 0)\n```",
        ),
        "last-tile-only": Diagnosis(
            "What comes out is the product of the last tile alone: c starts again in every step.",
            "Which value of c goes into the first `mma` of the second tile?",
            "```python\nc = mma_m16n8k16_f32_f16(a, b, c)    # adds to the c before\n```",
        ),
        **one_warp.OWN,
        "loaded-twice": Diagnosis(
            "The result is right, but operands come from global memory again.",
            "Which arrays do the loads of your slices name?",
            "```python\na = ldmatrix_x4(As, ...)\n```",
        ),
        "few-lanes-copy": Diagnosis(
            "The result is right, but a few lanes copy the tiles, and the others wait for them.",
            "Which pieces does each of the 32 lanes copy in the skeleton?",
            "```python\nfor e in range(lane, 128, 32):\n    ...\n```",
        ),
        "matrices-ignored": Diagnosis(
            "The result is right, but it does not depend on what ldmatrix brings: a or b reaches "
            "the mma on another way.",
            "Which statement gives a its value, and which one b?",
            "```python\na = ldmatrix_x4(As, ...)\nb = ldmatrix_x2_trans(Bs, ...)\n```",
        ),
        "mma-ignored": Diagnosis(
            "The result is right, but the sums are made elsewhere, not by the mma.",
            "Which variable does the store of C take its values from, and which statement sets it?",
            "```python\nc = mma_m16n8k16_f32_f16(a, b, c)\n...\nC[i, j] = c[x]\n```",
        ),
        "no-mma": Diagnosis(
            "The result is right, but it was not made by the Tensor Core.",
            "Which instruction shall do the multiplications of a slice?",
            "```python\nc = mma_m16n8k16_f32_f16(a, b, c)\n```",
        ),
        "elements-loaded": Diagnosis(
            "The result is right, but lanes load single elements from shared memory.",
            "How many instructions load the fragments of one slice? Two are enough.",
            "```python\na = ldmatrix_x4(As, ...)\nb = ldmatrix_x2_trans(Bs, ...)\n```",
        ),
        "loaded-again": one_warp.LOADED_AGAIN,
        "bank-conflicts": Diagnosis(
            "The result is right, but pieces of one 8×8 matrix fall on the same banks.",
            "With your rule, at which places do rows 0 to 7 have piece 0?",
            "```python\n(piece ^ row % ...) * 8    # eight rows, eight places\n```",
        ),
        "multiplied-twice": Diagnosis(
            "The result is right, but the warp multiplies more than it has to.",
            "How many slices has a tile, and how many `mma` does the warp execute for it?",
            "```python\nfor s in range(4):\n    ...    # one mma\n```",
        ),
        "padded": Diagnosis(
            "The result is right and free of conflicts, but bought with memory: tiles are padded.",
            "How many places has a row of As, and how many of them does a row of A need?",
            "```python\nAs = cuda.shared.array(1024, float16, alignment=16)\n```",
        ),
        "stores-meet": Diagnosis(
            "The result is right and loads have no conflict, but the copy's stores have: pieces "
            "that lanes store at once fall on the same banks.",
            "Eight neighbouring lanes copy one row: at which places do its eight pieces lie?",
            "```python\nrow * 64 + (piece ^ row % 8) * 8    # a row stays in its eight places\n```",
        ),
        "stored-by-elements": Diagnosis(
            "The result is right, but the copy stores in smaller pieces than 16 bytes.",
            "How many stores bring one piece of eight elements to shared memory?",
            "```python\nstore_v8(As, ..., load_v8(A, row, p + 8 * piece))\n```",
        ),
    },
    praise="The same wavefronts as with padding, in just the bytes of the tile; and eight "
    "neighbours still move at once.",
)
