"""Answers to exercise 09.4."""

from gemmlab.course.ch09_software_pipelining.q4_producer import build_producer
from tests.course.answers import edited, fooling, for_ever, wrong

ROLE = "if thread == 128:"
STEP = "step = 0\n            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):\n"
CORNER = "                row, col = tile // across * 64, tile % across * 32\n"
LOOP = f"{CORNER}                for p in range(0, k, 64):"
TILES = f"            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):\n{CORNER}"
SLOT = "                    s = step % S\n                    mbarrier_wait(empty"
PARITY = "(step // S & 1) ^ 1"
WAIT = f"                    mbarrier_wait(empty, s, {PARITY})\n"
SIZE = "A_BYTES + B_BYTES)\n                    tma"
EXPECT = "                    mbarrier_arrive_expect(full, s, A_BYTES + B_BYTES)\n"
LOAD_A = "                    tma_load(As, s, 0, 0, A, row, p, full, s)\n"
LOAD_B = "                    tma_load(Bs, s, 0, 0, B, col, p, full, s)\n"
NEXT = f"{LOAD_B}                    step += 1\n"
MULTIPLY = "                    multiply_tiles(acc, As, Bs, s, p == 0)\n"
RELEASE = """                    if thread == 0:
                        mbarrier_arrive(empty, s)
"""


def of(misconception, diagnosis, *edits):
    return wrong(build_producer, misconception, diagnosis, *edits)


def sized(bytes_):
    """The edit that expects other bytes."""
    return SIZE, SIZE.replace("A_BYTES + B_BYTES", bytes_)


PRODUCER = TILES + f"{LOOP.removeprefix(CORNER)}\n                    s = step % S\n"
PRODUCER += WAIT + EXPECT + LOAD_A + LOAD_B + "                    step += 1\n"
RIGHT = {
    "stage and parity kept": (
        edited(
            build_producer,
            (f"            step = 0\n{PRODUCER}", """
            stage, parity = 0, 1
            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                for p in range(0, k, 64):
                    mbarrier_wait(empty, stage, parity)
                    mbarrier_arrive_expect(full, stage, 2 * 64 * (64 + 32))
                    tma_load(Bs, stage, 0, 0, B, tile % across * 32, p, full, stage)
                    tma_load(As, stage, 0, 0, A, tile // across * 64, p, full, stage)
                    stage += 1
                    if stage == S:
                        stage, parity = 0, 1 - parity
""".lstrip("\n")),
        ),
    ),
    "bytes are expected behind the copies": (
        edited(build_producer, (EXPECT + LOAD_A + LOAD_B, LOAD_A + LOAD_B + EXPECT)),
    ),
    "the last stages are waited for": (
        edited(
            build_producer,
            (NEXT, f"""{NEXT}            for last in range(min(step, S)):
                s = (step - 1 - last) % S
                mbarrier_wait(empty, s, (step - 1 - last) // S & 1)
"""),
        ),
    ),
}  # fmt: skip

WRONG = {
    "no such thread": of("the producer comes last", "nothing-asked", (ROLE, "if thread == 160:")),
    "a warp asks": of("a warp acts together", "many-ask", (ROLE, "if thread >= 128:")),
    "waits for bytes": of(
        "full is full of room", "waits-for-bytes", (WAIT, WAIT.replace("empty", "full"))
    ),
    "waits as the consumers do": of(
        "both sides wait for the same parity", "first-turn", (PARITY, "step // S & 1")
    ),
    "parity 0": of("the first phase is 0", "first-turn", (PARITY, "0")),
    "expects at empty": of(
        "the stage is empty", "arrives-elsewhere", (EXPECT, EXPECT.replace("full", "empty"))
    ),
    "A arrives at stage 0": of(
        "one mbarrier is enough", "arrives-elsewhere",
        (LOAD_A, LOAD_A.replace("full, s", "full, 0")),
    ),
    "nothing expected": of("the TMA counts", "not-expected", (EXPECT, "")),
    "a step too many": of("k is included", "beyond-k", (LOOP, LOOP.replace("k,", "k + 64,"))),
    "A twice": of("twice is safer", "copied-again", (LOAD_A, LOAD_A + LOAD_A)),
    "A twice, expected": of(
        "twice is safer", "copied-again",
        sized("2 * A_BYTES + B_BYTES"), (LOAD_A, LOAD_A + LOAD_A),
    ),
    "k twice": of(
        "a loop for A, and one for B", "copied-again",
        (f"{LOOP.removeprefix(CORNER)}\n{SLOT}",
         "                for q in range(0, 2 * k, 64):\n"
         f"                    p = q if q < k else 0\n{SLOT}"),
    ),
    "tiles of block 0": of(
        "every block has all tiles", "others-tiles",
        (STEP, STEP.replace("cuda.blockIdx.x, tiles", "0, tiles")),
    ),
    "B by rows of C": of(
        "both boxes begin at row", "other-box", (LOAD_B, LOAD_B.replace("col, p", "row, p"))
    ),
    "A turned": of(
        "column first", "other-box", (LOAD_A, LOAD_A.replace("row, p", "p, row"))
    ),
    "arrives for each box": of(
        "each copy has its bytes", "arrives-twice",
        (EXPECT, EXPECT.replace(" + B_BYTES", "") + EXPECT.replace("A_BYTES + ", "")),
    ),
    "bytes of A": of("B comes along", "bytes-too-few", sized("A_BYTES")),
    "elements": of("elements are counted", "bytes-too-few", sized("(A_BYTES + B_BYTES) // 2")),
    "bytes of two A": of("both boxes are alike", "bytes-too-many", sized("2 * A_BYTES")),
    "no wait": of("the ring is large enough", "room-not-waited", (WAIT, "")),
    "begins again": of(
        "a tile has its own steps", "ring-begins-again",
        (CORNER, f"{CORNER}                step = 0\n"),
    ),
    "one stage": of(
        "one stage is enough", "other-stage", (SLOT, SLOT.replace("step % S", "0"))
    ),
    "never goes on": of("the TMA finds the stage", "other-stage", (NEXT, LOAD_B)),
    "never flips": of("parity 1 is *empty*", "phase-never-flips", (PARITY, "1")),
    "flips in each step": of("phases alternate", "phase-wrong", (PARITY, "(step & 1) ^ 1")),
    "one tile": of(
        "a block has a tile", "tiles-missing",
        (STEP, STEP.replace("tiles, cuda.gridDim.x", "min(tiles, cuda.blockIdx.x + 1)")),
    ),
    "rounded down": of(
        "a step is 64", "steps-missing", (LOOP, LOOP.replace("k,", "max(k // 64, 1) * 64,"))
    ),
    "released before": of(
        "what has come is read", "released-early", (MULTIPLY + RELEASE, RELEASE + MULTIPLY)
    ),
    "no fence": of(
        "maps are data", "not-waited", ("            fence_tensor_map(B)\n", "")
    ),
    "in turn": of(
        "a copy is to be waited for", "ring-not-used",
        (NEXT, NEXT.replace("step +=", "mbarrier_wait(full, s, step // S & 1)\n"
                            "                    step +=")),
    ),
    "after its own release": of(
        "one tile at a time", "ring-not-used",
        (NEXT, NEXT.replace("step +=", "mbarrier_wait(empty, s, step // S & 1)\n"
                            "                    step +=")),
    ),
    "drained behind each tile": of(
        "a tile ends when it is read", "ring-not-used",
        (NEXT, f"""{NEXT}                for last in range(min(step, S)):
                    s = (step - 1 - last) % S
                    mbarrier_wait(empty, s, (step - 1 - last) // S & 1)
"""),
    ),
    "no kernel": of("a kernel returns C", "wrong-type", ("return kernel", "return None")),
    "whole matrices": of(
        "NumPy multiplies", "raises",
        ("            acc = cuda.local.array(16, float32)\n",
         "            acc = cuda.local.array(16, float32)\n"
         "            C[:, :] = A.array @ B.array.T\n"),
    ),
}  # fmt: skip

FOOLING = {
    "fifteen steps": of(
        "the cases are in the package", "known-cases-only",
        (LOOP, LOOP.replace("k,", "min(k, 900),")),
    ),
    "rings of three": of(
        "the cases are in the package", "known-cases-only",
        (SLOT, SLOT.replace("% S", "% min(S, 3)")),
    ),
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
}  # fmt: skip
