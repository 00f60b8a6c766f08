"""What chapter 09 says of times, counts and hazards, and that its diffs are of kernels that run."""

import inspect
import json
import linecache
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from gemmlab import Gemm, device, kernels, predict, records
from gemmlab.compiled.forecast.rungs import execute_rung
from gemmlab.compiled.forecast.steps import steps
from gemmlab.compiled.forecast.whole_gpu import sm_facts
from gemmlab.compiled.sm.facts import facts
from gemmlab.course.ch09_software_pipelining import (
    q1_copies_ahead as copies_ahead,
    q4_producer as producer,
)
from gemmlab.course.judging import timed
from gemmlab.explorers.stage_timeline import found as stages_over_time
from gemmlab.here.compilers import assemble
from gemmlab.kernels.simt import pipelined
from gemmlab.model import occupancy
from gemmlab.model.pipeline import Pipeline, blocks_on, launch_seconds, stages_needed, step
from gemmlab.model.transactions import l1_wavefronts
from tests.support.paths import ROOT
from tests.support.ptx import ptx, types

GPU = device("h200")
BIG = Gemm(4096, 4096, 4096)
HALF = Gemm(4096, 4096, 4096, dtype="float16", out_dtype="float32")
CELLS = json.loads((ROOT / "notebooks/09_software_pipelining.ipynb").read_text("utf-8"))["cells"]
SOURCE = {cell["id"]: "".join(cell["source"]) for cell in CELLS}


@cache
def in_turn():
    """A step of the rung that copies and multiplies in turn."""
    return step(kernels.mma_swizzled, GPU, like=HALF)


@cache
def notebook():
    """The names of the chapter's cells that need no learner."""
    scope = {}
    for name in ("imports", "groups", "in-turn", "specialised", "specialised-run", "break"):
        text = SOURCE["hook"] * (name == "imports") + "\n" + SOURCE[name]
        file = f"<chapter 09, {name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), scope)
    return scope


# ------------------------------------------------------------------------- title, sections 1 to 3


def test_the_hook():
    slow, ours = step(kernels.warp_tiled, GPU), in_turn()
    rate = GPU.flop_per_cycle_per_sm
    assert rate["float16"] / rate["float32"] == 16
    assert 0.32 < slow.idle_share < 0.36  # "a third"
    assert 0.7 < ours.idle_share < 0.75  # "nearly three quarters"
    loops = [96 // k.default.block[2] * (s.idle + s.multiply)
             for k, s in ((kernels.warp_tiled, slow), (kernels.mma_swizzled, ours))]  # fmt: skip
    assert 4 < loops[0] / loops[1] < 5
    assert slow.idle == pytest.approx(ours.idle, rel=0.1)  # "as long for one as for the other"


def test_the_numbers_of_a_step():
    assert (round(in_turn().idle), in_turn().multiply) == (987, 384)
    assert stages_needed(in_turn().idle, in_turn().multiply) == 4
    assert (
        Pipeline(9, 2, in_turn().idle, in_turn().multiply).period == in_turn().idle
    )  # "as long as the copy"
    assert 2.4 < in_turn().idle / in_turn().multiply < 2.7  # "two and a half times"


def test_shared_memory_sets_the_time_of_a_product():
    bm, bn, bk = kernels.mma_swizzled.default.block
    alone = 2 * bm * bn * bk / GPU.flop_per_cycle_per_sm["float16"]
    assert alone == 256 < in_turn().multiply


def test_the_time_of_exercise_1_beside_the_rungs():
    text = " ".join(SOURCE["ahead-look"].split())
    assert f"predicted {timed.ms(copies_ahead.SOLUTION)} at" in text
    assert f"takes {1e3 * copies_ahead.BESIDE.seconds:.3g} ms (recorded)" in text


def test_a_loop_that_ends_within_a_turn_is_shorter_than_by_the_formula():
    """Where copies set the pace and the steps are no whole turns; the other two are exact."""
    for stages, exact in ((2, True), (3, False), (4, True)):
        loop = Pipeline(8, stages, in_turn().idle, in_turn().multiply)
        end = loop.schedule()[-1].done
        assert (end == pytest.approx(loop.cycles)) is exact
        assert end <= loop.cycles + 1e-9


def test_four_blocks_do_not_fit():
    (bm, bn, _) = kernels.mma_swizzled.default.block
    assert (bm, bn) == (128, 128)
    assert 4 * bm * bn == 65_536 == GPU.registers_per_sm


def test_three_tiles_in_registers():
    t = kernels.mma_swizzled.default
    tile = 2 * t.block[2] * (t.block[0] + t.block[1])
    assert tile == 16 * 1024
    assert 3 * tile / 4 / t.threads == 48
    assert t.block[0] * t.block[1] / t.threads == 64
    assert (4096 // t.block[2], 256 // t.block[2]) == (128, 8)  # steps


# ------------------------------------------------------------------------------ sections 4 to 6


def ringed(stages):
    """The tile of mma_pipelined with a ring of so many stages."""
    return replace(kernels.mma_pipelined.default, stages=stages)


def test_a_forgotten_wait_is_found():
    scope = notebook()
    assert "No hazard" in scope["hazards_of"](scope["copied"], 1, 32, scope["X"], scope["Y"]).data
    wrong = scope["rewritten"](scope["copied"], "cp_async_wait(0)")
    told = scope["hazards_of"](wrong, 1, 32, scope["X"], scope["Y"]).data
    assert told.startswith("**async-not-waited** at `Y[32 + x] = tile[32 + x]`")


def test_what_stages_cost():
    stage = ringed(1)
    assert kernels.mma_pipelined.shared_bytes(HALF, stage) == 16 * 1024
    assert GPU.shared_bytes_per_sm == 228 * 1024
    assert GPU.shared_bytes_per_block == 227 * 1024
    rings = [ringed(stages) for stages in range(1, 6)]
    resident = {blocks_on(kernels.mma_pipelined, GPU, t, HALF) for t in rings}
    assert resident == {2}  # "two blocks share an SM"
    times = [launch_seconds(kernels.mma_pipelined, GPU, t, HALF) for t in rings]
    assert times[0] > times[1] > times[2] == times[3] == times[4]
    alone = [Pipeline(128, s, in_turn().idle, in_turn().multiply).cycles for s in (1, 4)]
    assert times[0] / times[4] < alone[0] / alone[1]


def test_two_numbers_from_two_records_tell_the_third():
    times = {s: records.find(kernels.mma_pipelined, HALF, ringed(s)).seconds for s in range(1, 6)}
    at_best = {s: launch_seconds(kernels.mma_pipelined, GPU, ringed(s), HALF) for s in times}
    gained = [1 - t[2] / t[1] for t in (times, at_best)]
    assert all(0.26 < gain < 0.3 for gain in gained)  # "nearly three tenths, as promised"
    assert 0 < 1 - times[3] / times[2] < 0.03  # "the third hardly anything"
    assert times[5] == pytest.approx(times[3], rel=0.01)
    product, copy = times[4] / 2, times[1] - times[4] / 2
    assert 1.8 < times[4] / at_best[4] < 2
    assert (
        1.3 < copy / product / (at_best[4] / times[4]) * in_turn().multiply / in_turn().idle < 1.5
    )
    assert max(2 * product, copy) == pytest.approx(times[2], rel=0.03)


def test_copies_go_through_the_pipe_that_hands_out_operands():
    for kernel in (kernels.mma_swizzled, kernels.mma_pipelined):
        one = step(kernel, GPU, like=HALF)
        assert (one.load, one.store, one.multiply) == (128 + 64, 128, 384)
    busy = one.load + one.store + one.multiply
    assert (busy, f"{busy / one.multiply:.2f}") == (704, "1.83")
    seen = records.find(kernels.mma_pipelined, HALF).seconds
    longer = seen / launch_seconds(kernels.mma_pipelined, GPU, ringed(4), HALF)
    assert busy / one.multiply - 1 > (longer - 1) / 2  # "most of that"
    allowed = predict(HALF, GPU, kernels.mma_pipelined)
    assert allowed.limiter == "shared memory"
    assert 1 < seen / allowed.seconds < 1.05  # "within a twentieth"
    rows = np.arange(32) // 4 * 2 * HALF.k, np.arange(32) // 16 * 2 * HALF.n
    along = np.arange(32) % 4 * 16, np.arange(32) % 16 * 16
    everyone = np.ones(32, bool)
    assert [l1_wavefronts(r + x, everyone, 16) for r, x in zip(rows, along, strict=True)] == [8, 4]


def test_a_word_takes_some_thirty_cycles_from_shared_memory():
    assert 20 < facts("h200").shared_latency < 40


@cache
def in_steps(kernel):
    return steps(execute_rung(BIG, GPU, kernel), kernel.default.block[2])


def test_what_copies_ahead_do_to_the_slots():
    before, after = (in_steps(k) for k in (kernels.warp_tiled, kernels.pipelined))
    both = [{**s.used, **s.empty} for s in (before, after)]
    shrunk = {name: both[0][name] - both[1].get(name, 0) for name in both[0]}
    assert set(sorted(shrunk, key=shrunk.__getitem__)[-2:]) == {"scoreboard", "integer"}
    assert after.empty["scoreboard"] < 0.03
    left = after.used["integer"] * after.cycles / (before.used["integer"] * before.cycles)
    assert left == pytest.approx(1 / 5, abs=0.02)  # "about a fifth is left"
    assert f"{before.cycles / after.cycles - 1:.0%}" == "43%"


def test_the_gain_that_the_picture_promises_and_the_clock():
    assert kernels.pipelined.default.stages == 3
    promised = 1 / (1 - step(kernels.warp_tiled, GPU).idle_share)
    assert 1.45 < promised < 1.55  # "half of the speed"
    runs = [records.find(k, BIG) for k in (kernels.warp_tiled, kernels.pipelined)]
    assert 1.2 < runs[0].seconds / runs[1].seconds < promised
    assert f"{runs[0].seconds / runs[1].seconds - 1:.0%}" == "33%"
    assert "it gains 33 %" in " ".join(SOURCE["gain-read"].split())
    assert [run.tiling.block[:2] for run in runs] == [(128, 128), (128, 256)]
    assert runs[0].resources["blocks_per_sm"] == 2


# -------------------------------------------------------------------------------------- section 7


def test_each_stage_of_the_kernel_is_right_and_moves_its_counter():
    scope = notebook()
    specialised, launched = scope["specialised"], scope["launched"]
    for kernel, stages, threads, barriers in (
        (scope["in_turn"], 1, 128, 9),
        (specialised(1), 1, 256, 1),
        (specialised(3), 3, 256, 1),
    ):
        report, right = launched(kernel, stages, threads)
        assert right
        assert report.counters["barriers"] == barriers


@pytest.mark.parametrize(
    ("line", "instead", "kind", "words"),
    [
        ("mbarrier_wait(empty, t % S, (t // S & 1) ^ 1)", "pass", "async-not-waited", "overwrites"),
        ("mbarrier_arrive(empty, t % S)", "pass", "deadlock", "of empty[0] is complete"),
        ("mbarrier_wait(full, t % S, t // S & 1)", "pass", "uninitialised-read", "nobody has"),
        ("fence_mbarrier_init()", "pass", "missing-fence", "may not see full[0]"),
        ("mbarrier_init(empty, s, 1)", "mbarrier_init(empty, s, 2)", "deadlock",
         "lacks 1 of 2 arrivals"),
    ],
)  # fmt: skip
def test_a_missing_line_gets_the_report_that_the_chapter_names(line, instead, kind, words):
    assert line in SOURCE["break"] + SOURCE["break-tasks"]
    told = notebook()["broken"](line, instead).data
    assert told.startswith(f"**{kind}** at ")
    assert words in told


def test_the_producers_exercise_has_the_chapters_functions():
    told = SOURCE["ex4-given"].replace('    "', '    """').replace('."\n', '."""\n')
    for function in (producer.multiply_tiles, producer.store_tile):
        assert inspect.getsource(function.py_func).strip() in told
    assert "A_BYTES, B_BYTES = 64 * 128, 32 * 128" in told
    assert (producer.A_BYTES, producer.B_BYTES) == (64 * 128, 32 * 128)


@pytest.mark.ptxas
def test_a_gpu_could_run_the_chapters_kernels():
    """They compile for Hopper, and their sums stay in registers."""
    scope, its = notebook(), types()
    maps = its.Array(its.uint8, 1, "C")
    signature = maps, maps, its.int64, its.Array(its.float32, 2, "C")
    for kernel in (scope["in_turn"], scope["specialised"](3), producer.build_producer(4)):
        _, taken = assemble(ptx(kernel, signature, (9, 0)), "sm_90")
        assert taken.local_bytes == 0


def test_who_waits_for_whom():
    found = stages_over_time("warp_specialised")
    turns, products = found.turns, found.roles["Tensor Cores"]
    steps_of_a_tile = 8
    assert 1500 < turns[0].full - turns[0].asked < 1600
    assert products[0].start > turns[0].full
    assert all(turn.read <= turn.full + 2 for turn in turns[:steps_of_a_tile])  # none is *full*
    arrived = [after.full - before.full for before, after in pairwise(turns[: found.stages])]
    assert np.mean(arrived) == pytest.approx(870, abs=5)  # of those that are asked for at once
    first, _, last = products[:3]
    whole = last.end - first.start
    assert whole == pytest.approx(1024 * steps_of_a_tile, rel=0.02)  # "next to no gap"
    for consumer in ("consumer 1", "consumer 2"):  # "again and again"
        waits = [one for one in found.roles[consumer] if one.what == "wait"]
        assert sum(first.start < one.start < last.end and one.start < one.end for one in waits) >= 3
    one = min(execute_rung(HALF, GPU, kernels.warp_specialised).items())[1]
    alone = sm_facts(replace(one, together=1.0)).l2_bytes_per_cycle
    assert (48 << 10) / alone == pytest.approx(1160, abs=5)  # "alone"

    gap = products[3].start - last.end
    assert gap > 4000  # "more than 4,000 cycles"
    stored = next(one for one in found.roles["consumer 1"] if one.what == "store")
    after = [turn for turn in turns if turn.asked < stored.end < turn.read]
    assert len(after) == found.stages  # "as many tiles as there are stages"
    four = products[3]
    # Products read shared memory through the pipe by which the other consumer stores its tile.
    assert 1 <= (four.end - four.start) / (4 * 1024) < 1.05  # "without a gap"


def test_the_ladder_of_pipelines():
    timed = {m.kernel: m for m in records.load(GPU.name) if m.problem == HALF}
    climbed = (kernels.mma_swizzled, kernels.mma_pipelined, kernels.mma_tuned)
    climbed += (*kernels.TENSOR_CORE_TMA, *kernels.HOPPER)
    speeds = [records.find(k, HALF).flops_per_second for k in climbed if k.name in timed]
    assert len(speeds) >= 4
    gains = [after / before for before, after in pairwise(speeds)]
    assert gains[0] == max(gains)
    assert 1.7 < gains[0] < 2  # "nearly twice the speed"
    one_stage = records.find(kernels.mma_pipelined, HALF, ringed(1))
    assert speeds[0] < one_stage.flops_per_second < speeds[1]


def test_registers_of_two_consumers():
    bm, bn, _ = kernels.warp_specialised.default.block
    assert (bm, bn) == (2 * 64, 256)
    assert 64 * bn // 128 == 128  # "an accumulator takes 128 registers of each thread"
    assert GPU.registers_per_sm == 65_536
    assert occupancy.SUBPARTITIONS == 4


# ------------------------------------------------------------------------------------------- diffs

DIFFS = [
    (cell["id"], diff)
    for cell in CELLS
    if cell["cell_type"] == "markdown"
    for diff in re.findall(r"```diff\n(.*?)```", "".join(cell["source"]), re.S)
]


def plain(line):
    return " ".join(line.partition("#")[0].split())


@pytest.mark.parametrize(("cell", "diff"), DIFFS, ids=[cell for cell, _ in DIFFS])
def test_a_diff_is_short_and_its_lines_stand_in_kernels(cell, diff):
    rungs = (*kernels.LADDER, *kernels.TENSOR_CORE, *kernels.HOPPER, *kernels.HOPPER_CLUSTERS)
    sources = [inspect.getsource(kernel.build) for kernel in rungs]
    sources += [text for text in SOURCE.values() if not text.startswith("#")]
    known = {plain(line) for text in sources for line in text.splitlines()}
    changed = [line for line in diff.splitlines() if line[:1] in "+-"]
    assert 2 <= len(changed) <= 12
    assert [line for line in changed if plain(line[1:]) not in known] == []


def test_the_diff_of_operands_is_of_pipelined():
    (diff,) = (diff for cell, diff in DIFFS if cell == "inner")
    text = inspect.getsource(pipelined.build)
    assert all(line[1:].strip() in text for line in diff.splitlines() if line[:1] == "+")


def test_the_lines_of_steps_ahead_are_those_of_the_tables_drawn():
    """The sketch of a ring of four: in step t, slot t holds the tile, the one before is asked."""
    rows = re.findall(r"^step (\d) +(.*)$", SOURCE["ring"], re.M)
    for step_, cells in rows:
        slots = re.split(r"(?<=\S) {2,}|(?<=asked for) ", cells.strip())
        assert len(slots) == 4
        assert slots[int(step_)] == "multiply"
        assert slots[int(step_) - 1] == "asked for"
    assert np.all([len(rows) == 3])
