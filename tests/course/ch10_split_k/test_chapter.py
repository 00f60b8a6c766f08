"""What chapter 10 says of splits, sums and shares, against records, models and sources."""

import inspect
import json
import re
from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from gemmlab import Gemm, device, kernels, predict, records
from gemmlab.kernels.simt import pipelined
from gemmlab.kernels.split_k.shared import mainloop as along_k
from gemmlab.model import schedule
from gemmlab.model.quantization import quantization
from gemmlab.model.schedule import sharing
from gemmlab.simt import simulate
from tests.course.answers import cell
from tests.support.paths import ROOT

GPU = device("h200")
SMALL, TALL = Gemm(64, 64, 8192), Gemm(1024, 1024, 8192)
GRADIENT = Gemm(768, 768, 16384, layout="tn")
CELLS = {
    one["id"]: "".join(one["source"])
    for one in json.loads((ROOT / "notebooks/10_split_k.ipynb").read_text("utf-8"))["cells"]
}


def time(kernel, problem, split=None):
    tiling = kernel.choose(None, problem, GPU)
    if split is not None:
        tiling = replace(tiling, split=split)
    return records.find(kernel, problem, tiling).seconds


def splits(problem, kernel=kernels.split_k):
    """Parts -> recorded time, in the tile that the kernel suggests."""
    tile = kernel.suggest(problem, GPU).unsplit
    found = (m for m in records.load("h200", kernel) if m.problem == problem)
    return {m.tiling.split: m.seconds for m in found if m.tiling.unsplit == tile}


def bound(problem, split, kernel=kernels.split_k):
    tiling = replace(kernel.suggest(problem, GPU), split=split)
    return sharing(kernel.name, problem, GPU, tiling)


# ------------------------------------------------------------------------ title, sections 1 and 2


def test_the_hook():
    ours, theirs = time(kernels.split_k, SMALL, 1), time(kernels.cublas, SMALL)
    assert kernels.split_k.suggest(SMALL, GPU).block[:2] == (SMALL.m, SMALL.n)
    text = " ".join(CELLS["title"].split())
    assert f"takes **{1e6 * ours:.0f} µs** for the product" in text
    assert f"takes **{1e6 * theirs:.0f} µs** on the same GPU" in text
    assert f"it is {ours / theirs:.0f} times as fast" in text
    assert GPU.sms == 132


def test_no_unit_comes_close_to_latency():
    alone = replace(kernels.split_k.suggest(SMALL, GPU), split=1)
    times = predict(SMALL, GPU, kernels.split_k, alone).times
    assert max(times, key=times.get) == "latency"
    assert max(t for name, t in times.items() if name != "latency") < 0.05 * times["latency"]


def test_four_parts_take_a_quarter():
    assert [schedule.ends(schedule.schedule(schedule.split_k(1, 12, s), 4)) for s in (1, 4)] == [
        12,
        3,
    ]


def test_sums_of_eight_parts_are_as_many_bytes_as_the_operands_and_fit_into_l2():
    sums = 8 * TALL.m * TALL.n * 4
    assert 2 * sums == sum(TALL.array_bytes[:2])
    assert sums < GPU.l2_bytes
    assert round(GPU.l2_bytes / 1e6) == 63


def changed(name):
    """The lines of a diff, without their comments: (those taken away, those added)."""
    (text,) = re.findall(r"```diff\n(.*?)```", CELLS[name], re.DOTALL)
    lines = text.splitlines()
    assert sum(line[:1] in "+-" for line in lines) <= 12
    return tuple(
        [line[1:].partition("#")[0].strip() for line in lines if line.startswith(sign)]
        for sign in "-+"
    )


def test_the_diff_of_split_k_is_of_sources_that_run():
    before = inspect.getsource(pipelined.build)
    after = inspect.getsource(kernels.split_k.build) + inspect.getsource(along_k.summing)
    taken, added = changed("rung")
    assert [line for line in taken if line not in before] == []
    assert [line for line in added if line not in after] == []


def test_the_diff_of_stream_k_is_of_sources_that_run():
    taken, added = changed("fix-up")
    before, after = map(inspect.getsource, (kernels.split_k.build, kernels.stream_k.build))
    assert [line for line in taken if line not in before] == []
    assert [line for line in added if line not in after] == []


# -------------------------------------------------------------------------------------- section 3


@pytest.mark.parametrize(("problem", "most"), [(TALL, 0.05), (GRADIENT, 0.07)])
def test_one_recorded_number_gives_the_other_splits(problem, most):
    seen = splits(problem)
    factor = seen[1] / bound(problem, 1).seconds
    errors = [abs(factor * bound(problem, s).seconds / seen[s] - 1) for s in seen if s > 1]
    assert len(errors) >= 8
    assert max(errors) < most


def test_low_points_are_where_waves_fill_and_the_first_is_the_lowest():
    seen = splits(TALL)
    assert min(seen, key=seen.get) == 4
    assert seen[4] < seen[8] < seen[12] < seen[16]
    assert seen[5] > 1.5 * seen[4]
    assert [bound(TALL, s).waves for s in (4, 5, 8, 12, 16)] == [1, 2, 2, 3, 4]


def test_the_launch_takes_a_microsecond_and_a_half():
    assert round(1e6 * GPU.launch_interval, 1) == 1.5


def test_the_small_product():
    seen = splits(SMALL)
    factor = seen[1] / bound(SMALL, 1).seconds
    off = {s: t / (factor * bound(SMALL, s).seconds) for s, t in seen.items()}
    assert max(off[s] for s in (2, 4)) < 1.06
    assert all(off[s] > 1.1 for s in seen if s >= 8)  # "from 8 parts on"
    least = min(seen.values())
    assert round(1e6 * least) == 14
    assert least < time(kernels.cublas, SMALL)
    found = bound(SMALL, 131)
    assert (round(1e6 * found.product), round(1e6 * found.sums)) == (1, 2)
    assert round(1e6 * (seen[131] - found.seconds)) == 11
    assert kernels.split_k.suggest(SMALL, GPU).split == 131
    assert 1 < seen[131] / least < 1.03
    assert seen[131] < seen[264] < seen[512]


def test_what_to_find_in_the_explorer():
    q = quantization(TALL, GPU, (128, 256), per_sm=1, split=5)
    assert (q.tiles, q.tail, GPU.sms - q.tail) == (160, 28, 104)
    assert round(100 * (GPU.sms - q.tail) / (2 * GPU.sms)) == 39
    p, tiling = Gemm(64, 64, 1024), kernels.split_k.tilings[-1]
    sectors = {}
    for split in (1, 2, 17, 18, 19):
        counters = kernels.split_k.work(p, replace(tiling, split=split)).counters
        sectors[split] = counters["global_load_sectors"] + counters["global_store_sectors"]
    assert sectors[1] == 17920
    assert sectors[2] - sectors[1] == 2 * 512
    assert sectors[18] < 2 * sectors[1] < sectors[19]
    large = Gemm(4096, 4096, 8192)
    assert kernels.split_k.suggest(large, GPU).split == 1
    assert 3.8 < quantization(large, GPU, (128, 256), per_sm=1).tiles / GPU.sms < 4
    assert round(4 * 4096**2 / 1e6) == 67


# -------------------------------------------------------------------------------------- section 4


def test_atomics_beside_the_workspace():
    ways = {p: [splits(p, k) for k in kernels.SPLIT_K[:2]] for p in (TALL, SMALL)}

    def speed(problem, split):
        workspace, atomic = (seen[split] for seen in ways[problem])
        return workspace / atomic

    assert all(0.97 < speed(*few) < 1.04 for few in ((TALL, 4), (SMALL, 33)))
    assert speed(SMALL, 131) < 0.85
    assert speed(SMALL, 512) == pytest.approx(0.5, abs=0.03)


def in_each_order():
    """What the cell `order-run` computes: each element's results, and each matrix's mean error."""
    known = cell(CELLS["imports"], cell(CELLS["hook"], {}))
    found = cell(CELLS["order-run"].partition("one, four")[0], known)
    return found["different"], found["errors"]


def test_most_elements_have_two_or_three_results_and_no_order_is_better(capsys):
    different, errors = in_each_order()
    counts = Counter(different)
    assert counts[2] + counts[3] > len(different) / 2
    assert max(different) <= 12
    assert max(errors) < 1.1 * min(errors)
    assert "elements: 2 results\n" in capsys.readouterr().out


def test_the_workspace_gives_the_same_bits_and_others_for_another_split():
    from gemmlab.course.ch10_split_k.q1_part_of_k import build_parts

    q = Gemm(16, 16, 256)
    a, b, _ = q.operands()

    def parts(split):
        w = np.empty((split, 16, 16), np.float32)
        simulate(build_parts(8), (2, 2, split), (8, 8), a, b, w)
        total = np.zeros((16, 16), np.float32)
        for part in w:
            total += part
        return total

    assert np.array_equal(parts(4), parts(4))
    assert (parts(4) != parts(1)).mean() > 0.5


def test_float32_sums_depend_on_the_order():
    parts = np.array([1.0, 2.0**-24, 2.0**-24, -1.0], np.float32)
    sums = set()
    for order in permutations(parts):
        total = np.float32(0)
        for part in order:
            total = np.float32(total + part)
        sums.add(float(total))
    assert len(sums) > 1


# --------------------------------------------------------------------------------- sections 5 to 7


def test_three_ways_to_deal_out_five_tiles():
    deals = schedule.split_k(5, 8), schedule.split_k(5, 8, 2), schedule.stream_k(5, 8, 4)
    placed = [schedule.schedule(blocks, 4) for blocks in deals]
    assert [schedule.ends(p) for p in placed] == [16, 12, 10]
    assert [schedule.sums_stored(p) for p in placed] == [0, 10, 6]
    assert {one.piece.tile for one in placed[2] if one.piece.whole} == {0, 4}
    assert [one.piece.tile for one in placed[2] if one.block == 1] == [1, 2]


def test_eight_columns_matter_least_to_stream_k():
    before, after = Gemm(1408, 3072, 4096), Gemm(1408, 3080, 4096)
    cost = {k: time(k, after) / time(k, before)
            for k in (kernels.pipelined, *kernels.SPLIT_K[::2], kernels.cublas)}  # fmt: skip
    assert min(cost, key=cost.get) is kernels.stream_k
    times = {k: time(k, after) for k in cost}
    assert min(times, key=times.get) is kernels.stream_k
    assert round(times[kernels.pipelined] / times[kernels.stream_k], 1) == 1.7
    assert kernels.split_k.suggest(after, GPU).split == 8
    gained = {k: times[kernels.pipelined] - times[k] for k in kernels.SPLIT_K[::2]}
    assert 0.7 < gained[kernels.split_k] / gained[kernels.stream_k] < 0.75
    full = time(kernels.stream_k, before) / time(kernels.pipelined, before)
    assert round(100 * (full - 1)) == 3
    assert quantization(after, GPU, (128, 256), per_sm=1).tail == 11


def test_what_the_loop_over_tiles_costs():
    large = Gemm(4096, 4096, 4096)
    ratio = time(kernels.stream_k, large) / time(kernels.pipelined, large)
    assert round(100 * (ratio - 1)) == 2
    assert 2 * kernels.stream_k.default.block[2] == kernels.split_k.default.block[2]


def test_the_gradient_of_weights():
    assert GRADIENT.k == 32 * 512
    assert quantization(GRADIENT, GPU, (128, 256), per_sm=1).tiles == 18
    seen = splits(GRADIENT)
    assert round(100 * (seen[8] / seen[7] - 1)) == 69
    assert round(100 * (seen[15] / seen[14] - 1)) == 36
    assert time(kernels.stream_k, GRADIENT) < 1.02 * min(seen.values())


def test_the_recap():
    tiles = quantization(Gemm(4096, 4096, 4096), GPU, (128, 256), per_sm=1)
    assert (tiles.tiles, tiles.waves) == (512, 4)
    assert round(2 * 4 * 4096**2 / 1e6) == 134
    for count in (1, 7, 18, 143, 512):
        for share in schedule.stream_k(count, 64, GPU.sms):
            assert sum(not piece.whole for piece in share) <= 2
