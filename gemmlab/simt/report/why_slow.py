"""Why a kernel may be slow, in words and with the line: rules over the counters of a launch.

Each rule is a function of a report that returns what it finds. A rule speaks where what it is about
has a good share of all that the kernel does, so that what costs next to nothing is not named.
"""

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from gemmlab.model.counters import DIVISION, FLOAT64, Counters
from gemmlab.model.transactions import SECTOR, WARP
from gemmlab.simt.numbers.lanes import Dim3
from gemmlab.simt.syntax.source import Source

MOST = 4  # reasons that are told of a kernel
TINY = 32  # warp instructions: a launch with fewer takes as long as one that does nothing
PART = 0.2  # of what a kernel does: a line with less is not what makes it slow
# GPUs for graphics have one unit for float64 for 64 of float32: then 1/64 of the instructions takes
# as long as all others.
PART_FLOAT64 = 1 / 64
# Instructions that `//` or `%` of integers becomes where an addition is one or two: what compiled
# code for an H200 executes more, 36 to 48, of numbers below 2³²; larger ones take more.
DIVIDING = 40
PART_DIVIDING = 0.25  # of the instructions that are there with those of divisions
PART_IDLE = 0.75  # of the threads: what a sort or a sum leaves idle by design is less
TURNS = 4  # executions by a warp, on average: of a line in a loop
TWICE = 2  # times what is needed: less may be an array that begins between two sectors
LONG = 20_000  # instructions of a block: a few times the launch itself, on 4 schedulers
FEW = 40  # SMs of a T4, the smallest GPU that the course knows
LONG_WARP = 500  # instructions of a warp: those of a loop
SMALL_BLOCK = 64  # threads; an SM holds 32 blocks and 2048 threads, so that fewer leave it empty
OWN = Path(__file__).parents[1] / "cuda"  # what Numba brings along, and nobody can change
MANY = 1 << 14  # threads of a launch: those of a few SMs; a smaller one has other reasons


@dataclass(frozen=True)
class Reason:
    """A reason why a kernel may be slow.

    kind : a name of the rule; line, code, file : where; line 0 for what belongs to no line
    text : in a sentence; part : of what the kernel does, from which the order follows
    """

    kind: str
    line: int
    code: str
    file: str
    text: str
    part: float

    def __str__(self) -> str:
        place = f"\n  {self.file}, line {self.line}: {self.code}" if self.line else ""
        return f"{self.kind}: {self.text}{place}"


class Counted(Protocol):
    """Rules ask this of a report (`report.report.Report`)."""

    source: Source
    grid: Dim3
    block: Dim3
    by_file: Mapping[str, Mapping[int, Counters]]
    sources: Mapping[tuple[str, int], Source]
    types: Mapping[str, np.dtype]
    numbers: Mapping[str, np.dtype]
    marks: Mapping[tuple[str, int, str], int]
    idle: int | None
    launches: int
    sampled: int | None

    @property
    def counters(self) -> Counters: ...

    @property
    def instructions(self) -> Counters: ...


def why_slow(report: Counted) -> tuple[Reason, ...]:
    """Return what may make a kernel slow, the weightiest first; nothing of a tiny launch."""
    if report.instructions["inst_executed"] < TINY * report.launches:
        return ()
    found = [reason for rule in RULES for reason in rule(report)]
    if OWN in Path(report.source.file).parents:
        found = [reason for reason in found if reason.line]
    return tuple(sorted(found, key=lambda reason: -reason.part)[:MOST])


def _blocks(report: Counted) -> int:
    """Count the blocks of which the counters tell."""
    return (report.sampled or math.prod(report.grid)) * report.launches


def _lines(report: Counted) -> Iterator[tuple[Source, int, Counters]]:
    """Yield all lines with what was counted there."""
    for source in report.sources.values():
        if OWN in Path(source.file).parents:  # a random number, a reduction
            continue
        for line, counts in report.by_file[source.file].items():
            if 0 <= line - source.first_line < len(source.lines):
                yield source, line, counts


def _reason(kind: str, source: Source, line: int, text: str, part: float) -> Reason:
    return Reason(kind, line, source.code(line), source.file, text, part)


def _of_launch(kind: str, text: str, part: float) -> Reason:
    return Reason(kind, 0, "", "", text, part)


def _heaviest(found: list[Reason]) -> list[Reason]:
    """Return the reason of one kind with the largest part; one line stands for all."""
    return sorted(found, key=lambda reason: -reason.part)[:1]


# ------------------------------------------------------------------------------------------ rules


def float64(report: Counted) -> list[Reason]:
    """Arithmetic in float64 where no array is: a literal makes it so, or an integer beside it."""
    if any(kind.char in "dD" for kind in report.types.values()):
        return []
    total = report.instructions["inst_executed"]
    found = []
    for source, line, _ in _lines(report):
        count = report.marks[source.file, line, FLOAT64]
        found.append((count / total if total else 0, source, line))
    part = sum(share for share, *_ in found)
    if part < PART_FLOAT64:
        return []
    _, source, line = max(found, key=lambda item: item[0])
    text = (
        f"{part:.0%} of the instructions are float64, and no array is: "
        f"{_cause(report, source, line)}; half as fast as float32 on an H100 or H200, 32 or 64 "
        "times slower on most GPUs"
    )
    return [_reason("float64", source, line, text, part)]


def _cause(report: Counted, source: Source, line: int) -> str:
    """Say what makes a float64: literals of the line, else of the kernel, a number, an integer."""
    literals = [node for node in _literals(source.tree) if node.lineno == line]
    where, told = "", literals
    if not literals:
        told = list(_literals(source.tree))[:1]
        where = f" in line {told[0].lineno}" if told else ""
    if told:
        values = list(dict.fromkeys(repr(node.value) for node in told))
        many = f"the literals {' and '.join(values[:2])} are" if values[1:] else ""
        return f"{many or f'the literal {values[0]}{where} is'}, np.float32({values[0]}) is not"
    for name, kind in report.numbers.items():
        if kind == np.float64:
            return f"the argument {name} is, np.float32({name}) is not"
    return "an integer with a float32 makes one, np.float32(n) does not; so does a quotient of two"


def _literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the literals of floats, without those that are made a float32 or less at once."""
    if isinstance(tree, ast.Call):
        named = getattr(tree.func, "attr", getattr(tree.func, "id", ""))
        if named in ("float32", "float16"):
            return
    if isinstance(tree, ast.Constant) and isinstance(tree.value, float):
        yield tree
    for node in ast.iter_child_nodes(tree):
        yield from _literals(node)


def strided(report: Counted) -> list[Reason]:
    """Loads and stores that touch twice the sectors, or more, that their bytes would fill.

    A warp of a block that is narrower than it stands in several rows, each with its own sectors.
    """
    found = []
    rows = WARP // min(WARP, report.block[0]) if report.block[1] > 1 else 1
    total = sum(report.counters[f"global_{op}_sectors"] for op in ("load", "store"))
    for source, line, counts in _lines(report):
        far = {}
        for op in ("load", "store"):
            sectors, requests = counts[f"global_{op}_sectors"], counts[f"global_{op}_requests"]
            least = max(requests * rows, math.ceil(counts[f"global_{op}_bytes"] / SECTOR))
            if requests and sectors >= TWICE * least:
                far[op] = sectors, requests, least
        sectors, requests, least = map(sum, zip(*far.values(), strict=True)) if far else (0, 1, 0)
        if not far or (sectors - least) / total < PART:
            continue
        text = (
            f"{sectors / requests:.1f} sectors for each {' and '.join(far)} of a warp, where "
            f"{least / requests:.1f} would do: neighbouring threads are not at neighbouring "
            "elements; let threadIdx.x count along the last dimension, or go through shared memory"
        )
        part = (sectors - least) / total
        found.append(_reason("strided access", source, line, text, part))
    return sorted(found, key=lambda reason: -reason.part)[:2]


def same_element(report: Counted) -> list[Reason]:
    """Stores in a loop by which all threads of a warp, and so all of the grid, do the same work."""
    found = []
    total = report.instructions["inst_executed"]
    warps = _blocks(report) * math.ceil(math.prod(report.block) / WARP)
    for source, line, counts in _lines(report):
        requests, sectors = counts["global_store_requests"], counts["global_store_sectors"]
        if sectors != requests or counts["global_store_bytes"] <= SECTOR * sectors:
            continue
        if requests >= TURNS * warps:
            text = (
                "all threads of a warp store to one element, again and again: each does the work "
                "of all; give each its own elements, by cuda.grid(1) and cuda.gridsize(1)"
            )
            found.append(_reason("same work", source, line, text, requests / total))
    return _heaviest(found)


def bank_conflicts(report: Counted) -> list[Reason]:
    """Accesses to shared memory that need as many passes again because lanes share a bank."""
    found = []
    passes = sum(report.counters[f"shared_{op}_wavefronts"] for op in ("load", "store", "atomic"))
    for source, line, counts in _lines(report):
        requests = sum(counts[f"shared_{op}_requests"] for op in ("load", "store", "atomic"))
        conflicts = counts["shared_bank_conflicts"]
        if conflicts and conflicts >= requests and conflicts / passes >= PART:
            text = (
                f"{conflicts / requests:.1f} for each access of a warp to shared memory: its lanes "
                "meet in one bank; where they go down a column, let rows be one element longer"
            )
            found.append(_reason("bank conflicts", source, line, text, conflicts / passes))
    return _heaviest(found)


def divergence(report: Counted) -> list[Reason]:
    """Lines where fewer than half of a warp's threads are at work, with much of the work."""
    found = []
    total = report.instructions["inst_executed"]
    threads = math.prod(report.block)
    full = threads / math.ceil(threads / WARP)
    for source, line, counts in _lines(report):
        if not counts["inst_executed"]:
            continue
        lanes = counts["thread_inst_executed"] / counts["inst_executed"]
        part = counts["inst_executed"] / total * (1 - lanes / full)
        if lanes < full / 2 and part >= PART:
            text = (
                f"{lanes:.1f} of a warp's {full:.3g} threads are at work here: the others wait "
                "where a branch or a loop has sent them another way"
            )
            found.append(_reason("divergence", source, line, text, part))
    return _heaviest(found)


def integer_division(report: Counted) -> list[Reason]:
    """Divisions of integers in a loop, by what the compiler does not know."""
    found = []
    total = report.instructions["inst_executed"]
    warps = _blocks(report) * math.ceil(math.prod(report.block) / WARP)
    for source, line, _ in _lines(report):
        count = report.marks[source.file, line, DIVISION]
        part = count * DIVIDING / (total + count * DIVIDING)
        if count >= TURNS * warps and part >= PART_DIVIDING and _divides(source, line):
            text = (
                f"`//` and `%` of integers are no instruction of a GPU: each becomes {DIVIDING} or "
                f"more, {part:.0%} of all; a constant divisor is faster, a power of two a shift"
            )
            found.append(_reason("integer division", source, line, text, part))
    return _heaviest(found)


def _divides(source: Source, line: int) -> bool:
    """Say whether a line divides by something else than a number that stands there."""
    return any(
        node.lineno == line
        and isinstance(node.op, (ast.FloorDiv, ast.Mod))
        and not isinstance(node.right if isinstance(node, ast.BinOp) else node.value, ast.Constant)
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.BinOp, ast.AugAssign))
    )


def idle_threads(report: Counted) -> list[Reason]:
    """Threads that end when they have looked at their index: three of four, or more."""
    threads = math.prod(report.block) * _blocks(report) // report.launches
    idle = (report.idle or 0) // report.launches
    if threads <= WARP or idle == threads or idle < PART_IDLE * threads:
        return []
    text = (
        f"of {threads:,} threads {idle:,} did nothing but test their index: fewer or smaller "
        "blocks do the same"
    )
    return [_of_launch("idle threads", text, idle / threads)]


def few_blocks(report: Counted) -> list[Reason]:
    """Fewer blocks than a GPU has SMs, each with a lot to do."""
    blocks = math.prod(report.grid)
    done = report.instructions["inst_executed"] / _blocks(report)
    if blocks >= FEW or done < LONG:
        return []
    text = (
        f"{blocks:,} block{'s' * (blocks > 1)} for the 132 SMs of an H200, or the {FEW} of a T4: "
        "share the work among more blocks"
    )
    return [_of_launch("few blocks", text, 1 - blocks / FEW)]


def small_blocks(report: Counted) -> list[Reason]:
    """Blocks of so few threads that an SM cannot be full, or whose last warp is mostly empty."""
    threads, blocks = math.prod(report.block), math.prod(report.grid)
    padded = math.ceil(threads / WARP) * WARP
    done = report.instructions["inst_executed"] / _blocks(report)
    if threads <= WARP // 2 and done >= LONG_WARP:
        text = (
            f"blocks of {threads} thread{'s' * (threads > 1)} leave the other {WARP - threads} of "
            "a warp without work, which take the same time: use multiples of 32"
        )
        return [_of_launch("small blocks", text, 1 - threads / WARP)]
    if threads * blocks < MANY:
        return []
    if threads < SMALL_BLOCK:
        text = (
            f"blocks of {threads} threads leave an SM half empty, which holds at most 32 blocks, "
            "and 2,048 threads: use blocks of 128 or 256"
        )
        return [_of_launch("small blocks", text, 1 - threads / SMALL_BLOCK)]
    if threads <= 0.75 * padded:
        text = f"the last warp of each block has {threads % WARP} threads of {WARP}: use a multiple"
        return [_of_launch("small blocks", text, 1 - threads / padded)]
    return []


RULES: tuple[Callable[[Counted], list[Reason]], ...] = (
    float64, strided, same_element, bank_conflicts, divergence, integer_division, idle_threads,
    few_blocks, small_blocks,
)  # fmt: skip
