"""The simulated SM's clock at the marks: the same compiled code, executed and simulated here."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from benchmarks.inside.cases import DEVICE, Case
from gemmlab.compiled.forecast.executed import Executed, execute
from gemmlab.compiled.forecast.kernel import at_its_clock, forecast
from gemmlab.compiled.forecast.rung_listings import arguments
from gemmlab.compiled.forecast.rungs import footprint
from gemmlab.compiled.forecast.whole_gpu import sm_facts
from gemmlab.compiled.sass.compiling import cubin, disassemble, machine_code
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.simulation import simulate
from gemmlab.device import name_of
from gemmlab.kernels.kernel import Kernel

CLOCK = "SR_CLOCKLO"


@dataclass(frozen=True, eq=False)
class Built:
    """A kernel is compiled: its cubin, and its listing."""

    cubin: bytes
    code: Listing

    @property
    def sha256(self) -> str:
        return hashlib.sha256(machine_code(self.cubin)).hexdigest()[:16]


@cache
def built(case: Case, kernel: Kernel) -> Built:
    """Compile a kernel of a case, with marks or without."""
    problem, tiling, capability = case.problem, case.tiling, DEVICE.compute_capability
    options = {
        "launch_bounds": math.prod(kernel.configure(problem, tiling)[1]),
        **kernel.compile(tiling),
    }
    code, taken = cubin(
        kernel.function(problem, tiling, capability), _given(case, kernel),
        name_of(capability), options.pop("max_registers", None), **options,
    )  # fmt: skip
    return Built(code, disassemble(code, taken))


def row_of_marks(case: Case) -> np.ndarray:
    """Make the array that the marks are stored in, of zeros."""
    return np.zeros(case.blocks * case.warps * case.each, np.int64)


def _given(case: Case, kernel: Kernel) -> tuple:
    given = arguments(kernel, case.problem, case.tiling)
    return given if kernel is case.kernel else (*given, row_of_marks(case))


@cache
def executed(case: Case, kernel: Kernel) -> Executed:
    """Execute the blocks of the SM that gets most of them."""
    found = execute(
        built(case, kernel).code, DEVICE,
        *kernel.launch(case.problem, case.tiling, DEVICE), *_given(case, kernel),
        shared_bytes=kernel.dynamic_shared_bytes(case.problem, case.tiling), lenient=True,
    )  # fmt: skip
    return replace(found, footprint=footprint(case.problem, kernel, case.tiling))


def seconds(case: Case, kernel: Kernel) -> float:
    """Forecast the launch of a kernel of a case [s]."""
    return at_its_clock(
        lambda load: forecast(executed(case, kernel), load=load), executed(case, kernel)
    ).seconds


def clocks(case: Case) -> list[list[list[int]]]:
    """Return the cycle of each mark, by block and warp; the first block begins at 0."""
    run = executed(case, case.marked)
    made = at_its_clock(lambda load: forecast(run, load=load), run)
    blocks = run.blocks(True)
    if made.share.blocks > len(blocks):
        raise ValueError(f"{case.name}: {len(blocks)} blocks of {made.share.blocks} were executed")
    result = simulate(
        run.code, blocks, resident=run.share.resident, on=sm_facts(run, made.load),
        window=(0, made.result.cycles + 1),
    )  # fmt: skip
    issued = result.timeline.issued
    reads = np.array([CLOCK in i.operands for i in run.code.instructions])
    # A place for a warp has one block after the other; a block's warps read the clock so often.
    left = [
        [int(t) for t in np.flatnonzero((row >= 0) & reads[np.maximum(row, 0)])] for row in issued
    ]
    found = [[[] for _ in range(run.warps)] for _ in blocks]
    for block, place in enumerate(_places(run, blocks, result)):
        for warp in range(run.warps):
            count = int(reads[blocks[block][warp].instructions].sum())
            row = left[place * run.warps + warp]
            found[block][warp] = row[:count]
            del row[:count]
    if any(left):
        raise ValueError(f"{case.name}: {sum(map(len, left))} marks belong to no block")
    return found


def _places(run: Executed, blocks: list, result) -> list[int]:
    """Return the place of each block: later ones come where one has ended."""
    resident = run.share.resident
    where, ends = list(range(min(resident, len(blocks)))), dict(enumerate(result.block_ends))
    order = sorted(range(len(blocks)), key=lambda block: ends[block])
    for block in order[: max(0, len(blocks) - resident)]:
        where.append(where[block])
    return where
