"""What chapter 06 says of counts, times and records, and that its diffs are of kernels that run."""

import inspect
import json
import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, device, kernels, predict, records
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.compiled.forecast.rungs import execute_rung, forecast_rung
from gemmlab.compiled.forecast.steps import steps
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.registers import BANKS
from gemmlab.compiled.sm.result import Reason
from gemmlab.compiled.sm.streams import Effects
from gemmlab.instructions import load_v4
from gemmlab.kernels.simt.shared import warp_tiles
from gemmlab.model import occupancy
from gemmlab.model.pipeline import step
from gemmlab.simt import simulate
from tests.support.paths import ROOT

GPU = device("h200")
BIG = Gemm(4096, 4096, 4096)
WARP = 32
CELLS = json.loads((ROOT / "notebooks/06_register_tiles.ipynb").read_text("utf-8"))["cells"]
SMALLER = Tiling(block=(128, 128, 16), warp=(64, 32), thread=(8, 8))


def recorded(kernel, n=4096, tiling=None):
    return records.find(kernel, Gemm(n, n, n), tiling)


def of_cublas(kernel):
    return recorded(kernel).flops_per_second / recorded(kernels.REFERENCE).flops_per_second


def predicted(kernel, tiling=None, problem=BIG):
    return predict(problem, GPU, kernel, tiling)


def tile(tm, tn):
    return Tiling(block=(16 * tm, 16 * tn, 8), thread=(tm, tn))


# ------------------------------------------------------------------------- title, sections 1 and 2


def test_the_hook():
    times = predicted(kernels.tiled).times
    assert round(1e3 * recorded(kernels.tiled).seconds, 1) == 17.5
    assert round(1e3 * times["dram"], 2) == 0.04
    assert round(1e3 * times["math"], 1) == 2.1
    assert round(1e3 * recorded(kernels.REFERENCE).seconds, 1) == 2.7
    assert round(1e3 * (recorded(kernels.tiled).seconds - times["math"])) == 15
    assert round(100 * of_cublas(kernels.tiled)) == 15
    assert of_cublas(kernels.pipelined) > 1


def test_the_pipe_needs_a_little_longer_than_the_kernel_took():
    e, m = predicted(kernels.tiled), recorded(kernels.tiled)
    assert e.bottleneck == "l1"
    assert 1 < e.seconds / m.seconds < 1.2
    others = [seconds for name, seconds in e.times.items() if name != "l1"]
    assert max(others) < m.seconds / 2


def test_the_pipe_and_the_fma_units():
    assert GPU.flop_per_cycle_per_sm["float32"] / 2 / WARP == 4
    assert GPU.shared_bytes_per_cycle_per_sm == 4 * WARP
    share = recorded(kernels.tiled).flops_per_second / GPU.peak_of("float32")
    assert 0.11 < share < 1 / 8  # "just below that"


def test_where_the_bound_and_the_clock_part():
    ratio = {
        t: recorded(kernels.register_tiled, tiling=tile(*t)).flops_per_second
        / predicted(kernels.register_tiled, tile(*t)).flops_per_second
        for t in ((1, 1), (2, 2), (4, 4), (8, 4), (8, 8))
    }
    assert min(ratio[1, 1], ratio[2, 2]) > 0.95
    assert max(ratio[4, 4], ratio[8, 4]) < 0.6
    assert ratio[8, 8] < 0.5
    two, four = (recorded(kernels.register_tiled, tiling=tile(t, t)) for t in (2, 4))
    assert two.flops_per_second < four.flops_per_second < 1.05 * two.flops_per_second
    bounds = [predicted(kernels.register_tiled, tile(t, t)).flops_per_second for t in (2, 4)]
    assert 1.9 < bounds[1] / bounds[0] < 2
    code = rung_listing(kernels.register_tiled, BIG, tile(2, 2)).instructions
    loads, fmas = (sum(i.name == name for i in code) for name in ("LDS", "FFMA"))
    assert loads < 0.7 * fmas  # "the compiler merges loads that we count one by one"


# ---------------------------------------------------------------------------------------- section 3


@cache
def executed(kernel):
    return execute_rung(BIG, GPU, kernel)


@cache
def in_steps(kernel, left_out=""):
    names = [name for name in Effects().names if name != left_out]
    return steps(executed(kernel), kernel.default.block[2], Effects.only(*names))


def cost(kernel, start):
    """The costs of the lines that begin so."""
    return [c for c in in_steps(kernel).lines if c.line.text.startswith(start)]


def loops(kernel):
    """First and last address of each loop of a rung's code, the longest first."""
    branches = [i for i in rung_listing(kernel, BIG).instructions if i.name == "BRA"]
    found = [(int(i.operands[-1], 16), i.address) for i in branches]
    return sorted((x for x in found if x[0] < x[1]), key=lambda x: x[0] - x[1])


def test_schedulers_and_the_inner_loop():
    assert occupancy.SUBPARTITIONS == 4
    (first, last) = loops(kernels.register_tiled)[1]
    code = rung_listing(kernels.register_tiled, BIG).instructions
    inner = Counter(i.name for i in code if first <= i.address <= last)
    assert (inner["FFMA"], inner["LDS"]) == (64, 16)


def test_a_line_of_the_copy_ends_in_its_load_and_computes_an_address_first():
    code = rung_listing(kernels.register_tiled, BIG)
    copied = "As[i, p] = A[row + i, start + p] if inside else float32(0)"
    pairs = zip(code.instructions, code.lines, strict=True)
    names = [i.name for i, line in pairs if line.text == copied]
    before = names[: names.index("LDG")]
    assert len(before) > 10
    assert not {"FFMA", "LDS", "STS"} & set(before)
    a_step = kernels.register_tiled.default
    words = sum(a_step.block[:2]) * a_step.block[2] // a_step.threads
    assert words == 8  # "eight times in each step"


def test_the_copies_take_nearly_as_many_slots_as_the_fmas():
    a, b = (cost(kernels.register_tiled, f"{name}[") for name in ("As", "Bs"))
    assert len(a) == len(b) == 1
    lines = [c.line.text[:3] for c in in_steps(kernels.register_tiled).lines[:3]]
    assert lines[0] == "acc"
    assert set(lines[1:]) == {"As[", "Bs["}
    fma = in_steps(kernels.register_tiled).used["fma"]
    assert 0.75 < (a[0].share + b[0].share) / fma < 1.1


def test_compiled_code_comes_close_to_the_clock_and_the_bound_does_not():
    seen = recorded(kernels.register_tiled).seconds
    assert predicted(kernels.register_tiled).seconds < 0.5 * seen
    from_code = forecast_rung(BIG, executed(kernels.register_tiled)).seconds
    assert from_code == pytest.approx(seen, rel=0.12)


def test_what_tiled_waits_for():
    run = in_steps(kernels.tiled).run
    middle = run.timeline.reasons[:, run.cycles // 2 :][:, : int(in_steps(kernels.tiled).cycles)]
    waits = Counter(middle[middle >= 0].tolist())
    del waits[Reason.NOT_SELECTED]
    del waits[Reason.BARRIER]  # who waits there waits for warps that wait for one of the two
    assert {reason for reason, _ in waits.most_common(2)} == {Reason.SCOREBOARD, Reason.LSU}
    without = in_steps(kernels.tiled, "lsu").cycles / in_steps(kernels.tiled).cycles
    assert 0.79 < without < 0.84  # "almost a fifth shorter"
    used = in_steps(kernels.tiled).used
    assert 0.2 < used["integer"] < 0.32  # "a quarter of all slots"
    loads = [i for i in rung_listing(kernels.tiled, BIG).instructions if i.name == "LDS"]
    assert len(loads) < 2 * 16  # "loads that the compiler has merged"


def test_register_ports():
    assert BANKS == 2
    ports = [in_steps(k).empty.get("bank", 0) for k in (kernels.register_tiled, kernels.vectorised)]
    assert ports[0] < 0.015 < 0.03 < ports[1]


def test_fmas_of_one_warp_fill_the_slots_of_a_scheduler():
    timeline = in_steps(kernels.register_tiled).run.timeline
    kinds = np.where(
        timeline.issued >= 0, in_steps(kernels.register_tiled).run.kinds[timeline.issued], -1
    )
    fmas = (kinds[::4] == Kind.FMA).any(axis=0)
    assert np.convolve(fmas, np.ones(64), "valid").max() > 56


def test_registers():
    assert 8 * 8 + 8 + 8 == 80
    assert GPU.registers_per_thread == 255 < 16 * 16 + 16 + 16
    assert GPU.registers_per_sm == 65_536
    assert GPU.threads_per_sm // WARP == 64
    assert GPU.fma_latency_cycles * 4 == 16


def test_fewer_warps_are_faster():
    runs = [
        (m.resources["warps_per_sm"], m.flops_per_second)
        for kernel in kernels.LADDER[3:]
        for m in records.load(GPU.name, kernel)
        if m.problem == BIG
    ]
    warps, speeds = np.array(runs).T
    assert np.corrcoef(np.log(warps), speeds)[0, 1] < -0.8
    assert max(runs, key=lambda run: run[1])[0] == warps.min()


# --------------------------------------------------------------------------------- sections 5 and 6


def test_what_wide_loads_do_to_the_slots():
    before, after = (in_steps(k) for k in (kernels.register_tiled, kernels.vectorised))
    kinds = [kind for kind in before.used if kind != "fma"]
    shrunk = {kind: before.used[kind] - after.used.get(kind, 0) for kind in kinds}
    assert max(shrunk, key=shrunk.__getitem__) == "integer"
    assert after.used["shared"] < before.used["shared"] / 2


def test_an_odd_row_length_is_misaligned_and_the_line_is_named():
    from gemmlab import cuda

    def fours_of_a_row(X, Y):
        tile = cuda.shared.array((2, 129), np.float32, alignment=16)
        j = cuda.threadIdx.x
        tile[0, j] = X[j]
        tile[1, j] = X[j]
        cuda.syncthreads()
        if j < 8:
            v = load_v4(tile, 1, 4 * j)
            Y[j] = v[0]

    X, Y = np.ones(32, np.float32), np.zeros(32, np.float32)
    (hazard,) = simulate(fours_of_a_row, 1, 32, X, Y, on_hazard="collect").hazards
    assert hazard.kind == "misaligned"
    assert "load_v4(tile, 1" in hazard.code


def test_vectorised_fills_both_pipes():
    times = predicted(kernels.vectorised).times
    assert predicted(kernels.vectorised).bottleneck == "issue"
    assert times["math"] / times["issue"] == pytest.approx(64 / (64 + 4), rel=0.01)
    assert 0.85 < times["l1"] / times["issue"] < 1
    seconds = recorded(kernels.vectorised).seconds
    assert all(0.45 < times[unit] / seconds < 0.55 for unit in ("l1", "issue"))
    rungs = (kernels.register_tiled, kernels.vectorised)
    assert [f"{recorded(k).flops_per_second / 1e12:.1f}" for k in rungs] == ["24.6", "31.7"]


def test_words_of_a_warps_tile():
    assert kernels.warp_tiled.default.warp == (64, 64)
    assert (64 + 64, 64 * 64) == (128, 4096)
    assert (16 + 128, 16 * 128) == (144, 2048)
    i, j = warp_tiles.first_element(kernels.warp_tiled.default)(np.arange(8))
    assert (len(set(i)), len(set(j))) == (2, 4)  # groups of As and of Bs that a quarter wants


def test_both_changes_of_warp_tiled_help_and_the_bound_stays():
    runs = (
        (kernels.vectorised, None),
        (kernels.warp_tiled, SMALLER),
        (kernels.warp_tiled, None),
    )
    speeds = [recorded(kernel, tiling=t).flops_per_second for kernel, t in runs]
    assert speeds == sorted(speeds)
    bounds = [predicted(kernel, t).flops_per_second for kernel, t in runs]
    assert max(bounds) < 1.02 * min(bounds)  # "hardly moves"
    assert speeds[-1] < 0.7 * predicted(kernels.warp_tiled).flops_per_second
    blocks = np.prod(kernels.warp_tiled.default.grid(BIG))
    in_whole_rounds = -(-blocks // GPU.sms) * GPU.sms
    evenly = GPU.peak_of("float32") * blocks / in_whole_rounds
    assert blocks == 1024
    times = predicted(kernels.warp_tiled).times
    assert BIG.flops / times["math"] == pytest.approx(evenly)
    assert 0.95 < times["math"] / times["issue"] < 1  # "nearly all": FMAs, the rest loads
    assert times["l1"] < 0.6 * times["math"]  # "the pipe has half as much to do"


# --------------------------------------------------------------------------------- sections 7 and 8


def test_the_step_of_a_block():
    one = step(kernels.warp_tiled, GPU)
    assert kernels.warp_tiled.default.block == (128, 128, 16)
    assert one.multiply == 128 * 128 * 16 / WARP / 4
    assert round(one.wait) == 667
    assert one.idle < one.multiply  # so that a copy ahead is there in time
    assert recorded(kernels.warp_tiled).resources["blocks_per_sm"] == 2


def test_a_step_is_the_difference_of_two_products():
    one = step(kernels.tiled, GPU)
    counters = predicted(kernels.tiled, problem=Gemm(16, 16, 16)).counters
    assert one.store == counters["shared_store_wavefronts"]
    assert one.multiply == max(16**3 / 128, counters["shared_load_wavefronts"])
    assert one.idle_share == one.idle / (one.idle + one.multiply)


def test_which_unit_is_busiest_on_each_rung():
    busiest = [predicted(kernel).bottleneck for kernel in kernels.LADDER]
    assert busiest == ["l1"] * 4 + ["issue"] * 3
    bounds = [predicted(kernel).flops_per_second for kernel in kernels.LADDER]
    assert bounds[:5] == sorted(bounds[:5])
    assert max(bounds[4:]) < 1.02 * min(bounds[4:])  # "diamonds nearly stop moving"
    speeds = [recorded(kernel).flops_per_second for kernel in kernels.LADDER]
    assert speeds == sorted(speeds)


def test_small_problems():
    for n in (256, 512):
        tiled = recorded(kernels.tiled, n).flops_per_second
        assert recorded(kernels.pipelined, n).flops_per_second < tiled
        assert recorded(kernels.register_tiled, n).flops_per_second < tiled
    for n in (2048, 4096, 8192):
        assert recorded(kernels.register_tiled, n).flops_per_second > 3 * tiled


def test_what_to_find_in_the_explorer():
    tiles = ((1, 1), (2, 2), (4, 4), (8, 4), (8, 8), (16, 8))
    found = [t for t in tiles if predicted(kernels.register_tiled, tile(*t)).bottleneck == "issue"]
    assert found == [(16, 8)]
    small = Gemm(512, 512, 512)
    assert predicted(kernels.register_tiled, tile(16, 8), small).limiter == "latency"
    assert np.prod(tile(16, 8).grid(small)) == 8


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
    sources = [inspect.getsource(kernel.build) for kernel in kernels.LADDER]
    sources += ["".join(c["source"]) for c in CELLS if c["cell_type"] == "code"]
    known = {plain(line) for text in sources for line in text.splitlines()}
    changed = [line for line in diff.splitlines() if line[:1] in "+-"]
    assert 2 <= len(changed) <= 12
    assert [line for line in changed if plain(line[1:]) not in known] == []
