"""Exercise 09.4: the producer of a kernel on Tensor Cores, which asks for tile after tile."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy import float16, float32, uint64

from gemmlab.course.judging import (
    FAILING,
    Diagnosis,
    Finding,
    Task,
    arrays_on_trial as trial,
    drawing,
)
from gemmlab.course.judging.launches import Launch
from gemmlab.course.judging.producers import (
    A_BYTES,
    B_BYTES,
    BYTES,
    COLUMNS,
    CONSUMERS,
    DEPTH,
    PARAMETERS,
    PROBE,
    ROWS,
    Case,
    mistake,
    told_of,
)
from gemmlab.instructions import (
    WGMMA,
    WGMMA_WAIT,
    fence_mbarrier_init,
    fence_tensor_map,
    mbarrier_arrive,
    mbarrier_arrive_expect,
    mbarrier_init,
    mbarrier_wait,
    shared_view,
    tma_load,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.simt import Report, cuda

THREADS = CONSUMERS + 32  # of a block: the producer is one of the last warp
multiply32, wait32 = WGMMA[COLUMNS, "nt"], WGMMA_WAIT[COLUMNS]  # 64×32×16

USUAL, FINE = np.arange(-4, 5), np.array([9.25, 11.5, 13.75])  # what elements are drawn from


CASES = (
    Case(3, 64, 32, 64, 1),  # shorter than the ring
    Case(3, 64, 32, 192, 1),  # just the ring
    Case(3, 64, 32, 264, 1),  # more, and the last step is not whole
    Case(2, 64, 32, 9 * 64, 1),  # long and thin
    Case(2, 192, 64, 72, 4),  # two tiles for some blocks, one for others
    Case(3, 128, 64, 200, 1),  # four tiles, one after the other
)


@cuda.jit(device=True)
def multiply_tiles(acc, As, Bs, s, first):
    """Add the product of the tiles of stage s to the sums, and wait for it."""
    wgmma_fence()
    multiply32(acc, As, s, 0, 0, Bs, s, 0, 0, not first)
    multiply32(acc, As, s, 0, 16, Bs, s, 0, 16, True)
    multiply32(acc, As, s, 0, 32, Bs, s, 0, 32, True)
    multiply32(acc, As, s, 0, 48, Bs, s, 0, 48, True)
    wgmma_commit()
    wait32(0, acc)


@cuda.jit(device=True)
def store_tile(C, row, col, acc):
    """Store the sums of a thread in the tile that begins at this row and column."""
    thread = cuda.threadIdx.x
    for r in range(16):
        i = row + thread // 32 * 16 + thread % 32 // 4 + r // 2 % 2 * 8
        C[i, col + r // 4 * 8 + thread % 4 * 2 + r % 2] = acc[r]


def build_producer(S):
    """The kernel with a ring of S stages: blocks stay, and take one tile of C after the other."""
    RING = S * (A_BYTES + B_BYTES)

    def kernel(A, B, k, C):
        As = shared_view((S, 64, 64), float16, 0)
        Bs = shared_view((S, 32, 64), float16, S * A_BYTES)
        full = shared_view((S,), uint64, RING)
        empty = shared_view((S,), uint64, RING + 8 * S)
        thread, across = cuda.threadIdx.x, C.shape[1] // 32
        tiles = C.shape[0] // 64 * across
        if thread == 0:
            for s in range(S):
                mbarrier_init(full, s, 1)
                mbarrier_init(empty, s, 1)
            fence_mbarrier_init()
        cuda.syncthreads()
        if thread == 128:  # the producer
            fence_tensor_map(A)
            fence_tensor_map(B)
            # Ask for what the consumers below wait for: in each step 64×64 elements of A to
            # As[s, 0, 0] and 32×64 of B, whose rows are columns of C, to Bs[s, 0, 0].
            # [answer]
            step = 0
            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                row, col = tile // across * 64, tile % across * 32
                for p in range(0, k, 64):
                    s = step % S
                    mbarrier_wait(empty, s, (step // S & 1) ^ 1)
                    mbarrier_arrive_expect(full, s, A_BYTES + B_BYTES)
                    tma_load(As, s, 0, 0, A, row, p, full, s)
                    tma_load(Bs, s, 0, 0, B, col, p, full, s)
                    step += 1
            # [end]
        if thread < 128:  # the consumers
            acc = cuda.local.array(16, float32)
            step = 0  # over all tiles of this block
            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                for p in range(0, k, 64):
                    s = step % S
                    mbarrier_wait(full, s, step // S & 1)
                    multiply_tiles(acc, As, Bs, s, p == 0)
                    if thread == 0:
                        mbarrier_arrive(empty, s)
                    step += 1
                store_tile(C, tile // across * 64, tile % across * 32, acc)

    return kernel


def _launch(case: Case, rng: np.random.Generator) -> tuple[str, Launch]:
    """A case in words, and its launch; those that are drawn have fractions."""
    values = USUAL if case in CASES else FINE
    a, b = (rng.choice(values, (size, case.k)).astype(np.float16) for size in (case.m, case.n))
    c = np.full((case.m, case.n), np.nan, np.float32)
    words = f"S = {case.stages}, A is {case.m}×{case.k}, B has {case.n} columns: {case.steps} steps"
    words += f" for each of {case.m // ROWS * case.n // COLUMNS} tiles; blocks: {case.blocks}"
    grid, shared, boxes = (case.blocks,), case.stages * (BYTES + 16), (ROWS, COLUMNS)
    arguments = a, b, case.k, c
    return words, Launch((case.stages,), grid, (THREADS,), arguments, (), shared, boxes)


def _wrong(answer: Any, words: str, launch: Launch, report: Report) -> Finding | None:
    """Find what is wrong with the result of a launch: the producer's mistake, where it made one."""
    a, b, _, c = launch.arguments
    found = trial.hazard(report, words)
    found = found or trial.different("C", a.astype(np.float64) @ b.T.astype(np.float64), c, words)
    if not found:
        return None
    made = mistake(answer, launch)
    if made:
        diagnosis, told = made
        facts = (*found.facts, ("Your producer", str(told)))
        return replace(found, diagnosis=diagnosis, facts=facts,
                       details={**found.details, "probe": PROBE})  # fmt: skip
    if "kind" not in found.details:
        return found
    stuck = found.details["kind"] in ("deadlock", "step-limit")
    early = found.details["ops"] == ("copy", "read")  # of a product that is under way
    diagnosis = "never-ends" if stuck else "released-early" if early else "not-waited"
    return replace(found, diagnosis=diagnosis)


def _costs(answer: Any, report: Report, words: str) -> Finding:
    """Find what a right kernel does otherwise than asked; "passed" where nothing is."""
    case = CASES[-1]
    told = told_of(answer, _launch(case, np.random.default_rng(0))[1])
    if isinstance(told, Finding):
        return told
    ahead = told[0].ahead()
    facts = (
        (FAILING, words),
        ("Stages that are filled before one has to be over", f"{ahead} of {case.stages}"),
        ("Copied by the TMA", f"{report.counters['tensor_copy_bytes']:,} B"),
    )
    if ahead < case.stages:
        return Finding("ring-not-used", facts, {"probe": PROBE})
    values = ("Values", f"right in all {len(CASES)} cases, and in those drawn anew")
    return Finding("passed", (values, *facts[1:]))


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, what the largest costs, and cases drawn anew."""
    arrays = trial.Arrays(answer, PARAMETERS, _launch, partial(_wrong, answer))
    largest = arrays.first_wrong(CASES)
    found = largest if isinstance(largest, Finding) else _costs(answer, *largest)
    if found.diagnosis != "passed":
        return found
    rng = drawing.generator()
    down, across, stages = (int(rng.integers(2, 4)) for _ in range(3))
    odd, even = 64 * int(rng.integers(2, 5)) + 8, 64 * int(rng.integers(16, 20))
    wide = Case(stages + 2, ROWS * down, COLUMNS * across, odd, int(rng.integers(2, 4)))
    return arrays.wrong_anew([wide, Case(stages, ROWS, COLUMNS, even, 1)]) or found


LOOP = """```python
step = 0    # over all tiles of this block
for tile in range(...):
    row, col = ...
    for p in range(0, k, 64):
        s = ...
        mbarrier_wait(empty, s, ...)
        mbarrier_arrive_expect(full, s, ...)
        tma_load(As, s, 0, 0, A, ..., ..., full, s)
        tma_load(Bs, s, 0, 0, B, ..., ..., full, s)
        step += 1
```"""
DIAGNOSES = {
    "not-attempted": Diagnosis(
        "The skeleton is unchanged.",
        "For what do the consumers wait in their first step, and who brings it about?",
        LOOP,
    ),
    "nothing-asked": Diagnosis(
        "No thread behind the consumers asks for anything: they wait for bytes for ever.",
        "Which thread number does your producer's branch ask for, and has the block such a thread?",
        "```python\nif thread == 128:    # the first one behind the consumers\n```",
    ),
    "many-ask": Diagnosis(
        "Several threads ask for the same tile: one copy overwrites the other.",
        "How many threads are there behind the consumers, and how many does a copy need?",
        "```python\nif thread == 128:    # one thread asks for all\n```",
    ),
    "waits-for-bytes": Diagnosis(
        "The producer waits at full, for bytes that it has asked for itself, and never for room.",
        "Which of the two mbarriers do the consumers arrive at, and what does that tell whom?",
        "```python\nmbarrier_wait(empty, s, ...)\n```",
    ),
    "first-turn": Diagnosis(
        "The producer is stuck before its first copy: it waits for a stage to be read that nobody "
        "has filled yet.",
        "Of a new mbarrier no phase is complete. A wait for which parity passes there at once?",
        "In the first turn of the ring the producer waits for parity 1, in the second for 0.",
    ),
    "arrives-elsewhere": Diagnosis(
        "Bytes are expected, or arrive, at another mbarrier than the one at which consumers wait "
        "for this stage.",
        "At which mbarrier do the consumers wait before they read stage s?",
        "```python\nmbarrier_arrive_expect(full, s, ...)\n"
        "tma_load(As, s, 0, 0, A, ..., ..., full, s)\n```",
    ),
    "not-expected": Diagnosis(
        "Copies bring bytes that nobody has said to expect, and no thread arrives at full.",
        "Of how many arrivals and how many bytes does a phase of full consist?",
        "```python\nmbarrier_arrive_expect(full, s, ...)    # an arrival, and bytes to come\n```",
    ),
    "beyond-k": Diagnosis(
        "The producer asks for a step behind the last one: its tiles are still under way when the "
        "block ends.",
        "How many steps do the consumers take for a tile of C?",
        "```python\nfor p in range(0, k, 64):    # as the consumers do\n```",
    ),
    "copied-again": Diagnosis(
        "A box is copied again, though it has come once and is read once.",
        "How many copies does a step need, and how many steps has a tile of C?",
        "```python\ntma_load(As, ...)    # once\ntma_load(Bs, ...)    # once\n```",
    ),
    "others-tiles": Diagnosis(
        "The producer of one block asks for the operands of another block's tile.",
        "Which tiles do this block's consumers take, and in which order?",
        "```python\nfor tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):\n```",
    ),
    "other-box": Diagnosis(
        "A copy begins at another row or column of A or B than the tile and the step need.",
        "Rows of B are columns of C. Which of row, col and p moves with the tile, and which with "
        "the step?",
        "```python\ntma_load(As, s, 0, 0, A, row, ..., full, s)\n"
        "tma_load(Bs, s, 0, 0, B, col, ..., full, s)\n```",
    ),
    "arrives-twice": Diagnosis(
        "The producer arrives at full more than once in a step; one arrival was announced.",
        "What does mbarrier_init(full, s, 1) say, and how often does your step arrive?",
        "```python\nmbarrier_arrive_expect(full, s, ...)    # once, the bytes of both boxes\n```",
    ),
    "bytes-too-few": Diagnosis(
        "Fewer bytes are expected than the copies bring: the phase ends before all have come, or "
        "never.",
        "How many bytes have 64×64 elements of A in float16, and how many 32×64 of B?",
        "```python\nmbarrier_arrive_expect(full, s, ... + ...)\n```",
    ),
    "bytes-too-many": Diagnosis(
        "More bytes are expected than the copies bring: the phase never ends.",
        "How many bytes have 64×64 elements of A in float16, and how many 32×64 of B?",
        "```python\nmbarrier_arrive_expect(full, s, ... + ...)\n```",
    ),
    "room-not-waited": Diagnosis(
        "The producer waits for nothing: in the second turn it overwrites tiles that consumers "
        "have not read.",
        "When may the second tile be copied to stage 0, and who says so?",
        "```python\nmbarrier_wait(empty, s, ...)    # before anything else\n```",
    ),
    "ring-begins-again": Diagnosis(
        "With each tile of C the producer begins again at stage 0, but the consumers go on in the "
        "ring.",
        "Where do the consumers set step to 0, and where do you?",
        "```python\nstep = 0    # before the loop over tiles\nfor tile in range(...):\n```",
    ),
    "other-stage": Diagnosis(
        "The producer waits for, or fills, another stage than the consumers read in this step.",
        "Which stage do the consumers read in step S, and which in step S + 1?",
        "```python\ns = step % S\n...\nstep += 1    # in every step\n```",
    ),
    "phase-never-flips": Diagnosis(
        "The producer waits for the same parity in every turn, so that every second wait tells "
        "nothing, or of a turn that is long over.",
        "Which phase of empty[0] does the producer need in its turns 0, 1 and 2, and which parity "
        "has each?",
        "```python\nmbarrier_wait(empty, s, (step // S & 1) ^ ...)\n```",
    ),
    "phase-wrong": Diagnosis(
        "In some step the producer waits for the wrong parity of empty.",
        "In which steps does the parity that you wait for change, and in which does the turn of "
        "the ring?",
        "The turn of a step is step // S, counted over all tiles of the block.",
    ),
    "tiles-missing": Diagnosis(
        "The producer ends after one tile of C, and the consumers wait for the next one's bytes.",
        "How many tiles has a block if there are more tiles than blocks?",
        "```python\nfor tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):\n```",
    ),
    "steps-missing": Diagnosis(
        "The producer ends before the consumers do: it asks for too few steps.",
        "How many steps do the consumers take for k = 264?",
        "```python\nfor p in range(0, k, 64):    # the last box reaches beyond k: zeros\n```",
    ),
    "released-early": Diagnosis(
        "A stage is said to be empty while wgmma may still read it, and is overwritten.",
        "When are a stage's products complete: when they are begun, or when they were waited for?",
        "```python\nmultiply_tiles(...)    # waits for its products\nif thread == 0:\n"
        "    mbarrier_arrive(empty, s)\n```",
    ),
    "not-waited": Diagnosis(
        "Something is touched that others, or the TMA, may still be at; the hazard names both.",
        "Which wait, fence or barrier of the skeleton has to lie between the two?",
        "The consumers' branch and the lines before the producer's are right as they are given.",
    ),
    "ring-not-used": Diagnosis(
        "The result is right, but the producer waits until a stage that it has just asked for has "
        "come or is read: the other stages stay empty meanwhile.",
        "How many tiles can be under way while the first one is multiplied, and what keeps yours "
        "from being asked for?",
        "The only wait of a step is for the room that it fills: empty[s], of the turn before.",
    ),
}
TASK = Task(
    name="09.4",
    title="A producer that never rests",
    section="chapter 09, Your turn: a producer that never rests",
    asked="build_producer(S) returns a kernel (A, B, k, C) whose producer keeps a ring of S stages "
    "filled, over all tiles of C of its block.",
    prompt=f"""
    A is m×k, B is n×k, and C = A·Bᵀ. The host passes tensor maps of A and B, with boxes of
    {ROWS}×{DEPTH} and {COLUMNS}×{DEPTH} elements of float16. m and n are multiples of {ROWS} and
    {COLUMNS}; k need not be one of {DEPTH}. A block computes tiles of {ROWS}×{COLUMNS} elements of
    C: those numbered blockIdx.x, blockIdx.x + gridDim.x, and so on.

    Consumers and mbarriers are given. Write the producer, one thread. For each tile and each step
    along k it

    - waits until the stage is empty. In the first turn of the ring that must pass at once;
    - arrives at `full` of the stage, and says how many bytes are to come:
      `mbarrier_arrive_expect(full, s, bytes)`;
    - asks for both boxes: `tma_load(As, s, 0, 0, A, row, p, full, s)` copies the box of A that
      begins there. What lies beyond k comes as zeros.

    The ring goes on from tile to tile: the first step of a tile takes the stage behind the last one
    of the tile before. The check tries loops shorter than the ring, as long as it, and longer, with
    rings of 2 to 5 stages. Each box is copied once, and all S stages are filled before the first
    one has to be read.
    """,
    judge=judge,
    answers=(build_producer,),
    diagnoses=DIAGNOSES,
    praise="Stage and parity follow from one number, the step. Nobody in this kernel waits for "
    "everybody: the producer waits for room, the consumers for bytes.",
)
