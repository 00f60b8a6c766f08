"""Review questions of chapter 07, with banks and registers of chapters 4 and 6."""

from random import Random

import numpy as np

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.model.transactions import wavefronts
from gemmlab.tiling import WARP

# m, n, k, and the bytes of an element of A and B.
SHAPES = {
    "m16n8k16": (16, 8, 16, 2),
    "m16n8k8": (16, 8, 8, 2),
    "m16n8k8 in TF32": (16, 8, 8, 4),
    "m16n8k4 in TF32": (16, 8, 4, 4),
    "m16n8k32 of bytes": (16, 8, 32, 1),
}


def _registers(m: int, n: int, k: int, size: int) -> tuple[int, int]:
    """Registers of a lane for A and B, and for C in FP32."""
    return (m * k + k * n) * size // 4 // WARP, m * n // WARP


@mixes("06", read="7.1 7.4 6.4")
def registers_of_warp_tile(draw: Random) -> Question:
    """Registers of a lane for the operands and sums of several instructions."""
    down, across = draw.choice((1, 2, 4)), draw.choice((1, 2, 4, 8))
    of_a, of_b, of_c = 16 * 16 * 2 // 4 // WARP, 16 * 8 * 2 // 4 // WARP, 16 * 8 // WARP
    operands, sums = down * of_a + across * of_b, down * across * of_c
    return Question(
        "`mma.m16n8k16` takes A, 16×16, and B, 16×8, in float16 and adds to C, 16×8 in FP32. A "
        f"warp keeps {down} fragments of A and {across} of B, and the sums of all their products. "
        "How many registers of 32 bits does that take in each lane?",
        Answer(
            operands + sums,
            f"A lane has {of_a} registers of each A, {of_b} of each B, and {of_c} of each of "
            f"{down * across} tiles of C.",
            {
                operands: "The sums lie in registers, too.",
                2 * operands + sums: "Those are elements; two float16 share a register.",
                (operands + sums) * WARP: "That is the whole warp.",
            },
        ),
        "registers",
    )


@mixes("04", read="7.6 4.6")
def rows_of_ldmatrix(draw: Random) -> Question:
    """Wavefronts of a matrix that `ldmatrix` reads."""
    pitch = 16 * draw.choice((2, 3, 4, 5, 6, 8, 9, 12, 16))
    count = int(wavefronts(pitch * np.arange(WARP), np.arange(WARP) < 8, 16))
    said = {
        1: "Then the eight rows would lie in 32 different banks.",
        2: "Then two rows at a time would meet.",
        4: "Then four rows at a time would meet.",
        8: "Then all eight rows would begin in one bank.",
    }
    return Question(
        f"`ldmatrix` reads the eight rows of an 8×8 matrix, 16 bytes each, which lie {pitch} bytes "
        "apart in shared memory of 32 banks of 4 bytes. How many wavefronts does it take?",
        Answer(
            count,
            f"A row fills four banks, and begins {pitch // 4 % 32} banks after the one above.",
            {number: text for number, text in said.items() if number != count},
        ),
        "wavefronts",
    )


@mixes("06", read="7.1 6.2")
def fmas_for_a_register(draw: Random) -> Question:
    """How many FMAs a register that is read serves, against an FMA of a warp."""
    name, (m, n, k, size) = draw.choice(tuple(SHAPES.items()))
    read = sum(_registers(m, n, k, size))
    ratio = m * n * k / WARP / read * 3
    return Question(
        f"A warp's FMA reads 3 registers in each lane, and `mma` of the shape {name} reads {read}. "
        "How many times as many FMAs does `mma` do for each register that it reads?",
        Answer(
            ratio,
            f"It does {m * n * k:,} FMAs, {m * n * k // WARP} for each lane, where an FMA "
            "instruction does one.",
            {
                m * n * k / WARP: "It reads more registers than an FMA, too.",
                ratio / 3: "An FMA reads three.",
                ratio * WARP: "An FMA instruction serves all 32 lanes as well.",
            },
            within=0.02,
        ),
        "times",
    )
