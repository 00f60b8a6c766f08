"""What the prose of chapter 07 says of records, devices and layouts."""

import numpy as np
import pytest

from gemmlab import device, simulate
from gemmlab.course.ch07_warps_and_fragments import (
    q1_register_rule as register_rule,
    q3_matrix_loads as matrix_loads,
)
from gemmlab.instructions import layout, mma_m16n8k16_f32_f16
from gemmlab.kernels.fragments import WHERE, launch, prefix_sum
from gemmlab.measure.benchmarks import fragment_uses

GPU = device("h200")
USES = [use for use in fragment_uses("h200").rows if use.m == 16]


def use(name, batch):
    return next(u for u in USES if (u.name, u.batch) == (name, batch))


def test_the_figure_of_the_first_page():
    seconds = use("prefix sum", 16384).seconds
    registers, shared, one_by_one = (seconds[where][1] for where in WHERE)
    assert registers < shared < one_by_one
    assert one_by_one > 2 * registers


def test_the_three_versions_return_the_same_bits():
    x = np.random.default_rng(0).standard_normal((4, 16, 16)).astype(np.float16)
    results = []
    for where in WHERE:
        y = np.full((4, 16, 16), np.nan, np.float32)
        unused = np.zeros((4, 16), np.float16)
        simulate(prefix_sum(16, where), *launch(4), x.view(np.uint32), unused, 0, 1, y)
        results.append(y)
    assert all(np.array_equal(results[0], y) for y in results)


def test_registers_of_an_mma():
    counts = [operand.count for operand in mma_m16n8k16_f32_f16.operands]
    assert counts == [4, 2, 4]
    assert 16 * 8 * 16 == 64 * 32


def test_what_a_lane_of_a_v100_holds():
    volta = layout("wmma.m16n16k16", "A", arch="sm_70", major="row").table
    assert len(set(volta[5, :, 0].tolist())) == 1
    assert sorted(volta[5, :, 1].tolist()) == list(range(16))
    alike = [lane for lane in range(32) if np.array_equal(volta[lane], volta[5])]
    assert alike == [5, 13]


@pytest.mark.parametrize(("arch", "lanes"), [("sm_70", 2), ("sm_75", 1), ("sm_90", 1)])
def test_each_element_of_wmma_is_held_twice(arch, lanes):
    where, _ = layout("wmma.m16n16k16", "A", arch=arch, major="row").map(9, 2)
    assert (len(where), len(set(where))) == (2, lanes)


def test_the_rule_of_wmma_is_that_of_mma_and_copies():
    wmma = layout("wmma.m16n16k16", "A", arch="sm_90", major="row").table
    mma = layout("m16n8k16", "A").table
    assert np.array_equal(wmma[:, :8], mma)
    assert np.array_equal(wmma[:, 8:], mma)
    assert register_rule.A.copies == 2
    assert layout("m16n8k16", "A").copies == 1


def test_what_to_find_in_the_explorer():
    a, b, c = (layout("m16n8k16", operand) for operand in "ABC")
    assert a.map(9, 2) == ((5,), (2,))
    assert [b.map(i, 0)[0][0] for i in range(10)] == [0, 0, 1, 1, 2, 2, 3, 3, 0, 0]
    assert np.array_equal(a.table[:, :4], c.table)  # the left half of A is C


def test_the_formulas_of_the_three_maps():
    lane, x = np.arange(32)[:, None], np.arange(8)[None, :]
    g, t = lane // 4, lane % 4
    bit = [x >> n & 1 for n in range(3)]
    formulas = {
        "A": (g + 8 * bit[1], 2 * t + bit[0] + 8 * bit[2]),
        "B": (2 * t + bit[0] + 8 * bit[1], g + 0 * x),
        "C": (g + 8 * bit[1], 2 * t + bit[0]),
    }
    for operand, places in formulas.items():
        table = layout("m16n8k16", operand).table
        expected = np.stack(places, axis=-1)[:, : table.shape[1]]
        assert np.array_equal(table, expected)


def test_six_wavefronts_are_as_few_as_the_bytes_allow():
    assert matrix_loads.WAVEFRONTS == 2 * 16 * (16 + 8) / 128


def test_what_fits_into_l2():
    assert use("prefix sum", 16384).bytes < GPU.l2_bytes < use("prefix sum", 262144).bytes


def test_the_gain_is_in_the_middle():
    names = {u.name for u in USES}
    for name in names:
        gains = {u.batch: u.speedup("shared") for u in USES if u.name == name}
        assert max(gains, key=gains.get) == 16384
        assert gains[max(gains)] < 1.1
        most = use(name, max(gains))
        rates = [most.bytes / most.seconds[where][1] for where in WHERE[:2]]
        assert min(rates) > 0.7 * GPU.dram_bandwidth
    smallest = {name: use(name, 256).speedup("shared") for name in names}
    assert smallest["givens, arguments"] < 1
    assert all(gain > 1 for name, gain in smallest.items() if name != "givens, arguments")
