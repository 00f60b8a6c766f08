"""What a teacher prints: exams with their answers, and a sheet of the exercises' mistakes.

Of an exam, sizes of questions are drawn, and the library's own models compute the answers.

A kind is a function that takes a generator and returns a `Question`; `KINDS` says of which chapters
it asks, and in which order they stand on a sheet. A question quotes every number that its answer
needs, so that it can be solved with a pencil. The same chapters, seed and number give the same
exam, to the byte, on every machine: a sheet of questions, and a separate one of their answers.

The other sheet has each exercise's answer, its mistakes, and what to say to each. All of it is the
exercises' own: what `Task.answers` solves, and the cause and the hints of `Task.diagnoses`, which
are what a learner is told one after the other. Every mistake that is listed is one that the check
tells apart, and has an answer among the tests that makes it.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

import numpy as np

from gemmlab.course import exercise_modules
from gemmlab.course.exercises import get
from gemmlab.course.judging.diagnoses import GENERAL, HAZARDS, KERNEL
from gemmlab.course.judging.exercise import Task
from gemmlab.course.judging.verdict import Diagnosis
from gemmlab.course.teaching.chapter import read
from gemmlab.device import Device, device
from gemmlab.formats import FORMATS, number_format, round_to, ulp
from gemmlab.instructions.fragments import layout
from gemmlab.model import predict, schedule
from gemmlab.model.limiter import attainable
from gemmlab.model.occupancy import resident_blocks
from gemmlab.model.pipeline import stages_needed
from gemmlab.model.quantization import quantization
from gemmlab.model.transactions import BANKS, SECTOR, sectors, wavefronts
from gemmlab.numerics.tcec import split
from gemmlab.problem import Gemm
from gemmlab.tiling import WARP, Tiling

GPUS = ("v100", "t4", "a100_80gb", "h100_sxm", "h200")
LANES, ALL = np.arange(WARP), np.ones(WARP, bool)


class Question(NamedTuple):
    """A question with its answer, in Markdown."""

    title: str
    text: str
    answer: str


class Kind(NamedTuple):
    """A kind of question, and the chapters that explain what it asks."""

    make: Callable[[Random], Question]
    chapters: tuple[str, ...]


def operations(draw: Random) -> Question:
    """Operations and bytes of a product."""
    m, n, k = (64 * draw.randint(2, 64) for _ in range(3))
    p = Gemm(m, n, k, dtype=draw.choice(("float16", "float32", "float64")))
    return Question(
        "Operations and bytes",
        f"C = AB with m = {m}, n = {n}, k = {k}, all in {p.dtype}, {number_format(p.dtype).bytes} "
        "B an element. How many operations are that, how many bytes have to be moved at the least, "
        "and what is the arithmetic intensity?",
        f"2mnk = {p.flops:,} FLOP; A and B read once and C written once are {p.bytes:,} B; "
        f"{_short(p.intensity)} FLOP/B.",
    )


def limited_by(draw: Random) -> Question:
    """What limits a product on a device."""
    gpu = device(draw.choice(GPUS))
    m, k = (1024 * draw.randint(2, 12) for _ in range(2))
    p = Gemm(m, draw.choice((16, 32, 64, 128, 1024, 2048, 4096)), k, dtype="float16")
    found = predict(p, gpu)
    times = {"arithmetic": found.times["math"], "DRAM": found.times["dram"]}
    told = " and ".join(f"{_short(1e6 * t)} µs of {name}" for name, t in times.items())
    return Question(
        "What limits it?",
        f"C = AB in FP16 with m = {m}, n = {p.n}, k = {k} on {_told(gpu)}. How long does each of "
        "arithmetic and DRAM take at the least, and which of them limits the product?",
        f"{told}: {'arithmetic' if found.limiter == 'math' else found.limiter} limits it. Its "
        f"intensity is {_short(p.intensity)} FLOP/B, the device's ratio "
        f"{_short(gpu.ops_per_byte('float16'))}.",
    )


def roof(draw: Random) -> Question:
    """The roofline over an intensity."""
    gpu, intensity = device(draw.choice(GPUS)), draw.choice((2, 5, 10, 40, 100, 300, 600))
    return Question(
        "Under the roof",
        f"A kernel in FP16 does {intensity} FLOP for each byte of DRAM, on {_told(gpu)}. What "
        "speed can it have at most, and from which intensity on would arithmetic limit it?",
        f"{_short(float(attainable(gpu, 'float16', intensity)) / 1e12)} TFLOP/s; from "
        f"{_short(gpu.ops_per_byte('float16'))} FLOP/B on.",
    )


def strided(draw: Random) -> Question:
    """Sectors of one warp's load."""
    width, stride = draw.choice((4, 8)), draw.choice((1, 2, 3, 4, 5, 8, 12, 33))
    start = width * draw.randint(0, 7)
    count = int(sectors(start + width * stride * LANES, ALL))
    return Question(
        "Sectors of a load",
        f"Lane x of a warp loads the {width} B at address {start} + {width * stride}·x. How many "
        f"sectors of {SECTOR} B does this one request take, and what part of their bytes is used?",
        f"{count} sectors; {WARP * width} of {SECTOR * count} B are used, "
        f"{_short(100 * WARP * width / (SECTOR * count))} %.",
    )


def conflicts(draw: Random) -> Question:
    """Bank conflicts of a column."""
    length = draw.choice((8, 16, 17, 20, 24, 32, 33, 34, 36, 40, 48, 64, 65, 68, 72))
    count = int(wavefronts(4 * length * LANES, ALL, 4))
    return Question(
        "Bank conflicts",
        f"A tile in shared memory has rows of {length} words of 4 B, and there are {BANKS} banks. "
        "Lane x of a warp stores to the first word of row x. How many wavefronts does it take, and "
        "which length of at least as many words would take the fewest?",
        f"{count} wavefronts: lanes x and x + {WARP // count} share a bank. Every odd length takes "
        f"one: {length | 1}."
        if count > 1
        else f"One: {length} is odd, and no two lanes share a bank. It is the best length itself.",
    )


def pieces(draw: Random) -> Question:
    """Bank conflicts of eight pieces of 16 bytes, a matrix of `ldmatrix`."""
    pitch = 16 * draw.choice((1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17))
    count = int(wavefronts(pitch * LANES, LANES < 8, 16))
    padded = int(wavefronts((pitch + 16) * LANES, LANES < 8, 16))
    return Question(
        "Eight rows of a matrix",
        f"`ldmatrix` reads the eight rows of an 8×8 matrix, 16 B each; the rows lie {pitch} B "
        f"apart in shared memory of {BANKS} banks of 4 B. How many wavefronts does it take, "
        f"and how many with rows {pitch + 16} B apart?",
        f"{count}; and {padded}.",
    )


def resident(draw: Random) -> Question:
    """Blocks that an SM holds at once."""
    gpu = device(draw.choice(("a100_80gb", "h100_sxm", "h200")))
    threads, registers = draw.choice((64, 128, 256, 512)), 8 * draw.randint(4, 16)
    kilobytes = draw.choice((8, 16, 24, 33, 48, 66))
    roomy = replace(gpu, threads_per_sm=1 << 20, blocks_per_sm=1 << 20)  # for each limit by itself
    by = {
        "threads or blocks": resident_blocks(gpu, threads),
        "shared memory": resident_blocks(roomy, threads, 1024 * kilobytes),
        "registers": resident_blocks(roomy, threads, registers=registers),
    }
    count = resident_blocks(gpu, threads, 1024 * kilobytes, registers)
    tight = " and ".join(name for name, most in by.items() if most == count)
    reserved = gpu.shared_bytes_per_sm - gpu.shared_bytes_per_block
    return Question(
        "Occupancy",
        f"A block has {threads} threads of {registers} registers, and {kilobytes} KiB of shared "
        f"memory. An SM of {gpu.title} has {gpu.registers_per_sm} registers in four quarters, each "
        "of which holds whole warps, "
        f"{gpu.shared_bytes_per_sm // 1024} KiB of shared memory, of which each block costs "
        f"{reserved // 1024} KiB more than it asks for, and room for {gpu.threads_per_sm} threads "
        f"in at most {gpu.blocks_per_sm} blocks. How many blocks does it hold at once, what limits "
        "them, and which part of its threads is that?",
        f"{count}, by {tight}; {count * threads} of {gpu.threads_per_sm} threads, "
        f"{_short(100 * count * threads / gpu.threads_per_sm)} %.",
    )


def in_waves(draw: Random) -> Question:
    """Tiles, waves, and the share of the device that works."""
    gpu = device(draw.choice(GPUS))
    tile = draw.choice(((128, 128), (256, 128), (128, 64), (64, 64)))
    m, n = (8 * draw.randint(100, 700) for _ in range(2))
    q = quantization(Gemm(m, n, 4096, dtype="float16"), gpu, tile, per_sm=1)
    return Question(
        "Tiles and waves",
        f"C has {m} rows and {n} columns, tiles are {tile[0]}×{tile[1]}, and each of the {gpu.sms} "
        f"SMs of {gpu.title} computes one at a time. How many tiles and how many waves are there, "
        "how many tiles has the last wave, and which part of the SMs' time is used?",
        f"{q.down} · {q.across} = {q.tiles} tiles in {q.waves} waves, {q.tail} in the last; "
        f"{_short(100 * q.wave_use)} % of the time, of which {_short(100 * q.useful)} % goes into "
        "elements that C has.",
    )


def launch(draw: Random) -> Question:
    """The launch that follows from a tiling."""
    t = draw.choice(((4, 4), (8, 4), (8, 8)))
    tiling = Tiling((draw.choice((64, 128)), draw.choice((64, 128)), draw.choice((8, 16))), t)
    p = Gemm(*(draw.randint(300, 3000) for _ in range(3)))
    across, down = tiling.grid(p)
    loads, fmas = sum(t), t[0] * t[1]
    return Question(
        "From a tiling to a launch",
        f"A kernel cuts C, {p.m} by {p.n} with k = {p.k}, into blocks of {tiling.block[0]}×"
        f"{tiling.block[1]}, steps of {tiling.block[2]} along k, and {t[0]}×{t[1]} elements a "
        "thread. How many threads has a block, how many blocks has the launch, how many steps does "
        "each take, and how many loads from shared memory are there for each FMA?",
        f"{tiling.threads} threads; {down} · {across} = {across * down} blocks; {tiling.steps(p)} "
        f"steps; {loads} loads of one element for {fmas} FMAs, {_short(loads / fmas)} for each.",
    )


def fragment(draw: Random) -> Question:
    """The element that a lane holds."""
    operand = draw.choice("ABC")
    held = layout("m16n8k16", operand)
    lane, register = draw.randrange(WARP), draw.randrange(held.registers)
    row, column = (int(x) for x in held.element(lane, register)[:2])
    return Question(
        "Which lane holds it?",
        f"`mma.m16n8k16` in FP16: lane {lane} holds {held.registers} elements of {operand}. Which "
        f"row and which column has the one with number {register}, counted from 0?",
        f"Row {row}, column {column}.",
    )


def ahead(draw: Random) -> Question:
    """Stages of a pipeline."""
    copy, multiply = 10 * draw.randint(40, 160), 10 * draw.randint(15, 60)
    count = stages_needed(copy, multiply)
    return Question(
        "How many stages?",
        f"A tile is there {copy} cycles after it was asked for, and multiplying one takes "
        f"{multiply} cycles. How many tiles must be in shared memory or on their way, so that the "
        "loop never waits? How many cycles does each step take with a single one, where copy and "
        "product take turns?",
        f"{count} stages: ({count} − 1) · {multiply} ≥ {copy}. With one, {copy + multiply} cycles.",
    )


def in_parts(draw: Random) -> Question:
    """A split of k."""
    gpu = device(draw.choice(GPUS))
    tiles, steps = draw.randint(1, gpu.sms // 3), 4 * draw.randint(8, 64)
    parts = draw.choice((2, 3, 4, 6, 8))
    whole, split_up = (
        schedule.schedule(schedule.split_k(tiles, steps, split), gpu.sms) for split in (1, parts)
    )
    return Question(
        "Split k",
        f"{tiles} tiles of {steps} steps each run on the {gpu.sms} SMs of {gpu.title}, one block "
        f"on each at a time. How many steps does the launch take, how many with k cut into {parts} "
        "parts, and how many tiles of sums are then left to be added up?",
        f"{schedule.ends(whole)}; {schedule.ends(split_up)}; {schedule.sums_stored(split_up)}.",
    )


def rounding(draw: Random) -> Question:
    """A number in a narrower format."""
    form = FORMATS[draw.choice(("float16", "bfloat16", "tf32"))]
    power = form.precision + draw.randint(1, 3)
    x = 2**power + draw.randrange(1, 2 ** (power - 2))
    near, down = (int(round_to(x, form.name, mode)) for mode in ("RN", "RZ"))
    return Question(
        "Rounding",
        f"{form.name} has {form.fraction_bits} bits of fraction. How far apart are its numbers "
        f"around {x}? What does {x} become when it is rounded to nearest, ties to even, and what "
        "when it is rounded toward zero?",
        f"{int(ulp(x, form.name))}; {near}; {down}.",
    )


def two_parts(draw: Random) -> Question:
    """A number as a high and a low part."""
    x = 2**11 * draw.randint(1, 7) + draw.randrange(1, 2**11)
    parts = split(np.float32(x))
    return Question(
        "Two numbers of FP16",
        f"{x} is split for FP16: a high part, rounded to nearest, ties to even, and a low part, "
        "what is left times 2¹¹. What are the two, and is anything lost?",
        f"{int(parts.high)} and {int(parts.low)}: {int(parts.high)} + {int(parts.low)} / 2¹¹ = "
        f"{float(parts.value):.0f}, so "
        + ("nothing is lost." if float(parts.value) == x else "something is."),
    )


KINDS = (
    Kind(operations, ("01",)),
    Kind(limited_by, ("01", "02")),
    Kind(roof, ("02",)),
    Kind(strided, ("03",)),
    Kind(conflicts, ("04",)),
    Kind(resident, ("04", "06")),
    Kind(in_waves, ("05",)),
    Kind(launch, ("06",)),
    Kind(fragment, ("07",)),
    Kind(pieces, ("08",)),
    Kind(ahead, ("09",)),
    Kind(in_parts, ("10",)),
    Kind(rounding, ("11",)),
    Kind(two_parts, ("12",)),
)


def _told(gpu: Device) -> str:
    peak, bandwidth = gpu.peak_of("float16") / 1e12, gpu.dram_bandwidth / 1e9
    return f"{gpu.title}, {_short(peak)} TFLOP/s in FP16 and {_short(bandwidth)} GB/s of DRAM"


def _short(x: float) -> str:
    """A number with three digits, or all those before its point.

    >>> _short(0.12345), _short(989.4), _short(3350.0), _short(2.0)
    ('0.123', '989', '3350', '2')
    """
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}"


TRIES = 200  # to draw sizes that make another question


class Exam(NamedTuple):
    """Two sheets in Markdown: what learners get, and what the teacher keeps."""

    questions: str
    answers: str


def fitting(chapters: Sequence[str]) -> list[Kind]:
    """The kinds of questions of these chapters; ValueError for a chapter that has none."""
    having = sorted({number for kind in KINDS for number in kind.chapters})
    for number in chapters:
        if number not in having:
            raise ValueError(
                f"no question is drawn for chapter {number!r}; use {', '.join(having)}"
            )
    return [kind for kind in KINDS if {*kind.chapters} & {*chapters}]


def drawn(chapters: Sequence[str], seed: str, count: int) -> list[Question]:
    """So many different questions: every kind once before one comes again.

    Raises ValueError for a chapter without questions.
    """
    kinds = fitting(chapters)
    draw = random.Random(f"{','.join(chapters)}\n{seed}")
    chosen: list[Kind] = []
    while len(chosen) < count:
        chosen += draw.sample(kinds, len(kinds))
    found: list[Question] = []
    for kind in sorted(chosen[:count], key=KINDS.index):
        for _ in range(TRIES):
            one = kind.make(draw)
            if one not in found:
                break
        else:
            raise ValueError(f"{count} questions are more than there are; ask for fewer")
        found.append(one)
    return found


def exam(chapters: Sequence[str], seed: str, count: int) -> Exam:
    """Draw both sheets; ValueError for a chapter without questions."""
    questions = drawn(chapters, seed, count)
    names = ", ".join(chapters)
    sheet = [f"# Questions on chapters {names}\n", "Name: ______________________\n"]
    answers = [f"# Answers: chapters {names}, seed {seed!r}\n"]
    for number, one in enumerate(questions, 1):
        sheet.append(f"## {number}. {one.title}\n\n{one.text}\n")
        answers.append(f"## {number}. {one.title}\n\n{one.answer}\n")
    return Exam("\n".join(sheet), "\n".join(answers))


# ------------------------------------------------------------------------- answers and mistakes

SHARED = {(name, one) for some in (GENERAL, KERNEL, HAZARDS) for name, one in some.items()}
OPENING = """\
# Answers and mistakes

For teachers. Under each mistake stand its likely cause, and the question to ask first; the last
hint gives most of the answer away. The names are those in the table of `gemmlab grade`.
"""


def answers(chapters: Sequence[str]) -> str:
    """The sheet of these chapters, in Markdown."""
    tasks = {
        name: get(name).task for name in exercise_modules() if name.partition(".")[0] in chapters
    }
    lines, shared = [OPENING], dict.fromkeys(GENERAL.items())
    for number in chapters:
        own = [task for name, task in tasks.items() if name.partition(".")[0] == number]
        lines.append(f"## {number} · {read(number).title}\n")
        lines += [_exercise(task) for task in own] or ["This chapter has no exercise.\n"]
    for task in tasks.values():
        shared |= dict.fromkeys(pair for pair in task.diagnoses.items() if pair in SHARED)
    lines.append("## Mistakes that many exercises have in common\n")
    lines.append(_mistakes(shared))
    return "\n".join(lines)


def _exercise(task: Task) -> str:
    exercise = get(task.name)
    own = [pair for pair in task.diagnoses.items() if pair not in SHARED]
    others = sorted(task.diagnoses.keys() - dict(own).keys())
    lines = [
        f"### {task.name} {task.title}\n",
        f"Asked: {task.asked} Explained in {task.section}.\n",
        f"{exercise.solution()}\n",
        "#### Mistakes\n",
        _mistakes(own),
    ]
    if others:
        lines.append(f"And of those at the end: {', '.join(f'`{name}`' for name in others)}.\n")
    return "\n".join(lines)


def _mistakes(diagnoses: Iterable[tuple[str, Diagnosis]]) -> str:
    lines = []
    for name, one in diagnoses:
        lines += [f"**`{name}`** {one.cause}\n", f"- Ask: {one.question}"]
        if one.partial:
            lines.append(f"- Last hint:\n\n{_indented(one.partial)}")
        lines.append("")
    return "\n".join(lines)


def _indented(text: str) -> str:
    """A text that belongs to an item of a list."""
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())
